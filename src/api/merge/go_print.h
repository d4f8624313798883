#pragma once
// Values as Go prints them. Some messages of the API hold a structure in Go's own notation; clients
// and users see it, so ours are spelled the same.

#include <string>
#include <string_view>

#include "json/value.h"

namespace dibs::api {

/// As %v: map[image:x name:c], [a b], text as it stands, <nil>. Keys are sorted.
void append_go_value(std::string& out, const json::Value& value);
std::string go_value(const json::Value& value);

/// As %#v of an untyped value: map[string]interface {}{"a":1}, []interface {}{"x"}, "text".
std::string go_syntax(const json::Value& value);

/// As %T: string, int64, float64, bool, map[string]interface {}, []interface {}, <nil>.
std::string_view go_type(const json::Value& value);

}  // namespace dibs::api
