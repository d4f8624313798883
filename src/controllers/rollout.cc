#include "controllers/rollout.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/strings.h"
#include "controllers/rollout_status.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Annotations that a set does not take over from its Deployment.
bool stays_behind(std::string_view key) {
  return key == "kubectl.kubernetes.io/last-applied-configuration" || key == kRevisionAnnotation ||
         key == kHistoryAnnotation || key == kDesiredAnnotation || key == kMaxAnnotation ||
         key == "deprecated.deployment.rollback.to";
}

class Rollout {
 public:
  explicit Rollout(const RolloutInput& input)
      : input_(input), deployment_(input.deployment), wanted_(deployment_spec(input.deployment)) {
    std::vector<Value> sets = input.sets;
    std::sort(sets.begin(), sets.end(), oldest_first);
    new_ = find_new_set(deployment_, sets);
    for (Value& set : sets)
      if (new_.is_null() || name_of(set) != name_of(new_)) old_.push_back(std::move(set));
  }

  RolloutPlan run() {
    const Value& spec = deployment_["spec"];
    status_ = deployment_["status"];
    if (is_deleting(deployment_)) return finish(false);
    check_paused();
    if (spec["paused"].as_bool()) {
      find_revision(false);
      scale();
      clean_up();
      return finish(false);
    }
    if (scaling_asked()) {
      find_revision(false);
      scale();
      return finish(false);
    }
    if (spec["strategy"]["type"].as_string() == "Recreate")
      recreate();
    else
      roll();
    return finish(true);
  }

 private:
  void recreate() {
    find_revision(false);
    bool scaled = false;
    for (Value& set : old_) scaled = set_replicas(set, 0) || scaled;
    if (scaled || input_.old_pods_left) return;
    find_revision(true);
    set_replicas(new_, wanted_.replicas);
    if (deployment_complete(deployment_, count())) clean_up();
  }

  void roll() {
    find_revision(true);
    if (grow_new() || shrink_old()) return;
    if (deployment_complete(deployment_, count())) clean_up();
  }

  RolloutPlan finish(bool rollout) {
    RolloutPlan plan;
    Value status = calculate_status(deployment_, status_, all(), new_, input_.now);
    if (rollout)
      status = judge_progress(deployment_, status_, std::move(status), all(), new_, input_.now);
    plan.again = progress_check_after(deployment_, status, input_.now);
    deployment_.set("status", std::move(status));
    plan.deployment = std::move(deployment_);
    plan.writes = std::move(writes_);
    return plan;
  }

  std::vector<Value> all() const {
    std::vector<Value> sets = old_;
    if (!new_.is_null()) sets.push_back(new_);
    return sets;
  }

  Value count() const { return calculate_status(deployment_, status_, all(), new_, input_.now); }

  void check_paused() {
    if (!has_progress_deadline(deployment_)) return;
    const Value& progress = condition_in(status_["conditions"], "Progressing");
    const std::string_view reason = progress["reason"].as_string();
    if (reason == "ProgressDeadlineExceeded") return;
    const bool paused = deployment_["spec"]["paused"].as_bool();
    if (paused && reason != "DeploymentPaused")
      set_condition(status_, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused",
                    input_.now);
    else if (!paused && reason == "DeploymentPaused")
      set_condition(status_, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed",
                    input_.now);
  }

  bool scaling_asked() const {
    for (const Value& set : all()) {
      if (replicas_of(set) == 0) continue;
      const std::string_view desired = annotation_of(set, kDesiredAnnotation);
      if (!desired.empty() && number_in(desired) != wanted_.replicas) return true;
    }
    return false;
  }

