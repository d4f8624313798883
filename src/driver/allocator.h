#pragma once
// The half of a classic driver that decides (resource.k8s.io/v1alpha2), as its author writes it.
//
// In the classic model nobody but the driver knows what a claim may get: its controller says which
// nodes cannot serve a pod, allocates, and takes back. Everything else is this library's
// (controller.h): watching claims, classes and pods' scheduling, finalizers, writes and retries,
// events, leader election. What the controller allocates reaches the driver's node half as the
// handles of the claim (driver.h, Claim::handles).
//
// An allocator needs no memory of its own: each call is told what is allocated (`taken`), writes
// that are on their way included. Calls come one at a time and may block.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/claim.h"
#include "driver/object_finder.h"
#include "json/value.h"

namespace dibs::driver {

/// A claim that is to be allocated.
struct PendingClaim {
  /// Its name in the pod's spec.resourceClaims; "" when it is allocated for no pod in particular.
  std::string entry = {};
  json::Value claim = {};
  /// Whom it is allocated for; null when for no pod in particular.
  json::Value pod = {};
  json::Value resource_class = {};
  /// What class_parameters() and claim_parameters() returned.
  json::Value class_parameters = {};
  json::Value claim_parameters = {};
};

struct Allocation {
  /// What the driver's node half is told, 16 KiB each, 32 at most; none is one empty handle.
  std::vector<std::string> handles = {};
  /// A NodeSelector: where the claim can be used. Null: everywhere.
  json::Value nodes = {};
  /// Several pods may use it at a time.
  bool shareable = false;
};

/// The NodeSelector of one node.
json::Value only_on(std::string_view node);

/// All claims that are allocated by this driver now; handles_of() reads them.
using Taken = std::vector<json::Value>;
/// Nodes by name, one list per claim.
using NodeLists = std::vector<std::vector<std::string>>;

struct Unsuitable {
  NodeLists nodes = {};
  /// Why, by node; may be empty. Where no node is left the pod's events say it.
  std::map<std::string, std::string> reasons = {};
};
/// "node-a: no such cat; node-b, node-c: …": nodes with the same reason together, so that it is
/// short enough for an event.
std::string describe_reasons(const std::map<std::string, std::string>& reasons);

class Allocator {
 public:
  virtual ~Allocator() = default;

  /// What the parametersRef of a class leads to, checked. An error keeps its claims waiting and
  /// stands in the events of class and pod. As it is: a class must have none.
  virtual Result<json::Value> class_parameters(const json::Value& resource_class,
                                               ObjectFinder& objects);
  /// The same for a claim; `pending` has all but claim_parameters.
  virtual Result<json::Value> claim_parameters(const PendingClaim& pending, ObjectFinder& objects);

  /// One answer for each claim, in their order. `node`: where the pod shall run, which uses all of
  /// them; "": wherever it pleases. An answer may get lost, and then the claim comes again.
  virtual std::vector<Result<Allocation>> allocate(const std::vector<PendingClaim>& claims,
                                                   const std::string& node, const Taken& taken) = 0;

  /// Undoes it, also an allocation that never was finished: the claim then has none. Must succeed
  /// for a claim that it knows nothing of. Whoever has no state but the claims has nothing to do.
  virtual Result<> deallocate(const json::Value& claim);

  /// Those of `nodes` on which the claim cannot be served now, together with the others.
  virtual Result<Unsuitable> unsuitable_nodes(const json::Value& pod,
                                              const std::vector<PendingClaim>& claims,
                                              const std::vector<std::string>& nodes,
                                              const Taken& taken) = 0;
};

}  // namespace dibs::driver
