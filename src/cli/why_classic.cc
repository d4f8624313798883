// Claims of resource.k8s.io/v1alpha2: what their drivers have said, and what they still have to do.
#include <algorithm>

#include "base/strings.h"
#include "cli/why_story.h"

namespace dibs::cli {
namespace {

using json::Value;
using scheduler::Explanation;
using scheduler::PodClaim;
using scheduler::Proposal;
using scheduler::Way;

std::string name_of(const PodClaim& claim) { return claim.object["metadata"]["name"].str(); }

std::string class_of(const Value& claim) { return claim["spec"]["resourceClassName"].str(); }

std::string driver_of(const WhyWorld& world, const Value& claim) {
  const Value* known = find_object(world.objects.resource_classes, "", class_of(claim));
  return known != nullptr ? (*known)["driverName"].str() : "";
}

bool used_by(const Value& claim, std::string_view pod_uid) {
  const auto users = claim["status"]["reservedFor"].items();
  return std::any_of(users.begin(), users.end(),
                     [&](const Value& user) { return user["uid"].as_string() == pod_uid; });
}

bool owns(const scheduler::Pod& pod, const Value& context) {
  const auto owners = context["metadata"]["ownerReferences"].items();
  return std::any_of(owners.begin(), owners.end(),
                     [&](const Value& owner) { return owner["uid"].as_string() == pod.uid; });
}

/// "claim a (driver x.example.com)".
std::string with_driver(const Explanation& found, std::size_t asked) {
  return cat("claim ", name_of(found.run.claims[found.run.asked[asked]]), " (driver ",
             found.drivers[asked], ")");
}

std::vector<std::string> refused_of(const PodClaim& claim, const Proposal& proposal) {
  std::vector<std::string> made;
  for (const std::string& node : claim.unsuitable) {
    const auto& all = proposal.potential_nodes;
    const bool proposed = std::find(all.begin(), all.end(), node) != all.end();
    if (proposed || node == proposal.selected_node) made.push_back(node);
  }
  return made;
}

}  // namespace

Hindrance hindered_by_driver(const WhyWorld& world, const scheduler::Pod& pod, const Value& claim) {
  const std::string name = claim["metadata"]["name"].str();
  const Value& status = claim["status"];
  const bool allocated = status["allocation"].is_object();
  if (status["deallocationRequested"].as_bool()) {
    return {"Deallocating", cat("claim ", name, " has to be allocated anew, and driver ",
                                status["driverName"].as_string(), " has not given it back yet")};
  }
  if (allocated) {
    const bool free = status["allocation"]["shareable"].as_bool() ||
                      status["reservedFor"].empty() || used_by(claim, pod.uid);
    if (free) return {};
    return {"ClaimInUse",
            cat("claim ", name, " cannot be shared, and is in use by ", users_of(world, claim))};
  }
  if (driver_of(world, claim).empty()) {
    return {"ClassMissing", cat("claim ", name, " is of ResourceClass ", class_of(claim),
                                ", which does not exist")};
  }
  const Value* known = find_object(world.objects.resource_classes, "", class_of(claim));
  if ((*known)["structuredParameters"].as_bool()) return {};
  if (claim["spec"]["allocationMode"].as_string() == "Immediate") {
    return {"DriverNotAllocated",
            cat("claim ", name, " is to be allocated at once, and driver ", driver_of(world, claim),
                " has not done so: does its controller run? Its events are on the claim")};
  }
  const Value* context = find_object(world.objects.contexts, pod.name_space, pod.name);
  if (context != nullptr && !owns(pod, *context)) {
    return {"ContextNotOwned", cat("PodSchedulingContext ", pod.name,
                                   " belongs to an earlier pod of that name, and has to go first")};
  }
  return {};
}

Hindrance waits_for_drivers(const Explanation& found) {
  const auto& run = found.run;
  // Before anything is proposed there is nothing to wait for.
  if (run.asked.empty() || run.standing == Proposal{}) return {};
  std::vector<std::string> silent;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < run.asked.size(); ++i) {
    all.push_back(with_driver(found, i));
    if (!run.claims[run.asked[i]].answered) silent.push_back(with_driver(found, i));
  }
  if (!run.standing.selected_node.empty()) {
    return {"DriverNotAllocated", cat("allocation on node ", run.standing.selected_node,
                                      " is asked for and not done yet: ", join(all, ", "))};
  }
  if (silent.empty()) return {};
  return {"DriverNotAnswered",
          cat("it is not said yet which nodes would do: ", join(silent, ", "))};
}

void tell_talk(const Explanation& found, WhyPage& page) {
  const auto& run = found.run;
  if (run.asked.empty()) return;
  const Proposal& proposal = run.standing;
  page.gap();
  if (proposal == Proposal{}) {
    page.line(0, "no node has been proposed to its drivers yet");
    return;
  }
  page.line(0,
            cat("proposed to its drivers: ",
                proposal.potential_nodes.empty() ? "no nodes"
                                                 : scheduler::name_nodes(proposal.potential_nodes),
                proposal.selected_node.empty() ? "; none is selected yet"
                                               : cat("; selected: ", proposal.selected_node)));
  std::vector<std::string> silent;
  for (std::size_t i = 0; i < run.asked.size(); ++i) {
    const PodClaim& claim = run.claims[run.asked[i]];
    const std::vector<std::string> refused = refused_of(claim, proposal);
    page.line(2, cat(with_driver(found, i),
                     !claim.answered   ? ": no answer"
                     : refused.empty() ? ": refuses none of them"
                                       : cat(": refuses ", scheduler::name_nodes(refused))));
    const std::string& driver = found.drivers[i];
    if (!claim.answered && std::find(silent.begin(), silent.end(), driver) == silent.end()) {
      silent.push_back(driver);
    }
  }
  for (const std::string& driver : silent) {
    page.line(2,
              cat("does the controller of driver ", driver,
                  " run? What it fails at it says in events of the pod, the claim or the class"));
  }
}

Value talk_document(const Explanation& found) {
  const auto& run = found.run;
  Value potential = Value::array();
  for (const std::string& node : run.standing.potential_nodes) potential.push(node);
  Value claims = Value::array();
  for (std::size_t i = 0; i < run.asked.size(); ++i) {
    const PodClaim& claim = run.claims[run.asked[i]];
    Value refused = Value::array();
    for (const std::string& node : claim.unsuitable) refused.push(node);
    claims.push(Value::object({{"claim", name_of(claim)},
                               {"driver", found.drivers[i]},
                               {"answered", claim.answered},
                               {"refusedNodes", std::move(refused)}}));
  }
  return Value::object({{"potentialNodes", std::move(potential)},
                        {"selectedNode", run.standing.selected_node},
                        {"claims", std::move(claims)}});
}

}  // namespace dibs::cli
