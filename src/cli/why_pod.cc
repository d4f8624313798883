#include <algorithm>

#include "base/nearest.h"
#include "base/strings.h"
#include "base/time.h"
#include "cli/why_story.h"
#include "scheduler/explain.h"
#include "scheduler/extended.h"
#include "scheduler/resources.h"

namespace dibs::cli {
namespace {

using json::Value;
using scheduler::AbleNode;
using scheduler::DeviceRun;
using scheduler::Explanation;
using scheduler::Fix;
using scheduler::NodeGroup;

/// What is shown of many; the document has all of them.
constexpr std::size_t kMostGroups = 8;
constexpr std::size_t kMostAble = 5;

std::string gates_of(const Value& pod) {
  std::vector<std::string> made;
  for (const Value& gate : pod["spec"]["schedulingGates"].items()) {
    made.push_back(gate["name"].str());
  }
  return join(made, ", ");
}

/// What is wrong with one of the pod's claims, in plain words.
Hindrance hindered_by_claim(const WhyWorld& world, const scheduler::Pod& pod,
                            const scheduler::PodClaimRef& ref) {
  std::string name = ref.claim;
  if (name.empty()) {
    const Value* stated = nullptr;
    for (const Value& status : pod.object["status"]["resourceClaimStatuses"].items()) {
      if (status["name"].as_string() == ref.name) stated = &status;
    }
    if (stated == nullptr && scheduler::is_early(world.release)) {
      name = cat(pod.name, "-", ref.name);
    } else if (stated == nullptr) {
      if (find_object(world.objects.templates, pod.name_space, ref.template_name) == nullptr) {
        return {"TemplateMissing",
                cat("ResourceClaimTemplate ", ref.template_name, " does not exist")};
      }
      return {"ClaimNotCreated", cat("the claim of template ", ref.template_name,
                                     " is not created yet; the controllers do that")};
    } else {
      name = (*stated)["resourceClaimName"].str();
    }
    if (name.empty()) return {};
  }
  const Value* claim = find_object(world.objects.claims, pod.name_space, name);
  if (claim == nullptr) return {"ClaimMissing", cat("ResourceClaim ", name, " does not exist")};
  if ((*claim)["metadata"]["deletionTimestamp"].is_string()) {
    return {"ClaimDeleting", cat("ResourceClaim ", name, " is being deleted")};
  }
  if (!ref.template_name.empty()) {
    const auto owners = (*claim)["metadata"]["ownerReferences"].items();
    const bool owned = std::any_of(owners.begin(), owners.end(), [&](const Value& owner) {
      return owner["uid"].as_string() == pod.uid;
    });
    if (!owned && !is_of_group(*claim, pod))
      return {"ClaimNotOwned", cat("ResourceClaim ", name, " belongs to another pod")};
  }
  if (is_classic(*claim)) return hindered_by_driver(world, pod, *claim);
  return {};
}

Hindrance hindered(const WhyWorld& world, const scheduler::Pod& pod) {
  if (pod.terminating) return {"Terminating", "it is being deleted"};
  if (pod.gated) return {"SchedulingGated", cat("it has scheduling gates: ", gates_of(pod.object))};
  if (world.profile(pod.shape->scheduler_name) == nullptr) {
    std::vector<std::string> known;
    for (const auto& profile : world.configuration.profiles) known.push_back(profile.name);
    return {"OtherScheduler", cat("it is for the scheduler ", quoted(pod.shape->scheduler_name),
                                  ", which is not ", join(known, " or "))};
  }
  if (Hindrance found = hindered_by_group(world, pod)) return found;
  for (const scheduler::PodClaimRef& ref : pod.shape->claims) {
    if (Hindrance found = hindered_by_claim(world, pod, ref)) return found;
  }
  return {};
}

void tell_groups(const Explanation& explanation, WhyPage& page) {
  std::size_t shown = 0;
  for (const NodeGroup& group : explanation.groups) {
    if (shown == kMostGroups && explanation.groups.size() > kMostGroups + 1) {
      page.gap();
      page.line(0, cat(explanation.groups.size() - shown,
                       " more kinds of nodes: -o json has all of them"));
      return;
    }
    ++shown;
    page.gap();
    page.line(0, scheduler::name_nodes(group.nodes));
    for (const std::string& text : scheduler::describe(group, explanation)) {
      const bool deeper = text.starts_with("  ");
      page.line(deeper ? 4 : 2, trim(text));
    }
  }
}

/// Of the pod's extended resources those that nobody offers, and what is to be said of each.
std::vector<std::string> unknown_resources(const WhyWorld& world, const scheduler::Pod& pod,
                                           const WhyState& state) {
  std::vector<std::string> made;
  for (const auto& [name, amount] : pod.shape->requests.scalars) {
    if (amount <= 0 || !scheduler::is_extended_resource(name) || state.devices.serves(name)) {
      continue;
    }
    const std::string resource = name;
    const auto& nodes = world.objects.nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [&](const Value& node) {
          return node["status"]["allocatable"].contains(resource);
        })) {
      continue;
    }
    const std::string_view prefix = scheduler::kImplicitPrefix;
    const bool implicit = resource.starts_with(prefix);
    const std::string wanted = implicit ? resource.substr(prefix.size()) : resource;
    std::vector<std::string> known;
    for (const Value& one : world.objects.classes) {
      const Value& named = implicit ? one["metadata"]["name"] : one["spec"]["extendedResourceName"];
      if (named.is_string()) known.push_back(named.str());
    }
    for (const Value& node : nodes) {
      for (const auto& [there, left] : node["status"]["allocatable"].members()) {
        if (!implicit && scheduler::is_extended_resource(there)) known.emplace_back(there);
      }
    }
    std::string text =
        implicit
            ? cat("DeviceClass ", wanted, ", which ", resource, " is named after, does not exist")
            : cat("no node has ", resource,
                  ", and no DeviceClass names it in spec.extendedResourceName: does its "
                  "device plugin run, or is the class missing?");
    const std::vector<std::string> near = nearest(wanted, known, 1);
    if (!near.empty()) append(text, " (there is ", near.front(), ")");
    made.push_back(std::move(text));
  }
  return made;
}

