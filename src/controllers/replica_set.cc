#include "controllers/replica_set.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

// More in one go would keep other owners waiting.
constexpr std::int64_t kBurst = 500;

struct Rank {
  bool placed = false;
  int phase = 0;
  bool ready = false;
  std::int64_t cost = 0;
  int crowd = 0;
  int ready_age = 0;  // logarithmic: pods of about the same age count as equal
  std::int64_t restarts = 0;
  int age = 0;
  std::string uid;
};

int log_age(Time then, Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - then).count();
  return seconds <= 0 ? -1 : static_cast<int>(std::floor(std::log2(static_cast<double>(seconds))));
}

int phase_rank(std::string_view phase) {
  if (phase == "Running") return 2;
  return phase == "Unknown" ? 1 : 0;
}

Rank rank_of(const Value& pod, const std::map<std::string, int, std::less<>>& crowds, Time now) {
  Rank rank;
  const std::string_view node = pod["spec"]["nodeName"].as_string();
  rank.placed = !node.empty();
  rank.phase = phase_rank(pod["status"]["phase"].as_string());
  rank.ready = pod_ready(pod);
  const std::string_view cost = annotation_of(pod, "controller.kubernetes.io/pod-deletion-cost");
  std::from_chars(cost.data(), cost.data() + cost.size(), rank.cost);
  const auto crowd = crowds.find(node);
  rank.crowd = crowd == crowds.end() ? 0 : crowd->second;
  if (rank.ready) rank.ready_age = log_age(pod_ready_since(pod), now);
  for (const Value& container : pod["status"]["containerStatuses"].items())
    rank.restarts = std::max(rank.restarts, container["restartCount"].as_int());
  rank.age = log_age(created_at(pod), now);
  rank.uid = std::string(uid_of(pod));
  return rank;
}

bool goes_before(const Rank& a, const Rank& b) {
  if (a.placed != b.placed) return !a.placed;
  if (a.phase != b.phase) return a.phase < b.phase;
  if (a.ready != b.ready) return !a.ready;
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.crowd != b.crowd) return a.crowd > b.crowd;
  if (a.ready_age != b.ready_age) return a.ready_age < b.ready_age;
  if (a.restarts != b.restarts) return a.restarts > b.restarts;
  if (a.age != b.age) return a.age < b.age;
  return a.uid < b.uid;
}

void set_count(Value& status, const char* field, std::int64_t count) {
  if (count != 0) status.set(field, count);
}

}  // namespace

std::vector<Value> removal_order(const std::vector<Value>& active,
                                 const std::vector<Value>& related, Time now) {
  std::map<std::string, int, std::less<>> crowds;
  for (const Value& pod : related) ++crowds[pod["spec"]["nodeName"].str()];
  std::vector<std::pair<Rank, Value>> ranked;
  for (const Value& pod : active) ranked.emplace_back(rank_of(pod, crowds, now), pod);
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return goes_before(a.first, b.first); });
  std::vector<Value> order;
  for (auto& [rank, pod] : ranked) order.push_back(std::move(pod));
  return order;
}

ReplicaPlan plan_replicas(const Value& set, const std::vector<Value>& active,
                          const std::vector<Value>& related, Time now) {
  ReplicaPlan plan;
  if (is_deleting(set)) return plan;
  const auto want = set["spec"]["replicas"].as_int(1);
  const std::int64_t have = static_cast<std::int64_t>(active.size());
  if (have < want) plan.create = static_cast<int>(std::min<std::int64_t>(want - have, kBurst));
  if (have > want) {
    plan.remove = removal_order(active, related, now);
    plan.remove.resize(static_cast<std::size_t>(std::min<std::int64_t>(have - want, kBurst)));
  }
  return plan;
}

