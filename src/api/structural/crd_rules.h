#pragma once
// The rules of CustomResourceDefinition itself: defaults, what the server sets, what must hold.

#include <string>
#include <string_view>

#include "api/schema/kind.h"
#include "api/structural/crd_schema.h"

namespace dibs::api {

/// `cel` compiles the x-kubernetes-validations of schemas; without one they are stored unseen.
KindRules make_definition_rules(CelChecker cel = {});

/// The warning that goes with every answer in a deprecated version; "" for other versions.
std::string deprecation_warning(const Value& definition, std::string_view version);

/// The condition (Established, NamesAccepted, …) of the definition is True.
bool definition_condition(const Value& definition, std::string_view type);

}  // namespace dibs::api
