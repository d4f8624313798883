// Carries out what stateful_plan.h decides, and keeps the history of revisions.

#include <algorithm>

#include "base/strings.h"
#include "controllers/revisions.h"
#include "controllers/stateful_claims.h"
#include "controllers/stateful_plan.h"
#include "controllers/volumes/volume_objects.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

class StatefulSetController : public Workload {
 public:
  explicit StatefulSetController(Environment& environment)
      : Workload(environment, {kStatefulSetResource, "StatefulSet", "statefulset-controller"}),
        pods_(watch_children(kPods)),
        revisions_(watch_children(kRevisionResource, false)),
        volume_claims_(environment.informers.of(kVolumeClaims)) {}

 protected:
  Result<WorkOutcome> sync(const std::string& key, const Value& set) override {
    if (!expectations_.satisfied(key, now())) return done();
    StatefulInput input;
    input.set = set;
    DIBS_TRY(input.pods, claim(set, pods_, kPods,
                               [&set](const Value& pod) { return ordinal_of(set, pod) >= 0; }));
    DIBS_TRY(const std::vector<Value> history, claim(set, revisions_, kRevisionResource));
    const RevisionPlan revisions = plan_revisions(set, history, "controller.kubernetes.io/hash");
    if (!is_deleting(set)) DIBS_CHECK(keep_revision(set, revisions));
    input.update_revision = revisions.current;
    input.current_revision = revisions.current;
    for (const Value& revision : revisions.past)
      if (name_of(revision) == set["status"]["currentRevision"].as_string())
        input.current_revision = revision;
    input.now = now();
    if (!is_deleting(set)) {
      // Before pods go: the claims of those scaled away go with them.
      for (const Value& pod : input.pods) DIBS_CHECK(keep_claims(set, pod, revisions.current));
    }

    const StatefulPlan plan = plan_stateful_set(input);
    std::optional<Error> error;
    for (const StatefulPod& wanted : plan.create) {
      auto made = create(key, set, wanted);
      if (made.ok()) continue;
      if (!is_namespace_ending(made.error())) error = std::move(made).error();
      break;
    }
    for (const Value& pod : plan.remove) {
      if (std::find(plan.ended.begin(), plan.ended.end(), name_of(pod)) != plan.ended.end())
        tell_ended(set, pod);
      auto removed = remove(key, set, pod);
      if (!removed.ok()) error = std::move(removed).error();
    }
    if (error) return *error;
    auto written = write_status(set, plan.status);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    if (written.ok()) {
      std::vector<std::string> in_use = {(*written)["status"]["currentRevision"].str(),
                                         (*written)["status"]["updateRevision"].str()};
      for (const Value& pod : input.pods)
        in_use.emplace_back(label_of(pod, "controller-revision-hash"));
      DIBS_CHECK(forget_revisions(set, revisions, in_use));
    }
    if (plan.again) return WorkOutcome::again_after(*plan.again);
    return done();
  }

 private:
  void tell(const Value& set, const char* verb, std::string_view pod, const Error* error) {
    const std::string subject = cat(verb, " Pod ", pod, " in StatefulSet ", name_of(set));
    if (error == nullptr)
      event(set, false, cat("Successful", verb), cat(subject, " successful"));
    else
      event(set, true, cat("Failed", verb), cat(subject, " failed error: ", error->message()));
  }

  void tell_ended(const Value& set, const Value& pod) {
    const bool failed = pod["status"]["phase"].as_string() == "Failed";
    event(set, failed, failed ? "RecreatingFailedPod" : "RecreatingTerminatedPod",
          cat("StatefulSet ", client::key_of(set), " is recreating ",
              failed ? "failed" : "terminated", " Pod ", name_of(pod)));
  }

  Result<> provide_claim(const Value& set, const Value& pod, const Value& volume_claim) {
    if (const auto known = volume_claims_.get(client::key_of(volume_claim))) {
      if (goes_with_former_pod(set, pod, *known) || is_deleting(*known))
        return Error::conflict(cat("pvc ", name_of(volume_claim), " is being deleted"));
      return success();
    }
    auto made =
        environment_.client.create(kVolumeClaims, namespace_of(set), volume_claim, writing());
    if (!made.ok() && made.error().code() == Code::already_exists) return success();
    const std::string subject = cat("Create Claim ", name_of(volume_claim), " Pod ", name_of(pod),
                                    " in StatefulSet ", name_of(set));
    if (made.ok()) {
      event(set, false, "SuccessfulCreate", cat(subject, " success"));
      return success();
    }
    if (!is_namespace_ending(made.error()))
      event(set, true, "FailedCreate", cat(subject, " failed error: ", made.error().message()));
    return std::move(made).error();
  }

  Result<> create(const std::string& key, const Value& set, const StatefulPod& wanted) {
    const std::string_view pod = name_of(wanted.pod);
    for (const Value& volume_claim : wanted.volume_claims)
      DIBS_CHECK(provide_claim(set, wanted.pod, volume_claim));
    expectations_.expect_creations(key, 1, now());
    auto made = environment_.client.create(kPods, namespace_of(set), wanted.pod, writing());
    if (!made.ok()) {
      expectations_.creation_seen(key);
      const bool quiet =
          made.error().code() == Code::already_exists || is_namespace_ending(made.error());
      if (!quiet) tell(set, "Create", pod, &made.error());
      return std::move(made).error();
    }
    tell(set, "Create", pod, nullptr);
    return success();
  }

  /// The claims of a pod that is there: those that are missing, and who owns them.
  Result<> keep_claims(const Value& set, const Value& pod, const Value& revision) {
    const bool starts = pod["status"]["phase"].as_string() == "Pending" && !is_deleting(pod);
    for (const Value& wanted : stateful_pod(set, revision, ordinal_of(set, pod)).volume_claims) {
      const auto claim = volume_claims_.get(client::key_of(wanted));
      if (!claim && starts) DIBS_CHECK(provide_claim(set, pod, wanted));
      if (!claim) continue;
      if (has_other_controller(set, pod, *claim)) {
        event(set, true, "ConflictingController",
              cat("PersistentVolumeClaim ", name_of(wanted),
                  " has a conflicting OwnerReference that acts as a manging controller, the "
                  "retention policy is ignored for this claim"));
      }
      const Value next = retained_claim(set, pod, *claim);
      if (next == *claim) continue;
      auto written = environment_.client.update(kVolumeClaims, namespace_of(set), next, writing());
      if (!written && !is_gone(written.error())) return std::move(written).error();
    }
    return success();
  }

  Result<> remove(const std::string& key, const Value& set, const Value& pod) {
    const std::string uid(uid_of(pod));
    expectations_.expect_deletion(key, uid, now());
    auto removed = environment_.client.remove(kPods, namespace_of(pod), name_of(pod), {.uid = uid});
    if (!removed.ok()) {
      expectations_.deletion_seen(key, uid);
      if (is_gone(removed.error()) || removed.error().code() == Code::conflict) return success();
      tell(set, "Delete", name_of(pod), &removed.error());
      return std::move(removed).error();
    }
    tell(set, "Delete", name_of(pod), nullptr);
    return success();
  }

  client::Informer& pods_;
  client::Informer& revisions_;
  client::Informer& volume_claims_;
};

}  // namespace

ControllerPtr make_stateful_set_controller(Environment& environment) {
  return std::make_unique<StatefulSetController>(environment);
}

}  // namespace dibs::controllers
