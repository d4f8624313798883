#pragma once
// Ending a pod for a reason outside of it: its condition says why, an event says that, then it is
// deleted. And who tolerates which taint.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "controllers/controller.h"

namespace dibs::controllers {

struct Eviction {
  std::string component;     // of the event; "" for none
  std::string event_reason;  // "TaintManagerEviction"
  std::string event_note;
  std::string reason;             // of the condition DisruptionTarget
  std::string message;            // of the condition
  bool fail = false;              // a pod that nobody will end is set to Failed
  int grace_period_seconds = -1;  // the pod's own
};

/// True when this call deleted it: not when it is gone, another one, or on its way out already.
Result<bool> evict(Environment& environment, const Value& pod, const Eviction& eviction);

/// Of pods and of devices alike.
bool tolerates_taint(const Value& toleration, const Value& taint);

}  // namespace dibs::controllers
