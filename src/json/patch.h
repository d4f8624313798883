#pragma once
// RFC 6901 pointers, RFC 6902 JSON patch and RFC 7396 merge patch.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::json {

/// The value at a pointer ("" is the whole), or nullptr.
const Value* at_pointer(const Value& document, std::string_view pointer);

/// Applies the operations in order; all or nothing. Lenient where Kubernetes is: `replace` of a
/// missing member works, `remove /list/-1` counts from the end, `add` without a value is null,
/// `copy` from a missing member gives null, `test` null on a missing path passes; what stands
/// before the first slash of a path does not count; `add ""` fails; a null patch is a no-op.
/// Errors, with the message of the API: bad_request for a malformed patch, too_large above 10,000
/// operations, invalid for an operation that cannot be applied, for `copy` operations of more than
/// 3 MiB in all, and for a result nested too deeply.
Result<Value> apply_json_patch(const Value& document, const Value& patch);
/// Members of operations that mean nothing, as the API names them: "[0].foo".
std::vector<std::string> unknown_patch_fields(const Value& patch);

/// A patch that is no object replaces the document.
Value apply_merge_patch(const Value& document, const Value& patch);
/// The merge patch that makes `to` out of `from`; {} when nothing has to change. A member of `to`
/// that is null cannot be said in a merge patch: it is removed.
Value make_merge_patch(const Value& from, const Value& to);

/// True when containers are nested more than `most` deep.
bool deeper_than(const Value& value, std::size_t most);

}  // namespace dibs::json
