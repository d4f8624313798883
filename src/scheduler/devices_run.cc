// The claims of one pod: which they are, what of them is still to be found, and one node after
// another asked for it (DeviceRun).
#include <algorithm>

#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "client/client.h"
#include "json/parse.h"
#include "scheduler/devices.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr const char* kExtendedName = "<extended-resources>";

bool has_status(const Pod& pod, std::string_view entry) {
  const auto& all = pod.object["status"]["resourceClaimStatuses"].items();
  return std::any_of(all.begin(), all.end(),
                     [&](const Value& status) { return status["name"].as_string() == entry; });
}

}  // namespace

std::string Devices::claim_name(const Pod& pod, const PodClaimRef& entry) const {
  if (!entry.claim.empty()) return entry.claim;
  for (const Value& status : pod.object["status"]["resourceClaimStatuses"].items()) {
    if (status["name"].as_string() == entry.name) return status["resourceClaimName"].str();
  }
  return is_early(release_) ? cat(pod.name, "-", entry.name) : "";
}

std::vector<Devices::Named> Devices::resolve(const Pod& pod, std::string& problem) const {
  std::vector<Named> made;
  for (const PodClaimRef& ref : pod.shape->claims) {
    const bool generated = ref.claim.empty();
    if (generated && ref.template_name.empty()) {
      problem = cat("pod ", quoted(pod.key), ", spec.resourceClaim ", quoted(ref.name),
                    ": none of the supported fields are set");
      return {};
    }
    const std::string name = claim_name(pod, ref);
    if (name.empty()) {
      if (has_status(pod, ref.name)) continue;  // not needed after all
      problem = cat("pod ", quoted(pod.key), ": ResourceClaim not created yet");
      return {};
    }
    const std::string key = client::key_of(pod.name_space, name);
    const auto found = claims_.find(key);
    if (found == claims_.end() || found->second.object.is_null()) {
      problem = missing_claim(key, name, generated);
      return {};
    }
    const Value& object = found->second.object;
    if (object["metadata"]["deletionTimestamp"].is_string()) {
      problem = cat("resourceclaim ", quoted(name), " is being deleted");
      return {};
    }
    const PodGroup* group = groups_ != nullptr ? groups_->sharing(pod, ref) : nullptr;
    if (generated && !is_owned_by(object, group != nullptr ? group->uid() : pod.uid)) {
      const std::string_view name = group != nullptr ? client::split_key(group->key).second : "";
      problem = group != nullptr ? cat("ResourceClaim ", key, " was not created for Pod ", pod.key,
                                       " (neither Pod nor PodGroup ", name, " is the owner)")
                : release_ <= 30 ? cat("ResourceClaim ", key, " was not created for pod ", pod.key,
                                       " (pod is not owner)")
                                 : cat("ResourceClaim ", key, " was not created for Pod ", pod.key,
                                       " (Pod is not owner)");
      return {};
    }
    made.push_back({key, ref.name, group});
  }
  return made;
}

std::string Devices::missing_claim(const std::string& key, const std::string& name,
                                   bool generated) const {
  if (!is_early(release_)) return cat("could not find ResourceClaim ", quoted(key));
  return generated ? cat("waiting for dynamic resource controller to create the resourceclaim ",
                         quoted(name))
                   : cat("resourceclaim.resource.k8s.io ", quoted(name), " not found");
}

std::string Devices::missing_class(const Value& claim) const {
  const auto missing = [&](const Value& request, std::string_view name) -> std::string {
    const std::string wanted = request["deviceClassName"].str();
    if (classes_.contains(wanted)) return {};
    return cat("request ", name, ": device class ", wanted, " does not exist");
  };
  for (const Value& request : claim["spec"]["devices"]["requests"].items()) {
    const std::string name = request["name"].str();
    for (const Value& alternative : request["firstAvailable"].items()) {
      std::string text = missing(alternative, cat(name, "/", alternative["name"].as_string()));
      if (!text.empty()) return text;
    }
    if (request["exactly"].is_object()) {
      std::string text = missing(request["exactly"], name);
      if (!text.empty()) return text;
    }
  }
  return {};
}

