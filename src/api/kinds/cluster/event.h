#pragma once
// One event, two forms: core/v1 and events.k8s.io/v1 show the same stored object under different
// names.
//
// The core form is the one that is stored. Both functions copy what both forms have and rename the
// rest; nothing is lost either way.

#include "api/schema/kind.h"

namespace dibs::api {

/// An events.k8s.io/v1 Event as core/v1 shows it.
Value event_to_core(const Value& event);
/// A core/v1 Event as events.k8s.io/v1 shows it.
Value event_from_core(const Value& event);

}  // namespace dibs::api
