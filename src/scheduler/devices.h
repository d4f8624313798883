#pragma once
// Claims, classes, slices and what of the devices is in use; and the claims of one pod put to a
// node.
//
// A claim holds its devices from the moment that an attempt reserves them (in flight: decided here,
// not yet in the API) until its status no longer has an allocation. The inventory always counts
// exactly one allocation per claim, so nothing is counted twice when the written one comes back
// through the watch. Objects older than what is known are ignored.
//
// A claim of resource.k8s.io/v1alpha2 never holds devices of the inventory by its class alone: its
// class says whether a controller of its driver allocates it (Way::driver, negotiation.h) or the
// search here does by its parameters (Way::parameters). Named resources have an inventory of their
// own, which the same search looks through.
//
// One owner: the scheduler's serial executor.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "alloc/demand.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/finalizers.h"
#include "base/time.h"
#include "scheduler/cluster_state.h"
#include "scheduler/extended.h"
#include "scheduler/groups.h"
#include "scheduler/named_claims.h"
#include "scheduler/negotiation.h"
#include "scheduler/node_allocatable.h"
#include "scheduler/parameters.h"
#include "scheduler/refusals.h"

namespace dibs::scheduler {

/// What a change of a claim may mean to waiting pods.
struct ClaimChange {
  bool known = true;     // false: older than what is here
  bool freed = false;    // devices are free now
  bool changed = false;  // the pods that use it may be helped
};

/// Who allocates a claim.
enum class Way : std::uint8_t {
  devices,     // v1: the search for devices
  driver,      // v1alpha2: a controller of its driver
  parameters,  // v1alpha2: the search, by ResourceClaimParameters and ResourceClassParameters
};

/// A ResourceClass as scheduling reads it.
struct ResourceClass {
  std::string driver;
  bool structured = false;
  /// Where its claims can be allocated.
  bool anywhere = true;
  alloc::NodeSelector places;
  json::Value object;
};

/// A claim of a pod in an attempt.
struct PodClaim {
  std::string key;
  std::string entry;  // of the pod's spec.resourceClaims
  json::Value object;
  Way way = Way::devices;
  bool allocated = false;
  bool reserved = false;  // for this pod, or for its group where that shares it
  bool own = true;        // false: it is a claim of the pod's group
  json::Value consumer;   // what is reserved for then; null: the pod
  /// Where an allocated claim can be used, or an unallocated one of a ResourceClass be allocated.
  bool anywhere = true;
  alloc::NodeSelector places;
  bool skips_node_operations = false;
  /// Of an unallocated one that its driver allocates: whether that has said on which nodes it
  /// cannot, and those (sorted).
  bool answered = false;
  std::vector<std::string> unsuitable;
  /// Binding failed or took too long: of no use on any node.
  bool spoiled = false;
};

/// Allocations for the unallocated claims, in their order.
struct NodeDevices {
  enum class Kind : std::uint8_t { fits, refused, failed };
  Kind kind = Kind::fits;
  std::string reason;
  std::vector<json::Value> allocations;
  /// Claims (by place in DeviceRun::claims) that stand in the way.
  std::vector<std::size_t> unavailable;
  /// Index into DeviceRun::extended, -1: none is needed on this node.
  int extended = -1;
  /// It is DeviceRun::named_demand that is refused.
  bool named = false;
  /// status.nodeAllocatableResourceClaimStatuses of the pod there; null: none.
  json::Value node_allocatable;
  /// Refused for lack of the node's own resources.
  bool lacks_resources = false;
  /// What the search for devices has cost (alloc::SearchStats).
  std::uint64_t steps = 0;
  /// Of a failure: a selector fails on a device. Whoever wrote it is to see that, so the pod goes
  /// nowhere, also where it would do.
  bool holds = false;
};

/// The devices' part of an attempt to place a pod.
struct DeviceRun {
  enum class Ready : std::uint8_t {
    go,        // put it to nodes
    none,      // the pod has nothing to do with devices
    wait,      // for an object to appear or a decision in flight: not tried, nothing said
    rejected,  // on no node: see the reason
    failed,    // the same, and it is called an error
  };
  Ready ready = Ready::none;
  std::string reason;
  std::vector<PodClaim> claims;
  std::vector<std::size_t> open;   // unallocated ones that are searched for
  std::vector<std::size_t> asked;  // unallocated ones that drivers decide about
  /// Of the pod's PodSchedulingContext; empty unless some are asked for.
  Proposal standing;
  /// Every node says this error; empty: none.
  std::string broken;
  alloc::Demand demand;           // of those of v1
  std::vector<NamedClaim> named;  // the others of `open`, in their order
  alloc::Demand named_demand;
  bool prioritized = false;
  /// Nodes may fail, so all are asked before one is chosen.
  bool may_fail = false;
  /// Groups of extended resources by what nodes serve themselves.
  struct Extended {
    std::vector<std::string> served;
    ExtendedDemand wanted;
    alloc::Demand demand;  // with the claims of `open` first
  };
  std::vector<std::string> extended_resources;
  const Pod* pod = nullptr;
  std::vector<Extended> extended;
  /// A claim made for this pod before, which has to go first.
  std::string stale_extended;
  /// Of equal pods equal: what the claims ask for.
  std::string signature;
  /// Nodes that have refused the same before; null where more than the open claims counts.
  Refusals::Demand* refused = nullptr;
};

/// What a node says that lacks the devices.
inline constexpr const char* kNoDevices = "cannot allocate all claims";
/// What a node says that the class of a claim leaves out.
inline constexpr const char* kExcludedByClass = "excluded by resource class node filter";
/// The same where a claim of v1alpha2 cannot be allocated, by its driver or by the search.
inline constexpr const char* kUnsuitable =
    "resourceclaim cannot be allocated for the node (unsuitable)";

/// What a change of a PodSchedulingContext may mean to its pod.
struct ContextChange {
  bool known = true;   // false: older than what is here
  bool helps = false;  // the pod may go on
};

class Devices {
 public:
  Devices(const alloc::Features& features, std::function<std::string()> share_ids,
          int release = kNewestRelease);

