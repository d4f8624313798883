#pragma once
// Reads the fields of an object one by one and remembers the first that is of a wrong type.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// An absent field is empty, zero or false; so is a null.
class FieldReader {
 public:
  FieldReader(const json::Value& object, std::string path, std::optional<Error>& error)
      : object_(object), path_(std::move(path)), error_(error) {
    if (!object.is_object() && !object.is_null()) fail("", "must be an object");
  }

  std::string text(std::string_view key) const {
    const json::Value& value = object_[key];
    if (!value.is_string() && !value.is_null()) fail(key, "must be a string");
    return value.str();
  }
  bool flag(std::string_view key) const {
    const json::Value& value = object_[key];
    if (!value.is_boolean() && !value.is_null()) fail(key, "must be true or false");
    return value.as_bool();
  }
  std::int64_t number(std::string_view key, std::int64_t least = 0) const {
    const json::Value& value = object_[key];
    if (value.is_null()) return 0;
    if (!value.is_integer()) return fail(key, "must be an integer"), 0;
    if (value.as_int() < least) return fail(key, cat("must be at least ", least)), 0;
    return value.as_int();
  }
  int small_number(std::string_view key) const {
    const std::int64_t value = number(key);
    if (value > std::numeric_limits<int>::max()) return fail(key, "is too large"), 0;
    return static_cast<int>(value);
  }
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> out;
    for (const auto& item : list(key)) {
      if (!item.is_string()) fail(key, "must be a list of strings");
      out.push_back(item.str());
    }
    return out;
  }
  json::Items list(std::string_view key) const {
    const json::Value& value = object_[key];
    if (!value.is_array() && !value.is_null()) fail(key, "must be a list");
    return value.items();
  }
  bool has(std::string_view key) const { return !object_[key].is_null(); }
  FieldReader in(std::string_view key) const {
    return {object_[key], cat(path_, path_.empty() ? "" : ".", key), error_};
  }
  FieldReader item(std::string_view key, std::size_t index) const {
    return {object_[key][index], cat(path_, path_.empty() ? "" : ".", key, "[", index, "]"),
            error_};
  }
  void fail(std::string_view key, std::string_view what) const {
    if (error_) return;
    error_ = Error::invalid(cat(path_, path_.empty() || key.empty() ? "" : ".", key, ": ", what));
  }

 private:
  const json::Value& object_;
  std::string path_;
  std::optional<Error>& error_;
};

}  // namespace dibs::drivers::net
