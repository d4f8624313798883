#include "controllers/stateful_plan.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/strings.h"
#include "controllers/revisions.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kRevisionLabel = "controller-revision-hash";
constexpr std::string_view kPodNameLabel = "statefulset.kubernetes.io/pod-name";
constexpr std::string_view kPodIndexLabel = "apps.kubernetes.io/pod-index";

bool created(const Value& pod) { return !pod["status"]["phase"].as_string().empty(); }

bool running_and_ready(const Value& pod) {
  return pod["status"]["phase"].as_string() == "Running" && pod_ready(pod);
}

class Planner {
 public:
  explicit Planner(const StatefulInput& input)
      : input_(input),
        set_(input.set),
        spec_(set_["spec"]),
        first_(spec_["ordinals"]["start"].as_int()),
        replicas_(spec_["replicas"].as_int(1)),
        min_ready_(spec_["minReadySeconds"].as_int()),
        one_by_one_(spec_["podManagementPolicy"].as_string() != "Parallel"),
        current_(name_of(input.current_revision)),
        update_(name_of(input.update_revision)) {
    for (const Value& pod : input.pods) {
      const std::int64_t ordinal = ordinal_of(set_, pod);
      if (ordinal < 0) continue;
      if (ordinal >= first_ && ordinal < first_ + replicas_)
        slots_[ordinal] = pod;
      else
        condemned_[ordinal] = pod;
    }
  }

  StatefulPlan run() {
    count();
    find_unhealthy();
    if (!is_deleting(set_) && fill() && shrink()) update();
    complete_update();
    write_status();
    plan_.again = next_available(input_.pods, min_ready_, input_.now);
    return std::move(plan_);
  }

 private:
  bool available(const Value& pod) const {
    return running_and_ready(pod) && pod_available(pod, min_ready_, input_.now);
  }
  bool healthy(const Value& pod) const { return available(pod) && !is_deleting(pod); }
  std::string_view revision_of(const Value& pod) const { return label_of(pod, kRevisionLabel); }

  void count() {
    for (const auto* pods : {&slots_, &condemned_}) {
      for (const auto& [ordinal, pod] : *pods) {
        if (created(pod)) ++total_;
        if (running_and_ready(pod)) ++ready_;
        if (available(pod)) ++available_;
        if (created(pod) && !is_deleting(pod)) count_revision(revision_of(pod), 1);
      }
    }
  }

  void count_revision(std::string_view revision, int by) {
    if (revision == current_) current_count_ += by;
    if (revision == update_) update_count_ += by;
  }

  /// The lowest pod that is not well; of those to be removed it may go although others wait.
  void find_unhealthy() {
    for (const auto* pods : {&slots_, &condemned_})
      for (const auto& [ordinal, pod] : *pods)
        if (!healthy(pod) && first_unhealthy_.empty()) first_unhealthy_ = name_of(pod);
  }

  /// False: wait.
  bool fill() {
    for (std::int64_t ordinal = first_; ordinal < first_ + replicas_; ++ordinal) {
      const auto found = slots_.find(ordinal);
      if (found == slots_.end()) {
        create(ordinal);
        if (one_by_one_) return false;
        continue;
      }
      const Value& pod = found->second;
      if (is_pod_terminal(pod)) {
        if (!is_deleting(pod)) {
          plan_.ended.emplace_back(name_of(pod));
          plan_.remove.push_back(pod);
        }
        // Its place is free once it is gone.
        if (one_by_one_) return false;
        continue;
      }
      if (one_by_one_ && (is_deleting(pod) || !available(pod))) return false;
    }
    return true;
  }

  void create(std::int64_t ordinal) {
    const Value& rolling = spec_["updateStrategy"]["rollingUpdate"];
    const bool by_partition = rolling["partition"].is_integer();
    const bool rolls = spec_["updateStrategy"]["type"].as_string() != "OnDelete";
    const bool old_one =
        (rolls && !by_partition && ordinal < first_ + set_["status"]["currentReplicas"].as_int()) ||
        (by_partition && ordinal < first_ + rolling["partition"].as_int());
    const Value& revision = old_one ? input_.current_revision : input_.update_revision;
    plan_.create.push_back(stateful_pod(set_, revision, ordinal));
    ++total_;
    count_revision(name_of(revision), 1);
  }

  bool shrink() {
    for (auto at = condemned_.rbegin(); at != condemned_.rend(); ++at) {
      const Value& pod = at->second;
      if (is_deleting(pod)) {
        if (one_by_one_) return false;
        continue;
      }
      if (one_by_one_ && !available(pod) && name_of(pod) != first_unhealthy_) return false;
      remove(pod);
      if (one_by_one_) return false;
    }
    return true;
  }

  void remove(const Value& pod) {
    plan_.remove.push_back(pod);
    if (created(pod)) count_revision(revision_of(pod), -1);
  }

