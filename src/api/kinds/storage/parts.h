#pragma once
// What the rules of volumes and of claims to them have in common. For this folder only.

#include <string_view>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/quantity.h"

namespace dibs::api::volume {

void check_access_modes(const Value& modes, const Path& path, FieldErrors& errors);
/// "must be greater than zero"
void check_positive(const Value& value, const Path& path, FieldErrors& errors);
/// The name of a class, where there is one.
void check_class_name(const Value& name, const Path& path, FieldErrors& errors);
void check_volume_mode(const Value& spec, const Path& path, FieldErrors& errors);
/// The text member `key` must not be empty.
void require(const Value& object, std::string_view key, const Path& path, FieldErrors& errors);

/// The quantity, 0 for what is none.
Quantity amount(const Value& value);

}  // namespace dibs::api::volume
