#include "controllers/revisions.h"

#include <algorithm>

#include "base/strings.h"
#include "controllers/workload_objects.h"
#include "json/parse.h"

namespace dibs::controllers {

Value revision_data(const Value& owner) {
  Value pod_template = owner["spec"]["template"];
  pod_template.set("$patch", "replace");
  return sorted_members(
      Value::object({{"spec", Value::object({{"template", std::move(pod_template)}})}}));
}

Value revision_template(const Value& revision) {
  Value pod_template = revision["data"]["spec"]["template"];
  pod_template.erase("$patch");
  return pod_template;
}

RevisionPlan plan_revisions(const Value& owner, const std::vector<Value>& revisions,
                            std::string_view hash_label) {
  RevisionPlan plan;
  std::vector<Value> sorted = revisions;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Value& a, const Value& b) {
    const std::int64_t left = a["revision"].as_int(), right = b["revision"].as_int();
    return left != right ? left < right : oldest_first(a, b);
  });
  const Value data = revision_data(owner);
  const std::int64_t last = sorted.empty() ? 0 : sorted.back()["revision"].as_int();
  // The newest of equals: older twins are leftovers.
  const auto found = std::find_if(sorted.rbegin(), sorted.rend(),
                                  [&](const Value& revision) { return revision["data"] == data; });
  if (found != sorted.rend()) {
    plan.current = *found;
    if (plan.current["revision"].as_int() < last) {
      plan.current.set("revision", last + 1);
      plan.update = true;
    }
  } else {
    std::string bytes = json::write(data, true);
    const Value& collisions = owner["status"]["collisionCount"];
    if (collisions.is_integer()) append(bytes, collisions.as_int());
    const std::string hash = safe_encode(fnv1_32(bytes));
    Value labels = owner["spec"]["template"]["metadata"]["labels"];
    labels.set(hash_label, hash);
    Value metadata = Value::object({{"name", cat(name_of(owner), "-", hash)},
                                    {"namespace", owner["metadata"]["namespace"]},
                                    {"labels", std::move(labels)}});
    Value annotations = owner["metadata"]["annotations"];
    annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
    if (!annotations.empty()) metadata.set("annotations", std::move(annotations));
    metadata.set("ownerReferences", Value::array({owner_reference(owner)}));
    plan.current = Value::object({{"apiVersion", "apps/v1"},
                                  {"kind", "ControllerRevision"},
                                  {"metadata", std::move(metadata)},
                                  {"data", data},
                                  {"revision", last + 1}});
    plan.create = true;
  }
  for (const Value& revision : sorted)
    if (name_of(revision) != name_of(plan.current)) plan.past.push_back(revision);
  return plan;
}

std::vector<Value> surplus_revisions(const Value& owner, const std::vector<Value>& past,
                                     const std::vector<std::string>& in_use) {
  std::vector<Value> idle;
  for (const Value& revision : past)
    if (std::find(in_use.begin(), in_use.end(), name_of(revision)) == in_use.end())
      idle.push_back(revision);
  const std::size_t keep =
      static_cast<std::size_t>(owner["spec"]["revisionHistoryLimit"].as_int(10));
  if (idle.size() <= keep) return {};
  idle.resize(idle.size() - keep);
  return idle;
}

}  // namespace dibs::controllers
