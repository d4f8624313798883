#pragma once
// From any JSON to an object in normal form, as Go's decoder into the API's structs and its encoder
// back would do it.
//
// Unknown fields are dropped and told. A value of a wrong type is an error in Go's words.
// Quantities become canonical, times lose their offset, zero values of fields that Go omits
// disappear, fields that Go always writes appear. What does not change is shared with the input; an
// object already in normal form comes back as the same node.
//
// One pass; members are taken in the order of the document, so unknown fields are told in that
// order.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// What happens to unknown and duplicate fields: fieldValidation.
enum class Strictness : std::uint8_t { ignore, warn, strict };

/// Errors: bad_request, with the message of Go's decoder, without the words that name the kind.
/// With `strict` unknown fields are an error too: "strict decoding error: unknown field …".
/// `strict_errors` gets each once, at most 100: `unknown field "spec.foo"`; what it holds already
/// (duplicates) comes first in the message.
Result<json::Value> decode(const json::Value& raw, const Schema& schema, Strictness strictness,
                           std::vector<std::string>& strict_errors);

/// The same, but empty lists and maps that were sent stay: rules may tell them from none, though
/// the store does not. Unknown fields are dropped.
Result<json::Value> decode_as_sent(const json::Value& raw, const Schema& schema);

/// The faults of a JSON text in the order of the document, unknown and duplicate fields mixed as Go
/// tells them; needed only when the parser met a duplicate. The text must be valid JSON.
std::vector<std::string> strict_errors_of(std::string_view text, const Schema& schema);

/// "strict decoding error: a, b"
Error strict_error(const std::vector<std::string>& strict_errors);

}  // namespace dibs::api
