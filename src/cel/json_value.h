#pragma once
// JSON trees as values: read in place, without a copy of the tree.

#include "base/result.h"
#include "cel/value.h"
#include "json/value.h"

namespace dibs::cel {

/// Objects become maps with string keys, integers ints, other numbers doubles. The value shares the
/// tree, so it may outlive `tree`.
Value json_value(const json::Value& tree);

/// The reverse: objects that an expression has made become objects, text and times strings, bytes
/// base64, numbers too large for a double's precision stay integers. Errors: bad_request with the
/// name of a type that has no JSON.
Result<json::Value> to_json(const Value& value);

}  // namespace dibs::cel
