#pragma once
// Which part of an old object a part of the new one continues.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "api/structural/structural.h"
#include "json/value.h"

namespace dibs::api {

/// A value and the old one in its place, seen through their schema. Lives as long as both.
class OldPart {
 public:
  OldPart(const Schema& schema, const json::Value& value, const json::Value& old)
      : schema_(&schema), value_(&value), old_(&old) {}

  /// Nothing when the member is new, or not of the schema.
  std::optional<OldPart> member(std::string_view key) const;
  /// For each item of the list the old one it continues, or null. Only items of lists of type map
  /// have a past; they are told apart by their keys.
  std::vector<const json::Value*> items() const;
  std::optional<OldPart> item(std::size_t index, const json::Value* old) const;
  /// Equal in all that the schema knows; an object with members it does not know never is.
  bool unchanged() const;
  const json::Value& old() const { return *old_; }

 private:
  const Schema* schema_;
  const json::Value* value_;
  const json::Value* old_;
};

}  // namespace dibs::api
