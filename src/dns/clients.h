#pragma once
// Who asks, and how much of the server each of them may take: a pod that asks without end is told
// nothing for a while, and takes nothing from others.
//
// Bounded: so many are known at a time; who has been quiet is forgotten. One thread's.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "dns/address.h"

namespace dibs::dns {

struct Client {
  double questions = 0;  // that may be asked now
  std::int64_t since = 0;
  bool allowed = false;
  unsigned waiting = 0;      // for other servers
  unsigned connections = 0;  // of TCP
};

class Clients {
 public:
  static constexpr double kPerSecond = 5000;
  static constexpr double kBurst = 10000;
  static constexpr unsigned kMostWaiting = 128;
  static constexpr unsigned kMostConnections = 16;
  static constexpr std::size_t kMostClients = 4096;

  /// `ranges`: of who may ask beside this machine itself; empty: everybody.
  explicit Clients(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}

  /// Counts a question at `now`, in milliseconds. Null when it must not be answered.
  Client* admit(const std::string& address, std::int64_t now);
  /// The same without a question.
  Client* find(const std::string& address, std::int64_t now);
  /// Null when it was forgotten, which nobody is who waits or is connected.
  Client* known(const std::string& address);
  void forget_quiet(std::int64_t now);
  std::size_t size() const { return clients_.size(); }

 private:
  bool is_allowed(const std::string& address) const;

  const std::vector<Range> ranges_;
  std::unordered_map<std::string, Client> clients_;
};

}  // namespace dibs::dns