  void update() {
    const Value& strategy = spec_["updateStrategy"];
    if (strategy["type"].as_string() == "OnDelete") return;
    const Value& rolling = strategy["rollingUpdate"];
    const std::int64_t lowest = first_ + rolling["partition"].as_int();
    const std::int64_t most =
        rolling["maxUnavailable"].is_null()
            ? 1
            : std::max<std::int64_t>(1, scaled_value(rolling["maxUnavailable"], replicas_, true));
    std::int64_t out = 0;
    for (std::int64_t ordinal = first_ + replicas_ - 1; ordinal >= lowest; --ordinal) {
      const auto found = slots_.find(ordinal);
      if (found == slots_.end()) {
        ++out;
      } else if (revision_of(found->second) != update_ && !is_deleting(found->second)) {
        remove(found->second);
        ++out;
      } else if (!healthy(found->second)) {
        ++out;
      }
      if (out >= most) return;
    }
  }

  void complete_update() {
    if (spec_["updateStrategy"]["type"].as_string() == "OnDelete") return;
    if (update_count_ != replicas_ || ready_ != replicas_ || total_ != replicas_) return;
    current_count_ = update_count_;
    current_ = update_;
  }

  void write_status() {
    Value status = Value::object();
    put(status, "observedGeneration", set_["metadata"]["generation"].as_int());
    status.set("replicas", total_);
    put(status, "readyReplicas", ready_);
    put(status, "currentReplicas", current_count_);
    put(status, "updatedReplicas", update_count_);
    status.set("currentRevision", current_);
    status.set("updateRevision", update_);
    status.set("collisionCount", set_["status"]["collisionCount"].as_int());
    if (!set_["status"]["conditions"].empty())
      status.set("conditions", set_["status"]["conditions"]);
    status.set("availableReplicas", available_);
    plan_.status = std::move(status);
  }

  static void put(Value& status, const char* field, std::int64_t count) {
    if (count != 0) status.set(field, count);
  }

  const StatefulInput& input_;
  const Value& set_;
  const Value& spec_;
  const std::int64_t first_;
  const std::int64_t replicas_;
  const std::int64_t min_ready_;
  const bool one_by_one_;
  std::string_view current_;
  const std::string_view update_;
  std::map<std::int64_t, Value> slots_;
  std::map<std::int64_t, Value> condemned_;
  std::string_view first_unhealthy_;
  std::int64_t total_ = 0;
  std::int64_t ready_ = 0;
  std::int64_t available_ = 0;
  std::int64_t current_count_ = 0;
  std::int64_t update_count_ = 0;
  StatefulPlan plan_;
};

Value volume_claim(const Value& set, const Value& claim_template, const std::string& name) {
  Value claim = claim_template;
  claim.erase("status");
  claim.set("apiVersion", "v1");
  claim.set("kind", "PersistentVolumeClaim");
  Value& metadata = claim.mut("metadata");
  metadata.set("name", name);
  metadata.set("namespace", set["metadata"]["namespace"]);
  metadata.erase("creationTimestamp");
  for (const auto& [key, value] : set["spec"]["selector"]["matchLabels"].members())
    metadata.mut("labels").set(key, value);
  const Value& keeping = set["spec"]["persistentVolumeClaimRetentionPolicy"];
  if (keeping["whenDeleted"].as_string() == "Delete")
    metadata.set("ownerReferences", Value::array({owner_reference(set)}));
  return claim;
}

}  // namespace

std::int64_t ordinal_of(const Value& set, const Value& pod) {
  const std::string_view name = name_of(pod);
  const std::string prefix = cat(name_of(set), "-");
  if (name.substr(0, prefix.size()) != prefix) return -1;
  const std::string_view digits = name.substr(prefix.size());
  std::int64_t ordinal = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  return error == std::errc() && end == digits.data() + digits.size() ? ordinal : -1;
}

StatefulPod stateful_pod(const Value& set, const Value& revision, std::int64_t ordinal) {
  StatefulPod made;
  made.pod = pod_of_template(revision_template(revision), set);
  const std::string name = cat(name_of(set), "-", ordinal);
  Value& metadata = made.pod.mut("metadata");
  metadata.erase("generateName");
  metadata.set("name", name);
  Value& labels = metadata.mut("labels");
  labels.set(kPodNameLabel, name);
  labels.set(kPodIndexLabel, std::to_string(ordinal));
  labels.set(kRevisionLabel, name_of(revision));
  Value& spec = made.pod.mut("spec");
  spec.set("hostname", name);
  if (!set["spec"]["serviceName"].as_string().empty())
    spec.set("subdomain", set["spec"]["serviceName"]);

  Value volumes = Value::array();
  for (const Value& from : set["spec"]["volumeClaimTemplates"].items()) {
    const std::string claim_name = cat(name_of(from), "-", name);
    made.volume_claims.push_back(volume_claim(set, from, claim_name));
    const Value source = Value::object({{"claimName", claim_name}, {"readOnly", false}});
    volumes.push(
        Value::object({{"name", from["metadata"]["name"]}, {"persistentVolumeClaim", source}}));
  }
  // A volume of the template gives way to the claim of the same name.
  for (const Value& volume : spec["volumes"].items()) {
    const auto& mine = volumes.items();
    if (std::none_of(mine.begin(), mine.end(),
                     [&](const Value& other) { return other["name"] == volume["name"]; }))
      volumes.push(volume);
  }
  if (!volumes.empty()) spec.set("volumes", std::move(volumes));
  return made;
}

StatefulPlan plan_stateful_set(const StatefulInput& input) { return Planner(input).run(); }

}  // namespace dibs::controllers
