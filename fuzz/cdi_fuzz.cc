// Any bytes as a CDI spec: what is valid is written, in both forms, as something that reads the
// same, and can be applied without harm.
#include "cdi/inject.h"
#include "cdi/spec.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {

int fuzz_cdi(const std::uint8_t* data, std::size_t size) {
  using namespace cdi;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_qualified_name(text).ok();
  const auto spec = parse_spec(text);
  if (!spec.ok()) {
    require(!spec.error().message().empty(), "an error has a message");
    return 0;
  }
  const std::string as_json = write_json(*spec);
  // Not by parse_spec(): to YAML, which it takes JSON for, some characters are line breaks.
  const auto value = json::parse(as_json);
  require(value.ok(), "JSON is JSON");
  const auto from_json = spec_from_value(*value);
  require(from_json.ok() && write_json(*from_json) == as_json, "JSON reads back");
  const auto from_yaml = parse_spec(write_yaml(*from_json));
  require(from_yaml.ok() && write_json(*from_yaml) == as_json, "YAML reads back");
  const bool valid = validate(*spec).ok();
  require(validate(*from_json).ok() == valid, "what is written is as valid");
  if (!valid) return 0;
  json::Value config;
  const auto none = [](const std::string&) -> Result<HostNode> { return Error::internal("none"); };
  (void)apply(spec->edits, config, none).ok();
  for (const auto& device : spec->devices) (void)apply(device.edits, config, none).ok();
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_cdi)
