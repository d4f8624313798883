#include <algorithm>

#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

Column make_column(std::string_view name, std::string_view type, std::string_view description) {
  Column column;
  column.name = name;
  column.type = type;
  column.description = description;
  return column;
}

struct Requirement {
  std::string key;
  std::string text;
};

std::string expression_text(const json::Value& expression) {
  std::string key = expression["key"].str();
  std::string_view op = expression["operator"].as_string();
  if (op == "Exists") return key;
  if (op == "DoesNotExist") return "!" + key;
  std::vector<std::string> values;
  for (const json::Value& value : expression["values"].items()) values.push_back(value.str());
  std::sort(values.begin(), values.end());
  return cat(key, op == "NotIn" ? " notin (" : " in (", join(values, ","), ")");
}

std::string join_requirements(std::vector<Requirement> requirements) {
  std::stable_sort(requirements.begin(), requirements.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
  std::string out;
  for (const Requirement& requirement : requirements) {
    append(out, out.empty() ? "" : ",", requirement.text);
  }
  return out.empty() ? "<none>" : out;
}

void add_labels(const json::Value& labels, std::vector<Requirement>& out) {
  for (const auto& [key, value] : labels.members()) {
    out.push_back({std::string(key), cat(key, '=', value.as_string())});
  }
}

}  // namespace

void Row::name() { add(object["metadata"]["name"].as_string()); }
void Row::age() { add(since(object["metadata"]["creationTimestamp"], now)); }

Column name_column() {
  Column column = make_column("Name", "string", "Name of the object, unique in its namespace");
  column.format = "name";
  return column;
}

Column age_column() { return make_column("Age", "string", "Time since the object was created"); }

Column text_column(std::string_view name, std::string_view description) {
  return make_column(name, "string", description);
}

Column integer_column(std::string_view name, std::string_view description) {
  return make_column(name, "integer", description);
}

Column boolean_column(std::string_view name, std::string_view description) {
  return make_column(name, "boolean", description);
}

Column wide(Column column) {
  column.priority = 1;
  return column;
}

std::string age(Time then, Time now) {
  // As in Go: what began before that is as old as can be.
  constexpr Duration kOldest = Duration::max();
  return human_duration(then <= now - kOldest ? kOldest : now - then);
}

std::string since(const json::Value& timestamp, Time now) {
  if (timestamp.as_string().empty()) return "<unknown>";
  auto time = parse_rfc3339(timestamp.as_string());
  if (!time.ok()) return "<unknown>";
  return age(*time, now);
}

std::string text_or(const json::Value& value, std::string_view fallback) {
  std::string_view text = value.as_string();
  return std::string(text.empty() ? fallback : text);
}

std::string yes_or_no(const json::Value& value) {
  if (!value.is_boolean()) return "<unset>";
  return value.as_bool() ? "True" : "False";
}

std::string labels_text(const json::Value& labels) {
  std::vector<Requirement> requirements;
  add_labels(labels, requirements);
  return join_requirements(std::move(requirements));
}

std::string selector_text(const json::Value& selector) {
  std::vector<Requirement> requirements;
  add_labels(selector["matchLabels"], requirements);
  for (const json::Value& expression : selector["matchExpressions"].items()) {
    requirements.push_back({expression["key"].str(), expression_text(expression)});
  }
  return join_requirements(std::move(requirements));
}

std::string containers_text(const json::Value& containers, std::string_view member) {
  std::vector<std::string> pieces;
  for (const json::Value& container : containers.items()) pieces.push_back(container[member].str());
  return join(pieces, ",");
}

std::string joined(const json::Value& list, std::string_view separator) {
  std::vector<std::string> pieces;
  for (const json::Value& item : list.items()) pieces.push_back(item.str());
  return join(pieces, separator);
}

std::string first_three(const std::vector<std::string>& pieces) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown(
      pieces.begin(),
      pieces.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, pieces.size())));
  std::string text = join(shown, ",");
  if (pieces.size() > kShown) append(text, " + ", pieces.size() - kShown, " more...");
  return text.empty() ? "<none>" : text;
}

const json::Value& find_condition(const json::Value& status, std::string_view type) {
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

bool has_condition(const json::Value& status, std::string_view type) {
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == type && condition["status"].as_string() == "True") {
      return true;
    }
  }
  return false;
}

std::string int_or_string(const json::Value& value, std::string_view fallback) {
  if (value.is_integer()) return std::to_string(value.as_int());
  return value.is_string() ? value.str() : std::string(fallback);
}

}  // namespace dibs::api::print
