#pragma once
// Faults of fields, in the words of the API.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// Where a field is: "spec.containers[0].env[1].name", "metadata.labels[foo]". Lives on the stack:
/// a child points to its parent, which must outlive it; no text is built before str().
class Path {
 public:
  Path() = default;  // the object itself: "<nil>"
  explicit Path(std::string_view name) : name_(name) {}

  Path child(std::string_view name) const { return Path(this, name, Form::name, 0); }
  Path index(std::size_t i) const { return Path(this, {}, Form::index, i); }
  Path key(std::string_view key) const { return Path(this, key, Form::key, 0); }
  std::string str() const;

 private:
  enum class Form : char { name, index, key };
  Path(const Path* parent, std::string_view name, Form form, std::size_t index)
      : parent_(parent), name_(name), form_(form), index_(index) {}
  void append_to(std::string& out) const;

  const Path* parent_ = nullptr;
  std::string_view name_;
  Form form_ = Form::name;
  std::size_t index_ = 0;
};

enum class Fault : char {
  required,       // FieldValueRequired   "Required value"
  invalid,        // FieldValueInvalid    "Invalid value"
  not_supported,  // FieldValueNotSupported "Unsupported value"
  duplicate,      // FieldValueDuplicate  "Duplicate value"
  forbidden,      // FieldValueForbidden  "Forbidden"
  too_long,       // FieldValueTooLong    "Too long"
  too_many,       // FieldValueTooMany    "Too many"
  not_found,      // FieldValueNotFound   "Not found"
  type_invalid,   // FieldValueTypeInvalid "Invalid value"
  internal,       // InternalError        "Internal error"
};

struct FieldError {
  Fault fault;
  std::string field;
  std::string text;  // without the field: `Invalid value: "x": must be …`
};

/// Collects faults in the order found.
class FieldErrors {
 public:
  void required(const Path& path, std::string_view detail = {});
  /// The value is shown as the API does: strings quoted, numbers and booleans plain, objects and
  /// lists as JSON, null as "null".
  void invalid(const Path& path, const json::Value& value, std::string_view detail);
  void not_supported(const Path& path, const json::Value& value,
                     const std::vector<std::string>& supported);
  void duplicate(const Path& path, const json::Value& value);
  void forbidden(const Path& path, std::string_view detail);
  /// "may not be more than N bytes"
  void too_long(const Path& path, std::size_t limit);
  /// "N: must have at most M items"
  void too_many(const Path& path, std::size_t count, std::size_t limit);
  void not_found(const Path& path, const json::Value& value);
  void type_invalid(const Path& path, const json::Value& value, std::string_view detail);
  void internal(const Path& path, std::string_view detail);
  /// Any other form: `text` is all that follows "field: ".
  void add(Fault fault, const Path& path, std::string text);
  /// Something that is let pass, but not in silence.
  void warn(std::string text) { warnings_.push_back(std::move(text)); }

  bool empty() const { return errors_.empty(); }
  std::size_t size() const { return errors_.size(); }
  const std::vector<FieldError>& errors() const { return errors_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// 422 `Kind.group "name" is invalid: …` with one cause per fault; equal faults are told once.
  Error to_error(std::string_view kind, std::string_view group, std::string_view name) const;

 private:
  std::vector<FieldError> errors_;
  std::vector<std::string> warnings_;
};

}  // namespace dibs::api
