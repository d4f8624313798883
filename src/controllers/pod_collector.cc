// Removes pods that nobody else will: those whose node is gone, those deleted before they had one,
// and the oldest of very many that have ended.
#include <algorithm>

#include "controllers/controllers.h"
#include "controllers/eviction.h"

namespace dibs::controllers {
namespace {

constexpr Duration kSweep = std::chrono::seconds(20);
// A node that comes back within that time finds its pods.
constexpr Duration kQuarantine = std::chrono::seconds(40);
constexpr std::size_t kEndedPods = 12500;

class PodCollector : public Controller {
 public:
  explicit PodCollector(Environment& environment)
      : environment_(environment),
        pods_(environment.informers.of(kPods, kByNode, index_by_node)),
        nodes_(environment.informers.of(kNodes)),
        loop_(
            environment, "pod-garbage-collector", [this](const std::string&) { return sweep(); },
            1) {}

  void start() override { loop_.add("sweep"); }
  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> sweep() {
    const auto pods = pods_.list();
    remove_ended(pods);
    for (const auto& pod : pods) {
      if (is_deleting(pod) && pod["spec"]["nodeName"].as_string().empty()) remove_now(pod);
    }
    remove_lost(pods);
    return WorkOutcome::again_after(kSweep);
  }

  void remove_now(const Value& pod) {
    client::DeleteOptions options;
    options.uid = uid_of(pod);
    options.grace_period_seconds = 0;
    // What fails is found again by the next sweep.
    (void)environment_.client.remove(kPods, namespace_of(pod), name_of(pod), options);
  }

  void remove_ended(const std::vector<Value>& pods) {
    std::vector<Value> ended;
    for (const auto& pod : pods) {
      if (is_pod_terminal(pod) && !is_deleting(pod)) ended.push_back(pod);
    }
    if (ended.size() <= kEndedPods) return;
    std::sort(ended.begin(), ended.end(), [](const Value& a, const Value& b) {
      return a["metadata"]["creationTimestamp"].as_string() <
             b["metadata"]["creationTimestamp"].as_string();
    });
    ended.resize(ended.size() - kEndedPods);
    for (const auto& pod : ended) remove_now(pod);
  }

  void remove_lost(const std::vector<Value>& pods) {
    const Duration now = environment_.runtime.clock.steady();
    std::map<std::string, Duration> missing;
    for (const auto& pod : pods) {
      const std::string node = pod["spec"]["nodeName"].str();
      if (node.empty() || nodes_.get(node)) continue;
      const auto found = missing_.find(node);
      missing[node] = found == missing_.end() ? now : found->second;
    }
    missing_ = missing;
    for (const auto& [node, since] : missing) {
      if (now - since < kQuarantine) continue;
      auto live = environment_.client.get(kNodes, "", node);
      if (live || !is_gone(live.error())) continue;
      for (const auto& pod : pods_.by_index(kByNode, node)) {
        Eviction eviction;
        eviction.reason = "DeletionByPodGC";
        eviction.message = "PodGC: node no longer exists";
        eviction.fail = true;
        eviction.grace_period_seconds = 0;
        (void)evict(environment_, pod, eviction);
      }
    }
  }

  Environment& environment_;
  client::Informer& pods_;
  client::Informer& nodes_;
  std::map<std::string, Duration> missing_;  // used by the sweep only
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_pod_collector(Environment& environment) {
  return std::make_unique<PodCollector>(environment);
}

}  // namespace dibs::controllers
