// Carries out what rollout.h decides.

#include <algorithm>

#include "base/strings.h"
#include "controllers/rollout.h"
#include "controllers/rollout_status.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

class DeploymentController : public Workload {
 public:
  explicit DeploymentController(Environment& environment)
      : Workload(environment, {kDeploymentResource, "Deployment", "deployment-controller"}),
        sets_(watch_children(kReplicaSetResource)),
        pods_(environment.informers.of(kPods, kByController, index_by_controller)) {
    // A Recreate waits for the last pod of the old sets, which changes no set's numbers.
    pods_.add_handler({.removed = [this](const Value& pod) { pod_gone(pod); }});
  }

 protected:
  Result<WorkOutcome> sync(const std::string& key, const Value& deployment) override {
    const Value& selector = deployment["spec"]["selector"];
    if (selector_of(deployment).empty() && selector.is_object()) {
      event(deployment, true, "SelectingAll",
            "This deployment is selecting all pods. A non-empty selector is required.");
      return done();
    }
    RolloutInput input;
    input.deployment = deployment;
    DIBS_TRY(input.sets, claim(deployment, sets_, kReplicaSetResource));
    input.now = now();
    if (deployment["spec"]["strategy"]["type"].as_string() == "Recreate")
      input.old_pods_left = old_pods_left(input);

    const RolloutPlan plan = plan_rollout(input);
    for (const SetWrite& write : plan.writes) {
      DIBS_TRY(const bool go_on, perform(key, deployment, write));
      if (!go_on) return done();
    }
    if (!(plan.deployment["status"] == deployment["status"] &&
          plan.deployment["metadata"] == deployment["metadata"])) {
      // The status is written with the revision annotation: a write of the object itself would
      // raise its generation.
      auto written = write_whole_status(plan.deployment);
      if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    }
    if (plan.again) return WorkOutcome::again_after(*plan.again);
    return done();
  }

 private:
  void pod_gone(const Value& pod) {
    const Value& owner = controller_of(pod);
    if (owner["kind"].as_string() != "ReplicaSet") return;
    const auto set = sets_.get(client::key_of(namespace_of(pod), owner["name"].as_string()));
    if (!set) return;
    const Value& deployment = controller_of(*set);
    if (deployment["kind"].as_string() == kind_.kind)
      reconciler_.add(client::key_of(namespace_of(pod), deployment["name"].as_string()));
  }

  bool old_pods_left(const RolloutInput& input) const {
    const Value new_set = find_new_set(input.deployment, input.sets);
    for (const Value& set : input.sets) {
      if (!new_set.is_null() && uid_of(set) == uid_of(new_set)) continue;
      if (set["status"]["replicas"].as_int() > 0) return true;
      for (const Value& pod : pods_.by_index(kByController, std::string(uid_of(set))))
        if (!is_pod_terminal(pod)) return true;
    }
    return false;
  }

  /// False: the plan does not hold any more.
  Result<bool> perform(const std::string& key, const Value& deployment, const SetWrite& write) {
    const std::string_view name_space = namespace_of(deployment);
    switch (write.verb) {
      case SetWrite::Verb::create: {
        auto created =
            environment_.client.create(kReplicaSetResource, name_space, write.set, writing());
        if (!created.ok()) return create_failed(key, deployment, write.set, created.error());
        break;
      }
      case SetWrite::Verb::update: {
        auto updated =
            environment_.client.update(kReplicaSetResource, name_space, write.set, writing());
        if (!updated.ok()) return std::move(updated).error();
        break;
      }
      case SetWrite::Verb::remove: {
        auto removed =
            environment_.client.remove(kReplicaSetResource, name_space, name_of(write.set),
                                       {.uid = std::string(uid_of(write.set))});
        if (!removed.ok() && !is_gone(removed.error())) return std::move(removed).error();
        break;
      }
    }
    for (const std::string& note : write.notes) event(deployment, false, "ScalingReplicaSet", note);
    return true;
  }

  Result<bool> create_failed(const std::string& key, const Value& deployment, const Value& set,
                             const Error& error) {
    if (is_namespace_ending(error)) return false;
    if (error.code() == Code::already_exists) {
      auto found = environment_.client.get(kReplicaSetResource, namespace_of(set), name_of(set));
      // Ours, made a moment ago and not in the cache yet: it will come and start this again.
      if (found.ok() && controlled_by(*found, deployment) &&
          same_template((*found)["spec"]["template"], deployment["spec"]["template"]))
        return false;
      Value status = deployment["status"];
      status.set("collisionCount", status["collisionCount"].as_int() + 1);
      DIBS_TRY(const Value written, write_status(deployment, status));
      reconciler_.add(key);
      return false;
    }
    const std::string name(name_of(set));
    event(deployment, true, "ReplicaSetCreateError",
          cat("Failed to create new replica set ", quoted(name), ": ", error.message()));
    if (has_progress_deadline(deployment)) {
      DIBS_TRY(const Value written,
               write_status(deployment, with_create_failure(deployment["status"], name,
                                                            error.message(), now())));
    }
    return error;
  }

  client::Informer& sets_;
  client::Informer& pods_;
};

}  // namespace

ControllerPtr make_deployment_controller(Environment& environment) {
  return std::make_unique<DeploymentController>(environment);
}

}  // namespace dibs::controllers
