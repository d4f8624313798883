#pragma once
// RFC 6902 JSON patch and RFC 7396 merge patch.

#include <string>

#include "base/result.h"
#include "json/value.h"

namespace dibs::json {

/// Why an operation could not be applied, in words that answers to a client do not have.
struct PatchFailure {
  bool is_test = false;  // the operation was a test, and it failed
  std::string why;
};

/// Applies the operations in order; all or nothing. Lenient where Kubernetes is: `replace` of a
/// missing member works, `remove /list/-1` counts from the end, `add` without a value is null,
/// `copy` from a missing member gives null, `test` null on a missing path passes; what stands
/// before the first slash of a path does not count; `add ""` fails; a null patch is a no-op.
/// Errors, with the message of the API: bad_request for a malformed patch, too_large above 10,000
/// operations, invalid for an operation that cannot be applied, for `copy` operations of more than
/// 3 MiB in all, and for a result nested too deeply.
/// `failure`, where given, gets why an operation could not be applied.
Result<Value> apply_json_patch(const Value& document, const Value& patch,
                               PatchFailure* failure = nullptr);

/// A patch that is no object replaces the document.
Value apply_merge_patch(const Value& document, const Value& patch);

/// True when containers are nested more than `most` deep.
bool deeper_than(const Value& value, std::size_t most);

}  // namespace dibs::json
