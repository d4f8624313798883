#pragma once
// The claims of a pod: what its spec asks for, and which ResourceClaim each entry has become.

#include <string>
#include <string_view>
#include <vector>

#include "base/finalizers.h"
#include "controllers/discovery.h"
#include "json/value.h"

namespace dibs::controllers {

struct PodClaim {
  std::string entry;          // the name in spec.resourceClaims
  std::string template_name;  // "" for an entry that names its claim
  std::string claim;          // "" while there is none
  bool settled = false;       // the status has its word: a claim, or that none is needed
};

/// In the order of the spec. `release`: early ones (classic_claims.h) name a template's claim after
/// pod and entry, without a word in the status.
std::vector<PodClaim> pod_claims(const json::Value& pod, int release = kNewestRelease);
/// The names of all ResourceClaims that a pod uses, that for its extended resources included.
std::vector<std::string> claim_names(const json::Value& pod, int release = kNewestRelease);
/// A pod that will never use its claims again: it has ended, or is deleted without having had a
/// node.
bool is_done_with_claims(const json::Value& pod);
/// The claim was made for this pod.
bool is_owned_by(const json::Value& claim, const json::Value& pod);
/// For the pod, or for its group.
bool is_reserved_for(const json::Value& claim, const json::Value& pod);
/// "<pod>-<entry>-", cut so that five more characters fit.
std::string claim_name_base(std::string_view pod, std::string_view entry);
/// "<pod>-<entry>", which an early release calls it.
std::string early_claim_name(std::string_view pod, std::string_view entry);

inline constexpr const char* kClaimNameAnnotation = "resource.kubernetes.io/pod-claim-name";

}  // namespace dibs::controllers
