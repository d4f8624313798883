#pragma once
// What a plugin says it speaks, and what a release of the node agent makes of it.
//
// Up to 1.31 plugins gave a semantic version; later ones list gRPC services in short form.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/plugins/release.h"

namespace dibs::node {

/// How prepare and unprepare are spoken. v1alpha4 shares its paths with v1alpha3 and is of v1's
/// shape; which of the two a plugin means shows in the claim (dra_plugin.h).
enum class DraApi : std::uint8_t { v1, v1beta1, v1alpha4 };
enum class HealthApi : std::uint8_t { none, v1, v1alpha1 };

struct Negotiated {
  DraApi api = DraApi::v1;
  HealthApi health = HealthApi::none;
  /// Watching ends for good when the plugin does not know the service.
  bool health_advertised = false;
  /// The semantic version, of a plugin that gave one: a higher one takes the place of a lower.
  std::string semver = {};
};

/// Errors are the words that the plugin is told.
Result<Negotiated> negotiate(const std::vector<std::string>& versions, NodeRelease release);

}  // namespace dibs::node
