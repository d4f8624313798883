#pragma once
// What a YAML scalar means, by the YAML 1.1 rules as go-yaml has them. Of the json library alone.

#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::json {

enum class YamlTag { none, string, boolean, integer, real, null, timestamp, binary, merge, other };

/// The kind that a tag as libyaml gives it stands for ("" is none).
YamlTag yaml_tag(std::string_view tag);
/// "!!int".
std::string_view short_name(YamlTag tag);

struct YamlScalar {
  YamlTag tag;  // what it was found to be
  Value value;  // a timestamp keeps its text
};

/// What a scalar with an explicit tag, or none, means; nothing when the text does not fit the tag,
/// and `found` is then what the text is.
std::optional<YamlScalar> resolve_yaml(YamlTag tag, std::string_view text, YamlTag& found);
/// True when the text, written without quotes, reads back as a string.
bool is_plain_yaml_string(std::string_view text);

}  // namespace dibs::json
