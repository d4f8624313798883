#include "api/devices/named_resources.h"

#include "base/semver.h"
#include "base/strings.h"
#include "cel/environment.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"
#include "cel/libraries/quantity.h"

namespace dibs::api {
namespace {

constexpr int kRelease = 30;

struct Variable {
  const char* name;
  const char* member;  // of an attribute in the API
  const char* type;
};

constexpr Variable kVariables[] = {
    {"attributes.quantity", "quantity", "map(string, kubernetes.Quantity)"},
    {"attributes.bool", "bool", "map(string, bool)"},
    {"attributes.int", "int", "map(string, int)"},
    {"attributes.intslice", "intSlice", "map(string, list(int))"},
    {"attributes.string", "string", "map(string, string)"},
    {"attributes.stringslice", "stringSlice", "map(string, list(string))"},
    {"attributes.version", "version", "map(string, kubernetes.Semver)"},
};

cel::Environment make(int library) {
  cel::Environment made = cel::kubernetes_environment(library);
  cel::add_semver(made, 0);
  for (const Variable& variable : kVariables)
    made.variable(variable.name, cel::Type::parse(variable.type));
  return made;
}

const cel::Environment& language(bool stored) {
  // New expressions must also be understood by the release before.
  static const cel::Environment for_new = make(kRelease - 1);
  static const cel::Environment for_stored = make(kRelease);
  return stored ? for_stored : for_new;
}

/// Upstream prints the number of the attribute as if it were a character: 0 as '\x00', 65 as 'A'.
std::string as_character(std::size_t number) {
  static constexpr std::string_view kLetters = "abtnvfr";  // from 7 on
  static constexpr std::string_view kHex = "0123456789abcdef";
  if (number >= 7 && number <= 13) return cat("'\\", kLetters[number - 7], "'");
  if (number == '\'' || number == '\\') return cat("'\\", static_cast<char>(number), "'");
  if (number >= 0x20 && number < 0x7f) return cat("'", static_cast<char>(number), "'");
  if (number < 0x80) return cat("'\\x", kHex[number >> 4], kHex[number & 15], "'");
  std::string digits;
  for (int shift = 12; shift >= 0; shift -= 4) digits.push_back(kHex[(number >> shift) & 15]);
  return cat("'\\u", digits, "'");
}

cel::Value list_of(const json::Value& items, bool numbers) {
  std::vector<cel::Value> made;
  made.reserve(items.size());
  for (const json::Value& item : items.items())
    made.push_back(numbers ? cel::Value::integer(item.as_int())
                           : cel::Value::borrow(item.as_string()));
  return cel::Value::list(std::move(made));
}

cel::Value value_of(const Variable& variable, const json::Value& value) {
  const std::string_view member = variable.member;
  if (member == "quantity")
    return cel::quantity_value(value.is_string() ? value.as_string()
                                                 : std::to_string(value.as_int()));
  if (member == "bool") return cel::Value::boolean(value.as_bool());
  if (member == "int") return cel::Value::integer(value.as_int());
  if (member == "intSlice") return list_of(value["ints"], true);
  if (member == "string") return cel::Value::borrow(value.as_string());
  if (member == "stringSlice") return list_of(value["strings"], false);
  Result<SemanticVersion> parsed = SemanticVersion::parse(value.as_string());
  if (!parsed.ok())
    return cel::Value::error(cat("parse semantic version: ", parsed.error().message()));
  return cel::semver_value(std::move(*parsed));
}

}  // namespace

Selector compile_named_resources(std::string_view expression, bool stored) {
  Selector made;
  cel::Compilation compiled = language(stored).compile(expression);
  made.type = compiled.type;
  if (compiled.program == nullptr) {
    made.fault = SelectorFault::invalid;
    made.message = cat("compilation failed: ", cel::format_issues(expression, compiled.issues));
    made.issues = std::move(compiled.issues);
  } else if (!compiled.type.is(cel::TypeKind::boolean)) {
    made.fault = SelectorFault::invalid;
    made.message = "must evaluate to bool";
  } else if (!compiled.program->constant_error.empty()) {
    made.fault = SelectorFault::internal;
    made.message = cat("program instantiation failed: ", compiled.program->constant_error);
  } else {
    made.program = std::move(compiled.program);
  }
  return made;
}

void validate_named_resources(std::string_view expression, bool stored, const Path& path,
                              FieldErrors& errors) {
  const Selector selector = compile_named_resources(expression, stored);
  if (selector.fault == SelectorFault::invalid)
    errors.invalid(path, expression, selector.message);
  else if (selector.fault == SelectorFault::internal)
    errors.internal(path, selector.message);
}

NamedResourcesInput NamedResourcesInput::read(const json::Value& attributes) {
  NamedResourcesInput made;
  made.source_ = attributes;
  for (const Variable& variable : kVariables) {
    cel::MapBuilder map;
    std::size_t index = 0;
    for (const json::Value& attribute : made.source_.items()) {
      const std::size_t number = index++;
      const json::Value& value = attribute[variable.member];
      if (value.is_null()) continue;
      cel::Value read = value_of(variable, value);
      if (read.is_error()) {
        const std::string_view type = std::string_view(variable.name).substr(11);
        made.error_ = cat("extract attributes with type ", type, ": attribute ",
                          as_character(number), ": ", read.text());
        return made;
      }
      map.add(cel::Value::borrow(attribute["name"].as_string()), std::move(read));
    }
    made.values_.push_back(map.build());
  }
  return made;
}

DeviceMatch match(const Selector& selector, const NamedResourcesInput& input) {
  if (selector.program == nullptr) return {false, selector.message, 0};
  if (!input.error().empty()) return {false, input.error(), 0};
  cel::Limits limits;
  limits.cost = kSelectorCostLimit;
  return match_of(selector.program->evaluate(input.values(), limits));
}

}  // namespace dibs::api
