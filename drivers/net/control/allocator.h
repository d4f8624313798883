#pragma once
// Classic claims: which nodes can serve a pod, and what it gets there.
//
// All claims of a pod are looked at together: their interfaces, in the order of the pod's claims,
// need something of a node (fit.h) and addresses of pools (ipam.h). What is granted stands in the
// claim's handle and nowhere else. Addresses are assigned before the claim is allocated, so that a
// pool that is too small leaves the pod without a node, not without a network.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/event_recorder.h"
#include "driver/allocator.h"
#include "driver/plugin.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/control/plan.h"
#include "drivers/net/ipam/ipam.h"

namespace dibs::drivers::net {

struct AllocatorOptions {
  SelectionOptions selection = {};
  bool allow_immediate = false;
};

/// What an allocator goes by. All must outlive it.
struct AllocatorViews {
  Ipam& ipam;
  const Networks& networks;
  const NodeStates& states;
  client::EventRecorder& events;
  /// Adds what claims of today's model hold of a node; may be empty.
  std::function<void(const std::string& node, Used& used)> used_elsewhere = {};
};

class NetAllocator : public driver::Allocator {
 public:
  /// What the environment refers to must outlive it.
  NetAllocator(const driver::Environment& environment, AllocatorViews views,
               AllocatorOptions options);

  Result<json::Value> class_parameters(const json::Value& resource_class,
                                       driver::ObjectFinder& objects) override;
  Result<json::Value> claim_parameters(const driver::PendingClaim& pending,
                                       driver::ObjectFinder& objects) override;
  std::vector<Result<driver::Allocation>> allocate(const std::vector<driver::PendingClaim>& claims,
                                                   const std::string& node,
                                                   const driver::Taken& taken) override;
  Result<> deallocate(const json::Value& claim) override;
  Result<driver::Unsuitable> unsuitable_nodes(const json::Value& pod,
                                              const std::vector<driver::PendingClaim>& claims,
                                              const std::vector<std::string>& nodes,
                                              const driver::Taken& taken) override;

 private:
  using UsedByNode = std::map<std::string, Used>;
  /// A claim of the pod, to be allocated or allocated already.
  struct Part {
    const driver::PendingClaim* pending = nullptr;  // null: allocated
    ClaimParameter parameter = {};
    Grant grant = {};  // of an allocated one
  };
  struct Plan {
    std::vector<Part> parts = {};  // in the order of the pod's claims
    PodPlan pod = {};
  };

  Result<> ready() const;
  const Grant* grant_of(const json::Value& claim);
  UsedByNode used_by(const driver::Taken& taken);
  Result<Plan> plan_for(const json::Value& pod, const std::vector<driver::PendingClaim>& claims,
                        const driver::Taken& taken);
  /// What each part gets on the node; those that have something keep it.
  Result<std::vector<Grant>> grants_on(const Plan& plan, const std::string& node,
                                       const UsedByNode& used) const;
  std::vector<NicAsk> asks_on(const Plan& plan, const std::string& node,
                              const std::vector<Grant>& grants) const;
  Result<std::vector<driver::Allocation>> allocate_for(
      const json::Value& pod, const std::vector<driver::PendingClaim>& claims,
      const std::string& node, const driver::Taken& taken);
  Result<driver::Allocation> allocate_at_once(const driver::PendingClaim& claim,
                                              const driver::Taken& taken);
  Result<> annotate(const json::Value& pod, const json::Value& annotations);
  void warn(const json::Value& object, const char* reason, const std::string& note);

  client::Client& api_;
  runtime::Clock& clock_;
  const AllocatorViews views_;
  const AllocatorOptions options_;
  /// By uid of the claim: the handle, and what it says. Only so as not to read them all each time.
  std::map<std::string, std::pair<std::string, Grant>> grants_;
};

}  // namespace dibs::drivers::net
