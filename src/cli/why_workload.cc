// What makes pods: whether it may, and what those pods wait for.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/strings.h"
#include "base/time.h"
#include "cli/why_story.h"

namespace dibs::cli {
namespace {

using json::Value;

bool is_owned_by(const Value& object, const std::set<std::string>& uids) {
  const auto owners = object["metadata"]["ownerReferences"].items();
  return std::any_of(owners.begin(), owners.end(), [&](const Value& owner) {
    return owner["controller"].as_bool() && uids.contains(owner["uid"].str());
  });
}

/// The workload and those made by it: a Deployment has ReplicaSets, a CronJob Jobs.
std::vector<const Value*> family_of(const WhyWorld& world, const Value& workload) {
  std::vector<const Value*> made = {&workload};
  std::set<std::string> uids = {workload["metadata"]["uid"].str()};
  for (const Value& one : world.objects.workloads) {
    if (is_owned_by(one, uids) && &one != &workload) made.push_back(&one);
  }
  return made;
}

std::vector<const Value*> pods_of(const WhyWorld& world, const Value& workload) {
  std::set<std::string> uids;
  for (const Value* one : family_of(world, workload)) uids.insert((*one)["metadata"]["uid"].str());
  std::vector<const Value*> made;
  for (const Value& pod : world.objects.pods) {
    if (is_owned_by(pod, uids)) made.push_back(&pod);
  }
  return made;
}

std::int64_t wanted_of(const Value& workload) {
  const std::string_view kind = workload["kind"].as_string();
  if (kind == "DaemonSet") return workload["status"]["desiredNumberScheduled"].as_int();
  if (kind == "Job") return workload["spec"]["parallelism"].as_int(1);
  if (kind == "CronJob") return 0;
  return workload["spec"]["replicas"].as_int(1);
}

/// "pod" in the singular, a name that stands for the kind in commands.
std::string word_of(const Value& workload) { return to_lower(workload["kind"].as_string()); }

std::string key_of(const Value& object) {
  return cat(object["metadata"]["namespace"].as_string(), "/",
             object["metadata"]["name"].as_string());
}

/// Says nothing of the reason: when, how often, which object.
bool is_chance(std::string_view word, std::string_view next) {
  while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.front())) != 0) {
    word.remove_prefix(1);
  }
  while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back())) != 0) {
    word.remove_suffix(1);
  }
  if (parse_rfc3339(word).ok() || parse_rfc3339_micro(word).ok()) return true;
  constexpr std::size_t kUid = 36;
  if (word.size() == kUid && std::count(word.begin(), word.end(), '-') == 4) return true;
  return next.starts_with("restart");
}

/// What pods of one workload say, without what differs between pods that wait for the same.
std::string common_part(const Value& pod, std::string text) {
  const std::string place = cat("is on ", pod["spec"]["nodeName"].as_string(), " ");
  if (text.starts_with(place)) text.erase(0, place.size());
  const std::string name = pod["metadata"]["name"].str();
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    // What follows the name is the random end of a claim's.
    std::size_t end = at + name.size();
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-')) {
      ++end;
    }
    text.replace(at, end - at, "*");
    ++at;
  }
  std::vector<std::string_view> words = split(text, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_chance(words[i], i + 1 < words.size() ? words[i + 1] : std::string_view())) {
      words[i] = "*";
    }
  }
  std::string made;
  for (const std::string_view word : words) append(made, word, " ");
  return made;
}

struct Waiting {
  WhyStory first;
  std::vector<std::string> names;
};

class WorkloadStory {
 public:
  WorkloadStory(const WhyWorld& world, const Value& object) : world_(world), object_(object) {}

  WhyStory tell() {
    made_.document = Value::object({{"kind", object_["kind"]},
                                    {"namespace", object_["metadata"]["namespace"]},
                                    {"name", object_["metadata"]["name"]},
                                    {"state", "Running"},
                                    {"reason", ""},
                                    {"message", ""}});
    sort_pods();
    const Hindrance hindered = hindered_workload(world_, object_);
    const std::int64_t wanted = wanted_of(object_);
    made_.status = waiting_.empty() && !hindered ? 0 : 2;
    if (hindered) {
      answer("Pending", hindered.reason, hindered.text);
    } else if (!waiting_.empty()) {
      answer("Pending", waiting_.begin()->second.first.document["reason"].as_string(),
             cat("has ", wait_count_, " of ", pods_, pods_ == 1 ? " pod" : " pods", " waiting",
                 waiting_.size() == 1 ? "" : cat(", for ", waiting_.size(), " reasons")));
    } else if (pods_ == 0) {
      answer("Idle", "NoPods", wanted == 0 ? "wants no pods" : "has no pods");
    } else {
      answer("Running", "",
             cat("has ", pods_, pods_ == 1 ? " pod" : " pods",
                 finished_ == 0 ? "" : cat(", ", finished_, " of them ended"), ", and none waits"));
    }
    tell_pods();
    made_.brief = made_.document["message"].str();
    return std::move(made_);
  }

