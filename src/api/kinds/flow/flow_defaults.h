#pragma once
// The FlowSchemas and PriorityLevelConfigurations that every server begins with.
//
// The mandatory ones are what the server cannot be without: their specs are fixed. The suggested
// ones are kept as they are here until somebody changes them and says so by the annotation.

#include <string_view>
#include <vector>

#include "json/value.h"

namespace dibs::api {

inline constexpr std::string_view kFlowGroup = "flowcontrol.apiserver.k8s.io";
inline constexpr std::string_view kFlowAutoUpdate = "apf.kubernetes.io/autoupdate-spec";

/// metadata and spec of each, with all defaults; the mandatory ones too.
const std::vector<json::Value>& default_priority_levels();
const std::vector<json::Value>& default_flow_schemas();
/// "exempt" and "catch-all", of either kind.
bool is_mandatory_flow(std::string_view name);

/// What `existing` has to become to be kept as `wanted`, one of the above, says; null: it is right.
json::Value flow_kept_as(const json::Value& existing, const json::Value& wanted);

}  // namespace dibs::api
