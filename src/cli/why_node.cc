// Nodes: whether they take pods, what devices they have, and what waits on them.
#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "cli/why_story.h"

namespace dibs::cli {
namespace {

using json::Value;

std::string taint_text(const Value& taint) {
  const auto value = taint["value"].as_string();
  return cat(taint["key"].as_string(), value.empty() ? "" : "=", value, ":",
             taint["effect"].as_string());
}

class NodeStory {
 public:
  NodeStory(const WhyWorld& world, const Value& node)
      : world_(world), node_(node), name_(node["metadata"]["name"].str()) {}

  WhyStory tell() {
    made_.document = Value::object({{"kind", "Node"}, {"name", name_}});
    find_troubles();
    const bool well = troubles_.empty();
    made_.status = well ? 0 : 2;
    const std::string message =
        well ? std::string("is ready and takes pods") : troubles_.front().text;
    made_.document.set("state", well ? "Ready" : "NotReady");
    made_.document.set("reason", well ? std::string("Ready") : troubles_.front().reason);
    made_.document.set("message", message);
    made_.page.line(0, cat("node ", name_, " ", message));
    for (std::size_t i = 1; i < troubles_.size(); ++i) {
      made_.page.line(2, cat("also: it ", troubles_[i].text));
    }
    tell_remedies(troubles_, made_.page);
    made_.document.set("troubles", troubles_document(troubles_));
    tell_drivers();
    tell_pods();
    tell_events();
    made_.brief = message;
    return std::move(made_);
  }

 private:
  void add(std::string reason, std::string text, std::vector<std::string> remedies) {
    troubles_.push_back({std::move(reason), std::move(text), std::move(remedies)});
  }

  void find_troubles() {
    if (node_["metadata"]["deletionTimestamp"].is_string()) {
      add("Deleting", "is being deleted", {});
    }
    const Value& ready = condition_of(node_, "Ready");
    const auto status = ready["status"].as_string();
    if (!ready.is_object()) {
      add("NeverReady", "takes no pods: its agent has never said that it is ready",
          {cat("start the agent: a kubelet, or dibs node --name ", name_)});
    } else if (status == "Unknown") {
      add("Silent",
          cat("takes no pods: its agent is silent since ", ready["lastHeartbeatTime"].as_string(),
              " (", ready["reason"].as_string(), ")"),
          {"see whether the machine runs, its agent with it, and whether it reaches the server"});
    } else if (status != "True") {
      add("NotReady",
          cat("takes no pods: it is not ready since ", ready["lastTransitionTime"].as_string(),
              " (", ready["reason"].as_string(), "): ", ready["message"].as_string()),
          {cat("mend what its agent says there; its log on ", name_, " has more")});
    }
    for (const Value& condition : node_["status"]["conditions"].items()) {
      const auto type = condition["type"].as_string();
      if (type == "Ready" || condition["status"].as_string() != "True") continue;
      add(std::string(type),
          cat("has ", type, " since ", condition["lastTransitionTime"].as_string(), ": ",
              condition["message"].as_string()),
          {cat("free what is short there (", type, "): pods may be evicted until then")});
    }
    if (node_["spec"]["unschedulable"].as_bool()) {
      add("Cordoned", "is cordoned: pods that have no node do not get this one",
          {cat("kubectl uncordon ", name_)});
    }
    std::vector<std::string> taints;
    for (const Value& taint : node_["spec"]["taints"].items()) {
      const auto key = taint["key"].as_string();
      const auto effect = taint["effect"].as_string();
      // These follow from what is told above.
      if (effect == "PreferNoSchedule" ||
          (key.starts_with("node.kubernetes.io/") && key != "node.kubernetes.io/out-of-service")) {
        continue;
      }
      taints.push_back(taint_text(taint));
    }
    if (!taints.empty()) {
      add("Tainted", cat("takes only pods that tolerate ", join(taints, ", ")),
          {cat("give the pods a toleration, or take the taint away: kubectl taint node ", name_,
               " ", taints.front(), "-")});
    }
  }

  void tell_drivers() {
    Value drivers = Value::array();
    made_.page.gap();
    if (world_.objects.blind && world_.objects.slices.empty()) return;
    std::size_t told = 0;
    std::set<std::string> known;
    for (const PoolView& pool : pools_of(world_)) {
      if (pool.place() != name_) continue;
      known.insert(pool.driver);
      std::string text =
          cat("driver ", pool.driver, ": ", pool.devices,
              pool.devices == 1 ? " device" : " devices", " in ", pool.slices.size(),
              pool.slices.size() == 1 ? " slice" : " slices", " of pool ", pool.name);
      if (!pool.complete()) {
        append(text, ", which is not complete: ", pool.wanted,
               " slices are announced, and none of its devices is given until they are there");
      }
      made_.page.line(0, text);
      drivers.push(Value::object({{"driver", pool.driver},
                                  {"pool", pool.name},
                                  {"devices", pool.devices},
                                  {"slices", pool.slices.size()},
                                  {"complete", pool.complete()}}));
      ++told;
    }
    for (const Value& object : world_.objects.volumes) {
      if (object["kind"].as_string() != "CSINode" || object["metadata"]["name"] != name_) continue;
      for (const Value& driver : object["spec"]["drivers"].items()) {
        made_.page.line(
            0, cat("driver ", driver["name"].as_string(), ": registered for volumes (CSINode)"));
        ++told;
      }
    }
    for (const std::string& driver : missed_drivers(known)) {
      made_.page.line(0, cat("driver ", driver,
                             ": claims have its devices here, and it has "
                             "published none: it does not run here, or is just starting"));
      ++told;
    }
    if (told == 0) made_.page.line(0, "no driver has published devices for it");
    made_.document.set("drivers", std::move(drivers));
  }

