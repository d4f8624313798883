#pragma once
// Putting back what a version could not show.
//
// A client that reads and writes an object through an older version sends back only what it was
// shown. What it was not shown is not what it deleted.

#include "json/value.h"

namespace dibs::api {

using json::Value;

/// `wanted` with the parts of `existing` that `shown` does not have. `shown` is `existing` as the
/// client saw it, all three in the stored form. A part goes where it was: objects by their members,
/// list elements by their `name`, or by their place where the list has kept its length. Where the
/// client removed the surroundings the part goes with them.
Value restore_hidden(const Value& existing, const Value& shown, const Value& wanted);

}  // namespace dibs::api
