#pragma once
// Rules that resource.k8s.io declares beside its fields, from 1.37 on: what is required, how many,
// how it is spelled, what may not change.
//
// They are data (the table in the .cc), walked over an object and, on an update, the one it
// replaces: what has not changed is not judged again. Paths and values are those of the version
// that was written; v1beta1 keeps a request's parts flat and a device's under `basic`.

#include <string_view>

#include "api/schema/features.h"
#include "api/schema/field_error.h"

namespace dibs::api {

struct DeclaredForm {
  bool v1beta1 = false;
};

/// Judges an object of a kind; `old` is null on create.
void check_declared(std::string_view kind, const json::Value& object, const json::Value* old,
                    DeclaredForm form, const Features& features, FieldErrors& errors);

/// A value with its members in the order of the API's own structures, as messages show it.
json::Value in_api_order(const json::Value& value);

}  // namespace dibs::api
