#pragma once
// Reading fields of custom resources whose schema may have been another: what has the wrong type
// is a fault with the field's name, never a guess. For the files of this library.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// The first fault as an error, "spec.ips[0]: Invalid value: …". Requires one.
Error first_fault(const api::FieldErrors& errors);

/// Absent and null are empty.
Result<std::vector<std::string>> read_texts(const json::Value& object, std::string_view key,
                                            const api::Path& parent);
Result<bool> read_flag(const json::Value& object, std::string_view key, const api::Path& parent);

/// metadata.deletionTimestamp is set.
bool is_terminating(const json::Value& object);

/// As much of a name as the value of a label may hold.
std::string label_value(std::string_view name);

/// A list of texts as a value.
json::Value texts_value(const std::vector<std::string>& texts);
/// As Go's %v prints a list of strings: "[a b]".
std::string go_list(const std::vector<std::string>& texts);

}  // namespace dibs::drivers::net