  /// Gives the new set its revision, and makes it when it is missing and `create`.
  void find_revision(bool create) {
    std::int64_t revision = 0;
    for (const Value& set : old_) revision = std::max(revision, revision_of(set));
    ++revision;
    if (!new_.is_null()) {
      const Value before = new_;
      annotate(new_, revision, true);
      if (new_["spec"]["minReadySeconds"].as_int() != wanted_.min_ready)
        new_.mut("spec").set("minReadySeconds", wanted_.min_ready);
      if (!(before == new_)) note_update(new_, {});
      note_revision();
      if (has_progress_deadline(deployment_) &&
          condition_in(status_["conditions"], "Progressing").is_null())
        set_condition(status_, "Progressing", "True", "FoundNewReplicaSet",
                      cat("Found new replica set ", quoted(name_of(new_))), input_.now);
      return;
    }
    if (create) make_set(revision);
  }

  void note_revision() {
    const std::string_view revision = annotation_of(new_, kRevisionAnnotation);
    if (revision.empty() || annotation_of(deployment_, kRevisionAnnotation) == revision) return;
    deployment_.mut("metadata").mut("annotations").set(kRevisionAnnotation, revision);
  }

  void make_set(std::int64_t revision) {
    const Value& spec = deployment_["spec"];
    const Value& collisions = status_["collisionCount"];
    const std::string hash =
        template_hash(spec["template"],
                      collisions.is_integer() ? std::optional(collisions.as_int()) : std::nullopt);
    const std::string name = cat(name_of(deployment_), "-", hash);
    Value pod_template = spec["template"];
    pod_template.mut("metadata").mut("labels").set(kTemplateHashLabel, hash);
    Value selector = spec["selector"];
    selector.mut("matchLabels").set(kTemplateHashLabel, hash);
    Value metadata =
        Value::object({{"name", name},
                       {"namespace", deployment_["metadata"]["namespace"]},
                       {"labels", pod_template["metadata"]["labels"]},
                       {"ownerReferences", Value::array({owner_reference(deployment_)})}});
    Value set_spec = Value::object({{"replicas", 0}});
    if (wanted_.min_ready != 0) set_spec.set("minReadySeconds", wanted_.min_ready);
    set_spec.set("selector", std::move(selector));
    set_spec.set("template", std::move(pod_template));
    new_ = Value::object({{"apiVersion", "apps/v1"},
                          {"kind", "ReplicaSet"},
                          {"metadata", std::move(metadata)},
                          {"spec", std::move(set_spec)}});
    const std::int64_t replicas = new_replicas();
    new_.mut("spec").set("replicas", replicas);
    annotate(new_, revision, false);

    SetWrite write{SetWrite::Verb::create, new_, {}};
    if (replicas > 0)
      write.notes.push_back(cat("Scaled up replica set ", name, " from 0 to ", replicas));
    writes_.push_back(std::move(write));
    note_revision();
    if (has_progress_deadline(deployment_))
      set_condition(status_, "Progressing", "True", "NewReplicaSetCreated",
                    cat("Created new replica set ", quoted(name)), input_.now);
  }

  void annotate(Value& set, std::int64_t revision, bool exists) {
    Value annotations = set["metadata"]["annotations"];
    for (const auto& [key, value] : deployment_["metadata"]["annotations"].members())
      if (!stays_behind(key)) annotations.set(key, value);
    const std::string old_revision(annotations[kRevisionAnnotation].as_string());
    if (number_in(old_revision) < revision) {
      annotations.set(kRevisionAnnotation, std::to_string(revision));
      if (exists && !old_revision.empty()) {
        const std::string_view history = annotations[kHistoryAnnotation].as_string();
        annotations.set(kHistoryAnnotation,
                        history.empty() ? old_revision : cat(history, ",", old_revision));
      }
    }
    if (!exists) set_size_annotations(annotations);
    if (!annotations.empty()) set.mut("metadata").set("annotations", std::move(annotations));
  }

  void set_size_annotations(Value& annotations) const {
    annotations.set(kDesiredAnnotation, std::to_string(wanted_.replicas));
    annotations.set(kMaxAnnotation, std::to_string(wanted_.replicas + wanted_.max_surge));
  }

  std::int64_t total() const {
    std::int64_t sum = new_.is_null() ? 0 : replicas_of(new_);
    for (const Value& set : old_) sum += replicas_of(set);
    return sum;
  }

