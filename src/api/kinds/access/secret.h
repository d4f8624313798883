#pragma once
// Secrets: what each type must hold.

#include <string>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

inline constexpr std::size_t kMaxSecretSize = 1024 * 1024;

KindRules secret_rules();

/// How many bytes a base64 text stands for.
std::size_t decoded_size(std::string_view base64);

}  // namespace dibs::api
