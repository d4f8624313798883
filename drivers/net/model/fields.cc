#include "drivers/net/model/fields.h"

#include <cctype>

#include "base/names.h"
#include "base/strings.h"

namespace dibs::drivers::net {

Error first_fault(const api::FieldErrors& errors) {
  const api::FieldError& first = errors.errors().front();
  return Error::invalid(cat(first.field, ": ", first.text));
}

namespace {

Error wrong_type(const api::Path& path, const json::Value& value, std::string_view type) {
  api::FieldErrors errors;
  errors.invalid(path, value, cat("must be ", type));
  return first_fault(errors);
}

}  // namespace

Result<std::vector<std::string>> read_texts(const json::Value& object, std::string_view key,
                                            const api::Path& parent) {
  std::vector<std::string> texts;
  const json::Value& list = object[key];
  if (list.is_null()) return texts;
  const api::Path path = parent.child(key);
  if (!list.is_array()) return wrong_type(path, list, "a list of strings");
  texts.reserve(list.size());
  for (const json::Value& item : list.items()) {
    if (!item.is_string()) return wrong_type(path.index(texts.size()), item, "a string");
    texts.push_back(item.str());
  }
  return texts;
}

Result<bool> read_flag(const json::Value& object, std::string_view key, const api::Path& parent) {
  const json::Value& value = object[key];
  if (value.is_null() || value.is_boolean()) return value.as_bool();
  return wrong_type(parent.child(key), value, "true or false");
}

bool is_terminating(const json::Value& object) {
  return !object["metadata"]["deletionTimestamp"].is_null();
}

std::string label_value(std::string_view name) {
  name = name.substr(0, kLabelValueMaxLength);
  while (!name.empty() && std::isalnum(static_cast<unsigned char>(name.back())) == 0) {
    name.remove_suffix(1);
  }
  return std::string(name);
}

json::Value texts_value(const std::vector<std::string>& texts) {
  json::Value list = json::Value::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

std::string go_list(const std::vector<std::string>& texts) {
  return cat('[', join(texts, " "), ']');
}

}  // namespace dibs::drivers::net
