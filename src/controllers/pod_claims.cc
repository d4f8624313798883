#include "controllers/pod_claims.h"

#include "base/strings.h"
#include "controllers/classic_claims.h"
#include "controllers/controller.h"

namespace dibs::controllers {
namespace {

constexpr std::size_t kLongestBase = 57;

const json::Value& status_of(const json::Value& pod, std::string_view entry) {
  for (const auto& status : pod["status"]["resourceClaimStatuses"].items()) {
    if (status["name"].as_string() == entry) return status;
  }
  return json::null_value();
}

}  // namespace

std::vector<PodClaim> pod_claims(const json::Value& pod, int release) {
  std::vector<PodClaim> out;
  for (const auto& item : pod["spec"]["resourceClaims"].items()) {
    // Before 1.31 the two names were one level deeper.
    const json::Value& source = item.contains("source") ? item["source"] : item;
    PodClaim claim;
    claim.entry = item["name"].str();
    claim.claim = source["resourceClaimName"].str();
    claim.template_name = source["resourceClaimTemplateName"].str();
    claim.settled = !claim.claim.empty();
    if (!claim.template_name.empty() && is_early(release)) {
      claim.settled = true;
      claim.claim = early_claim_name(name_of(pod), claim.entry);
    } else if (!claim.template_name.empty()) {
      const json::Value& status = status_of(pod, claim.entry);
      claim.settled = !status.is_null();
      claim.claim = status["resourceClaimName"].str();
    }
    out.push_back(std::move(claim));
  }
  return out;
}

std::vector<std::string> claim_names(const json::Value& pod, int release) {
  std::vector<std::string> out;
  for (const PodClaim& claim : pod_claims(pod, release)) {
    if (!claim.claim.empty()) out.push_back(claim.claim);
  }
  const json::Value& extended = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
  if (!extended.as_string().empty()) out.push_back(extended.str());
  return out;
}

bool is_done_with_claims(const json::Value& pod) {
  return is_pod_terminal(pod) || (is_deleting(pod) && pod["spec"]["nodeName"].as_string().empty());
}

bool is_owned_by(const json::Value& claim, const json::Value& pod) {
  const json::Value& owner = controller_of(claim);
  return owner["uid"].as_string() == uid_of(pod) && !uid_of(pod).empty();
}

bool is_reserved_for(const json::Value& claim, const json::Value& pod) {
  const std::string_view group = pod["spec"]["schedulingGroup"]["podGroupName"].as_string();
  for (const auto& consumer : claim["status"]["reservedFor"].items()) {
    if (consumer["uid"].as_string() == uid_of(pod)) return true;
    // A pod knows its group by name.
    if (consumer["resource"].as_string() == "podgroups" && !group.empty() &&
        consumer["name"].as_string() == group) {
      return true;
    }
  }
  return false;
}

std::string claim_name_base(std::string_view pod, std::string_view entry) {
  std::string whole = cat(pod, '-', entry, '-');
  if (whole.size() <= kLongestBase) return whole;
  const std::size_t length = whole.size();
  return cat(pod.substr(0, pod.size() * kLongestBase / length), '-',
             entry.substr(0, entry.size() * kLongestBase / length));
}

std::string early_claim_name(std::string_view pod, std::string_view entry) {
  return cat(pod, '-', entry);
}

}  // namespace dibs::controllers
