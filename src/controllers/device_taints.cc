// Evicts pods from tainted devices.
//
// A device is tainted by its ResourceSlice or by a DeviceTaintRule. A NoExecute taint ends the pods
// that hold the device, at once or after the time that the allocation's tolerations give them; only
// tolerations with exactly that effect count here. Each rule's status tells what it has done.
#include <set>

#include "base/mutex.h"
#include "base/span.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/device_counts.h"
#include "controllers/eviction.h"
#include "controllers/group_claims.h"
#include "controllers/pod_claims.h"

namespace dibs::controllers {
namespace {

constexpr const char* kComponent = "device-taint-eviction-controller";
constexpr const char* kGroup = "resource.k8s.io";
constexpr const char* kByClaim = "claims";
constexpr const char* kByPool = "pool";
constexpr const char* kByAllocatedPool = "allocated-pool";
constexpr std::string_view kPodKey = "pod:";
constexpr std::string_view kRuleKey = "rule:";
constexpr Duration kRuleDelay = std::chrono::milliseconds(200);

std::string pool_key(const Value& driver, const Value& pool) {
  return cat(driver.as_string(), '/', pool.as_string());
}

std::vector<std::string> index_slice(const Value& slice) {
  return {pool_key(slice["spec"]["driver"], slice["spec"]["pool"]["name"])};
}

const Value& results_of(const Value& claim) {
  return claim["status"]["allocation"]["devices"]["results"];
}

std::vector<std::string> index_allocated(const Value& claim) {
  std::set<std::string> pools;
  for (const auto& result : results_of(claim).items()) {
    pools.insert(pool_key(result["driver"], result["pool"]));
  }
  return {pools.begin(), pools.end()};
}

std::vector<std::string> index_pod(const Value& pod) {
  std::vector<std::string> out;
  for (const auto& name : claim_names(pod)) out.push_back(client::key_of(namespace_of(pod), name));
  return out;
}

/// By its owner, which is the pod or its group.
bool is_made_for(const Value& claim, const Value& pod) {
  if (is_owned_by(claim, pod)) return true;
  const Value& owner = controller_of(claim);
  const std::string_view group = group_of_pod(pod);
  return !group.empty() && owner["kind"].as_string() == "PodGroup" &&
         owner["name"].as_string() == group;
}

bool selects(const Value& rule, const Value& result) {
  return selects_device(rule, result["driver"].as_string(), result["pool"].as_string(),
                        result["device"].as_string());
}

std::string pods_in_namespaces(std::size_t pods, std::size_t namespaces, std::string_view one,
                               std::string_view many) {
  return cat(pods, pods == 1 ? " pod " : " pods ", pods == 1 ? one : many, " in ", namespaces,
             namespaces == 1 ? " namespace" : " different namespaces");
}

struct EvictionMetrics {
  explicit EvictionMetrics(metrics::Registry& registry)
      : total(registry.counter("device_taint_eviction_controller_pod_deletions_total",
                               "Pods deleted because a device of theirs is tainted.")),
        seconds(registry.histogram(
            "device_taint_eviction_controller_pod_deletion_duration_seconds",
            "From the moment that a taint of a device takes effect to the end of the pod.",
            {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240})) {
    total.one().add(0);
  }
  void count(Duration late) {
    total.one().add();
    seconds.one().observe(late);
  }

  metrics::CounterFamily total;
  metrics::HistogramFamily seconds;
};

class DeviceTaints : public Controller {
 public:
  DeviceTaints(Environment& environment, const Gvr& claims, const Gvr& slices,
               const std::optional<Gvr>& rules)
      : environment_(environment),
        pods_(environment.informers.of(kPods, kByClaim, index_pod)),
        claims_(environment.informers.of(claims, kByAllocatedPool, index_allocated)),
        slices_(environment.informers.of(slices, kByPool, index_slice)),
        loop_(environment, "device-taint-eviction",
              [this](const std::string& key) { return reconcile(key); }) {
    if (environment.options.metrics != nullptr) metrics_.emplace(*environment.options.metrics);
    loop_.follow(pods_, [this](const Value& pod) {
      if (!pod["spec"]["resourceClaims"].empty()) add_pod(pod);
    });
    loop_.follow(claims_, [this](const Value& claim) { add_users(claim); });
    loop_.follow(slices_, [this](const Value& slice) {
      for (const auto& pool : index_slice(slice)) {
        for (const auto& claim : claims_.by_index(kByAllocatedPool, pool)) add_users(claim);
      }
    });
    if (!rules) return;
    rules_gvr_ = *rules;
    rules_ = &environment.informers.of(*rules);
    loop_.follow(*rules_, [this](const Value& rule) {
      for (const auto& claim : claims_.list()) {
        for (const auto& result : results_of(claim).items()) {
          if (selects(rule, result)) {
            add_users(claim);
            break;
          }
        }
      }
      loop_.add_after(cat(kRuleKey, name_of(rule)), kRuleDelay);
    });
  }

