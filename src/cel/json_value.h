#pragma once
// JSON trees as values: read in place, without a copy of the tree.

#include "cel/value.h"
#include "json/value.h"

namespace dibs::cel {

/// Objects become maps with string keys, integers ints, other numbers doubles. The value shares the
/// tree, so it may outlive `tree`.
Value json_value(const json::Value& tree);

}  // namespace dibs::cel