  std::int64_t new_replicas() const {
    if (!wanted_.rolling) return wanted_.replicas;
    const std::int64_t have = replicas_of(new_);
    const std::int64_t most = wanted_.replicas + wanted_.max_surge;
    const std::int64_t now = total();
    if (now >= most) return have;
    return have + std::min(most - now, wanted_.replicas - have);
  }

  bool grow_new() {
    if (replicas_of(new_) == wanted_.replicas) return false;
    if (replicas_of(new_) > wanted_.replicas) return set_replicas(new_, wanted_.replicas);
    return set_replicas(new_, new_replicas());
  }

  bool shrink_old() {
    std::int64_t old_pods = 0;
    for (const Value& set : old_) old_pods += replicas_of(set);
    if (old_pods == 0) return false;
    const std::int64_t least = wanted_.replicas - wanted_.max_unavailable;
    const std::int64_t new_missing = replicas_of(new_) - available_of(new_);
    const std::int64_t most = total() - least - new_missing;
    if (most <= 0) return false;

    // Pods that serve nobody go first: they cannot make anything unavailable.
    std::int64_t taken = 0;
    for (Value& set : old_) {
      const std::int64_t missing = replicas_of(set) - available_of(set);
      const std::int64_t take = std::min(most - taken, missing);
      if (replicas_of(set) == 0 || take <= 0) continue;
      set_replicas(set, replicas_of(set) - take);
      taken += take;
    }

    std::int64_t available = available_of(new_);
    for (const Value& set : old_) available += available_of(set);
    std::int64_t spare = available - least;
    for (Value& set : old_) {
      const std::int64_t take = std::min(spare, replicas_of(set));
      if (take <= 0) continue;
      set_replicas(set, replicas_of(set) - take);
      spare -= take;
      taken += take;
    }
    return taken > 0;
  }

  /// The number has changed, not the template: all sets grow or shrink in proportion.
  void scale() {
    std::vector<Value*> active;
    for (Value& set : old_)
      if (replicas_of(set) > 0) active.push_back(&set);
    if (!new_.is_null() && replicas_of(new_) > 0) active.push_back(&new_);
    if (active.size() <= 1) {
      Value* only = !active.empty() ? active[0] : !new_.is_null() ? &new_ : nullptr;
      if (only == nullptr && !old_.empty()) only = &old_.back();
      if (only != nullptr) set_replicas(*only, wanted_.replicas);
      return;
    }
    if (!new_.is_null() && saturated()) {
      for (Value& set : old_) set_replicas(set, 0);
      return;
    }
    if (!wanted_.rolling) return;

    std::int64_t have = 0;
    for (const Value* set : active) have += replicas_of(*set);
    const std::int64_t allowed = wanted_.replicas > 0 ? wanted_.replicas + wanted_.max_surge : 0;
    std::int64_t to_add = allowed - have;
    // Larger sets first; of equals, growing favours the newer one and shrinking the older.
    std::stable_sort(active.begin(), active.end(), [&](const Value* a, const Value* b) {
      if (replicas_of(*a) != replicas_of(*b)) return replicas_of(*a) > replicas_of(*b);
      return to_add > 0 ? oldest_first(*b, *a) : oldest_first(*a, *b);
    });
    std::int64_t added = 0;
    std::vector<std::int64_t> sizes;
    for (const Value* set : active) {
      std::int64_t share = to_add == 0 ? 0 : proportion(*set, to_add, added);
      sizes.push_back(replicas_of(*set) + share);
      added += share;
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (i == 0 && to_add != 0) sizes[i] = std::max<std::int64_t>(0, sizes[i] + to_add - added);
      resize(*active[i], sizes[i], true);
    }
  }

  bool saturated() const {
    return replicas_of(new_) == wanted_.replicas &&
           number_in(annotation_of(new_, kDesiredAnnotation)) == wanted_.replicas &&
           available_of(new_) == wanted_.replicas;
  }