  void stop() override { loop_.stop(); }

 private:
  struct Verdict {
    bool evict = false;
    Time at;
    std::map<std::string, std::string> rules;  // that have a part in it, with their uids
  };

  /// What a rule has done. One that was made anew under its name has done nothing yet.
  struct Evicted {
    std::string uid;
    std::size_t pods = 0;
  };

  void add_pod(const Value& pod) { loop_.add(cat(kPodKey, client::key_of(pod))); }

  void add_users(const Value& claim) {
    for (const auto& pod : pods_.by_index(kByClaim, client::key_of(claim))) add_pod(pod);
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    if (key.starts_with(kRuleKey)) return sync_rule(key.substr(kRuleKey.size()));
    return sync_pod(key.substr(kPodKey.size()));
  }

  std::vector<Value> rules() const { return rules_ ? rules_->list() : std::vector<Value>(); }

  /// The taints of a device in the newest generation of its pool.
  std::vector<Value> slice_taints(const Value& result) const {
    std::vector<Value> out;
    std::int64_t newest = -1;
    for (const auto& slice :
         slices_.by_index(kByPool, pool_key(result["driver"], result["pool"]))) {
      const std::int64_t generation = slice["spec"]["pool"]["generation"].as_int();
      if (generation < newest) continue;
      if (generation > newest) out.clear();
      newest = generation;
      for (const auto& device : slice["spec"]["devices"].items()) {
        if (!(device["name"] == result["device"])) continue;
        for (const auto& taint : taints_of(device).items()) out.push_back(taint);
      }
    }
    return out;
  }

  /// When a taint ends the pods of this allocated device; nothing for never.
  static std::optional<Time> end_of(const Value& result, const Value& taint) {
    if (taint["effect"].as_string() != "NoExecute") return std::nullopt;
    auto added = parse_rfc3339(taint["timeAdded"].as_string());
    const Time since = added ? *added : Time{};
    std::optional<std::int64_t> shortest;
    for (const auto& toleration : result["tolerations"].items()) {
      if (toleration["effect"].as_string() != "NoExecute" || !tolerates_taint(toleration, taint)) {
        continue;
      }
      const Value& seconds = toleration["tolerationSeconds"];
      if (seconds.is_null()) return std::nullopt;
      const std::int64_t wait = std::max<std::int64_t>(0, seconds.as_int());
      shortest = shortest ? std::min(*shortest, wait) : wait;
    }
    return since + seconds_of(shortest.value_or(0));
  }

  void judge(const Value& claim, Verdict& verdict, const std::vector<Value>& rules) const {
    const auto take = [&](std::optional<Time> end) {
      if (!end) return false;
      verdict.at = verdict.evict ? std::min(verdict.at, *end) : *end;
      verdict.evict = true;
      return true;
    };
    for (const auto& result : results_of(claim).items()) {
      for (const auto& taint : slice_taints(result)) take(end_of(result, taint));
      for (const auto& rule : rules) {
        if (selects(rule, result) && take(end_of(result, rule["spec"]["taint"]))) {
          verdict.rules.insert_or_assign(std::string(name_of(rule)), std::string(uid_of(rule)));
        }
      }
    }
  }

