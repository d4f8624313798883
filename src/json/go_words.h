#pragma once
// Words of Go's encoding/json that its errors show, for others than the parser.

#include <string_view>

#include "json/value.h"

namespace dibs::json {

/// What "cannot unmarshal … into" calls a value: "bool", "number", "array", …
std::string_view go_kind(const Value& value);

}  // namespace dibs::json
