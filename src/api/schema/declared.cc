#include "api/schema/declared.h"

#include "api/schema/schema_lines.h"
#include "base/strings.h"

namespace dibs::api {

Result<Declared> read_declared(const std::vector<std::string_view>& words) {
  Declared rules;
  for (std::string_view word : words) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    const auto count = static_cast<std::size_t>(number_of(value));
    if (name == "required")
      rules.required = true;
    else if (name == "immutable")
      rules.immutable = true;
    else if (name == "kept")
      rules.kept = true;
    else if (name == "stays")
      rules.stays = true;
    else if (name == "same-items")
      rules.same_items = true;
    else if (name == "union")
      rules.in_union = true;
    else if (name == "forbidden-without")
      rules.forbidden_without = value;
    else if (name == "items")
      rules.items = count;
    else if (name == "length")
      rules.characters = count;
    else if (name == "bytes")
      rules.bytes = count;
    else if (name == "min")
      rules.min = number_of(value);
    else if (name == "max")
      rules.max = number_of(value);
    else if (name == "format")
      rules.format = value;
    else if (name == "enum")
      rules.values = comma_list(value);
    else if (name == "unique")
      rules.unique = comma_list(value);
    else if (name == "each-format")
      rules.each_format = value;
    else if (name == "each-enum")
      rules.each_values = comma_list(value);
    else if (name == "key-format")
      rules.key_format = value;
    else
      return Error::internal(cat("unknown rule \"", name, "\""));
  }
  return rules;
}

}  // namespace dibs::api
