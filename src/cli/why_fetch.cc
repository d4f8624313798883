// Reads a cluster for dibs why, as far as the user may.
#include <algorithm>

#include "api/kinds/resource/versions/conversion.h"
#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "cli/why_objects.h"
#include "client/resource_versions.h"

namespace dibs::cli {
namespace {

using json::Value;
using Objects = std::vector<Value>;

constexpr const char* kGroup = "resource.k8s.io";

/// DeviceTaintRules, newest first: they came by another way than the rest of the group.
constexpr const char* kRuleVersions[] = {"v1", "v1beta2", "v1alpha3"};

const client::Gvr kVolumeResources[] = {
    {"", "v1", "persistentvolumeclaims"},          {"", "v1", "persistentvolumes"},
    {"storage.k8s.io", "v1", "storageclasses"},    {"storage.k8s.io", "v1", "csinodes"},
    {"storage.k8s.io", "v1", "csidrivers"},        {"storage.k8s.io", "v1", "csistoragecapacities"},
    {"storage.k8s.io", "v1", "volumeattachments"},
};

const client::Gvr kWorkloadResources[] = {
    {"apps", "v1", "deployments"},
    {"apps", "v1", "replicasets"},
    {"apps", "v1", "statefulsets"},
    {"apps", "v1", "daemonsets"},
    {"batch", "v1", "jobs"},
    {"batch", "v1", "cronjobs"},
    {"", "v1", "replicationcontrollers"},
};

class Reader {
 public:
  Reader(client::Client& client, const FetchScope& scope)
      : client_(client), models_(client), scope_(scope) {}

  Result<WhyObjects> read() {
    DIBS_TRY(made_.nodes, of_cluster(client_, {"", "v1", "nodes"}, true, scope_.node_labels));
    if (scope_.inventory) return read_inventory();
    DIBS_TRY(made_.namespaces, of_cluster(client_, {"", "v1", "namespaces"}));
    // Each in the form of its own model, whatever the server serves.
    DIBS_TRY(made_.claims, of_namespaces(models_, {kGroup, "v1", "resourceclaims"}, true));
    DIBS_TRY(made_.templates, of_namespaces(models_, {kGroup, "v1", "resourceclaimtemplates"}));
    DIBS_TRY(made_.classes, of_cluster(models_, {kGroup, "v1", "deviceclasses"}, true));
    DIBS_TRY(made_.slices, of_cluster(models_, {kGroup, "v1", "resourceslices"}, true));
    DIBS_TRY(made_.rules, rules());
    // Who has none of their claims may not be allowed to see them.
    if (std::any_of(made_.claims.begin(), made_.claims.end(), is_classic)) {
      DIBS_TRY(made_.resource_classes,
               of_cluster(client_, {kGroup, "v1alpha2", "resourceclasses"}));
      DIBS_TRY(made_.contexts,
               of_namespaces(client_, {kGroup, "v1alpha2", "podschedulingcontexts"}));
      DIBS_TRY(made_.claim_parameters,
               of_namespaces(client_, {kGroup, "v1alpha2", "resourceclaimparameters"}));
      DIBS_TRY(made_.class_parameters,
               of_namespaces(client_, {kGroup, "v1alpha2", "resourceclassparameters"}));
    }
    // Last, so that a pod that is there has its claims above.
    DIBS_TRY(made_.pods, of_namespaces(client_, {"", "v1", "pods"}));
    DIBS_CHECK(volumes());
    DIBS_CHECK(groups());
    if (scope_.workloads) DIBS_CHECK(workloads());
    DIBS_CHECK(events());
    return std::move(made_);
  }

 private:
  Result<WhyObjects> read_inventory() {
    DIBS_TRY(made_.claims, of_namespaces(models_, {kGroup, "v1", "resourceclaims"}, true));
    DIBS_TRY(made_.slices, of_cluster(models_, {kGroup, "v1", "resourceslices"}, true));
    DIBS_TRY(made_.rules, rules());
    DIBS_TRY(made_.pods, of_namespaces(client_, {"", "v1", "pods"}));
    return std::move(made_);
  }

  static bool missing(const Error& error) { return error.code() == Code::not_found; }
  static bool forbidden(const Error& error) { return error.code() == Code::forbidden; }

  void refuse(const std::string& what, const Error& error, bool needed) {
    made_.refused.push_back(cat(what, " (", error.message(), ")"));
    made_.blind = made_.blind || needed;
  }

  Result<Objects> of_cluster(client::Client& client, const client::Gvr& gvr, bool needed = false,
                             const std::string& labels = {}) {
    client::ListOptions options;
    options.label_selector = labels;
    auto listed = client.list(gvr, "", options);
    if (listed.ok()) return std::move(listed->items);
    if (missing(listed.error())) return Objects();
    if (!forbidden(listed.error())) return listed.error().within(cat("list ", gvr.resource));
    refuse(gvr.resource, listed.error(), needed);
    return Objects();
  }

