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
  const auto found = resource_classes_.find(claim["spec"]["resourceClassName"].str());
  const bool structured = found != resource_classes_.end() && found->second.structured;
  return structured ? Way::parameters : Way::driver;
}

Value Devices::counted_form(const Value& claim) const {
  switch (way_of(claim)) {
    case Way::devices:
      return claim["status"]["allocation"];
    case Way::driver:
    case Way::parameters:
      break;
  }
  return {};
}

std::string Devices::read_parameters(Held& held, const ResourceClass& of) {
  return cat("claim ", client::key_of(held.object), ": driver ", of.driver,
             " has structured parameters, which are not read yet");
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
  const auto found = resource_classes_.find(claim["spec"]["resourceClassName"].str());
  if (found == resource_classes_.end()) {
    return reject(
        cat("resource class ", claim["spec"]["resourceClassName"].as_string(), " does not exist"));
  }
  made.anywhere = found->second.anywhere;
  made.places = found->second.places;
  if (made.way == Way::parameters) {
    if (!held.in_flight.is_null()) {
      run.ready = DeviceRun::Ready::wait;
      run.reason = cat("resource claim ", made.key, " is in the process of being allocated");
      return false;
    }
    std::string problem = read_parameters(held, found->second);
    if (!problem.empty()) return reject(std::move(problem));
    run.open.push_back(run.claims.size());
  } else {
    if (claim["spec"]["allocationMode"].as_string() == "Immediate") {
      return reject("unallocated immediate resourceclaim");
    }
    // What its driver said of nodes was said to this pod alone.
    append(run.signature, pod.uid);
    return reject("waiting for resource driver to provide information");
  }
  run.claims.push_back(std::move(made));
  return true;
}

}  // namespace dibs::scheduler
