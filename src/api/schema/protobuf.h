#pragma once
// Protobuf bodies of the API: the envelope "k8s\0" + runtime.Unknown, and messages by the numbers
// of a Schema.
//
// Decoding gives the JSON that the same object would have, not yet in normal form: decode()
// (decode.h) follows. Numbers that the schema does not know are skipped. Any bytes are safe: depth
// is bounded, sizes are those of the input.

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

struct ProtobufEnvelope {
  std::string api_version;
  std::string kind;
  std::string_view raw;  // into the bytes given
};

bool is_protobuf(std::string_view bytes);
/// Errors: bad_request.
Result<ProtobufEnvelope> open_envelope(std::string_view bytes);
/// A message of the schema's type. apiVersion and kind are not in it: the caller sets them from the
/// envelope.
Result<json::Value> decode_protobuf(std::string_view message, const Schema& schema);

}  // namespace dibs::api
