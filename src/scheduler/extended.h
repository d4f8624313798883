#pragma once
// Extended resources that device classes serve: a pod asks for "example.com/gpu: 2" as it would of
// a device plugin, and the scheduler makes a claim of it.
//
// Each class serves the resource that it names (spec.extendedResourceName) and one after its own
// name. Where two classes name the same resource the newer one counts, and then the one whose name
// sorts first; the others step in when it goes.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

inline constexpr const char* kImplicitPrefix = "deviceclass.resource.kubernetes.io/";
inline constexpr const char* kExtendedClaimAnnotation =
    "resource.kubernetes.io/extended-resource-claim";

class ExtendedClasses {
 public:
  void put(const json::Value& device_class);
  void remove(const json::Value& device_class);
  /// The class that serves a resource; "" when none does.
  std::string class_of(std::string_view resource) const;

 private:
  struct Entry {
    std::string created;
    std::string name;
  };
  std::map<std::string, std::vector<Entry>, std::less<>> by_resource_;
  std::map<std::string, std::string, std::less<>> resource_of_;  // by class
  std::set<std::string, std::less<>> classes_;
};

/// Resources of the pod, of those in `names`, that would be served by devices.
struct ExtendedDemand {
  json::Value requests;  // spec.devices.requests
  json::Value mappings;  // status.extendedResourceClaimStatus.requestMappings
};

/// `served` are the resources to be served by devices, in order.
ExtendedDemand make_extended_demand(const Pod& pod, const std::vector<std::string>& served,
                                    const ExtendedClasses& classes);

/// The claim as it is created.
json::Value make_extended_claim(const Pod& pod, const json::Value& requests);

}  // namespace dibs::scheduler
