// Empties nodes of pods that do not tolerate their NoExecute taints, at once or after the time that
// the pods' tolerations give.
#include <set>

#include "base/mutex.h"
#include "base/span.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/eviction.h"

namespace dibs::controllers {
namespace {

constexpr const char* kComponent = "taint-eviction-controller";

struct End {
  bool evict = false;
  Time at;
};

/// When the taints of a node end this pod.
End end_of(const Value& pod, const Value& node, Time now) {
  End end;
  for (const auto& taint : node["spec"]["taints"].items()) {
    if (taint["effect"].as_string() != "NoExecute") continue;
    bool tolerated = false;
    std::optional<std::int64_t> shortest;
    for (const auto& toleration : pod["spec"]["tolerations"].items()) {
      if (!tolerates_taint(toleration, taint)) continue;
      tolerated = true;
      const Value& seconds = toleration["tolerationSeconds"];
      if (seconds.is_null()) continue;
      const auto wait = std::max<std::int64_t>(0, seconds.as_int());
      shortest = shortest ? std::min(*shortest, wait) : wait;
    }
    if (tolerated && !shortest) continue;
    const auto added = parse_rfc3339(taint["timeAdded"].as_string());
    const Time at = tolerated ? (added ? *added : now) + seconds_of(*shortest) : now;
    end.at = end.evict ? std::min(end.at, at) : at;
    end.evict = true;
  }
  return end;
}

class TaintEviction : public Controller {
 public:
  explicit TaintEviction(Environment& environment)
      : environment_(environment),
        nodes_(environment.informers.of(kNodes)),
        pods_(environment.informers.of(kPods, kByNode, index_by_node)),
        loop_(environment, "taint-eviction",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(pods_, [this](const Value& pod) {
      if (!pod["spec"]["nodeName"].as_string().empty()) loop_.add(client::key_of(pod));
    });
    nodes_.add_handler(
        {.added = [this](const Value& node, bool) { changed(Value(), node); },
         .updated = [this](const Value& before, const Value& after) { changed(before, after); }});
  }

  void stop() override { loop_.stop(); }

 private:
  void changed(const Value& before, const Value& after) {
    if (before["spec"]["taints"] == after["spec"]["taints"]) return;
    for (const auto& pod : pods_.by_index(kByNode, std::string(name_of(after)))) {
      loop_.add(client::key_of(pod));
    }
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto pod = pods_.get(key);
    const auto node = pod ? nodes_.get((*pod)["spec"]["nodeName"].str()) : std::nullopt;
    if (!pod || !node || is_deleting(*pod)) {
      forget(key);
      return done();
    }
    const Time now = environment_.runtime.clock.now();
    const End end = end_of(*pod, *node, now);
    if (!end.evict) {
      if (forget(key)) {
        environment_.events.event(kComponent, *pod, false, "TaintManagerEviction",
                                  cat("Cancelling deletion of Pod ", key));
      }
      return done();
    }
    if (end.at > now) {
      const MutexLock lock(mutex_);
      waiting_.insert(key);
      return WorkOutcome::again_after(end.at - now);
    }
    Eviction eviction;
    eviction.component = kComponent;
    eviction.event_reason = "TaintManagerEviction";
    eviction.event_note = cat("Marking for deletion Pod ", key);
    eviction.reason = "DeletionByTaintManager";
    eviction.message = "Taint manager: deleting due to NoExecute taint";
    auto ended = evict(environment_, *pod, eviction);
    if (!ended) return ended.error();
    forget(key);
    return done();
  }

  bool forget(const std::string& key) {
    const MutexLock lock(mutex_);
    return waiting_.erase(key) > 0;
  }

  Environment& environment_;
  client::Informer& nodes_;
  client::Informer& pods_;
  Mutex mutex_;
  std::set<std::string> waiting_ DIBS_GUARDED_BY(mutex_);  // pods with a later end
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_taint_eviction_controller(Environment& environment) {
  return std::make_unique<TaintEviction>(environment);
}

}  // namespace dibs::controllers
