#include "node/plugins/versions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/semver.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

constexpr std::string_view kV1 = "v1.DRAPlugin";
constexpr std::string_view kV1beta1 = "v1beta1.DRAPlugin";
constexpr std::string_view kNodeService = "v1alpha3.NodeService";

bool has(const std::vector<std::string>& versions, std::string_view wanted) {
  return std::find(versions.begin(), versions.end(), wanted) != versions.end();
}

/// As Go prints a list of quoted strings.
std::string go_list(const std::vector<std::string>& versions) {
  std::string out = "[";
  for (const auto& version : versions) append(out, out.size() > 1 ? " " : "", quoted(version));
  return out + "]";
}

/// The highest 1.x, "" when there is none.
std::string highest_semver(const std::vector<std::string>& versions) {
  std::optional<SemanticVersion> best;
  std::string text;
  for (const auto& version : versions) {
    const auto parsed = SemanticVersion::parse_tolerant(version);
    if (!parsed || parsed->major != 1 || (best && *parsed <= *best)) continue;
    best = *parsed;
    text = parsed->str();
  }
  return text;
}

void negotiate_health(const std::vector<std::string>& versions, NodeRelease release,
                      Negotiated& out) {
  if (release.minor >= 37) {
    out.health_advertised = true;
    if (has(versions, "v1.DRAResourceHealth")) {
      out.health = HealthApi::v1;
    } else if (has(versions, "v1alpha1.DRAResourceHealth")) {
      out.health = HealthApi::v1alpha1;
    }
  } else if (release.minor >= 34) {
    out.health = HealthApi::v1alpha1;
  }
}

}  // namespace

Result<Negotiated> negotiate(const std::vector<std::string>& versions, NodeRelease release) {
  Negotiated out;
  if (release.exact && release.minor <= 31) {
    if (versions.empty()) {
      return Error::invalid("empty list of supported versions");
    }
    out.api = DraApi::v1alpha4;
    out.semver = highest_semver(versions);
    if (out.semver.empty()) {
      return Error::invalid(
          cat("none of the supported versions ", go_list(versions), " is usable: must be v1.x"));
    }
    return out;
  }
  if (release.exact && release.minor <= 33) {
    out.api = has(versions, kV1beta1) ? DraApi::v1beta1 : DraApi::v1alpha4;
    return out;
  }
  if (versions.empty()) {
    return Error::invalid("empty list of supported gRPC services (aka supported versions)");
  }
  negotiate_health(versions, release, out);
  for (const auto& version : versions) {
    if (version == kV1 || version == kV1beta1) {
      out.api = version == kV1 ? DraApi::v1 : DraApi::v1beta1;
      return out;
    }
  }
  if (!release.exact) {
    out.semver = highest_semver(versions);
    if (has(versions, kNodeService) || !out.semver.empty()) {
      out.api = DraApi::v1alpha4;
      return out;
    }
  }
  return Error::invalid(cat("none of services supported by the plugin (", go_list(versions),
                            ") are supported by the kubelet ([", quoted(kV1), " ", quoted(kV1beta1),
                            "])"));
}

}  // namespace dibs::node
