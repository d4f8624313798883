#pragma once
// YAML to Value and back, as Go's sigs.k8s.io/yaml reads and writes it (YAML 1.1 scalars: yes, no,
// on, off, y and n are booleans; 0o17, 017 and 0x1f are numbers; no sexagesimals; times stay text;
// keys become strings; anchors and aliases with a bound on expansion; <<: merges). Nested at most
// 500 deep.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::json {

/// Where keys and items of lists stand, from line 1 on, by their path: "nodes[0].labels". What an
/// alias stands for has no lines of its own.
using YamlLines = std::map<std::string, std::size_t, std::less<>>;

/// The first document of the text; null when there is none. Keys are sorted, as they are upstream
/// after the way through JSON. `duplicates`: keys that occur twice, each as the message `line 8:
/// key "k" already set in map`, and the last one counts; when null a duplicate key is an error.
/// Errors are bad_request with the words of upstream: `yaml: line 2: mapping values are not …`.
/// `lines`, where it is not null, is filled in.
Result<Value> parse_yaml(std::string_view text, std::vector<std::string>* duplicates = nullptr,
                         YamlLines* lines = nullptr);
/// All documents of a stream, empty ones left out.
Result<std::vector<Value>> parse_yaml_stream(std::string_view text);

/// Keys sorted with numbers in them by size, two blanks, lists not indented below their key,
/// strings quoted when they would read back as something else, "|" for text with line breaks, other
/// long text folded after 80 columns. Ends with a line break.
std::string write_yaml(const Value& value);

}  // namespace dibs::json