void tell_fixes(const Explanation& explanation, const std::vector<std::string>& unknown,
                WhyPage& page) {
  if (explanation.groups.empty()) return;
  page.gap();
  for (const std::string& text : unknown) page.line(0, text);
  for (const std::string& name : explanation.empty_classes) {
    page.line(0, cat("no device in the cluster is of class ", name, ": does its driver run?"));
  }
  if (explanation.fixes.empty()) {
    if (explanation.empty_classes.empty() && unknown.empty())
      page.line(0, "no single change was found that would help");
    return;
  }
  page.line(0, "what would help, cheapest first");
  for (const Fix& fix : explanation.fixes) {
    page.line(2, cat("- ", fix.text(), " (", scheduler::name_nodes(fix.nodes), ")"));
  }
}

/// Best first, and `chosen` in any case.
std::string ranks(const std::vector<AbleNode>& able, std::string_view chosen = {}) {
  std::vector<std::string> made;
  std::size_t left_out = 0;
  for (const AbleNode& node : able) {
    if (made.size() >= kMostAble && node.name != chosen) {
      ++left_out;
      continue;
    }
    made.push_back(able.size() == 1 ? node.name : cat(node.name, " (score ", node.score, ")"));
  }
  if (left_out > 0) made.push_back(cat(left_out, " more"));
  return join(made, ", ");
}

class PodStory {
 public:
  PodStory(const WhyWorld& world, const Value& object, WhyState* shared)
      : world_(world), object_(object), shared_(shared), pod_(scheduler::Pod::read(object)) {
    made_.document = Value::object({{"kind", "Pod"},
                                    {"namespace", pod_->name_space},
                                    {"name", pod_->name},
                                    {"state", "Pending"},
                                    {"reason", ""},
                                    {"message", ""}});
  }

  WhyStory tell() {
    if (pod_->finished && (pod_->node_name.empty() || !pod_->terminating)) {
      tell_finished();
    } else if (!pod_->node_name.empty()) {
      tell_placed();
    } else {
      tell_pending();
      const auto words = words_of_drivers(world_, object_);
      tell_words(words, made_.page);
      made_.document.set("driverEvents", words_document(words));
    }
    Value claims = Value::array();
    for (const std::string& name : claim_names(object_, world_.release)) {
      if (const Value* claim = find_object(world_.objects.claims, pod_->name_space, name)) {
        claims.push(claim_document(*claim));
      }
    }
    made_.document.set("claims", std::move(claims));
    if (made_.brief.empty()) made_.brief = made_.document["message"].str();
    return std::move(made_);
  }

 private:
  /// The first line, and what programs read of it.
  void answer(const char* state, std::string_view reason, const std::string& message) {
    made_.document.set("state", state);
    made_.document.set("reason", reason);
    made_.document.set("message", message);
    made_.page.line(0, cat("pod ", pod_->key, " ", message));
  }

  void pending(std::string_view reason, const std::string& why) {
    made_.status = 2;
    answer("Pending", reason, cat("is pending: ", why));
  }

  void tell_finished() {
    made_.status = 0;
    const std::string phase = object_["status"]["phase"].str();
    answer("Finished", phase,
           pod_->node_name.empty() ? cat("has ended (", phase, ") without a node")
                                   : cat("has ended (", phase, ") on ", pod_->node_name));
    for (const std::string& text : last_words(object_)) made_.page.line(2, text);
  }

