#pragma once
// Why a demand cannot be served on a node, as data.
//
// Three questions, each answered when somebody asks for it. What became of the node's devices, per
// request: how many each selector, taint, counter and so on took away, in the order in which people
// think of them. Which demands conflict: a smallest set of requests and constraints that cannot be
// served together, each of which could be dropped to serve the rest. What would help: single
// changes after which the demand can be served, cheapest first. Sentences are made of them at the
// very end.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "alloc/demand.h"
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "json/value.h"

namespace dibs::alloc {

enum class Cause : std::uint8_t {
  class_selector,      // number: which of the class
  request_selector,    // number: which of the request
  selector_error,      // looking at the device ends the attempt
  other_node,          // the device is for other nodes
  binding_conditions,  // not supported here
  node_operations,     // the node cannot do without the driver's preparation
  in_use,              // allocated to other claims
  capacity,            // too small, or its policy does not allow the amount
  capacity_in_use,     // enough, were it not for other claims
  taint,               // subject: the taint's key
  counters,            // partitions: their parts are in use
  groups,              // partitions: not compatible with those in use
  constraint,          // number: which of the claim; the attribute is missing
};

struct Loss {
  Cause cause = Cause::in_use;
  std::uint32_t number = 0;
  std::string subject;
  std::uint32_t devices = 0;

  friend bool operator==(const Loss&, const Loss&) = default;
};

/// What one request, or one alternative of it, finds on the node.
struct RequestFindings {
  std::uint32_t claim = 0;
  std::uint32_t request = 0;      // in the claim
  std::uint32_t alternative = 0;  // in the request
  std::int64_t wanted = 0;        // devices; for "all" as many as match
  std::uint32_t seen = 0;
  std::uint32_t left = 0;  // could be had, were the other requests not there
  std::vector<Loss> losses;

  friend bool operator==(const RequestFindings&, const RequestFindings&) = default;
};

/// A request or, where `constraint` is not kNone, a constraint of a claim.
struct ConflictItem {
  std::uint32_t claim = 0;
  std::uint32_t request = 0xffffffff;
  std::uint32_t constraint = 0xffffffff;

  friend bool operator==(const ConflictItem&, const ConflictItem&) = default;
};

/// What a constraint of the conflict finds: devices that its requests could have, by value.
struct ConstraintFindings {
  std::uint32_t claim = 0;
  std::uint32_t constraint = 0;
  std::int64_t wanted = 0;  // devices, of those requests of the conflict that it is about
  /// The most frequent first. A device with a list counts with each of its values.
  std::vector<std::pair<std::string, std::uint32_t>> values;

  friend bool operator==(const ConstraintFindings&, const ConstraintFindings&) = default;
};

struct Relaxation {
  enum class Kind : std::uint8_t {
    tolerate,         // taints, by the request; subject: the key
    fewer,            // number: of devices for the request that would do
    less,             // of a capacity; subject: "NAME AMOUNT" that would do
    drop_constraint,  // number: of the constraint
    drop_selector,    // number: of the request's selector
    release,          // number: of devices in use that would do, when others give them back
  };
  Kind kind = Kind::release;
  std::uint32_t claim = 0;
  std::uint32_t request = 0;
  std::uint32_t alternative = 0;
  std::uint32_t number = 0;
  std::string subject;
  /// The devices to be given back, "driver/pool/device".
  std::vector<std::string> devices = {};

  friend bool operator==(const Relaxation&, const Relaxation&) = default;
};

struct NodeFailure {
  Answer answer = Answer::unavailable;
  std::string error;  // of Answer::failed
  std::vector<RequestFindings> requests;
  std::vector<ConflictItem> conflict;
  std::vector<ConstraintFindings> constraints;  // of the conflict
  bool conflict_is_minimal = true;  // false: the limit on steps was met while making it smaller
  std::vector<Relaxation> relaxations;
  /// It would be served if nobody else had anything here: waiting can help.
  bool possible_when_idle = false;
  std::uint32_t incomplete_pools = 0;
  std::uint32_t invalid_pools = 0;

  /// Nodes of the same kind of failure can be told in one sentence.
  friend bool operator==(const NodeFailure&, const NodeFailure&) = default;
};

struct ExplainOptions {
  bool conflict = true;
  bool relaxations = true;
  Limits limits;  // for each of the searches that an explanation takes
};

/// Of a demand that allocate() did not serve on the node.
NodeFailure explain(Inventory& inventory, const Node& node, const Demand& demand,
                    const ExplainOptions& options = {});

/// "request gpu of claim default/c wants 2 of 8 devices: 4 are in use, 3 do not match …".
std::vector<std::string> describe(const NodeFailure& failure, const Demand& demand);

// The same in pieces, for those who lay them out.

/// The request could not be served even alone.
bool falls_short(const RequestFindings& found);
/// "request gpu of claim default/c wants 2 of 8 devices, and 1 is left".
std::string describe(const RequestFindings& found, const Demand& demand);
/// "4 are in use".
std::string describe(const Loss& loss, const RequestFindings& found, const Demand& demand);
/// "request gpu of claim default/c".
std::string describe(const ConflictItem& item, const Demand& demand);
/// "5 devices with the same x/numa are wanted: 4 have 0, 3 have 1".
std::string describe(const ConstraintFindings& found, const Demand& demand);
/// "tolerate the taint ill in request gpu of claim default/c".
std::string describe(const Relaxation& fix, const Demand& demand);

json::Value to_json(const NodeFailure& failure, const Demand& demand);

}  // namespace dibs::alloc
