#include "controllers/group_claims.h"

#include "controllers/controller.h"

namespace dibs::controllers {

using json::Value;

std::string_view group_of_pod(const Value& pod) {
  return pod["spec"]["schedulingGroup"]["podGroupName"].as_string();
}

std::string group_key_of(const Value& pod) {
  const std::string_view name = group_of_pod(pod);
  return name.empty() ? std::string() : client::key_of(namespace_of(pod), name);
}

const Value& group_entry(const Value& group, const PodClaim& entry) {
  for (const Value& item : group["spec"]["resourceClaims"].items()) {
    if (item["name"].as_string() != entry.entry) continue;
    const bool same = entry.template_name.empty()
                          ? item["resourceClaimName"].as_string() == entry.claim
                          : item["resourceClaimTemplateName"].as_string() == entry.template_name;
    if (same) return item;
  }
  return json::null_value();
}

std::string group_claim_name(const Value& group, const Value& entry) {
  if (entry["resourceClaimName"].is_string()) return entry["resourceClaimName"].str();
  for (const Value& status : group["status"]["resourceClaimStatuses"].items()) {
    if (status["name"] == entry["name"]) return status["resourceClaimName"].str();
  }
  return {};
}

bool is_group(const Value& object) { return object["kind"].as_string() == "PodGroup"; }

Value consumer_of(const Value& user) {
  Value made = Value::object();
  if (is_group(user)) made.set("apiGroup", "scheduling.k8s.io");
  made.set("resource", is_group(user) ? "podgroups" : "pods");
  made.set("name", user["metadata"]["name"]);
  made.set("uid", user["metadata"]["uid"]);
  return made;
}

bool is_group_consumer(const Value& consumer) {
  return consumer["resource"].as_string() == "podgroups" &&
         consumer["apiGroup"].as_string() == "scheduling.k8s.io";
}

}  // namespace dibs::controllers
