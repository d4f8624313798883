// Everything that waits, one line each.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/why_story.h"

namespace dibs::cli {
namespace {

using json::Value;

class Listing {
 public:
  Listing(const WhyWorld& world, const std::string& name_space)
      : world_(world), name_space_(name_space) {}

  WhyStory tell() {
    const auto state = world_.objects.blind ? nullptr : make_state(world_);
    for (const Value& workload : world_.objects.workloads) {
      if (!is_in(workload) || is_made_by_another(workload)) continue;
      const Hindrance found = hindered_workload(world_, workload);
      // That somebody wished it so is no news.
      if (!found || found.reason == "Suspended" || found.reason == "NoNodes") continue;
      add(workload["kind"].as_string(), workload, "Pending", found.reason, found.text);
    }
    for (const Value& pod : world_.objects.pods) {
      if (!is_in(pod)) continue;
      const WhyStory story = tell_pod(world_, pod, state.get());
      if (story.status == 0) continue;
      add("Pod", pod, story.document["state"].as_string(), story.document["reason"].as_string(),
          story.brief);
    }
    for (const Value& claim : world_.objects.claims) {
      if (!is_in(claim)) continue;
      // Those of pods wait with them.
      const WhyStory story = tell_claim(world_, claim);
      const auto reason = story.document["reason"].as_string();
      if (story.status == 0 || reason == "PodPending") continue;
      add("ResourceClaim", claim, "Pending", reason, story.document["message"].str());
    }
    tell_nodes();
    tell_drivers();
    made_.status = lines_.empty() ? 0 : 2;
    std::sort(lines_.begin(), lines_.end());
    for (const auto& [key, line] : lines_) made_.page.whole(line);
    if (lines_.empty()) {
      made_.page.line(0, name_space_.empty() ? std::string("nothing waits")
                                             : cat("nothing waits in namespace ", name_space_));
    }
    made_.document = Value::object({{"kind", "List"},
                                    {"namespace", name_space_},
                                    {"state", lines_.empty() ? "Running" : "Pending"},
                                    {"items", std::move(items_)}});
    return std::move(made_);
  }

 private:
  /// Whatever namespace is asked about: pods of each may have to wait for them.
  void tell_nodes() {
    for (const Value& node : world_.objects.nodes) {
      const WhyStory story = tell_node(world_, node);
      const auto reason = story.document["reason"].as_string();
      // The last two are somebody's wish.
      if (story.status == 0 || reason == "Cordoned" || reason == "Tainted") continue;
      add("Node", node, story.document["state"].as_string(), reason, story.brief);
    }
  }

  void tell_drivers() {
    if (world_.objects.blind) return;  // what is not seen may be published
    std::set<std::string> names;
    for (const PoolView& pool : pools_of(world_)) names.insert(pool.driver);
    for (const Value& claim : world_.objects.claims) {
      for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
        names.insert(result["driver"].str());
      }
    }
    for (const std::string& name : names) {
      const WhyStory story = tell_driver(world_, name);
      if (story.status == 0) continue;
      add("Driver", Value::object({{"metadata", Value::object({{"name", name}})}}),
          story.document["state"].as_string(), story.document["reason"].as_string(), story.brief);
    }
  }

  bool is_in(const Value& object) const {
    return name_space_.empty() || object["metadata"]["namespace"].as_string() == name_space_;
  }

  bool is_made_by_another(const Value& workload) const {
    const auto owners = workload["metadata"]["ownerReferences"].items();
    return std::any_of(owners.begin(), owners.end(), [&](const Value& owner) {
      const auto& all = world_.objects.workloads;
      return owner["controller"].as_bool() &&
             std::any_of(all.begin(), all.end(),
                         [&](const Value& one) { return one["metadata"]["uid"] == owner["uid"]; });
    });
  }

  void add(std::string_view kind, const Value& object, std::string_view state,
           std::string_view reason, std::string message) {
    const Value& metadata = object["metadata"];
    const auto name_space = metadata["namespace"].as_string();
    const std::string key =
        cat(name_space, name_space.empty() ? "" : "/", metadata["name"].as_string());
    const std::string word = kind == "ResourceClaim" ? std::string("claim") : to_lower(kind);
    std::replace(message.begin(), message.end(), '\n', ' ');
    lines_.emplace_back(cat(name_space, " ", word, " ", key), cat(word, " ", key, " ", message));
    items_.push(Value::object({{"kind", kind},
                               {"namespace", name_space},
                               {"name", metadata["name"]},
                               {"state", state},
                               {"reason", reason},
                               {"message", message}}));
  }

  const WhyWorld& world_;
  const std::string& name_space_;
  WhyStory made_;
  std::vector<std::pair<std::string, std::string>> lines_;  // by what they are sorted
  Value items_ = Value::array();
};

}  // namespace

WhyStory tell_waiting(const WhyWorld& world, const std::string& name_space) {
  return Listing(world, name_space).tell();
}

}  // namespace dibs::cli
