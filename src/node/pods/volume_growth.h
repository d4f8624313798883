#pragma once
// Volumes that grew: what is left for the node to do, and what it writes into the claim.
//
// The driver's resizer enlarges the volume and writes the new size into the PersistentVolume; what
// is mounted is the node's to enlarge. A resizer of today also tells in the claim's status how far
// it is (allocatedResourceStatuses), and can go back on a size that is not to be had; of an older
// one the volume's size alone is known.
//
// Functions over objects, and of the API's kind: no call is made here.

#include <optional>
#include <string>

#include "base/quantity.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::node {

struct Growth {
  Quantity size = {};
  /// The claim's status tells how far it is, and wants to be told.
  bool followed = false;
  /// The claim has that size: another node has done it, and this one does so for itself.
  bool told = false;
};

/// What a claim has, by its status.
Quantity size_of_claim(const json::Value& claim);
/// Nothing: no call of the driver is due. `here` is the size that the volume has on this node.
std::optional<Growth> growth_of(const json::Value& claim, const json::Value& volume,
                                const Quantity& here);

// Patches of the claim's status, for the version of it that they are made from.

json::Value growth_begun(const json::Value& claim);
json::Value growth_done(const json::Value& claim, const Quantity& size);
/// `hopeless`: it will not be tried again, until the user asks for another size.
json::Value growth_failed(const json::Value& claim, const std::string& why, bool hopeless,
                          Time now);
/// It failed before, and the user has asked for another size since.
bool is_outdated(const json::Value& claim, const Growth& growth);

}  // namespace dibs::node
