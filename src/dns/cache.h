#pragma once
// Answers of other servers, for as long as they say, and not longer than half a minute.
//
// Bounded in entries and bytes: who was asked for longest ago goes first. One thread's.

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "dns/message.h"

namespace dibs::dns {

class Cache {
 public:
  static constexpr std::size_t kMostEntries = 4096;
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  static constexpr std::uint32_t kLongest = 30;  // seconds

  /// `now` in milliseconds. What is left of each record's time is what the answer says.
  std::optional<Message> find(const std::string& key, std::int64_t now);
  /// Keeps it if it may be kept.
  void put(const std::string& key, const Message& answer, std::int64_t now);
  std::size_t entries() const { return index_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    Message answer;
    std::int64_t since = 0;
    std::int64_t until = 0;
    std::size_t bytes = 0;
  };
  void drop(std::list<Entry>::iterator entry);

  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  std::size_t bytes_ = 0;
};

}  // namespace dibs::dns
