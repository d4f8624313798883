#pragma once
// Objects as Go prints its structures. Untyped values: json/go_print.h.
//
// Messages show a whole object in upstream's internal types: Go's names, every member whether set
// or not, the group in place of the version. Schemas say all that (`member=` and the order of the
// lines, docs/formats/schema.md).

#include <string>

#include "api/schema/schema.h"
#include "json/value.h"

namespace dibs::api {

/// %#v: resource.DeviceRequest{Name:"a", Selectors:[]resource.DeviceSelector(nil)}. Where Go would
/// print an address, another one every time, this has one that never changes.
std::string go_syntax(const json::Value& value, const Schema& schema);

/// The JSON that encoding/json makes of the internal type: {"Name":"a","Selectors":null}.
json::Value go_form(const json::Value& value, const Schema& schema);

/// The object itself, with its members in Go's order.
json::Value in_go_order(const json::Value& value, const Schema& schema);

}  // namespace dibs::api
