#pragma once
// One decision on its way into the API, shared by the parts of Binder: the writes of its claims
// (binding_claims.cc), and all that comes after them (binding.cc).

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/binding.h"

namespace dibs::scheduler {

/// After an answer that did not come.
inline constexpr Duration kLookAgain = std::chrono::seconds(1);
inline constexpr const char* kPreBind = "running PreBind plugin \"DynamicResources\": ";

struct Binder::Run {
  BindJob job;
  std::size_t open = 0;       // claims not written yet
  std::string failure;        // of a claim
  std::vector<int> tries;     // conflicts, by claim
  std::vector<bool> wrote;    // the reservation is, or may be, from here, by claim
  bool counted = false;       // the pod's status says, or may say, what its claims take of the node
  std::size_t postponed = 0;  // claims that another pod allocates, of those not written yet
  bool announced = false;     // the wait for conditions
  bool resting = false;       // it waits, and does not count
  bool landed = false;        // see land()
  bool over = false;
  // For metrics.
  Duration began{0};
  bool counted_claims = false;
  std::optional<Duration> waits_since = {};
  std::set<std::string> conditional = {};  // drivers whose devices have binding conditions
};

}  // namespace dibs::scheduler