  /// Drivers of claims in use here that have no slice for the node.
  std::set<std::string> missed_drivers(const std::set<std::string>& known) const {
    std::set<std::string> made;
    for (const Value& pod : world_.objects.pods) {
      if (pod["spec"]["nodeName"].as_string() != name_) continue;
      for (const std::string& name : claim_names(pod, world_.release)) {
        const Value* claim =
            find_object(world_.objects.claims, pod["metadata"]["namespace"].as_string(), name);
        if (claim == nullptr) continue;
        for (const Value& result : (*claim)["status"]["allocation"]["devices"]["results"].items()) {
          const auto has = [&](const Value& slice) {
            return slice["spec"]["driver"] == result["driver"] &&
                   slice["spec"]["pool"]["name"] == result["pool"];
          };
          const auto& slices = world_.objects.slices;
          if (!known.contains(result["driver"].str()) &&
              std::none_of(slices.begin(), slices.end(), has)) {
            made.insert(result["driver"].str());
          }
        }
      }
    }
    return made;
  }

  void tell_pods() {
    std::size_t count = 0;
    std::vector<std::string> lines;
    for (const Value& pod : world_.objects.pods) {
      if (pod["spec"]["nodeName"].as_string() != name_) continue;
      const auto phase = pod["status"]["phase"].as_string();
      if (phase != "Succeeded" && phase != "Failed") ++count;
      if (!troubles_.empty() && troubles_.front().reason != "Cordoned" &&
          troubles_.front().reason != "Tainted") {
        continue;  // all of them suffer from the same
      }
      const std::vector<Trouble> found = troubles_of(world_, pod);
      if (found.empty()) continue;
      lines.push_back(cat("pod ", pod["metadata"]["namespace"].as_string(), "/",
                          pod["metadata"]["name"].as_string(), ": ", found.front().text));
    }
    made_.document.set("pods", count);
    made_.page.gap();
    made_.page.line(0, cat(count, count == 1 ? " pod is on it" : " pods are on it",
                           lines.empty() ? "" : "; of these wait:"));
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) made_.page.line(2, line);
  }

  void tell_events() {
    constexpr std::size_t kMost = 5;
    std::map<std::string, const Value*> last;  // by reason
    for (const Value& event : world_.objects.events) {
      const Value& about = event["involvedObject"];
      if (about["kind"].as_string() != "Node" || about["name"].as_string() != name_) continue;
      const Value*& known = last[event["reason"].str()];
      if (known == nullptr || time_of_event(*known) <= time_of_event(event)) known = &event;
    }
    std::vector<const Value*> events;
    for (const auto& [reason, event] : last) events.push_back(event);
    std::sort(events.begin(), events.end(),
              [](const Value* a, const Value* b) { return time_of_event(*a) > time_of_event(*b); });
    if (events.size() > kMost) events.resize(kMost);
    if (events.empty()) return;
    made_.page.gap();
    made_.page.line(0, "the last warnings about it");
    for (const Value* event : events) {
      made_.page.line(2, cat(time_of_event(*event), " ", (*event)["reason"].as_string(), ": ",
                             (*event)["message"].as_string()));
    }
  }

  const WhyWorld& world_;
  const Value& node_;
  std::string name_;
  std::vector<Trouble> troubles_;
  WhyStory made_;
};

}  // namespace

std::string PoolView::place() const {
  if (slices.empty()) return "";
  const Value& spec = (*slices.front())["spec"];
  if (spec["nodeName"].is_string()) return spec["nodeName"].str();
  if (spec["allNodes"].as_bool()) return "all nodes";
  return spec["perDeviceNodeSelection"].as_bool() ? "nodes of each device" : "selected nodes";
}

std::vector<PoolView> pools_of(const WhyWorld& world) {
  std::map<std::pair<std::string, std::string>, PoolView> pools;
  for (const Value& slice : world.objects.slices) {
    // Named resources of v1alpha2 have no pools.
    if (!slice["spec"]["pool"].is_object()) continue;
    const Value& pool = slice["spec"]["pool"];
    const std::string driver = slice["spec"]["driver"].str();
    PoolView& view = pools[{driver, pool["name"].str()}];
    const std::int64_t generation = pool["generation"].as_int();
    if (!view.slices.empty() && generation < view.generation) continue;
    if (view.slices.empty() || generation > view.generation) {
      view = {driver, pool["name"].str(), generation, pool["resourceSliceCount"].as_int(1), {}, 0};
    }
    view.slices.push_back(&slice);
    view.devices += slice["spec"]["devices"].size();
  }
  std::vector<PoolView> made;
  for (auto& [key, view] : pools) made.push_back(std::move(view));
  return made;
}

WhyStory tell_node(const WhyWorld& world, const Value& node) {
  return NodeStory(world, node).tell();
}

}  // namespace dibs::cli
