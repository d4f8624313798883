#pragma once
// Definitions of apiextensions.k8s.io/v1beta1: no server shows them any more, but a kube-apiserver
// still stores definitions so, because what all versions have in common stands there once.

#include "json/value.h"

namespace dibs::api {

inline constexpr const char* kFormerDefinitions = "apiextensions.k8s.io/v1beta1";

/// As apiextensions.k8s.io/v1.
json::Value definition_from_former(const json::Value& former);

}  // namespace dibs::api
