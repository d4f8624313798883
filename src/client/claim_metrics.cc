#include "client/claim_metrics.h"

#include <algorithm>

namespace dibs::client {

ClaimsCreated::ClaimsCreated(metrics::Registry& registry)
    : total_(registry.counter("dynamic_resource_allocation_resourceclaim_creates_total",
                              "ResourceClaims that were to be made, by result.",
                              {"status", "admin_access", "owner_api_group", "owner_api_kind"})) {}

void ClaimsCreated::count(const json::Value& claim, bool made) {
  std::string_view group;
  std::string_view kind;
  for (const json::Value& owner : claim["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].as_bool()) continue;
    const std::string_view version = owner["apiVersion"].as_string();
    const std::size_t slash = version.find('/');
    if (slash != std::string_view::npos) group = version.substr(0, slash);
    kind = owner["kind"].as_string();
  }
  total_.with({made ? "success" : "failure", admin_access_of(claim), group, kind}).add();
}

const char* admin_access_of(const json::Value& claim) {
  const auto& requests = claim["spec"]["devices"]["requests"].items();
  // v1beta1 has it in the request itself.
  return std::any_of(requests.begin(), requests.end(),
                     [](const json::Value& request) {
                       return request["exactly"]["adminAccess"].as_bool() ||
                              request["adminAccess"].as_bool();
                     })
             ? "true"
             : "false";
}

}  // namespace dibs::client
