#pragma once
// A file in place of flags: YAML whose keys are the names of flags, without their dashes.
//
//     bind: 127.0.0.1:0
//     tls-san: [lab.example, 10.0.0.5]
//
// Values are written as YAML has them: numbers, true and false, text, lists. Text that YAML would
// read as something else (1.30) stands in quotes.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "json/value.h"
#include "json/yaml.h"

namespace dibs::cli {

struct ConfigFile {
  std::string path;
  json::Value values;
  json::YamlLines lines;

  /// "lab.yaml: line 3", of "nodes[0].labels".
  std::string place(std::string_view key) const;
  /// `lab.yaml: line 3: nodes[0].count: must …`
  Error wrong(std::string_view key, std::string_view what) const;
};

/// Errors: bad_request, with the line where there is one.
Result<ConfigFile> read_config(const std::string& path);

/// "bind" for --bind, "name" for NAME.
std::string key_of(const Flag& flag);

/// Sets the flag as the value says. The error says what is wrong, and does not name the flag.
Result<> set_flag(const Flag& flag, const json::Value& value);

/// Whatever is not a key of `known`, which stands below `path` ("": the whole file).
Result<> check_keys(const ConfigFile& file, const json::Value& object, const std::string& path,
                    const std::vector<std::string>& known);

}  // namespace dibs::cli
