#pragma once
// What somebody outside of the server, a webhook or a policy, has made of an object.
//
// He was shown it in one version, through one sub-resource. The way back to what is stored is the
// one of a body that was sent: decoded by its kind, defaults, conversion.

#include "api/expressions/policy_match.h"
#include "api/schema/decode.h"
#include "base/result.h"
#include "server/write.h"

namespace dibs::server {

/// False of streams and bindings, of which there is nothing to change.
bool can_be_changed(const Write& write);

/// The kind of what is shown in that version: of the object, or of the body of the sub-resource.
/// Null: not known.
const api::Schema* shown_schema(const Write& write, const api::ServedAs& served);

/// Takes over `changed`, which was `before` when it was shown in that version; what is unknown of a
/// built-in kind is dropped, or an error. True where the object is another one then. Requires
/// can_be_changed().
Result<bool> take_changed(Write& write, const api::ServedAs& served, const Value& before,
                          Value changed, api::Strictness strictness = api::Strictness::ignore);

/// 500 in upstream's words.
Error internal_error(std::string_view why);

}  // namespace dibs::server