bool Devices::add_claim(const Pod& pod, const Named& named, Time now, Duration timeout,
                        DeviceRun& run) {
  const std::string& key = named.key;
  Held& held = claims_.at(key);
  PodClaim made;
  made.key = key;
  made.entry = named.entry;
  made.object = held.object;
  made.allocated = is_allocated(held.object);
  made.own = named.group == nullptr;
  if (!made.own) made.consumer = group_consumer(*named.group);
  made.reserved =
      made.allocated && is_reserved_for(held.object, made.own ? pod.uid : named.group->uid());
  append(run.signature, '\n');
  json::write_to(run.signature, held.object["spec"]);
  if (api::is_classic(held.object)) return add_classic(pod, held, std::move(made), run);
  if (made.allocated) {
    append(run.signature, key);
    const Value& allocation = held.object["status"]["allocation"];
    made.anywhere = !allocation["nodeSelector"].is_object();
    if (!made.anywhere) made.places = alloc::NodeSelector::read(allocation["nodeSelector"]);
    for (const Value& result : allocation["devices"]["results"].items()) {
      if (!result["skipNodeOperations"].empty()) made.skips_node_operations = true;
    }
    const BindingState state = binding_state(held.object);
    if (state.has_conditions && !state.ready) {
      made.spoiled = !state.failure.empty() || allocated_at(held.object) + timeout <= now;
    }
  } else {
    if (!held.in_flight.is_null()) {
      run.ready = DeviceRun::Ready::wait;
      run.reason = cat("resource claim ", key, " is in the process of being allocated");
      return false;
    }
    run.reason = missing_class(held.object);
    if (!run.reason.empty()) {
      run.ready = DeviceRun::Ready::rejected;
      return false;
    }
    for (const alloc::Request& request : parsed(held)->requests) {
      if (request.prioritized) run.prioritized = true;
    }
    run.open.push_back(run.claims.size());
  }
  run.claims.push_back(std::move(made));
  return true;
}

bool Devices::add_extended(const Pod& pod, DeviceRun& run) {
  for (const auto& [name, amount] : pod.shape->requests.scalars) {
    if (amount > 0 && is_extended_resource(name) && serves(name)) {
      run.extended_resources.push_back(name);
    }
  }
  if (run.extended_resources.empty()) return false;
  const auto earlier = extended_claims_.find(std::string(pod.uid));
  if (earlier != extended_claims_.end()) run.stale_extended = earlier->second;
  return true;
}

alloc::Demand Devices::demand_for(const DeviceRun& run, const Value* extra) {
  std::vector<std::shared_ptr<const alloc::Claim>> wanted;
  for (const std::size_t place : run.open) {
    if (run.claims[place].way != Way::devices) continue;
    wanted.push_back(parsed(claims_.at(run.claims[place].key)));
  }
  if (extra != nullptr) {
    wanted.push_back(std::make_shared<const alloc::Claim>(alloc::Claim::read(Value::object(
        {{"metadata", Value::object({{"name", kExtendedName}, {"namespace", run.pod->name_space}})},
         {"spec", Value::object({{"devices", Value::object({{"requests", *extra}})}})}}))));
  }
  return alloc::Demand::prepare(
      inventory_, std::move(wanted),
      [this](std::string_view name) -> std::shared_ptr<const alloc::DeviceClass> {
        const auto found = classes_.find(std::string(name));
        return found != classes_.end() ? found->second : nullptr;
      });
}

DeviceRun Devices::prepare(const Pod& pod, Time now, Duration binding_timeout) {
  DeviceRun run;
  run.pod = &pod;
  std::string problem;
  const std::vector<Named> keys = resolve(pod, problem);
  if (!problem.empty()) {
    run.ready = is_early(release_) ? DeviceRun::Ready::rejected : DeviceRun::Ready::wait;
    run.reason = std::move(problem);
    return run;
  }
  for (const Named& named : keys) {
    // A pod may name one claim twice.
    if (std::any_of(run.claims.begin(), run.claims.end(),
                    [&](const PodClaim& claim) { return claim.key == named.key; })) {
      continue;
    }
    if (!add_claim(pod, named, now, binding_timeout, run)) return run;
  }
  const bool extended = add_extended(pod, run);
  if (run.claims.empty() && !extended) return run;
  run.ready = DeviceRun::Ready::go;
  if (run.open.size() > run.named.size()) {
    run.demand = demand_for(run, nullptr);
    run.may_fail = run.demand.may_fail(inventory_);
  }
  // Most nodes serve none of them: what these are asked for is known now, for may_fail.
  if (extended) extended_demand(run, run.extended_resources);
  if (!run.named.empty()) prepare_named(run);
  if (run.open.size() == run.claims.size() && run.named.empty() && !extended) {
    run.refused = &refusals_.of(run.signature);
  }
  return run;
}

int Devices::extended_for(DeviceRun& run, const NodeInfo& node, std::string& reason) {
  std::vector<std::string> served;
  for (const std::string& name : run.extended_resources) {
    if (node.allocatable.scalar(name) == 0) served.push_back(name);
  }
  if (served.empty()) return -1;
  if (!run.stale_extended.empty()) {
    reason = "cannot schedule extended resource claim";
    return -1;
  }
  return extended_demand(run, std::move(served));
}

