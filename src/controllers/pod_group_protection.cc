// A deleted PodGroup goes when no pod of it is left that has not ended: the server put a finalizer
// on it (PodGroupProtection), which is taken off here.
#include "base/finalizers.h"
#include "controllers/controllers.h"
#include "controllers/group_claims.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kByActiveGroup = "active-pod-group";

std::vector<std::string> index_active(const Value& pod) {
  std::string key = group_key_of(pod);
  if (key.empty() || is_pod_terminal(pod)) return {};
  return {std::move(key)};
}

class PodGroupProtection : public Controller {
 public:
  PodGroupProtection(Environment& environment, Gvr gvr)
      : environment_(environment),
        gvr_(std::move(gvr)),
        groups_(environment.informers.of(gvr_)),
        pods_(environment.informers.of(kPods, kByActiveGroup, index_active)),
        loop_(environment, "podgroup-protection",
              [this](const std::string& key) { return reconcile(key); }) {
    const auto look = [this](const Value& group) {
      if (is_deleting(group)) loop_.add(client::key_of(group));
    };
    groups_.add_handler({.added = [look](const Value& group, bool) { look(group); },
                         .updated = [look](const Value&, const Value& group) { look(group); }});
    const auto released = [this](const Value& pod) {
      const std::string key = group_key_of(pod);
      if (!key.empty()) loop_.add(key);
    };
    pods_.add_handler({.updated =
                           [released](const Value& before, const Value& after) {
                             if (uid_of(before) != uid_of(after) || is_pod_terminal(after))
                               released(before);
                           },
                       .removed = released});
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto group = groups_.get(key);
    if (!group || !is_deleting(*group) || !has_finalizer(*group, kPodGroupFinalizer) ||
        !pods_.by_index(kByActiveGroup, key).empty()) {
      return done();
    }
    auto written = environment_.client.update(gvr_, namespace_of(*group),
                                              without_finalizer(*group, kPodGroupFinalizer));
    if (!written && !is_gone(written.error())) return std::move(written).error();
    return done();
  }

  Environment& environment_;
  const Gvr gvr_;
  client::Informer& groups_;
  client::Informer& pods_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_pod_group_protection_controller(Environment& environment) {
  const auto groups = environment.discovery.find("scheduling.k8s.io", "podgroups");
  if (!groups) return nullptr;
  return std::make_unique<PodGroupProtection>(environment, groups->gvr);
}

}  // namespace dibs::controllers
