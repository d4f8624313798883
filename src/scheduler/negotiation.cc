#include "scheduler/negotiation.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr const char* kForInformation = "waiting for resource driver to provide information";
constexpr const char* kForAllocation = "waiting for resource driver to allocate resource";

/// As many as a context can hold, sorted. Which ones is left to chance, so that pods that cannot
/// be placed do not ask about the same nodes for ever; the chosen one is always asked about.
std::vector<std::string> pick_nodes(std::vector<std::string> nodes, const std::string& chosen,
                                    runtime::Random& random) {
  if (nodes.size() > kMostPotentialNodes) {
    const auto mine = std::find(nodes.begin(), nodes.end(), chosen);
    if (mine != nodes.end()) std::iter_swap(nodes.begin(), mine);
    for (std::size_t i = 1; i < kMostPotentialNodes; ++i) {
      std::swap(nodes[i], nodes[i + random.below(nodes.size() - i)]);
    }
    nodes.resize(kMostPotentialNodes);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

/// The candidates, and what drivers know already if that leaves room for all of them.
std::vector<std::string> with_known(const Talk& talk) {
  std::vector<std::string> all = talk.candidates;
  for (const std::string& name : talk.known) {
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  return all.size() <= kMostPotentialNodes ? all : talk.candidates;
}

bool includes(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  return std::all_of(some.begin(), some.end(), [&](const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  });
}

}  // namespace

Proposal Proposal::read(const Value& context) {
  Proposal made;
  made.selected_node = context["spec"]["selectedNode"].str();
  for (const Value& name : context["spec"]["potentialNodes"].items()) {
    made.potential_nodes.push_back(name.str());
  }
  return made;
}

Value Proposal::to_json() const {
  Value made = Value::object();
  if (!selected_node.empty()) made.set("selectedNode", selected_node);
  if (potential_nodes.empty()) return made;
  Value names = Value::array();
  for (const std::string& name : potential_nodes) names.push(name);
  made.set("potentialNodes", std::move(names));
  return made;
}

const Value* answer_of(const Value& context, std::string_view entry) {
  for (const Value& answer : context["status"]["resourceClaims"].items()) {
    if (answer["name"].as_string() == entry) return &answer;
  }
  return nullptr;
}

Step negotiate(const Talk& talk, runtime::Random& random) {
  Step made;
  Proposal wanted = talk.standing;
  if (!includes(wanted.potential_nodes, talk.candidates)) {
    wanted.potential_nodes = pick_nodes(with_known(talk), talk.chosen, random);
  }
  const bool alone = talk.asked == 1 && !talk.searches;
  made.selected = alone || talk.heard == talk.asked;
  if (made.selected) {
    wanted.selected_node = talk.chosen;
  } else if (wanted.selected_node != talk.chosen) {
    // No driver shall go on to allocate where the pod cannot run.
    wanted.selected_node.clear();
  }
  if (!(wanted == talk.standing)) made.propose = std::move(wanted);
  return made;
}

Failure told(const Step& step, int release) {
  Failure made;
  made.plugins = bit(Plugin::dynamic_resources);
  made.waits = true;
  if (is_early(release)) {
    made.error = true;
    made.message = cat("running Reserve plugin \"DynamicResources\": ",
                       step.selected ? kForAllocation : kForInformation);
  } else if (step.selected && step.propose) {
    made.message = "waiting for resource driver";
  } else {
    // Only the node that was chosen counts.
    made.message = unavailable_message(1, cat("1 ", kForInformation));
  }
  return made;
}

Value make_context(const Value& pod, const Proposal& proposal, int release) {
  const Value& metadata = pod["metadata"];
  Value owner = Value::object({{"apiVersion", "v1"},
                               {"kind", "Pod"},
                               {"name", metadata["name"]},
                               {"uid", metadata["uid"]},
                               {"controller", true}});
  if (!is_early(release)) owner.set("blockOwnerDeletion", true);
  return Value::object({{"apiVersion", "resource.k8s.io/v1alpha2"},
                        {"kind", "PodSchedulingContext"},
                        {"metadata", Value::object({{"name", metadata["name"]},
                                                    {"namespace", metadata["namespace"]},
                                                    {"ownerReferences", Value::array({owner})}})},
                        {"spec", proposal.to_json()}});
}

}  // namespace dibs::scheduler
