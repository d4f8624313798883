#pragma once
// The rules of admission kinds, with their expressions compiled when they are written.

#include <string_view>

#include "api/schema/kind.h"

namespace dibs::api {

/// The rules of a kind of admissionregistration.k8s.io.
const KindRules& admission_rules_with_expressions(std::string_view kind);

}  // namespace dibs::api
