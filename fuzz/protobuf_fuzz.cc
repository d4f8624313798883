// Any bytes as a protobuf body, with its envelope or without.
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/protobuf.h"
#include "fuzz/targets.h"

namespace dibs::fuzz {

int fuzz_protobuf(const std::uint8_t* data, std::size_t size) {
  using namespace api;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const Schema* const kinds[] = {
      builtin_schema("", "v1", "Pod"), builtin_schema("resource.k8s.io", "v1", "ResourceSlice"),
      builtin_schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition")};
  const auto envelope = open_envelope(bytes);
  const std::string_view message = envelope.ok() ? envelope->raw : bytes;
  for (const Schema* schema : kinds) {
    const auto raw = decode_protobuf(message, *schema);
    if (!raw.ok()) continue;
    std::vector<std::string> strict;
    (void)decode(*raw, *schema, Strictness::ignore, strict);
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_protobuf)
