// Carries out what daemon_plan.h decides, and keeps the history of revisions.

#include <algorithm>

#include "base/strings.h"
#include "controllers/daemon_plan.h"
#include "controllers/revisions.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kHashLabel = "controller-revision-hash";
constexpr std::size_t kBurst = 250;

class DaemonSetController : public Workload {
 public:
  explicit DaemonSetController(Environment& environment)
      : Workload(environment, {kDaemonSetResource, "DaemonSet", "daemonset-controller"}),
        pods_(watch_children(kPods)),
        revisions_(watch_children(kRevisionResource, false)),
        nodes_(environment.informers.of(kNodes)) {
    nodes_.add_handler(
        {.added = [this](const Value& node, bool) { node_changed(json::null_value(), node); },
         .updated = [this](const Value& before,
                           const Value& after) { node_changed(before, after); },
         .removed = [this](const Value& node) { node_changed(node, json::null_value()); }});
  }

 protected:
  Result<WorkOutcome> sync(const std::string& key, const Value& set) override {
    if (selector_of(set).empty()) {
      event(set, true, "SelectingAll",
            "This daemon set is selecting all pods. A non-empty selector is required.");
      return done();
    }
    DaemonInput input;
    input.set = set;
    DIBS_TRY(input.pods, claim(set, pods_, kPods));
    DIBS_TRY(const std::vector<Value> history, claim(set, revisions_, kRevisionResource));
    const RevisionPlan revisions = plan_revisions(set, history, kHashLabel);
    if (!is_deleting(set)) DIBS_CHECK(keep_revision(set, revisions));
    input.hash = std::string(label_of(revisions.current, kHashLabel));
    input.nodes = nodes_.list();
    std::sort(input.nodes.begin(), input.nodes.end(),
              [](const Value& a, const Value& b) { return name_of(a) < name_of(b); });
    input.now = now();

    const DaemonPlan plan = plan_daemon_set(input);
    std::optional<Error> error;
    if (expectations_.satisfied(key, now())) {
      for (const DaemonPlan::Note& note : plan.notes)
        event(set, note.warning, note.reason, note.message);
      std::vector<Value> wanted;
      for (const std::string& node : plan.create)
        if (wanted.size() < kBurst) wanted.push_back(daemon_pod(set, node, input.hash));
      if (!wanted.empty()) {
        auto created = create_pods(key, set, wanted);
        if (!created.ok()) error = std::move(created).error();
      }
      for (const Value& pod : plan.remove) {
        auto removed = remove_pod(key, set, pod);
        if (!removed.ok()) error = std::move(removed).error();
      }
    }
    auto written = write_status(set, plan.status);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    if (error) return *error;
    if (written.ok() && !is_deleting(set)) {
      std::vector<std::string> in_use;
      for (const Value& pod : input.pods)
        in_use.push_back(cat(name_of(set), "-", label_of(pod, kHashLabel)));
      DIBS_CHECK(forget_revisions(set, revisions, in_use));
    }
    if (plan.again) return WorkOutcome::again_after(*plan.again);
    return done();
  }

 private:
  /// Heartbeats change a node often and matter to no DaemonSet: only one whose answer changes is
  /// looked at.
  void node_changed(const Value& before, const Value& after) {
    if (before["metadata"]["labels"] == after["metadata"]["labels"] &&
        before["spec"]["taints"] == after["spec"]["taints"] && before.is_null() == after.is_null())
      return;
    for (const Value& set : owners_.list()) {
      const DaemonFit was = before.is_null() ? DaemonFit{} : daemon_fit(set, before);
      const DaemonFit is = after.is_null() ? DaemonFit{} : daemon_fit(set, after);
      if (was.start != is.start || was.stay != is.stay) reconciler_.add(client::key_of(set));
    }
  }

  client::Informer& pods_;
  client::Informer& revisions_;
  client::Informer& nodes_;
};

}  // namespace

ControllerPtr make_daemon_set_controller(Environment& environment) {
  return std::make_unique<DaemonSetController>(environment);
}

}  // namespace dibs::controllers