  ClaimChange put_claim(const json::Value& object);
  ClaimChange remove_claim(const json::Value& object);
  /// False when nothing that counts changed.
  bool put_class(const json::Value& object);
  void remove_class(const json::Value& object);
  bool put_resource_class(const json::Value& object);
  void remove_resource_class(const json::Value& object);
  /// Null: there is none of that name.
  const ResourceClass* resource_class(const std::string& name) const;

  // PodSchedulingContexts, by the pods whose name they have.
  ContextChange put_context(const json::Value& object);
  ContextChange remove_context(const json::Value& object);
  /// As last known; null when there is none.
  json::Value context(const std::string& pod_key) const;
  bool has_contexts() const { return !contexts_.empty(); }
  /// What stands in it, or will when the write that is under way arrives.
  Proposal proposal(const std::string& pod_key) const;
  /// A write is under way; none any more.
  void assume_proposal(const std::string& pod_key, Proposal proposal);
  void settle_proposal(const std::string& pod_key);
  void put_slice(const json::Value& object);
  void remove_slice(const json::Value& object);
  /// DeviceTaintRules add taints to the devices that they select.
  void put_rule(const json::Value& object);
  void remove_rule(const json::Value& object);
  void node_changed(std::string_view name) { refusals_.node_changed(name); }
  void forget_node(std::string_view name);

  /// The claim as last known; null when there is none.
  json::Value claim(const std::string& key) const;
  /// Claims that hold one of these devices ("driver/pool/device"), by key.
  std::vector<std::string> holders(const std::vector<std::string>& device_ids) const;
  alloc::Inventory& inventory() { return inventory_; }
  alloc::Inventory& named_inventory() { return named_inventory_; }
  Parameters& parameters() { return parameters_; }
  /// A class serves the extended resource.
  bool serves(std::string_view resource) const { return !extended_.class_of(resource).empty(); }

  // The claims of one pod, and nodes asked for them (devices_run.cc).
  /// A claim that the pod needs.
  struct Named {
    std::string key;
    std::string_view entry;           // into the pod
    const PodGroup* group = nullptr;  // that shares it
  };
  /// The claim that an entry of the pod stands for: "" while it is not made, or if it needs none.
  std::string claim_name(const Pod& pod, const PodClaimRef& entry) const;
  /// Claims of the pod that are needed. Empty with a problem when one is missing.
  std::vector<Named> resolve(const Pod& pod, std::string& problem) const;
  DeviceRun prepare(const Pod& pod, Time now, Duration binding_timeout);
  NodeDevices check(DeviceRun& run, const NodeInfo& node);
  /// Devices for these claims together on a node. Requires claims of v1 that are not allocated.
  alloc::Outcome allocate(const std::vector<std::string>& keys, const NodeInfo& node);
  /// The allocation has devices that are resources of their node, which count there.
  bool takes_of_node(const json::Value& allocation) const {
    return node_allocatable_.has_any(allocation);
  }
  /// Claims may be those of groups; they must outlive this.
  void follow(const PodGroups& groups) { groups_ = &groups; }
  /// The driver of a claim of v1alpha2, by its class.
  std::string driver_of(const PodClaim& claim) const;
  /// How early in the prioritized lists the choices stand.
  static std::int64_t preference(const DeviceRun& run, const NodeDevices& choice);

