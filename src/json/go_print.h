#pragma once
// Values as Go prints them. Messages of the API hold values in the notation of Go's fmt; clients
// and users see it, so ours are spelled the same.
//
// %q is quoted() of base/strings.h. Structures, whose members have types, are printed by their
// schema: api/schema/go_print.h.

#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::json {

/// %v: map[image:x name:c], [a b], text as it stands, <nil>. Keys are sorted.
std::string go_value(const Value& value);
void append_go_value(std::string& out, const Value& value);

/// %v of a float64: 3, 0.5, 1e+06.
std::string go_float(double number);

/// The keys of the maps that a parser makes: text, or with go-yaml anything.
enum class GoKeys : char { text, any };

/// %#v of an untyped value: map[string]interface {}{"a":1}, []interface {}{"x"}, "text".
std::string go_syntax(const Value& value, GoKeys keys = GoKeys::text);

/// %T: string, int64, float64, bool, map[string]interface {}, []interface {}, <nil>.
std::string_view go_type(const Value& value);

/// What encoding/json calls a value in "cannot unmarshal … into": bool, number, array, null.
std::string_view go_kind(const Value& value);

}  // namespace dibs::json