  /// The claims that a scheduled pod holds.
  std::vector<Value> held_claims(const Value& pod) const {
    std::vector<Value> out;
    if (pod["spec"]["nodeName"].as_string().empty()) return out;
    for (const PodClaim& entry : pod_claims(pod)) {
      const auto claim = claims_.get(client::key_of(namespace_of(pod), entry.claim));
      if (!claim || !is_reserved_for(*claim, pod)) continue;
      if (!entry.template_name.empty() && !is_made_for(*claim, pod)) continue;
      out.push_back(*claim);
    }
    return out;
  }

  Verdict judge_pod(const Value& pod, const std::vector<Value>& rules) const {
    Verdict verdict;
    for (const auto& claim : held_claims(pod)) judge(claim, verdict, rules);
    return verdict;
  }

  Result<WorkOutcome> sync_pod(const std::string& key) {
    const auto pod = pods_.get(key);
    if (!pod || is_deleting(*pod)) {
      forget(key);
      return done();
    }
    const Verdict verdict = judge_pod(*pod, rules());
    if (!verdict.evict) {
      if (forget(key)) {
        environment_.events.event(kComponent, *pod, false, "DeviceTaintManagerEviction",
                                  "Cancelling deletion");
      }
      return done();
    }
    const Duration left = verdict.at - environment_.runtime.clock.now();
    if (left.count() > 0) {
      const MutexLock lock(mutex_);
      waiting_.insert(key);
      return WorkOutcome::again_after(left);
    }
    Eviction eviction;
    eviction.component = kComponent;
    eviction.event_reason = "DeviceTaintManagerEviction";
    eviction.event_note = "Marking for deletion";
    eviction.reason = "DeletionByDeviceTaintManager";
    eviction.message = "Device Taint manager: deleting due to NoExecute taint";
    DIBS_TRY(const bool ended, evict(environment_, *pod, eviction));
    forget(key);
    if (ended) {
      if (metrics_) metrics_->count(environment_.runtime.clock.now() - verdict.at);
      for (const auto& [rule, uid] : verdict.rules) {
        {
          const MutexLock lock(mutex_);
          Evicted& by = evicted_[rule];
          if (by.uid != uid) by = {uid, 0};
          ++by.pods;
        }
        loop_.add_after(cat(kRuleKey, rule), kRuleDelay);
      }
    }
    return done();
  }

  bool forget(const std::string& key) {
    const MutexLock lock(mutex_);
    return waiting_.erase(key) > 0;
  }

  // Rules.

  Result<WorkOutcome> sync_rule(const std::string& name) {
    const auto found = rules_->get(name);
    if (!found) {
      const MutexLock lock(mutex_);
      evicted_.erase(name);
      return done();
    }
    Value rule = *found;
    const Value before = find_condition(rule, "EvictionInProgress");
    const auto effect = rule["spec"]["taint"]["effect"].as_string();
    std::size_t evicted = 0;
    {
      const MutexLock lock(mutex_);
      const auto at = evicted_.find(name);
      if (at != evicted_.end() && at->second.uid == uid_of(rule)) evicted = at->second.pods;
    }
    bool in_progress = false;
    std::string reason;
    std::string message;
    if (effect == "None") {
      // Told once: what follows from a rule that does nothing need not be kept up to date.
      if (before["reason"].as_string() == "NoEffect" &&
          before["observedGeneration"] == rule["metadata"]["generation"]) {
        return done();
      }
      reason = "NoEffect";
      message = what_would_happen(rule);
    } else if (effect != "NoExecute") {
      reason = "OtherEffect";
      message = "Eviction only happens for the NoExecute effect.";
    } else {
      const auto [pods, namespaces] = affected(rule);
      in_progress = pods > 0;
      reason = pods > 0 ? "PodsPendingEviction" : evicted > 0 ? "Completed" : "NotStarted";
      if (pods > 0)
        message =
            pods_in_namespaces(pods, namespaces, "needs to be evicted", "need to be evicted") + ".";
    }
    if (evicted > 0) {
      append(message, message.empty() ? "" : " ", evicted, evicted == 1 ? " pod" : " pods",
             " evicted since starting the controller.");
    }
    const Value status = in_progress ? "True" : "False";
    Value condition = Value::object({{"type", "EvictionInProgress"},
                                     {"status", status},
                                     {"observedGeneration", rule["metadata"]["generation"]},
                                     {"lastTransitionTime", before["lastTransitionTime"]},
                                     {"reason", reason},
                                     {"message", message}});
    if (!(before["status"] == status)) {
      condition.set("lastTransitionTime", format_rfc3339(environment_.runtime.clock.now()));
    }
    if (!(before == condition)) {
      rule.mut("status").set("conditions", Value::array({condition}));
      auto written = environment_.client.update_status(rules_gvr_, "", rule);
      if (!written && !is_gone(written.error())) return written.error();
    }
    // Pods that wait come and go without a word about the rule.
    return in_progress ? WorkOutcome::again_after(std::chrono::seconds(10)) : WorkOutcome::done();
  }

