#pragma once
// The merge of server-side apply: an applied configuration laid over a live object.

#include "api/merge/typed.h"

namespace dibs::api {

/// Everything of both; where both have a leaf, that of `applied`. Nothing is removed. Items of
/// keyed lists and sets merge by what tells them apart; where `applied` has an order, it is kept.
/// The error tells of a list whose items cannot be told apart.
Result<Value> merge_objects(const Value& live, const Value& applied, const Schema& schema);

}  // namespace dibs::api
