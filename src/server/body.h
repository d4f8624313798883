#pragma once
// Request bodies: from bytes to an object of the kind the path asks for.

#include <string>
#include <string_view>

#include "api/schema/kind.h"
#include "base/result.h"
#include "server/context.h"

namespace dibs::server {

/// Levels of an object. Kubernetes takes 10,000, where what is noted of each field (managedFields)
/// grows with the square of it to a gigabyte; YAML has had this bound all along.
inline constexpr std::size_t kMaxDepth = 500;

/// What a body must be.
struct Expected {
  api::GroupVersionKind kind;
  const api::Schema* schema = nullptr;
  const Resource* custom = nullptr;  // for custom resources
  int release = 0;                   // whose kinds are known; 0 for all
};
Expected expected_of(const Resource& resource);

/// A body decoded by its schema, in normal form, without defaults.
struct Decoded {
  Value object;
  Value sent;                     // before it was brought to normal form
  bool forgets_managers = false;  // it empties metadata.managedFields
};

/// What is wrong with the part of a body that says what it is, in Go's words; "" when nothing.
std::string type_meta_fault(const Value& value);

/// Faults that are only strict go
/// by the request's fieldValidation: to its warnings, or into the error. Errors: bad_request,
/// unsupported_media_type.
Result<Decoded> decode_body(Context& context, const Expected& expected);

/// The same for a value that came out of a patch; `strict` lists faults found before, `patch` is
/// how the patch is shown. Errors: invalid.
Result<Decoded> decode_patched(Context& context, const Expected& expected, const Value& raw,
                               std::vector<std::string> strict, std::string_view patch);

/// dryRun, fieldValidation and fieldManager of a write; `options_kind` names them in errors
/// ("CreateOptions").
Result<> read_write_options(Context& context, std::string_view options_kind);

/// The object in a "k8s\0" envelope, of whatever kind it says it is.
Result<Value> parse_protobuf(std::string_view body);

/// Up to 30 bytes of what was sent, for messages about bodies that are not objects.
std::string echo(std::string_view body);

}  // namespace dibs::server