  void tell_pending() {
    if (const Hindrance found = hindered(world_, *pod_)) {
      pending(found.reason, found.text);
      return;
    }
    if (world_.objects.blind) return tell_unseen();
    // A claim of its extended resources that is left from an attempt is made anew.
    const bool alone = shared_ == nullptr || !pod_->shape->requests.scalars.empty();
    const auto own = alone ? make_state_for(world_, object_) : nullptr;
    WhyState& state = alone ? *own : *shared_;
    scheduler::ExplainScope scope;
    // One line has no room for what would help.
    if (shared_ != nullptr) scope.most_groups = 0;
    const Explanation found = scheduler::explain_placement(
        state.cluster, state.devices, pod_, *world_.profile(pod_->shape->scheduler_name),
        world_.now, scope);
    made_.document.set("placement", to_json(found));
    if (!found.run.asked.empty()) made_.document.set("drivers", talk_document(found));
    if (!found.devices_enabled) {
      pending("ProfileWithoutDevices",
              cat("profile ", pod_->shape->scheduler_name,
                  " leaves the plugin DynamicResources out, which pods with claims need"));
      return;
    }
    if (!found.obstacle().empty()) {
      const bool rejected = found.run.ready == DeviceRun::Ready::rejected;
      pending(!found.volumes.empty() ? "VolumesNotReady"
              : rejected             ? "ClassMissing"
                                     : "ClaimNotReady",
              found.obstacle());
      return;
    }
    if (found.nodes == 0) {
      pending("NoNodes", "the cluster has no nodes");
      return;
    }
    if (!found.able.empty()) {
      if (const Hindrance wait = waits_for_drivers(found)) {
        pending(wait.reason, wait.text);
        tell_talk(found, made_.page);
        tell_groups(found, made_.page);
        return;
      }
      tell_able(found);
      return;
    }
    pending("Unschedulable", found.nodes == 1 ? std::string("the only node cannot take it")
                                              : cat("none of ", found.nodes, " nodes can take it"));
    tell_nomination();
    tell_talk(found, made_.page);
    tell_groups(found, made_.page);
    const std::vector<std::string> unknown = unknown_resources(world_, *pod_, state);
    tell_fixes(found, unknown, made_.page);
    made_.brief = cat(made_.document["message"].as_string(), ": ",
                      unknown.empty() ? in_short(found) : join(unknown, "; "));
  }

  /// The first thing that each of the largest groups of nodes says.
  static std::string in_short(const Explanation& found) {
    constexpr std::size_t kMost = 2;
    std::vector<std::string> made;
    for (const NodeGroup& group : found.groups) {
      if (made.size() == kMost) {
        made.push_back("and more");
        break;
      }
      const std::vector<std::string> lines = scheduler::describe(group, found);
      if (lines.empty()) continue;
      made.push_back(found.groups.size() == 1
                         ? lines.front()
                         : cat(lines.front(), " (", scheduler::name_nodes(group.nodes), ")"));
    }
    return join(made, "; ");
  }

  /// Whoever may not see nodes and devices has the scheduler's own words.
  void tell_unseen() {
    const Value& last = condition_of(object_, "PodScheduled");
    const auto said = last["message"].as_string();
    if (said.empty()) {
      pending("NotTriedYet", "no scheduler has said anything about it yet");
      return;
    }
    pending(last["reason"].is_string() ? last["reason"].as_string() : "Unschedulable",
            cat("the scheduler says: ", said));
  }

  void tell_nomination() {
    if (pod_->nominated_node().empty()) return;
    made_.document.set("nominatedNode", pod_->nominated_node());
    made_.page.line(2, cat("room is being made on ", pod_->nominated_node(),
                           ": pods of lower priority are leaving it"));
  }

  /// Some node would do: what keeps it?
  void tell_able(const Explanation& found) {
    std::vector<std::string> not_ready;
    for (const scheduler::PodClaim& claim : found.run.claims) {
      if (!claim.reserved) continue;
      for (std::string& text : missing_conditions(claim.object)) {
        not_ready.push_back(std::move(text));
      }
    }
    if (!not_ready.empty()) {
      pending("BindingConditions", "its devices are not ready yet");
      for (const std::string& text : not_ready) made_.page.line(2, text);
      return;
    }
    const GangWords gang = words_of_gang(world_, *pod_);
    if (!gang.document.is_null()) made_.document.set("group", gang.document);
    if (!gang.fits) {
      pending("GangUnschedulable", "a node could take it, but its group as a whole finds no place");
      for (const auto& [margin, text] : gang.lines) made_.page.line(margin, text);
      return;
    }
    pending("NotTriedYet",
            cat(found.able.size(), " of ", found.nodes, found.nodes == 1 ? " node" : " nodes",
                " can take it; the scheduler has not come to it yet"));
    made_.page.line(2, cat("best first: ", ranks(found.able)));
    const Value& last = condition_of(object_, "PodScheduled");
    if (last["message"].is_string()) {
      made_.page.line(2, cat("its last attempt said: ", last["message"].as_string()));
    }
  }