  /// Devices decided on but not in the API yet. `id` is a claim's key, or any text for a claim that
  /// does not exist yet.
  void reserve(const std::string& id, const json::Value& allocation);
  void unreserve(const std::string& id);
  bool in_flight(const std::string& id) const;

  std::size_t claim_count() const { return claims_.size(); }

 private:
  struct Held {
    json::Value object;                          // null: only in flight
    std::shared_ptr<const alloc::Claim> parsed;  // null until it is needed
    json::Value in_flight;                       // allocation
    json::Value counted;                         // allocation that the inventory counts for it
  };

  void recount(Held& held);
  static const std::shared_ptr<const alloc::Claim>& parsed(Held& held);
  void put_marked(const std::string& name, const json::Value& slice);
  void mark_again(const json::Value& rule);
  bool add_claim(const Pod& pod, const Named& named, Time now, Duration timeout, DeviceRun& run);
  // Claims of v1alpha2 (devices_classic.cc).
  Way way_of(const json::Value& claim) const;
  bool add_classic(const Pod& pod, Held& held, PodClaim made, DeviceRun& run);
  bool ask_driver(const Pod& pod, PodClaim& made, DeviceRun& run) const;
  // Those of them with parameters (devices_named.cc).
  /// What is wrong with the parameters, "" for nothing.
  std::string add_parameters(const json::Value& claim, const ResourceClass& of, DeviceRun& run);
  void prepare_named(DeviceRun& run);
  bool check_named(const DeviceRun& run, const NodeInfo& node, NodeDevices& made);
  /// The allocation as an inventory counts it; null where it holds nothing of either.
  static json::Value counted_form(const json::Value& claim);
  alloc::Inventory& inventory_of(const json::Value& allocation);
  bool add_extended(const Pod& pod, DeviceRun& run);
  /// What the claims take of the node's own resources; false where that does not go.
  bool count_node_resources(const DeviceRun& run, const NodeInfo& node, NodeDevices& made) const;
  std::string missing_class(const json::Value& claim) const;
  std::string missing_claim(const std::string& key, const std::string& name, bool generated) const;
  int extended_for(DeviceRun& run, const NodeInfo& node, std::string& reason);
  /// The index of the demand for these resources, made where it is new.
  int extended_demand(DeviceRun& run, std::vector<std::string> served);
  alloc::Demand demand_for(const DeviceRun& run, const json::Value* extra);

  const int release_;
  const PodGroups* groups_ = nullptr;
  alloc::Inventory inventory_;
  alloc::Inventory named_inventory_;
  Parameters parameters_;
  std::function<std::string()> share_ids_;
  std::unordered_map<std::string, Held> claims_;
  std::unordered_map<std::string, std::string> extended_claims_;  // pod uid -> claim key
  std::unordered_map<std::string, std::shared_ptr<const alloc::DeviceClass>> classes_;
  std::unordered_map<std::string, json::Value> class_objects_;
  std::unordered_map<std::string, ResourceClass> resource_classes_;
  struct Context {
    json::Value object;            // null: not there yet
    std::optional<Proposal> sent;  // being written
  };
  std::unordered_map<std::string, Context> contexts_;
  std::map<std::string, json::Value> slices_;
  std::map<std::string, json::Value> rules_;
  ExtendedClasses extended_;
  NodeAllocatable node_allocatable_;
  Refusals refusals_;
};

std::uint64_t revision_of(const json::Value& object);

bool is_allocated(const json::Value& claim);

bool is_owned_by(const json::Value& object, std::string_view uid);

/// The entry of status.reservedFor with this uid is there.
bool is_reserved_for(const json::Value& claim, std::string_view uid);

/// Whether the devices of a claim are ready to be used, by their binding conditions.
struct BindingState {
  bool has_conditions = false;
  bool ready = true;
  std::string failure;  // upstream's words
};
BindingState binding_state(const json::Value& claim);
/// When the wait for binding conditions began; 0 when unknown.
Time allocated_at(const json::Value& claim);

}  // namespace dibs::scheduler
