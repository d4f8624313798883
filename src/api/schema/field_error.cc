#include "api/schema/field_error.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

std::string_view title(Fault fault) {
  switch (fault) {
    case Fault::required:
      return "Required value";
    case Fault::invalid:
      return "Invalid value";
    case Fault::not_supported:
      return "Unsupported value";
    case Fault::duplicate:
      return "Duplicate value";
    case Fault::forbidden:
      return "Forbidden";
    case Fault::too_long:
      return "Too long";
    case Fault::too_many:
      return "Too many";
    case Fault::not_found:
      return "Not found";
    case Fault::type_invalid:
      return "Invalid value";
    case Fault::internal:
      return "Internal error";
  }
  return "";
}

std::string_view cause_reason(Fault fault) {
  switch (fault) {
    case Fault::required:
      return "FieldValueRequired";
    case Fault::invalid:
      return "FieldValueInvalid";
    case Fault::not_supported:
      return "FieldValueNotSupported";
    case Fault::duplicate:
      return "FieldValueDuplicate";
    case Fault::forbidden:
      return "FieldValueForbidden";
    case Fault::too_long:
      return "FieldValueTooLong";
    case Fault::too_many:
      return "FieldValueTooMany";
    case Fault::not_found:
      return "FieldValueNotFound";
    case Fault::type_invalid:
      return "FieldValueTypeInvalid";
    case Fault::internal:
      return "InternalError";
  }
  return "";
}

std::string shown(const json::Value& value) {
  if (value.is_string()) return quoted(value.as_string());
  return json::write(value, true);
}

std::string with_detail(std::string text, std::string_view detail) {
  if (!detail.empty()) append(text, ": ", detail);
  return text;
}

std::string with_value(Fault fault, const json::Value& value, std::string_view detail) {
  return with_detail(cat(title(fault), ": ", shown(value)), detail);
}

}  // namespace

std::string Path::str() const {
  // A default path has neither parent nor name memory: that is the object itself.
  if (parent_ == nullptr && name_.data() == nullptr && form_ == Form::name) return "<nil>";
  std::string out;
  append_to(out);
  return out;
}

void Path::append_to(std::string& out) const {
  bool parent_shows =
      parent_ != nullptr && (parent_->parent_ != nullptr || parent_->name_.data() != nullptr ||
                             parent_->form_ != Form::name);
  if (parent_shows) parent_->append_to(out);
  if (form_ == Form::index) {
    append(out, '[', index_, ']');
  } else if (form_ == Form::key || name_.empty()) {
    append(out, '[', name_, ']');
  } else {
    if (parent_shows) out.push_back('.');
    out.append(name_);
  }
}

void FieldErrors::required(const Path& path, std::string_view detail) {
  add(Fault::required, path, with_detail(std::string(title(Fault::required)), detail));
}

void FieldErrors::invalid(const Path& path, const json::Value& value, std::string_view detail) {
  add(Fault::invalid, path, with_value(Fault::invalid, value, detail));
}

void FieldErrors::not_supported(const Path& path, const json::Value& value,
                                const std::vector<std::string>& supported) {
  std::string detail;
  for (const std::string& item : supported) {
    append(detail, detail.empty() ? "supported values: " : ", ", quoted(item));
  }
  add(Fault::not_supported, path, with_value(Fault::not_supported, value, detail));
}

void FieldErrors::duplicate(const Path& path, const json::Value& value) {
  add(Fault::duplicate, path, with_value(Fault::duplicate, value, {}));
}

void FieldErrors::forbidden(const Path& path, std::string_view detail) {
  add(Fault::forbidden, path, with_detail(std::string(title(Fault::forbidden)), detail));
}

void FieldErrors::too_long(const Path& path, std::size_t limit) {
  add(Fault::too_long, path,
      cat(title(Fault::too_long), ": may not be more than ", limit,
          limit == 1 ? " byte" : " bytes"));
}

void FieldErrors::too_many(const Path& path, std::size_t count, std::size_t limit) {
  add(Fault::too_many, path,
      cat(title(Fault::too_many), ": ", count, ": must have at most ", limit,
          limit == 1 ? " item" : " items"));
}

void FieldErrors::not_found(const Path& path, const json::Value& value) {
  add(Fault::not_found, path, with_value(Fault::not_found, value, {}));
}

void FieldErrors::type_invalid(const Path& path, const json::Value& value,
                               std::string_view detail) {
  add(Fault::type_invalid, path, with_value(Fault::type_invalid, value, detail));
}

void FieldErrors::internal(const Path& path, std::string_view detail) {
  add(Fault::internal, path, with_detail(std::string(title(Fault::internal)), detail));
}

void FieldErrors::add(Fault fault, const Path& path, std::string text) {
  errors_.push_back({fault, path.str(), std::move(text)});
}

Error FieldErrors::to_error(std::string_view kind, std::string_view group,
                            std::string_view name) const {
  ErrorDetails details;
  details.name = name;
  details.group = group;
  details.kind = kind;
  // The message tells an equal fault once, the causes tell it as often as it was found.
  std::vector<std::string> lines;
  for (const FieldError& error : errors_) {
    details.causes.push_back({std::string(cause_reason(error.fault)), error.text, error.field});
    std::string line = cat(error.field, ": ", error.text);
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  std::string message = std::string(kind);
  if (!group.empty()) append(message, '.', group);
  append(message, ' ', quoted(name), " is invalid");
  if (lines.size() == 1) append(message, ": ", lines[0]);
  if (lines.size() > 1) append(message, ": [", join(lines, ", "), "]");
  return Error(Code::invalid, std::move(message), std::move(details));
}

}  // namespace dibs::api