  /// Pods that the rule is to evict, or would if its effect were NoExecute, and their namespaces.
  std::pair<std::size_t, std::size_t> affected(Value rule) const {
    rule.mut("spec").mut("taint").set("effect", "NoExecute");
    std::set<std::string> pods;
    std::set<std::string> namespaces;
    for (const auto& claim : claims_.list()) {
      Verdict verdict;
      for (const auto& result : results_of(claim).items()) {
        if (selects(rule, result) && end_of(result, rule["spec"]["taint"])) verdict.evict = true;
      }
      if (!verdict.evict) continue;
      for (const auto& pod : pods_.by_index(kByClaim, client::key_of(claim))) {
        if (is_deleting(pod) || pod["spec"]["nodeName"].as_string().empty() ||
            !is_reserved_for(claim, pod)) {
          continue;
        }
        pods.insert(client::key_of(pod));
        namespaces.insert(std::string(namespace_of(pod)));
      }
    }
    return {pods.size(), namespaces.size()};
  }

  std::string what_would_happen(const Value& rule) const {
    std::map<std::string, std::int64_t> newest;
    const auto slices = slices_.list();
    for (const auto& slice : slices) {
      auto& generation = newest[index_slice(slice)[0]];
      generation = std::max(generation, slice["spec"]["pool"]["generation"].as_int());
    }
    std::size_t published = 0;
    for (const auto& slice : slices) {
      const Value& spec = slice["spec"];
      if (spec["pool"]["generation"].as_int() != newest[index_slice(slice)[0]]) continue;
      for (const auto& device : spec["devices"].items()) {
        published += selects_device(rule, spec["driver"].as_string(),
                                    spec["pool"]["name"].as_string(), device["name"].as_string())
                         ? 1
                         : 0;
      }
    }
    std::set<std::string> allocated;
    for (const auto& claim : claims_.list()) {
      for (const auto& result : results_of(claim).items()) {
        if (selects(rule, result)) {
          allocated.insert(
              cat(pool_key(result["driver"], result["pool"]), '/', result["device"].as_string()));
        }
      }
    }
    const auto [pods, namespaces] = affected(rule);
    return cat(published, published == 1 ? " published device" : " published devices",
               " selected. ", allocated.size(),
               allocated.size() == 1 ? " allocated device" : " allocated devices", " selected. ",
               pods_in_namespaces(pods, namespaces, "would be evicted", "would be evicted"),
               " if the effect was NoExecute. This information will not be updated again. "
               "Recreate the DeviceTaintRule to trigger an update.");
  }

  Environment& environment_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& slices_;
  client::Informer* rules_ = nullptr;
  Gvr rules_gvr_;
  std::optional<EvictionMetrics> metrics_;  // nothing: nobody counts
  Mutex mutex_;
  std::set<std::string> waiting_ DIBS_GUARDED_BY(mutex_);           // pods with a later end
  std::map<std::string, Evicted> evicted_ DIBS_GUARDED_BY(mutex_);  // by rule
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_device_taint_controller(Environment& environment) {
  const auto claims = environment.discovery.find(kGroup, "resourceclaims");
  const auto slices = environment.discovery.find(kGroup, "resourceslices");
  if (!claims || !slices) return nullptr;
  const auto rules = find_taint_rules(environment);
  return std::make_unique<DeviceTaints>(environment, claims->gvr, slices->gvr,
                                        rules ? std::optional(rules->gvr) : std::nullopt);
}

}  // namespace dibs::controllers