Value replica_status(const Value& set, const std::vector<Value>& pods,
                     const std::optional<ReplicaFailure>& failure, Time now) {
  const Value& template_labels = set["spec"]["template"]["metadata"]["labels"];
  const std::int64_t min_ready = set["spec"]["minReadySeconds"].as_int();
  std::int64_t replicas = 0, labeled = 0, ready = 0, available = 0, terminating = 0;
  for (const Value& pod : pods) {
    if (pod_terminating(pod)) ++terminating;
    if (!pod_active(pod)) continue;
    ++replicas;
    const auto& labels = template_labels.members();
    if (std::all_of(labels.begin(), labels.end(), [&](const json::Member& label) {
          return pod["metadata"]["labels"][label.key()] == label.value();
        }))
      ++labeled;
    if (!pod_ready(pod)) continue;
    ++ready;
    if (pod_available(pod, min_ready, now)) ++available;
  }

  Value conditions = set["status"]["conditions"];
  const bool failed_before = !condition_in(conditions, "ReplicaFailure").is_null();
  if (failure && !failed_before) {
    Value condition = Value::object({{"type", "ReplicaFailure"},
                                     {"status", "True"},
                                     {"lastTransitionTime", format_rfc3339(now)},
                                     {"reason", failure->reason},
                                     {"message", failure->message}});
    conditions.push(std::move(condition));
  } else if (!failure && failed_before) {
    conditions = without_condition(conditions, "ReplicaFailure");
  }

  Value status = Value::object({{"replicas", replicas}});
  set_count(status, "fullyLabeledReplicas", labeled);
  set_count(status, "readyReplicas", ready);
  set_count(status, "availableReplicas", available);
  if (set["kind"].as_string() == "ReplicaSet") status.set("terminatingReplicas", terminating);
  set_count(status, "observedGeneration", set["metadata"]["generation"].as_int());
  if (!conditions.empty()) status.set("conditions", conditions);
  return status;
}

namespace {

class ReplicaSetController : public Workload {
 public:
  ReplicaSetController(Environment& environment, WorkloadKind kind)
      : Workload(environment, std::move(kind)), pods_(watch_children(kPods)) {
    // Sets of one Deployment are found by its uid when pods of crowded nodes are looked for.
    environment.informers.of(kind_.gvr, kByController, index_by_controller);
  }

 protected:
  Result<WorkOutcome> sync(const std::string& key, const Value& set) override {
    const bool decide = expectations_.satisfied(key, now());
    DIBS_TRY(const std::vector<Value> pods, claim(set, pods_, kPods));
    std::vector<Value> active;
    for (const Value& pod : pods)
      if (pod_active(pod)) active.push_back(pod);

    std::optional<ReplicaFailure> failure;
    std::optional<Error> error;
    if (decide) {
      const ReplicaPlan plan = plan_replicas(set, active, related(set, active), now());
      if (plan.create > 0) {
        const Value pod = pod_of_template(set["spec"]["template"], set);
        const std::vector<Value> wanted(static_cast<std::size_t>(plan.create), pod);
        auto created = create_pods(key, set, wanted);
        if (!created.ok()) {
          failure = ReplicaFailure{"FailedCreate", created.error().message()};
          error = std::move(created).error();
        }
      }
      for (const Value& pod : plan.remove) {
        auto removed = remove_pod(key, set, pod);
        if (removed.ok()) continue;
        failure = ReplicaFailure{"FailedDelete", removed.error().message()};
        error = std::move(removed).error();
      }
    } else if (!condition_in(set["status"]["conditions"], "ReplicaFailure").is_null()) {
      // Not known to be over yet.
      const Value& condition = condition_in(set["status"]["conditions"], "ReplicaFailure");
      failure = ReplicaFailure{condition["reason"].str(), condition["message"].str()};
    }

    auto written = write_status(set, replica_status(set, pods, failure, now()));
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    if (error) return *error;
    if (const auto wait = next_available(active, set["spec"]["minReadySeconds"].as_int(), now()))
      return WorkOutcome::again_after(*wait);
    return done();
  }

 private:
  /// Active pods of all sets that the owner of this one has; its own when it has no owner.
  std::vector<Value> related(const Value& set, const std::vector<Value>& active) const {
    const Value& owner = controller_of(set);
    const std::int64_t want = set["spec"]["replicas"].as_int(1);
    if (owner.is_null() || static_cast<std::int64_t>(active.size()) <= want) return active;
    std::vector<Value> all;
    for (const Value& sibling : owners_.by_index(kByController, owner["uid"].str()))
      for (const Value& pod : pods_.by_index(kByController, std::string(uid_of(sibling))))
        if (pod_active(pod)) all.push_back(pod);
    return all;
  }

  client::Informer& pods_;
};

}  // namespace

ControllerPtr make_replica_set_controller(Environment& environment) {
  return std::make_unique<ReplicaSetController>(
      environment, WorkloadKind{kReplicaSetResource, "ReplicaSet", "replicaset-controller"});
}

ControllerPtr make_replication_controller(Environment& environment) {
  return std::make_unique<ReplicaSetController>(
      environment, WorkloadKind{kReplicationControllerResource, "ReplicationController",
                                "replication-controller"});
}

}  // namespace dibs::controllers
