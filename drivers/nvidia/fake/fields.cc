#include "drivers/nvidia/fake/fields.h"

#include <algorithm>

#include "base/did_you_mean.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::drivers::nvidia::fake {

Result<Document> Document::parse(std::string_view text, std::string_view name) {
  Document document;
  document.name_ = name;
  auto root = json::parse_yaml(text, nullptr, &document.lines_);
  if (!root.ok()) return root.error().within(name);
  document.root_ = std::move(*root);
  return document;
}

void Document::complain(std::string_view path, std::string_view why) {
  if (!wrong_.empty()) return;
  wrong_ = name_;
  // A field that is missing is told with the line of what it is missing from.
  for (std::string_view known = path; !known.empty();) {
    if (const auto line = lines_.find(known); line != lines_.end()) {
      append(wrong_, ":", line->second);
      break;
    }
    const std::size_t cut = known.find_last_of(".[");
    known = cut == std::string_view::npos ? std::string_view() : known.substr(0, cut);
  }
  append(wrong_, ": ", path, path.empty() ? "" : ": ", why);
}

Result<> Document::verdict() const {
  if (!wrong_.empty()) return Error::invalid(wrong_);
  return success();
}

Fields::Fields(Document& document, const json::Value& value, std::string path)
    : document_(&document), value_(&value), path_(std::move(path)) {
  if (!value.is_object()) document.complain(path_, "a map of fields is needed");
}

std::string Fields::at(std::string_view name) const {
  return path_.empty() ? std::string(name) : cat(path_, ".", name);
}

void Fields::complain(std::string_view name, std::string_view why) const {
  document_->complain(name.empty() ? path_ : at(name), why);
}

const json::Value* Fields::find(std::string_view name) {
  known_.emplace_back(name);
  const json::Value* value = value_->find(name);
  return value != nullptr && value->is_null() ? nullptr : value;
}

const json::Value* Fields::needed(std::string_view name, bool optional) {
  const json::Value* value = find(name);
  if (value == nullptr && !optional) complain(name, "is missing");
  return value;
}

bool Fields::has(std::string_view name) { return find(name) != nullptr; }

std::string Fields::text(std::string_view name, std::optional<std::string> fallback) {
  const json::Value* value = needed(name, fallback.has_value());
  if (value == nullptr) return fallback.value_or("");
  if (!value->is_string())
    complain(name, "a text is needed (in quotes where it looks like a number)");
  return value->str();
}

std::uint64_t Fields::number(std::string_view name, std::optional<std::uint64_t> fallback,
                             std::uint64_t most) {
  const json::Value* value = needed(name, fallback.has_value());
  if (value == nullptr) return fallback.value_or(0);
  if (!value->is_integer() || value->as_int() < 0) {
    complain(name, "a number is needed, 0 or more");
    return 0;
  }
  const auto number = static_cast<std::uint64_t>(value->as_int());
  if (number > most) complain(name, cat("at most ", most));
  return std::min(number, most);
}

bool Fields::boolean(std::string_view name, bool fallback) {
  const json::Value* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) complain(name, "true or false is needed");
  return value->as_bool();
}

std::uint64_t Fields::bytes(std::string_view name, std::optional<std::uint64_t> fallback) {
  const json::Value* value = needed(name, fallback.has_value());
  if (value == nullptr) return fallback.value_or(0);
  if (value->is_integer() && value->as_int() >= 0) {
    return static_cast<std::uint64_t>(value->as_int());
  }
  const auto quantity = Quantity::parse(value->as_string("?"));
  if (!quantity.ok() || quantity->sign() < 0) {
    complain(name, "an amount of memory is needed, as 40Gi");
    return 0;
  }
  return static_cast<std::uint64_t>(quantity->value());
}

unsigned Fields::choice(std::string_view name, const std::vector<std::string>& words,
                        std::optional<unsigned> fallback) {
  const json::Value* value = needed(name, fallback.has_value());
  if (value == nullptr) return fallback.value_or(0);
  const auto found = std::find(words.begin(), words.end(), value->as_string());
  if (found != words.end()) return static_cast<unsigned>(found - words.begin());
  std::vector<std::string> named;
  for (const std::string& word : words) {
    if (!word.empty()) named.push_back(word);
  }
  complain(name, cat("one of ", join(named, ", "), " is needed",
                     did_you_mean(value->as_string(), named)));
  return fallback.value_or(0);
}

std::vector<std::string> Fields::texts(std::string_view name) {
  std::vector<std::string> texts;
  const json::Value* value = find(name);
  if (value == nullptr) return texts;
  if (!value->is_array()) complain(name, "a list is needed");
  for (const json::Value& item : value->items()) {
    // GPUs are named by index as well.
    if (item.is_integer()) {
      texts.push_back(std::to_string(item.as_int()));
    } else if (item.is_string()) {
      texts.push_back(item.str());
    } else {
      complain(name, "texts are needed");
    }
  }
  return texts;
}

std::vector<std::uint64_t> Fields::numbers(std::string_view name) {
  std::vector<std::uint64_t> numbers;
  const json::Value* value = needed(name, false);
  if (value == nullptr) return numbers;
  if (!value->is_array()) complain(name, "a list of numbers is needed");
  for (const json::Value& item : value->items()) {
    if (!item.is_integer() || item.as_int() < 0) complain(name, "a list of numbers is needed");
    numbers.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(0, item.as_int())));
  }
  return numbers;
}

std::vector<Fields> Fields::list(std::string_view name) {
  std::vector<Fields> list;
  const json::Value* value = find(name);
  if (value == nullptr) return list;
  if (!value->is_array()) complain(name, "a list is needed");
  std::size_t index = 0;
  for (const json::Value& item : value->items()) {
    list.emplace_back(*document_, item, cat(at(name), "[", index++, "]"));
  }
  return list;
}

std::map<std::string, Fields> Fields::map(std::string_view name) {
  std::map<std::string, Fields> map;
  const json::Value* value = find(name);
  if (value == nullptr) return map;
  if (!value->is_object()) complain(name, "a map is needed");
  for (const json::Member& member : value->members()) {
    map.emplace(member.key(), Fields(*document_, member.value(), cat(at(name), ".", member.key())));
  }
  return map;
}

std::optional<Fields> Fields::object(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  return Fields(*document_, *value, at(name));
}

void Fields::no_others() {
  for (const json::Member& member : value_->members()) {
    if (std::find(known_.begin(), known_.end(), member.key()) == known_.end()) {
      complain(member.key(), cat("unknown field", did_you_mean(member.key(), known_)));
    }
  }
}

}  // namespace dibs::drivers::nvidia::fake
