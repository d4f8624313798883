#pragma once
// What an autoscaler remembers of itself, and how far it may go because of it.
//
// What metrics ask for is calmed by what they asked for lately (the stabilization windows), held to
// the rate that policies allow, and to the bounds of the spec. Without spec.behavior there is one
// window, before going down, and one rate, going up: to the double or to four.
//
// Pure but for what it remembers; not thread-safe.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

class ScalingHistory {
 public:
  /// Reason and message of a condition.
  struct Reason {
    std::string_view reason;
    std::string_view message;
  };
  struct Verdict {
    std::int64_t replicas = 0;
    Reason able;
    Reason limit;
    bool limited = false;
  };

  /// The first time: what the target has counts as asked for.
  void begin(std::int64_t replicas, Time now);
  /// Remembers what is desired. `window`: before going down, where the spec does not say.
  Verdict settle(const json::Value& spec, std::int64_t current, std::int64_t desired,
                 Duration window, Time now);
  /// The target has been given another number.
  void scaled(std::int64_t from, std::int64_t to, Time now);

 private:
  struct Entry {
    Time at;
    std::int64_t count = 0;
  };
  struct Bound {
    std::int64_t replicas = 0;
    Reason reason;
  };

  static std::int64_t changed(const std::vector<Entry>& changes, Duration period, Time now);
  std::int64_t limit(const json::Value& rules, std::int64_t current, bool up, Time now) const;
  std::int64_t calmed(const json::Value& behavior, std::int64_t current, std::int64_t desired,
                      Duration window, Time now) const;
  Bound bounded(const json::Value& spec, std::int64_t current, std::int64_t desired,
                Time now) const;

  std::vector<Entry> desired_;  // as metrics asked, oldest first
  std::vector<Entry> added_;
  std::vector<Entry> removed_;
};

}  // namespace dibs::controllers