int Devices::extended_demand(DeviceRun& run, std::vector<std::string> served) {
  for (std::size_t i = 0; i < run.extended.size(); ++i) {
    if (run.extended[i].served == served) return static_cast<int>(i);
  }
  DeviceRun::Extended made;
  made.wanted = make_extended_demand(*run.pod, served, extended_);
  made.served = std::move(served);
  made.demand = demand_for(run, &made.wanted.requests);
  run.may_fail = run.may_fail || made.demand.may_fail(inventory_);
  run.extended.push_back(std::move(made));
  return static_cast<int>(run.extended.size()) - 1;
}

NodeDevices Devices::check(DeviceRun& run, const NodeInfo& node) {
  NodeDevices made;
  if (!run.broken.empty()) {
    made.kind = NodeDevices::Kind::failed;
    made.reason = run.broken;
    return made;
  }
  const auto refuse = [&](std::string reason) {
    made.kind = NodeDevices::Kind::refused;
    made.reason = std::move(reason);
    return made;
  };
  if (!run.extended_resources.empty()) {
    std::string reason;
    made.extended = extended_for(run, node, reason);
    if (!reason.empty()) return refuse(std::move(reason));
  }
  std::vector<std::size_t> unavailable;
  for (std::size_t i = 0; i < run.claims.size(); ++i) {
    const PodClaim& claim = run.claims[i];
    const bool here = claim.anywhere || claim.places.matches(node.place);
    if (!claim.allocated) {
      if (!here) return refuse(kExcludedByClass);
      if (std::binary_search(claim.unsuitable.begin(), claim.unsuitable.end(), node.name)) {
        return refuse(kUnsuitable);
      }
      continue;
    }
    const bool can_skip = !claim.skips_node_operations || node.place.optional_node_operations;
    if (!here || !can_skip || claim.spoiled) unavailable.push_back(i);
  }
  if (made.extended >= 0 || run.open.size() > run.named.size()) {
    const alloc::Demand& demand = made.extended >= 0
                                      ? run.extended[static_cast<std::size_t>(made.extended)].demand
                                      : run.demand;
    alloc::Outcome outcome = alloc::allocate(inventory_, node.place, demand, share_ids_);
    made.steps += outcome.stats.steps;
    switch (outcome.answer) {
      case alloc::Answer::allocated:
        made.allocations = std::move(outcome.allocations);
        break;
      case alloc::Answer::unavailable:
        if (run.refused != nullptr) refusals_.note(*run.refused, node);
        return refuse(kNoDevices);
      case alloc::Answer::node_invalid:
        return refuse(outcome.error);
      case alloc::Answer::failed:
        made.kind = NodeDevices::Kind::failed;
        made.holds = true;
        made.reason = std::move(outcome.error);
        return made;
      case alloc::Answer::undecided:
        made.kind = NodeDevices::Kind::failed;
        made.reason = cat("node ", node.name, ": timed out trying to allocate devices");
        return made;
    }
  }
  if (!run.named.empty() && !check_named(run, node, made)) return made;
  if (!unavailable.empty()) {
    made.unavailable = std::move(unavailable);
    return refuse("resourceclaim not available on the node");
  }
  if (!node_allocatable_.empty()) (void)count_node_resources(run, node, made);
  return made;
}

alloc::Outcome Devices::allocate(const std::vector<std::string>& keys, const NodeInfo& node) {
  DeviceRun run;
  for (const std::string& key : keys) {
    PodClaim claim;
    claim.key = key;
    run.open.push_back(run.claims.size());
    run.claims.push_back(std::move(claim));
  }
  return alloc::allocate(inventory_, node.place, demand_for(run, nullptr), share_ids_);
}

std::int64_t Devices::preference(const DeviceRun& run, const NodeDevices& choice) {
  constexpr std::int64_t kMostAlternatives = 8;
  std::int64_t sum = 0;
  const auto count = [&](const Value& claim, const Value& allocation) {
    for (const Value& request : claim["spec"]["devices"]["requests"].items()) {
      const Value& list = request["firstAvailable"];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string name = cat(request["name"].as_string(), "/", list[i]["name"].as_string());
        for (const Value& result : allocation["devices"]["results"].items()) {
          if (result["request"].as_string() != name) continue;
          sum += kMostAlternatives - static_cast<std::int64_t>(i);
          i = list.size();
          break;
        }
      }
    }
  };
  std::size_t next = 0;
  for (const PodClaim& claim : run.claims) {
    if (claim.allocated) {
      count(claim.object, claim.object["status"]["allocation"]);
    } else if (claim.way != Way::driver && next < choice.allocations.size()) {
      count(claim.object, choice.allocations[next++]);
    }
  }
  return sum;
}

}  // namespace dibs::scheduler
