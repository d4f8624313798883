#pragma once
// Files of variables that one container writes for another (fileKeyRef):
//
//   NAME='value'   # a remark
//
// Values stand in single quotes, are taken as they are, and may go over several lines.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::node {

/// Nothing when the file does not name it. What stands after the key is not looked at.
Result<std::optional<std::string>> env_file_value(std::string_view text, std::string_view key);

}  // namespace dibs::node
