#pragma once
// The release that a node answers as, where releases differ in what they speak with drivers.

#include <string_view>

#include "base/release.h"

namespace dibs::node {

struct NodeRelease {
  int minor = kNewestRelease;
  /// False: the newest, and older drivers and claims are welcome too.
  bool exact = false;

  /// "1.32"; "" is the newest.
  static NodeRelease parse(std::string_view text);

  /// The version of resource.k8s.io in which claims are read and slices deleted: that of the
  /// model that the release has. Which versions of the newer model a server serves is the
  /// client's concern (client/resource_versions.h).
  std::string_view resource_version() const;
  /// Of the time of resource.k8s.io/v1alpha2: other words, annotations of containers, no call for
  /// claims that no container uses.
  bool classic() const { return exact && minor <= 30; }
  /// Claims made from templates have the name <pod>-<entry>; the pod's status does not say it.
  bool fixed_claim_names() const { return exact && minor <= 27; }
};

}  // namespace dibs::node
