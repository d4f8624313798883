#pragma once
// How the faults of an object become the refusal of a write.

#include <string_view>

#include "api/schema/field_error.h"
#include "server/resource.h"

namespace dibs::server {

/// 422. A fault is a cause as often as it was found; of built-in kinds once, from 1.37 on: those
/// upstream sifts while it compares its rules with the declared ones.
Error refusal_of(const Resource& resource, const api::FieldErrors& errors, std::string_view name);

}  // namespace dibs::server
