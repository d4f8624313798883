// Any bytes as YAML: what could be read is written as YAML that reads the same.
#include "fuzz/targets.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace dibs::fuzz {

int fuzz_yaml(const std::uint8_t* data, std::size_t size) {
  using namespace json;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> duplicates;
  const auto parsed = parse_yaml(text, &duplicates);
  const auto strictly = parse_yaml(text);
  require(strictly.ok() == (parsed.ok() && duplicates.empty()),
          "a duplicate key is an error or noted");
  (void)parse_yaml_stream(text).ok();
  if (!parsed.ok()) {
    require(!parsed.error().message().empty(), "an error has a message");
    return 0;
  }
  // Through JSON: a !!binary value need not be UTF-8.
  const auto value = parse(write(*parsed));
  require(value.ok(), "a value can be written as JSON");
  const auto back = parse_yaml(write_yaml(*value));
  require(back.ok() && *back == *value, "what is written reads back");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_yaml)
