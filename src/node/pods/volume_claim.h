#pragma once
// From a pod's volume to the PersistentVolume behind its claim, read from the server each time: a
// node may read those that its pods name, and may not watch them.
//
// Errors are worded as the kubelet's, for the event FailedMount.

#include <string>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"

namespace dibs::node {

/// persistentVolumeClaim, or ephemeral: then the claim is the pod's own.
bool names_claim(const json::Value& volume);

struct ClaimedVolume {
  json::Value claim = {};
  json::Value volume = {};  // the PersistentVolume
  bool read_only = false;
};

/// Of a volume that names a claim: bound, and to this claim.
Result<ClaimedVolume> read_claimed_volume(client::Client& client, const json::Value& pod,
                                          const json::Value& volume);

/// A container mounts the volume, or has it as a device, and that is what it is.
Result<> check_volume_mode(const json::Value& pod, std::string_view volume_name,
                           const json::Value& persistent_volume);

}  // namespace dibs::node
