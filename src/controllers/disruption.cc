// The disruption controller: counts what PodDisruptionBudgets allow, and takes back the condition
// DisruptionTarget of pods that stay after all.
#include <algorithm>
#include <map>

#include "api/merge/selectors.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/disruption_plan.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

const Gvr kBudgets = {"policy", "v1", "poddisruptionbudgets"};
constexpr const char* kComponent = "controllermanager";
// A count that failed may succeed without any of its objects changing: a definition comes.
constexpr Duration kFailedRetry = std::chrono::minutes(1);

bool selects(const Value& budget, const Value& pod) {
  const auto selector = api::to_label_selector(budget["spec"]["selector"]);
  return selector.ok() && selector->matches(pod["metadata"]["labels"]);
}

bool is_reference_to(const Value& reference, std::string_view kind,
                     std::initializer_list<std::string_view> groups) {
  return reference["kind"].as_string() == kind &&
         std::find(groups.begin(), groups.end(), group_of(reference["apiVersion"].as_string())) !=
             groups.end();
}

class Disruption : public Controller {
 public:
  explicit Disruption(Environment& environment)
      : environment_(environment),
        budgets_(environment.informers.of(kBudgets, kByNamespace, client::index_by_namespace)),
        pods_(environment.informers.of(kPods, kByNamespace, client::index_by_namespace)),
        controllers_(environment.informers.of(kReplicationControllerResource)),
        sets_(environment.informers.of(kReplicaSetResource)),
        deployments_(environment.informers.of(kDeploymentResource)),
        stateful_sets_(environment.informers.of(kStatefulSetResource)),
        loop_(environment, "disruption", [this](const std::string& key) { return count(key); }),
        stale_(environment, "stale-disruption",
               [this](const std::string& key) { return take_back(key); }) {
    loop_.follow(budgets_);
    loop_.follow(pods_, [this](const Value& pod) { pod_seen(pod); });
    // Pods follow the number of an owner, and may be seen before it.
    for (client::Informer* owners : {&controllers_, &sets_, &deployments_, &stateful_sets_})
      owners->add_handler({.updated = [this](const Value& before, const Value& after) {
        if (!(before["spec"]["replicas"] == after["spec"]["replicas"])) owner_scaled(after);
      }});
  }

  void stop() override {
    loop_.stop();
    stale_.stop();
  }

 private:
  void pod_seen(const Value& pod) {
    std::vector<std::string> found;
    for (const Value& budget : budgets_.by_index(kByNamespace, std::string(namespace_of(pod)))) {
      if (!selects(budget, pod)) continue;
      loop_.add(client::key_of(budget));
      found.push_back(cat('"', name_of(budget), '"'));
    }
    if (found.size() > 1)
      environment_.events.event(
          kComponent, pod, true, "MultiplePodDisruptionBudgets",
          cat("Pod \"", namespace_of(pod), "\"/\"", name_of(pod),
              "\" matches multiple PodDisruptionBudgets: ", join(found, ", ")));
    if (const auto wait = until_disruption_is_stale(pod, now()))
      stale_.add_after(client::key_of(pod), *wait);
  }

  void owner_scaled(const Value& owner) {
    for (const Value& budget : budgets_.by_index(kByNamespace, std::string(namespace_of(owner))))
      if (needs_scale(budget)) loop_.add(client::key_of(budget));
  }

  Result<WorkOutcome> count(const std::string& key) {
    const auto budget = budgets_.get(key);
    if (!budget) return done();
    auto counted = counted_status(*budget);
    if (!counted.status.ok()) {
      event(*budget, true, "CalculateExpectedPodCountFailed",
            cat("Failed to calculate the number of expected pods: ",
                counted.status.error().message()));
      DIBS_CHECK(
          write(*budget, failed_budget_status(*budget, counted.status.error().message(), now())));
      return WorkOutcome::again_after(kFailedRetry);
    }
    DIBS_CHECK(write(*budget, *counted.status));
    if (counted.recheck) return WorkOutcome::again_after(*counted.recheck);
    return done();
  }

  struct Counted {
    Result<Value> status;
    std::optional<Duration> recheck = {};
  };

