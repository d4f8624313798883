#pragma once
// Shared by the tests of this folder.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "store/store.h"

namespace dibs::store::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "dibs-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline Op put(std::string key, std::string value, std::optional<Revision> expected = {}) {
  return {std::move(key), share(std::move(value)), expected};
}
inline Op removal(std::string key, std::optional<Revision> expected = {}) {
  return {std::move(key), nullptr, expected};
}

/// "a=1 b=2"
inline std::string show(const Listing& listing) {
  std::string out;
  for (const auto& record : listing.records) {
    if (!out.empty()) out += ' ';
    out += cat(record->key, "=", *record->value);
  }
  return out;
}

/// "5+a=1" made, "6~a=2" changed, "7-a" removed.
inline std::string show(const std::vector<EventPtr>& events) {
  std::string out;
  for (const auto& event : events) {
    if (!out.empty()) out += ' ';
    out += std::to_string(event->revision);
    out += !event->now ? '-' : event->before ? '~' : '+';
    out += event->key();
    if (event->now) out += cat("=", *event->now->value);
  }
  return out;
}

}  // namespace dibs::store::testing
