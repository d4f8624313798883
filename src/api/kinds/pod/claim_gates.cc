// What the gates of dynamic resource allocation take out of pods and of templates of pods.
//
// With its gate off a field is as good as unknown: it is dropped before anything is judged, so even
// a wrong one is accepted. An object that has it already keeps it.
#include "api/kinds/pod/claim_gates.h"
#include "api/kinds/checks.h"
#include "api/schema/features.h"

namespace dibs::api {
namespace {

using Steps = std::vector<const char*>;

constexpr const char* kContainers[] = {"containers", "initContainers", "ephemeralContainers"};
constexpr const char* kStatuses[] = {"containerStatuses", "initContainerStatuses",
                                     "ephemeralContainerStatuses"};

const Value& at(const Value& object, const Steps& steps) {
  const Value* value = &object;
  for (const char* step : steps) value = &(*value)[step];
  return *value;
}

Value& at(Value& object, const Steps& steps) {
  Value* value = &object;
  for (const char* step : steps) value = &value->mut(step);
  return *value;
}

bool any_health(const Value& status, bool message) {
  for (const char* list : kStatuses) {
    for (const Value& container : status[list].items()) {
      if (!message && !container["allocatedResourcesStatus"].empty()) return true;
      for (const Value& entry : container["allocatedResourcesStatus"].items()) {
        for (const Value& health : entry["resources"].items()) {
          if (message && is_set(health, "message")) return true;
        }
      }
    }
  }
  return false;
}

void drop_health(Value& status) {
  for (const char* list : kStatuses) {
    for (std::size_t i = 0; i < status[list].size(); ++i) {
      status.mut(list).mut(i).erase("allocatedResourcesStatus");
    }
  }
}

void drop_health_messages(Value& status) {
  for (const char* list : kStatuses) {
    for (std::size_t i = 0; i < status[list].size(); ++i) {
      std::size_t entries = status[list][i]["allocatedResourcesStatus"].size();
      for (std::size_t e = 0; e < entries; ++e) {
        Value& entry = status.mut(list).mut(i).mut("allocatedResourcesStatus").mut(e);
        for (std::size_t r = 0; r < entry["resources"].size(); ++r) {
          entry.mut("resources").mut(r).erase("message");
        }
      }
    }
  }
}

// Lays the gates over what a kind does with a new or changed object; `spec` leads to the pod's.
void add_gates(KindRules& rules, const Steps& spec) {
  auto create = rules.prepare_create;
  rules.prepare_create = [create, spec](Value& object, const RuleContext& context) {
    if (context.features != nullptr && at(std::as_const(object), spec).is_object()) {
      drop_disabled_pod_claims(at(object, spec), nullptr, *context.features);
    }
    if (create) create(object, context);
  };
  auto update = rules.prepare_update;
  rules.prepare_update = [update, spec](Value& object, const Value& old,
                                        const RuleContext& context) {
    if (context.features != nullptr && at(std::as_const(object), spec).is_object()) {
      drop_disabled_pod_claims(at(object, spec), &at(old, spec), *context.features);
    }
    if (update) update(object, old, context);
  };
}

}  // namespace

void drop_disabled_pod_claims(Value& spec, const Value* old, const Features& features) {
  if (features.on("DynamicResourceAllocation")) return;
  if (old != nullptr && !(*old)["resourceClaims"].empty()) return;
  spec.erase("resourceClaims");
  for (const char* list : kContainers) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      if (!is_set(spec[list][i]["resources"], "claims")) continue;
      spec.mut(list).mut(i).mut("resources").erase("claims");
    }
  }
}

void drop_disabled_pod_status(Value& status, const Value& old, const Features& features) {
  struct Part {
    const char* gate;
    const char* key;
  };
  for (const Part& part :
       {Part{"DRAExtendedResource", "extendedResourceClaimStatus"},
        Part{"DRANodeAllocatableResources", "nodeAllocatableResourceClaimStatuses"}}) {
    if (!features.on(part.gate) && !is_set(old["status"], part.key)) status.erase(part.key);
  }
  if (!features.on("DynamicResourceAllocation") && old["spec"]["resourceClaims"].empty()) {
    status.erase("resourceClaimStatuses");
  }
  if (!features.on("ResourceHealthStatus") && !any_health(old["status"], false)) {
    drop_health(status);
  }
  if (!features.on("ResourceHealthStatusMessage") && !any_health(old["status"], true)) {
    drop_health_messages(status);
  }
}

void add_pod_claim_gates(RuleTable& table) {
  add_gates(table[{"", "Pod"}], {"spec"});
  add_gates(table[{"", "PodTemplate"}], {"template", "spec"});
  const Steps templated = {"spec", "template", "spec"};
  add_gates(table[{"", "ReplicationController"}], templated);
  for (const char* kind : {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}) {
    add_gates(table[{"apps", kind}], templated);
  }
  add_gates(table[{"batch", "Job"}], templated);
  add_gates(table[{"batch", "CronJob"}], {"spec", "jobTemplate", "spec", "template", "spec"});

  KindRules& pods = table[{"", "Pod"}];
  auto status = pods.prepare_status;
  pods.prepare_status = [status](Value& pod, const Value& old, const RuleContext& context) {
    if (status) status(pod, old, context);
    if (context.features != nullptr && pod["status"].is_object()) {
      drop_disabled_pod_status(pod.mut("status"), old, *context.features);
    }
  };
}

}  // namespace dibs::api