  Counted counted_status(const Value& budget) {
    std::vector<Value> pods;
    for (const Value& pod : pods_.by_index(kByNamespace, std::string(namespace_of(budget))))
      if (selects(budget, pod)) pods.push_back(pod);
    if (pods.empty()) event(budget, false, "NoPods", "No matching pods found");

    auto expected = needs_scale(budget) ? scale_of_owners(budget, pods)
                                        : Result<std::int64_t>(std::ssize(pods));
    if (!expected.ok()) return {std::move(expected).error()};
    auto demand = demand_of(budget, *expected);
    if (!demand.ok()) return {std::move(demand).error()};

    const Disrupted disrupted = still_disrupted(budget, pods, now());
    for (const Value& pod : disrupted.stayed)
      event(pod, true, "NotDeleted",
            cat("Pod was expected by PDB ", namespace_of(budget), "/", name_of(budget),
                " to be deleted but it wasn't"));
    return {
        budget_status(budget, *demand, count_healthy(pods, disrupted.pods), disrupted.pods, now()),
        disrupted.recheck};
  }

  /// The sum over the controllers of the pods. Those of no controller are left out, and told.
  Result<std::int64_t> scale_of_owners(const Value& budget, const std::vector<Value>& pods) {
    std::map<std::string, std::int64_t, std::less<>> scales;  // by uid of what is scaled
    std::map<std::string, bool, std::less<>> asked;           // uids of the pods' controllers
    bool unmanaged = false;
    for (const Value& pod : pods) {
      const Value& controller = controller_of(pod);
      if (controller.is_null()) {
        unmanaged = true;
        continue;
      }
      if (!asked.emplace(controller["uid"].str(), true).second) continue;
      DIBS_TRY(const auto found, scale_of(controller, std::string(namespace_of(pod))));
      if (!found) return Error::plain(cat("found no controllers for pod \"", name_of(pod), '"'));
      scales[found->uid] = found->replicas;
    }
    if (unmanaged)
      event(budget, true, "UnmanagedPods",
            cat("Pods selected by this PodDisruptionBudget (selector: ",
                selector_words(budget["spec"]["selector"]),
                ") were found to be unmanaged. As a result, the status of the PDB cannot be "
                "calculated correctly, which may result in undefined behavior. To account for "
                "these pods please set \".spec.minAvailable\" field of the PDB to an integer "
                "value."));
    std::int64_t sum = 0;
    for (const auto& [uid, replicas] : scales) sum += replicas;
    return sum;
  }

  struct Scale {
    std::string uid;
    std::int64_t replicas = 0;
  };
  using MaybeScale = std::optional<Scale>;

  /// Nothing where the controller is gone, or is another by now.
  Result<MaybeScale> scale_of(const Value& reference, const std::string& name_space) {
    if (is_reference_to(reference, "ReplicationController", {""}))
      return known_scale(controllers_, reference, name_space);
    if (is_reference_to(reference, "StatefulSet", {"apps"}))
      return known_scale(stateful_sets_, reference, name_space);
    if (is_reference_to(reference, "ReplicaSet", {"apps", "extensions"})) {
      const auto set = referenced(sets_, reference, name_space);
      if (!set) return MaybeScale();
      const Value& owner = controller_of(*set);
      if (is_reference_to(owner, "Deployment", {"apps", "extensions"}))
        return known_scale(deployments_, owner, name_space);
      return MaybeScale({reference["uid"].str(), (*set)["spec"]["replicas"].as_int(1)});
    }
    return asked_scale(reference, name_space);
  }

  static std::optional<Value> referenced(const client::Informer& owners, const Value& reference,
                                         const std::string& name_space) {
    auto owner = owners.get(client::key_of(name_space, reference["name"].as_string()));
    if (owner && uid_of(*owner) != reference["uid"].as_string()) owner.reset();
    return owner;
  }

  static MaybeScale known_scale(const client::Informer& owners, const Value& reference,
                                const std::string& name_space) {
    const auto owner = referenced(owners, reference, name_space);
    if (!owner) return std::nullopt;
    return Scale{reference["uid"].str(), (*owner)["spec"]["replicas"].as_int(1)};
  }

