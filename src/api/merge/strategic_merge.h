#pragma once
// Strategic merge patch: a merge patch that knows which lists are keyed.
//
// Maps merge, null removes. Lists are replaced, but those the schema marks `merge` are united:
// objects by their merge key, scalars as a set. Directives in the patch say more: "$patch": replace
// or delete in a map, or as an item of a list; "$deleteFromPrimitiveList/F" and
// "$setElementOrder/F" beside a list F; "$retainKeys" in a map.

#include "api/schema/schema.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// `original` is in normal form; the result is raw: it may hold what the patch holds, so decode it
/// again. A null patch changes nothing. Errors: plain for a patch that cannot be laid over the
/// object, bad_request for a malformed directive or a patch that is no object, invalid for lists of
/// lists.
Result<json::Value> strategic_merge(const json::Value& original, const json::Value& patch,
                                    const Schema& schema);

}  // namespace dibs::api
