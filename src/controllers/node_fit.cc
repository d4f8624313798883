#include "controllers/node_fit.h"

#include <algorithm>

#include "api/merge/selectors.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {

bool node_selected(const Value& pod_spec, const Value& node) {
  for (const auto& [key, value] : pod_spec["nodeSelector"].members())
    if (!(node["metadata"]["labels"][key] == value)) return false;
  const Value& required =
      pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  return required.is_null() || api::node_selector_matches(required, node);
}

bool tolerates(const Value& toleration, const Value& taint) {
  const std::string_view effect = toleration["effect"].as_string();
  if (!effect.empty() && effect != taint["effect"].as_string()) return false;
  const std::string_view key = toleration["key"].as_string();
  if (!key.empty() && key != taint["key"].as_string()) return false;
  if (toleration["operator"].as_string() == "Exists") return true;
  return !key.empty() && toleration["value"].as_string() == taint["value"].as_string();
}

bool tolerates_all(const Value& tolerations, const Value& taints, bool no_execute_only) {
  for (const Value& taint : taints.items()) {
    const std::string_view effect = taint["effect"].as_string();
    if (effect != "NoExecute" && (no_execute_only || effect != "NoSchedule")) continue;
    const auto& items = tolerations.items();
    if (std::none_of(items.begin(), items.end(),
                     [&](const Value& toleration) { return tolerates(toleration, taint); }))
      return false;
  }
  return true;
}

}  // namespace dibs::controllers
