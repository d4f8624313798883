#pragma once
// What a pod counts for while its resources change, and with claims on the node's own resources.

#include "json/value.h"

namespace dibs::scheduler {

/// The pod's spec with the amounts that count: of requests the most of what is asked for, what the
/// node has granted and what containers have (what is asked for does not count once the node has
/// said that it will never have it); claims on the node's own resources as overhead. The spec
/// itself where that is the same, as with nearly all pods.
json::Value counted_spec(const json::Value& pod);

}  // namespace dibs::scheduler