  /// Of any other kind: what its scale says.
  Result<MaybeScale> asked_scale(const Value& reference, const std::string& name_space) {
    const std::string_view version = reference["apiVersion"].as_string();
    const std::string_view kind = reference["kind"].as_string();
    auto served = environment_.discovery.find_kind(version, kind);
    if (!served) {
      // Of a definition that came after the last look.
      DIBS_CHECK(environment_.discovery.refresh_at_times(environment_.client,
                                                         environment_.runtime.clock.steady()));
      served = environment_.discovery.find_kind(version, kind);
    }
    if (!served)
      return Error::plain(cat("no matches for kind \"", kind, "\" in version \"", version, '"'));
    auto scale =
        environment_.client.get(served->gvr, name_space, reference["name"].as_string(), "scale");
    if (!scale.ok()) {
      if (!is_gone(scale.error())) return std::move(scale).error();
      DIBS_TRY(const bool scales, has_scale(served->gvr));
      if (scales) return MaybeScale();
      return Error::plain(cat(served->gvr.resource, served->gvr.group.empty() ? "" : ".",
                              served->gvr.group, " does not implement the scale subresource"));
    }
    if (uid_of(*scale) != reference["uid"].as_string()) return MaybeScale();
    return MaybeScale({reference["uid"].str(), (*scale)["spec"]["replicas"].as_int()});
  }

  /// A scale that is not found is of no object, or of a kind that has none.
  Result<bool> has_scale(const Gvr& gvr) {
    DIBS_TRY(const Value list,
             environment_.client.call(client::make_request(
                 "GET", gvr.group.empty() ? cat("/api/", gvr.version)
                                          : cat("/apis/", gvr.group, "/", gvr.version))));
    const std::string wanted = cat(gvr.resource, "/scale");
    for (const Value& resource : list["resources"].items())
      if (resource["name"].as_string() == wanted) return true;
    return false;
  }

  /// Over the object as it is known: an eviction in between starts the count again.
  Result<> write(const Value& budget, const Value& status) {
    if (budget["status"] == status) return success();
    Value changed = budget;
    changed.set("status", status);
    auto written = environment_.client.update_status(kBudgets, namespace_of(budget), changed);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    return success();
  }

  Result<WorkOutcome> take_back(const std::string& key) {
    const auto pod = pods_.get(key);
    if (!pod) return done();
    const auto wait = until_disruption_is_stale(*pod, now());
    if (!wait) return done();
    if (*wait > Duration(0)) return WorkOutcome::again_after(*wait);
    Value condition = Value::object({{"type", "DisruptionTarget"}, {"status", "False"}});
    if (const auto generation = (*pod)["metadata"]["generation"].as_int(); generation != 0)
      condition.set("observedGeneration", generation);
    condition.set("lastProbeTime", nullptr);
    condition.set("lastTransitionTime", format_rfc3339(now()));
    Value conditions = without_condition((*pod)["status"]["conditions"], "DisruptionTarget");
    conditions.push(std::move(condition));
    Value changed = *pod;
    changed.mut("status").set("conditions", std::move(conditions));
    auto written = environment_.client.update_status(kPods, namespace_of(*pod), changed);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    return done();
  }

  void event(const Value& regarding, bool warning, const char* reason, const std::string& note) {
    environment_.events.event(kComponent, regarding, warning, reason, note);
  }
  Time now() const { return environment_.runtime.clock.now(); }

  Environment& environment_;
  client::Informer& budgets_;
  client::Informer& pods_;
  client::Informer& controllers_;
  client::Informer& sets_;
  client::Informer& deployments_;
  client::Informer& stateful_sets_;
  Reconciler loop_;
  Reconciler stale_;  // pods whose condition has to be taken back
};

}  // namespace

ControllerPtr make_disruption_controller(Environment& environment) {
  if (!environment.discovery.serves(kBudgets.group, kBudgets.resource)) return nullptr;
  return std::make_unique<Disruption>(environment);
}

}  // namespace dibs::controllers