  std::int64_t proportion(const Value& set, std::int64_t to_add, std::int64_t added) const {
    const std::int64_t size = replicas_of(set);
    std::int64_t most_before = number_in(annotation_of(set, kMaxAnnotation));
    if (most_before == 0) most_before = deployment_["status"]["replicas"].as_int();
    std::int64_t share = -size;
    if (wanted_.replicas > 0 && most_before > 0) {
      const double new_size = static_cast<double>(size) *
                              static_cast<double>(wanted_.replicas + wanted_.max_surge) /
                              static_cast<double>(most_before);
      share = static_cast<std::int64_t>(new_size + 0.5) - size;
    }
    const std::int64_t left = to_add - added;
    return to_add > 0 ? std::min(share, left) : std::max(share, left);
  }

  bool set_replicas(Value& set, std::int64_t replicas) {
    return replicas_of(set) != replicas && resize(set, replicas, false);
  }

  bool resize(Value& set, std::int64_t replicas, bool annotate_always) {
    const std::int64_t before = replicas_of(set);
    Value annotations = set["metadata"]["annotations"];
    set_size_annotations(annotations);
    if (before == replicas && (!annotate_always || annotations == set["metadata"]["annotations"]))
      return false;
    set.mut("metadata").set("annotations", std::move(annotations));
    set.mut("spec").set("replicas", replicas);
    std::vector<std::string> notes;
    if (before != replicas)
      notes.push_back(cat(replicas > before ? "Scaled up" : "Scaled down", " replica set ",
                          name_of(set), " from ", before, " to ", replicas));
    note_update(set, std::move(notes));
    return true;
  }

  /// One write for each set, whatever has changed about it.
  void note_update(const Value& set, std::vector<std::string> notes) {
    for (SetWrite& write : writes_) {
      if (name_of(write.set) != name_of(set)) continue;
      write.set = set;
      write.notes.insert(write.notes.end(), notes.begin(), notes.end());
      return;
    }
    writes_.push_back({SetWrite::Verb::update, set, std::move(notes)});
  }

  void clean_up() {
    const Value& limit = deployment_["spec"]["revisionHistoryLimit"];
    if (!limit.is_integer() || limit.as_int() == std::numeric_limits<std::int32_t>::max()) return;
    std::vector<Value> past;
    for (const Value& set : old_)
      if (!is_deleting(set)) past.push_back(set);
    std::int64_t surplus = static_cast<std::int64_t>(past.size()) - limit.as_int();
    std::stable_sort(past.begin(), past.end(), [](const Value& a, const Value& b) {
      return revision_of(a) < revision_of(b);
    });
    for (const Value& set : past) {
      if (surplus-- <= 0) break;
      if (replicas_of(set) != 0 || set["status"]["replicas"].as_int() != 0 ||
          set["metadata"]["generation"].as_int() > set["status"]["observedGeneration"].as_int())
        continue;
      writes_.push_back({SetWrite::Verb::remove, set, {}});
    }
  }

  const RolloutInput& input_;
  Value deployment_;
  DeploymentSpec wanted_;
  Value status_;
  Value new_;               // null while there is none
  std::vector<Value> old_;  // oldest first
  std::vector<SetWrite> writes_;
};

}  // namespace

std::int64_t revision_of(const Value& object) {
  return number_in(annotation_of(object, kRevisionAnnotation));
}

bool same_template(const Value& a, const Value& b) {
  Value left = a, right = b;
  for (Value* side : {&left, &right}) {
    Value& metadata = side->mut("metadata");
    if (metadata["labels"].contains(kTemplateHashLabel))
      metadata.mut("labels").erase(kTemplateHashLabel);
  }
  return left == right;
}

Value find_new_set(const Value& deployment, const std::vector<Value>& sets) {
  std::vector<Value> sorted = sets;
  std::sort(sorted.begin(), sorted.end(), oldest_first);
  for (const Value& set : sorted)
    if (same_template(set["spec"]["template"], deployment["spec"]["template"])) return set;
  return {};
}

RolloutPlan plan_rollout(const RolloutInput& input) { return Rollout(input).run(); }

}  // namespace dibs::controllers