  void tell_placed() {
    made_.status = 0;
    const Value& since = condition_of(object_, "PodScheduled")["lastTransitionTime"];
    const bool bound = condition_of(object_, "PodScheduled")["status"].as_string() == "True";
    std::string message = cat("is on ", pod_->node_name);
    if (bound && since.is_string()) append(message, " since ", since.as_string());
    const std::vector<Trouble> troubles = troubles_of(world_, object_);
    if (troubles.empty()) {
      if (pod_->terminating) append(message, ", and is being deleted");
      answer("Placed", pod_->terminating ? "Terminating" : "Scheduled", message);
    } else {
      made_.status = 2;
      const bool runs = object_["status"]["phase"].as_string() == "Running";
      answer("Placed", troubles.front().reason,
             cat("is on ", pod_->node_name,
                 pod_->terminating ? " and cannot go: "
                 : runs            ? " and is not well: "
                                   : " and does not run: ",
                 troubles.front().text));
      for (std::size_t i = 1; i < troubles.size(); ++i) {
        made_.page.line(2, cat("also: ", troubles[i].text));
      }
      tell_remedies(troubles, made_.page);
    }
    if (troubles.empty()) tell_restarts();
    made_.document.set("troubles", troubles_document(troubles));
    made_.document.set("node", pod_->node_name);
    for (const std::string& name : claim_names(object_, world_.release)) {
      const Value* claim = find_object(world_.objects.claims, pod_->name_space, name);
      if (claim == nullptr) continue;
      made_.page.gap();
      made_.page.line(0, cat("claim ", name));
      tell_allocation(world_, *claim, 2, made_.page);
    }
    // Why it is there matters to nobody while it does not run; nor where nodes cannot be seen.
    if (!troubles.empty() || world_.objects.blind || shared_ != nullptr) return;
    made_.page.gap();
    if (!bound) {
      made_.page.line(0, "why there: spec.nodeName was given; no scheduler placed it");
      return;
    }
    tell_choice();
  }

  /// It runs at this moment, and may not do so for long.
  void tell_restarts() {
    Value made = Value::array();
    for (const std::string& text : restarts_of(world_, object_)) {
      made_.page.line(2, text);
      made.push(text);
    }
    if (!made.empty()) made_.document.set("restarts", std::move(made));
  }

  /// As if the pod were to be placed now. What was true then is not recorded.
  void tell_choice() {
    const scheduler::Profile* profile = world_.profile(pod_->shape->scheduler_name);
    if (profile == nullptr) {
      made_.page.line(0, cat("it was for the scheduler ", quoted(pod_->shape->scheduler_name),
                             " to choose the node"));
      return;
    }
    const auto state = make_state(world_, &object_);
    Value unplaced = object_;
    unplaced.mut("spec").erase("nodeName");
    const scheduler::PodPtr again = scheduler::Pod::read(unplaced);
    const Explanation found =
        scheduler::explain_placement(state->cluster, state->devices, again, *profile, world_.now);
    made_.document.set("placement", to_json(found));
    const std::vector<AbleNode>& able = found.able;
    const auto chosen = std::find_if(able.begin(), able.end(), [&](const AbleNode& node) {
      return node.name == pod_->node_name;
    });
    if (chosen == able.end()) {
      made_.page.line(0, "as things are now it could not be placed there again");
    } else if (able.size() == 1) {
      made_.page.line(0, found.nodes == 1 ? std::string("why there: it is the only node")
                                          : cat("why there: of ", found.nodes,
                                                " nodes no other can take it as things are now"));
    } else {
      made_.page.line(0, cat("why there: ", able.size(), " of ", found.nodes,
                             " nodes can take it as things are now"));
      const bool best = chosen->score == able.front().score;
      const bool alone = best && able[1].score < chosen->score;
      made_.page.line(2, cat(alone  ? "it has the best score: "
                             : best ? "none has a better score: "
                                    : "another has a better score by now: ",
                             ranks(able, pod_->node_name)));
    }
    tell_groups(found, made_.page);
  }

  const WhyWorld& world_;
  const Value& object_;
  WhyState* shared_;
  scheduler::PodPtr pod_;
  WhyStory made_;
};

}  // namespace

const Value& condition_of(const Value& object, std::string_view type) {
  for (const Value& condition : object["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

WhyStory tell_pod(const WhyWorld& world, const Value& pod, WhyState* state) {
  return PodStory(world, pod, state).tell();
}

}  // namespace dibs::cli
