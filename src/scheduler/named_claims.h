#pragma once
// Claims with the structured parameters of Kubernetes 1.30, as the allocator sees them, and its
// answers as resource.k8s.io/v1alpha2 has them.
//
// A claim has requests per driver. Each becomes a request for one device of that driver; what the
// class filters of a driver stands in a class that only these requests have.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "alloc/claims.h"
#include "alloc/node.h"
#include "json/value.h"
#include "scheduler/parameters.h"

namespace dibs::scheduler {

class NamedClaim {
 public:
  /// Requires parameters of which none is missing. `problem` is set to what cannot be understood.
  static NamedClaim read(const json::Value& claim, const json::Value& resource_class,
                         FoundParameters parameters, std::string& problem);

  const std::shared_ptr<const alloc::Claim>& claim() const { return claim_; }
  /// Of a name that one of the claim's requests has; null for others.
  std::shared_ptr<const alloc::DeviceClass> class_of(std::string_view name) const;
  /// status.allocation; `chosen`: the allocator's answer to claim().
  json::Value allocation(const alloc::Node& node, const json::Value& chosen) const;

 private:
  FoundParameters parameters_;
  std::shared_ptr<const alloc::Claim> claim_;
  std::map<std::string, std::shared_ptr<const alloc::DeviceClass>, std::less<>> classes_;
};

/// The two allocations give the same instances.
bool same_instances(const json::Value& one, const json::Value& other);

}  // namespace dibs::scheduler
