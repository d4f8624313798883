// Claims of resource.k8s.io/v1alpha2: what they need, and where they can be had.
#include <algorithm>

#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "client/client.h"
#include "scheduler/devices.h"

namespace dibs::scheduler {
namespace {

using json::Value;

bool has_finalizer(const Value& claim, std::string_view wanted) {
  const auto& all = claim["metadata"]["finalizers"].items();
  return std::any_of(all.begin(), all.end(),
                     [&](const Value& finalizer) { return finalizer.as_string() == wanted; });
}

}  // namespace

bool Devices::put_resource_class(const Value& object) {
  ResourceClass& known = resource_classes_[object["metadata"]["name"].str()];
  const Value before = known.object;
  ResourceClass made;
  made.driver = object["driverName"].str();
  made.structured = object["structuredParameters"].as_bool();
  made.anywhere = !object["suitableNodes"].is_object();
  if (!made.anywhere) made.places = alloc::NodeSelector::read(object["suitableNodes"]);
  made.object = object;
  known = std::move(made);
  if (before.is_null()) return true;
  const auto changed = [&](const char* field) { return !(before[field] == object[field]); };
  return changed("driverName") || changed("suitableNodes") || changed("structuredParameters") ||
         changed("parametersRef");
}

void Devices::remove_resource_class(const Value& object) {
  resource_classes_.erase(object["metadata"]["name"].str());
}

Way Devices::way_of(const Value& claim) const {
  if (!api::is_classic(claim)) return Way::devices;
  if (claim["status"]["allocation"].is_object()) {
    return has_finalizer(claim, kNamedClaimFinalizer) ? Way::parameters : Way::driver;
  }
  const ResourceClass* of = resource_class(claim["spec"]["resourceClassName"].str());
  return of != nullptr && of->structured ? Way::parameters : Way::driver;
}

const ResourceClass* Devices::resource_class(const std::string& name) const {
  const auto found = resource_classes_.find(name);
  return found != resource_classes_.end() ? &found->second : nullptr;
}

std::string Devices::driver_of(const PodClaim& claim) const {
  if (claim.way == Way::devices) return {};
  const ResourceClass* of = resource_class(claim.object["spec"]["resourceClassName"].str());
  return of != nullptr ? of->driver : "";
}

bool Devices::add_classic(const Pod& pod, Held& held, PodClaim made, DeviceRun& run) {
  const Value& claim = held.object;
  const Value& status = claim["status"];
  made.way = way_of(claim);
  const auto reject = [&run](std::string reason) {
    run.ready = DeviceRun::Ready::rejected;
    run.reason = std::move(reason);
    return false;
  };
  if (status["deallocationRequested"].as_bool()) {
    return reject("resourceclaim must be reallocated");
  }
  if (made.allocated) {
    append(run.signature, made.key);
    const Value& allocation = status["allocation"];
    if (!allocation["shareable"].as_bool() && !made.reserved && !status["reservedFor"].empty()) {
      return reject("resourceclaim in use");
    }
    made.anywhere = !allocation["availableOnNodes"].is_object();
    if (!made.anywhere) made.places = alloc::NodeSelector::read(allocation["availableOnNodes"]);
    run.claims.push_back(std::move(made));
    return true;
  }
  const std::string class_name = claim["spec"]["resourceClassName"].str();
  const ResourceClass* of = resource_class(class_name);
  if (of == nullptr) {
    if (!is_early(release_)) return reject(cat("resource class ", class_name, " does not exist"));
    run.broken = cat("look up resource class: resourceclass.resource.k8s.io ", quoted(class_name),
                     " not found");
    run.claims.push_back(std::move(made));
    return true;
  }
  made.anywhere = of->anywhere;
  made.places = of->places;
  if (made.way == Way::driver) {
    if (claim["spec"]["allocationMode"].as_string() == "Immediate") {
      return reject("unallocated immediate resourceclaim");
    }
    if (!ask_driver(pod, made, run)) return false;
    run.asked.push_back(run.claims.size());
    run.claims.push_back(std::move(made));
    return true;
  }
  if (!held.in_flight.is_null()) {
    run.ready = DeviceRun::Ready::wait;
    run.reason = cat("resource claim ", made.key, " is in the process of being allocated");
    return false;
  }
  std::string problem = add_parameters(claim, *of, run);
  if (!problem.empty()) return reject(std::move(problem));
  run.open.push_back(run.claims.size());
  run.claims.push_back(std::move(made));
  return true;
}

/// What the pod's context says about the claim. False: the context is another pod's.
bool Devices::ask_driver(const Pod& pod, PodClaim& made, DeviceRun& run) const {
  // What a driver says of nodes it says to this pod alone.
  append(run.signature, pod.uid);
  const Value known = context(pod.key);
  if (!known.is_null() && !is_owned_by(known, pod.uid)) {
    run.ready = DeviceRun::Ready::failed;
    run.reason = cat("PodSchedulingContext object with UID ", client::uid_of(known),
                     " is not owned by Pod ", pod.key);
    return false;
  }
  run.standing = proposal(pod.key);
  const Value* answer = answer_of(known, made.entry);
  made.answered = answer != nullptr;
  if (answer == nullptr) return true;
  for (const Value& node : (*answer)["unsuitableNodes"].items()) {
    made.unsuitable.push_back(node.str());
  }
  std::sort(made.unsuitable.begin(), made.unsuitable.end());
  return true;
}

ContextChange Devices::put_context(const Value& object) {
  const std::string key = client::key_of(object);
  Context& known = contexts_[key];
  const Value before = known.object;
  const bool same = client::uid_of(before) == client::uid_of(object);
  if (same && revision_of(object) < revision_of(before)) return {.known = false};
  ContextChange change;
  // What this scheduler writes comes back, and tells it nothing.
  change.helps = !(Proposal::read(object) == proposal(key)) || (!same && !before.is_null()) ||
                 !(before["status"]["resourceClaims"] == object["status"]["resourceClaims"]);
  known.object = object;
  return change;
}

ContextChange Devices::remove_context(const Value& object) {
  const auto found = contexts_.find(client::key_of(object));
  if (found == contexts_.end() || client::uid_of(found->second.object) != client::uid_of(object)) {
    return {.known = false};
  }
  found->second.object = Value();
  if (!found->second.sent) contexts_.erase(found);
  return {.helps = true};
}

Value Devices::context(const std::string& pod_key) const {
  const auto found = contexts_.find(pod_key);
  return found != contexts_.end() ? found->second.object : Value();
}

Proposal Devices::proposal(const std::string& pod_key) const {
  const auto found = contexts_.find(pod_key);
  if (found == contexts_.end()) return {};
  return found->second.sent ? *found->second.sent : Proposal::read(found->second.object);
}

void Devices::assume_proposal(const std::string& pod_key, Proposal proposal) {
  contexts_[pod_key].sent = std::move(proposal);
}

void Devices::settle_proposal(const std::string& pod_key) {
  const auto found = contexts_.find(pod_key);
  if (found == contexts_.end()) return;
  found->second.sent.reset();
  if (found->second.object.is_null()) contexts_.erase(found);
}

}  // namespace dibs::scheduler
