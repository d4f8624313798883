#pragma once
// Which volume a claim gets.

#include <functional>
#include <string>
#include <vector>

#include "json/value.h"

namespace dibs::api {

using json::Value;

/// spec.capacity.storage of a volume against spec.resources.requests.storage of the claim, modes,
/// class: why the volume will not do for a claim that asks for it by name, in the API's words; ""
/// where it does.
std::string volume_mismatch(const Value& volume, const Value& claim);
/// Block or Filesystem, the default.
bool same_volume_mode(const Value& volume, const Value& claim);
/// The volume may be used on that node.
bool volume_reaches(const Value& volume, const Value& node);

/// The volumes that the claim could be bound to, best first: that which is reserved for it and no
/// other, or else free ones, with the fewest access modes beside those asked for, of these the
/// smallest, of these the first by name.
///
/// `reserved`: volumes whose claimRef names the claim; `free`: those without a claimRef, at least
/// of the claim's class. `excluded`: those that are taken meanwhile; may be empty.
std::vector<Value> serving_volumes(const Value& claim, const std::vector<Value>& reserved,
                                   const std::vector<Value>& free,
                                   const std::function<bool(const Value& volume)>& excluded = {});

/// The volume with a claimRef to the claim, and the mark that it is not a user's if it is not; the
/// same node when it is so already.
Value bound_volume(const Value& volume, const Value& claim);

/// allowedTopologies of a class hold for the node; no terms: anywhere.
bool topology_allows(const Value& storage_class, const Value& node);

}  // namespace dibs::api
