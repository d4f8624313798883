#pragma once
// The files of volumes whose content comes from the API: configMap, secret, downwardAPI, projected.
//
// Errors are what stands after `MountVolume.SetUp failed for volume "v" : `.

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "json/value.h"
#include "node/pods/certificate_state.h"
#include "node/pods/env.h"
#include "node/pods/node_facts.h"
#include "node/pods/volume_objects.h"
#include "node/pods/volume_writer.h"

namespace dibs::node {

struct PayloadSources {
  PodObjects& objects;
  const NodeFacts& facts;
  PodAddresses addresses = {};
  /// A token for the pod's service account by a serviceAccountToken source.
  std::function<Result<std::string>(const json::Value& source)> token = {};
  /// Certificates by a clusterTrustBundle source.
  std::function<Result<std::string>(const json::Value& source)> trust_anchors = {};
  /// Key and certificate of the pod, for the podCertificate source at `index` of a volume.
  std::function<Result<PodCredential>(const std::string& volume, std::size_t index,
                                      const json::Value& source)>
      certificate = {};
};

/// Whether a volume of the spec is of these kinds.
bool has_payload(const json::Value& volume);

Result<VolumeFiles> volume_payload(const json::Value& pod, const json::Value& volume,
                                   const PayloadSources& sources);

/// The user that all containers of the pod run as, when they agree on one: it owns tokens.
std::optional<std::int64_t> common_user(const json::Value& pod);

}  // namespace dibs::node
