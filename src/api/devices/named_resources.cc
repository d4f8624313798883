#include "api/devices/named_resources.h"

#include <array>
#include <vector>

#include "base/semver.h"
#include "base/strings.h"
#include "cel/environment.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"
#include "cel/libraries/quantity.h"

namespace dibs::api {
namespace {

constexpr int kRelease = 30;

cel::Value failure(std::string_view text) { return cel::Value::error(std::string(text)); }

cel::Value read_quantity(const json::Value& value) {
  if (value.is_integer()) return cel::quantity_value(std::to_string(value.as_int()));
  return value.is_string() ? cel::quantity_value(value.as_string()) : failure("must be a quantity");
}

cel::Value read_bool(const json::Value& value) {
  return value.is_boolean() ? cel::Value::boolean(value.as_bool())
                            : failure("must be true or false");
}

cel::Value read_int(const json::Value& value) {
  return value.is_integer() ? cel::Value::integer(value.as_int())
                            : failure("must be a whole number");
}

cel::Value read_string(const json::Value& value) {
  return value.is_string() ? cel::Value::borrow(value.as_string()) : failure("must be a string");
}

cel::Value read_version(const json::Value& value) {
  Result<SemanticVersion> parsed = SemanticVersion::parse(value.as_string());
  if (!parsed.ok()) return failure(cat("parse semantic version: ", parsed.error().message()));
  return cel::semver_value(std::move(*parsed));
}

template <cel::Value (*read)(const json::Value&)>
cel::Value read_list(const json::Value& list) {
  std::vector<cel::Value> items;
  items.reserve(list.size());
  for (const json::Value& item : list.items()) {
    items.push_back(read(item));
    if (items.back().is_error()) return items.back();
  }
  return cel::Value::list(std::move(items));
}
cel::Value read_ints(const json::Value& value) { return read_list<read_int>(value["ints"]); }
cel::Value read_strings(const json::Value& value) {
  return read_list<read_string>(value["strings"]);
}

struct Variable {
  const char* name;
  const char* type;
  const char* field;  // of an attribute that it has
  cel::Value (*read)(const json::Value&);
};

constexpr Variable kVariables[] = {
    {"attributes.quantity", "map(string, kubernetes.Quantity)", "quantity", read_quantity},
    {"attributes.bool", "map(string, bool)", "bool", read_bool},
    {"attributes.int", "map(string, int)", "int", read_int},
    {"attributes.intslice", "map(string, list(int))", "intSlice", read_ints},
    {"attributes.string", "map(string, string)", "string", read_string},
    {"attributes.stringslice", "map(string, list(string))", "stringSlice", read_strings},
    {"attributes.version", "map(string, kubernetes.Semver)", "version", read_version},
};
static_assert(std::size(kVariables) == kNamedVariables);

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

struct InstanceInput::Content {
  json::Value source;  // values refer to it
  std::string error;
  std::array<cel::Value, kNamedVariables> maps;
};

InstanceInput InstanceInput::read(const json::Value& instance) {
  auto made = std::make_shared<Content>();
  made->source = instance;
  for (std::size_t i = 0; i < kNamedVariables; ++i) {
    const Variable& variable = kVariables[i];
    cel::MapBuilder map;
    for (const json::Value& attribute : made->source["attributes"].items()) {
      const json::Value& value = attribute[variable.field];
      if (value.is_null()) continue;
      cel::Value read = variable.read(value);
      if (read.is_error() && made->error.empty())
        made->error = cat("attribute ", attribute["name"].as_string(), ": ", read.text());
      map.add(cel::Value::borrow(attribute["name"].as_string()), std::move(read));
    }
    made->maps[i] = map.build();
  }
  return InstanceInput(std::move(made));
}

const std::string& InstanceInput::error() const { return content_->error; }
std::span<const cel::Value> InstanceInput::variables() const { return content_->maps; }

DeviceMatch match(const Selector& selector, const InstanceInput& instance) {
  if (selector.program == nullptr) return {false, selector.message, 0};
  if (!instance.error().empty()) return {false, instance.error(), 0};
  cel::Limits limits;
  limits.cost = kSelectorCostLimit;
  return match_of(selector.program->evaluate(instance.variables(), limits));
}

}  // namespace dibs::api
