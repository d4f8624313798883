#pragma once
// The rules that the API declares beside a field, as schema texts say them
// (docs/formats/schema.md). kinds/declared.h judges objects by them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::api {

struct Declared {
  // These end the judgement of the field when they are broken.
  bool required = false;
  bool immutable = false;         // no update changes it
  bool kept = false;              // no update changes it once it is set
  bool stays = false;             // no update sets it or takes it away
  std::string forbidden_without;  // the gate
  std::optional<std::size_t> items;

  bool in_union = false;  // exactly one of those of the type is set
  std::optional<std::size_t> characters;
  std::optional<std::size_t> bytes;
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
  std::string format;
  std::vector<std::string> values;
  /// Of a list: its items are told apart by these members, or as a whole where there are none.
  std::optional<std::vector<std::string>> unique;
  bool same_items = false;  // of such a list: no update adds or removes any
  std::string each_format;  // of the items of a list
  std::vector<std::string> each_values;
  std::string key_format;  // of a map
};

/// Reads the words after the bar of a field's line. Errors: internal.
Result<Declared> read_declared(const std::vector<std::string_view>& words);

}  // namespace dibs::api