  Result<Objects> of_namespaces(client::Client& client, const client::Gvr& gvr,
                                bool needed = false) {
    auto all = client.list(gvr, "");
    if (all.ok()) return std::move(all->items);
    if (missing(all.error())) return Objects();
    if (!forbidden(all.error())) return all.error().within(cat("list ", gvr.resource));
    auto some = scope_.name_space.empty() ? std::move(all) : client.list(gvr, scope_.name_space);
    if (some.ok()) {
      refuse(cat(gvr.resource, " of other namespaces"), all.error(), false);
      return std::move(some->items);
    }
    if (!forbidden(some.error())) return some.error().within(cat("list ", gvr.resource));
    refuse(gvr.resource, some.error(), needed);
    return Objects();
  }

  Result<Objects> rules() {
    for (const char* version : kRuleVersions) {
      auto listed = client_.list({kGroup, version, "devicetaintrules"}, "");
      if (!listed.ok() && missing(listed.error())) continue;
      if (!listed.ok() && forbidden(listed.error())) {
        refuse("devicetaintrules", listed.error(), false);
        return Objects();
      }
      if (!listed.ok()) return listed.error().within("list devicetaintrules");
      Objects made;
      const api::Conversion conversion("DeviceTaintRule", version);
      for (const Value& object : listed->items) {
        if (std::string_view(version) == "v1") {
          made.push_back(object);
          continue;
        }
        DIBS_TRY(Value stored, conversion.store(object, nullptr));
        made.push_back(std::move(stored));
      }
      return made;
    }
    return Objects();
  }

  Result<> volumes() {
    const auto& pods = made_.pods;
    if (!scope_.storage && std::none_of(pods.begin(), pods.end(), [](const Value& pod) {
          return !api::pod_volumes(pod).empty();
        })) {
      return success();
    }
    for (const client::Gvr& gvr : kVolumeResources) {
      const bool spaced =
          gvr.resource == "persistentvolumeclaims" || gvr.resource == "csistoragecapacities";
      DIBS_TRY(const Objects found,
               spaced ? of_namespaces(client_, gvr) : of_cluster(client_, gvr));
      made_.volumes.insert(made_.volumes.end(), found.begin(), found.end());
    }
    return success();
  }

  /// Only where a pod names one.
  Result<> groups() {
    if (std::none_of(made_.pods.begin(), made_.pods.end(),
                     [](const Value& pod) { return pod["spec"]["schedulingGroup"].is_object(); })) {
      return success();
    }
    for (const char* version : {"v1beta1", "v1alpha3", "v1alpha2"}) {
      auto listed = client_.list({"scheduling.k8s.io", version, "podgroups"}, "");
      if (!listed.ok() && missing(listed.error())) continue;
      if (!listed.ok() && forbidden(listed.error())) {
        refuse("podgroups", listed.error(), true);
        return success();
      }
      if (!listed.ok()) return listed.error().within("list podgroups");
      made_.groups = std::move(listed->items);
      made_.has_groups = true;
      break;
    }
    if (std::none_of(made_.groups.begin(), made_.groups.end(), [](const Value& group) {
          return group["spec"]["parentCompositePodGroupName"].is_string();
        })) {
      return success();
    }
    auto listed = client_.list({"scheduling.k8s.io", "v1alpha3", "compositepodgroups"}, "");
    // A name of a parent that stayed from a time when they were served means nothing.
    if (!listed.ok() && missing(listed.error())) return success();
    if (!listed.ok() && forbidden(listed.error())) {
      refuse("compositepodgroups", listed.error(), true);
      return success();
    }
    if (!listed.ok()) return listed.error().within("list compositepodgroups");
    made_.composites = std::move(listed->items);
    made_.has_composites = true;
    return success();
  }

  Result<> workloads() {
    for (const client::Gvr& gvr : kWorkloadResources) {
      DIBS_TRY(const Objects found, of_namespaces(client_, gvr));
      made_.workloads.insert(made_.workloads.end(), found.begin(), found.end());
    }
    return success();
  }

  Result<> events() {
    client::ListOptions options;
    options.field_selector = "type=Warning";
    const std::string where = scope_.all_events ? std::string() : scope_.name_space;
    auto listed = client_.list({"", "v1", "events"}, where, options);
    if (!listed.ok() && forbidden(listed.error()) && scope_.all_events) {
      refuse("events of other namespaces", listed.error(), false);
      listed = client_.list({"", "v1", "events"}, scope_.name_space, options);
    }
    if (listed.ok()) {
      made_.events = std::move(listed->items);
    } else if (forbidden(listed.error())) {
      refuse("events", listed.error(), false);
    } else {
      return listed.error().within("list events");
    }
    return success();
  }

  client::Client& client_;
  client::ResourceClient models_;
  const FetchScope& scope_;
  WhyObjects made_;
};

}  // namespace

Result<WhyObjects> fetch_objects(client::Client& client, const FetchScope& scope) {
  return Reader(client, scope).read();
}

}  // namespace dibs::cli