 private:
  void answer(const char* state, std::string_view reason, const std::string& message) {
    made_.document.set("state", state);
    made_.document.set("reason", reason);
    made_.document.set("message", message);
    made_.page.line(0, cat(word_of(object_), " ", key_of(object_), " ", message));
  }

  void sort_pods() {
    const std::vector<const Value*> pods = pods_of(world_, object_);
    pods_ = pods.size();
    const auto state = world_.objects.blind ? nullptr : make_state(world_);
    for (const Value* pod : pods) {
      const auto phase = (*pod)["status"]["phase"].as_string();
      if (phase == "Succeeded" || phase == "Failed") ++finished_;
      WhyStory story = tell_pod(world_, *pod, state.get());
      if (story.status == 0) continue;
      ++wait_count_;
      Waiting& group = waiting_[common_part(*pod, story.brief)];
      // The first is told with all that would help.
      if (group.names.empty()) group.first = tell_pod(world_, *pod);
      group.names.push_back((*pod)["metadata"]["name"].str());
    }
  }

  void tell_pods() {
    constexpr std::size_t kMost = 4;
    Value groups = Value::array();
    for (auto& [text, group] : waiting_) {
      std::sort(group.names.begin(), group.names.end());
      std::string line = cat(group.names.size(), group.names.size() == 1 ? " pod: " : " pods: ");
      const std::size_t shown = group.names.size() <= kMost + 1 ? group.names.size() : kMost;
      for (std::size_t i = 0; i < shown; ++i) append(line, i > 0 ? ", " : "", group.names[i]);
      if (shown < group.names.size()) append(line, " and ", group.names.size() - shown, " more");
      made_.page.gap();
      made_.page.line(0, line);
      for (const std::string_view told : split(trim(group.first.page.text()), '\n')) {
        if (told.empty()) {
          made_.page.gap();
        } else {
          made_.page.whole(cat("  ", told));
        }
      }
      Value names = Value::array();
      for (const std::string& name : group.names) names.push(name);
      groups.push(Value::object({{"pods", std::move(names)}, {"first", group.first.document}}));
    }
    made_.document.set("waiting", std::move(groups));
  }

  const WhyWorld& world_;
  const Value& object_;
  WhyStory made_;
  std::map<std::string, Waiting> waiting_;  // by what they say
  std::size_t pods_ = 0;
  std::size_t finished_ = 0;
  std::size_t wait_count_ = 0;
};

}  // namespace

Hindrance hindered_workload(const WhyWorld& world, const Value& workload) {
  const std::string_view kind = workload["kind"].as_string();
  const Value& failed = condition_of(workload, "Failed");
  if (kind == "Job" && failed["status"].as_string() == "True") {
    return {failed["reason"].str(),
            cat("has failed (", failed["reason"].as_string(), "): ", failed["message"].as_string(),
                "; a new Job is wanted, this one does not begin again")};
  }
  if (workload["spec"]["suspend"].as_bool()) {
    return {"Suspended", "is suspended: set spec.suspend to false to let it go on"};
  }
  for (const Value* one : family_of(world, workload)) {
    const Value& failure = condition_of(*one, "ReplicaFailure");
    if (failure["status"].as_string() == "True") {
      return {failure["reason"].str(), cat("cannot make its pods: ", failure["message"].as_string(),
                                           "; it tries again by itself")};
    }
    const std::string_view of = (*one)["kind"].as_string();
    if (of == "Deployment" || of == "CronJob") continue;
    std::int64_t there = 0;
    for (const Value& pod : world.objects.pods) {
      if (is_owned_by(pod, {(*one)["metadata"]["uid"].str()})) ++there;
    }
    const Value* event = last_warning(world, *one, {"FailedCreate"});
    // An old event says nothing once the pods are there.
    const bool done = condition_of(*one, "Complete")["status"].as_string() == "True";
    if (event != nullptr && there < wanted_of(*one) && !done) {
      return {"FailedCreate", cat("cannot make its pods: ", (*event)["message"].as_string(), " (",
                                  time_of_event(*event), "); it tries again by itself")};
    }
  }
  if (kind == "Deployment" && workload["spec"]["paused"].as_bool()) {
    const Value& status = workload["status"];
    if (status["updatedReplicas"].as_int() < workload["spec"]["replicas"].as_int(1)) {
      return {"Paused", "is paused with a change that is not rolled out: kubectl rollout resume"};
    }
  }
  if (kind == "DaemonSet" && wanted_of(workload) == 0) {
    return {"NoNodes",
            "wants no pods: no node has what spec.template.spec.nodeSelector and "
            "affinity ask for, or there are no nodes"};
  }
  return {};
}

WhyStory tell_workload(const WhyWorld& world, const Value& workload) {
  return WorkloadStory(world, workload).tell();
}

}  // namespace dibs::cli
