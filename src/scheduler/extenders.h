#pragma once
// Extenders at work: what HTTP servers say about nodes, victims and bindings.
//
// A pod that an extender is interested in waits for its answers outside of the queue, one pod at a
// time, as extenders of kube-scheduler have it; pods that concern no extender go on meanwhile. So a
// slow extender delays its own pods alone, each for as long as its timeout at most. When the
// answers are there the attempt is made anew, with them, since the cluster has moved on.
//
// Owner: the scheduler's serial executor; answers are posted there.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/extender_config.h"
#include "scheduler/pod.h"
#include "scheduler/preemption.h"

namespace dibs::scheduler {

/// What extenders think of one node.
struct Opinion {
  bool refused = false;
  bool resolvable = false;  // driving pods out could help
  std::string reason = {};  // of a refusal; "": none was given
  std::int64_t score = 0;
};

/// Of all nodes that they were asked about, by name; or why they could not be asked.
struct Opinions {
  std::string error = {};
  std::unordered_map<std::string, Opinion> nodes = {};
};

class Extenders {
 public:
  /// Runs a task on the serial executor, or not at all when the scheduler has ended.
  using Post = std::function<void(std::function<void()> task)>;

  /// A way for each of them. `configs` must outlive it.
  Extenders(const std::vector<ExtenderConfig>& configs,
            std::vector<std::shared_ptr<client::Transport>> ways, Post post);

  /// Whether one of them judges nodes for the pod.
  bool judge(const Pod& pod) const;
  /// Asks one after the other which nodes will do, then all which are the best. `nodes` are whole
  /// objects.
  void ask(const PodPtr& pod, std::vector<json::Value> nodes, std::function<void(Opinions)> done);

  /// Whether one has a say about the victims of the pod.
  bool judge_victims(const Pod& pod) const;
  /// The pod with the uid that is on the node; null: there is none.
  using FindPod = std::function<PodPtr(const std::string& node, std::string_view uid)>;
  void ask_about_victims(const PodPtr& pod, std::vector<Victims> options, FindPod find,
                         std::function<void(Result<std::vector<Victims>>)> done);

  /// Whether one of them binds the pod.
  bool bind_pod(const Pod& pod) const { return binder_of(pod) < configs_.size(); }
  /// False: it failed and may, so that the pod is to be bound as any other. Errors: unavailable
  /// where it may have been bound all the same.
  void bind(const Pod& pod, const std::string& node, std::function<void(Result<bool>)> done);

 private:
  struct Asked;
  struct AskedVictims;
  std::size_t binder_of(const Pod& pod) const;
  void filter(const std::shared_ptr<Asked>& asked, std::size_t next);
  void prioritize(const std::shared_ptr<Asked>& asked);
  void next_victims(const std::shared_ptr<AskedVictims>& asked, std::size_t next);
  void call(std::size_t extender, const std::string& verb, const json::Value& body,
            std::function<void(Result<json::Value>)> then);

  const std::vector<ExtenderConfig>& configs_;
  std::vector<std::shared_ptr<client::Transport>> ways_;
  Post post_;
};

}  // namespace dibs::scheduler
