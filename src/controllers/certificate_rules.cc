#include "controllers/certificate_rules.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "controllers/controller.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kServingSigner = "kubernetes.io/kubelet-serving";
constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";
constexpr std::string_view kLegacySigner = "kubernetes.io/legacy-unknown";

constexpr Duration kBackdate = std::chrono::minutes(5);
constexpr Duration kShort = std::chrono::hours(8);
constexpr Duration kLeast = std::chrono::minutes(10);

constexpr Duration kDecidedStays = std::chrono::hours(1);
constexpr Duration kPendingStays = std::chrono::hours(24);

using Usages = std::set<std::string, std::less<>>;

Usages usages_of(const Value& request) {
  Usages out;
  for (const Value& usage : request["spec"]["usages"].items()) out.insert(usage.str());
  return out;
}

/// A kubelet uses its key for this, and with RSA to encipher keys.
std::string usage_fault(const Usages& usages, const char* purpose) {
  const Usages plain = {purpose, "digital signature"};
  const Usages with_rsa = {purpose, "digital signature", "key encipherment"};
  if (usages == plain || usages == with_rsa) return {};
  return cat("usages did not match [", join({with_rsa.begin(), with_rsa.end()}, " "), "]");
}

bool is_for_nodes(const net::SigningRequest& asked) {
  return asked.organizations == std::vector<std::string>{"system:nodes"};
}

constexpr const char* kNotOfNodes = "subject organization is not system:nodes";
constexpr const char* kNoNode = "subject common name does not begin with system:node:";

std::string kubelet_client_fault(const Value& request, const net::SigningRequest& asked) {
  if (!is_for_nodes(asked)) return kNotOfNodes;
  if (!asked.dns_names.empty()) return "DNS subjectAltNames are not allowed";
  if (!asked.email_addresses.empty()) return "Email subjectAltNames are not allowed";
  if (!asked.ip_addresses.empty()) return "IP subjectAltNames are not allowed";
  if (!asked.uris.empty()) return "URI subjectAltNames are not allowed";
  if (!asked.common_name.starts_with("system:node:")) return kNoNode;
  return usage_fault(usages_of(request), "client auth");
}

std::string kubelet_serving_fault(const Value& request, const net::SigningRequest& asked) {
  if (!is_for_nodes(asked)) return kNotOfNodes;
  if (asked.dns_names.empty() && asked.ip_addresses.empty())
    return "DNS or IP subjectAltName is required";
  if (!asked.email_addresses.empty()) return "Email subjectAltNames are not allowed";
  if (!asked.uris.empty()) return "URI subjectAltNames are not allowed";
  if (std::string fault = usage_fault(usages_of(request), "server auth"); !fault.empty())
    return fault;
  return asked.common_name.starts_with("system:node:") ? "" : kNoNode;
}

std::string client_fault(const Value& request) {
  bool for_clients = false;
  for (const Value& usage : request["spec"]["usages"].items()) {
    const std::string_view name = usage.as_string();
    if (name == "client auth") {
      for_clients = true;
    } else if (name != "digital signature" && name != "key encipherment") {
      return cat("invalid usage for client certificate: ", name);
    }
  }
  return for_clients ? "" : "missing required usage for client certificate: client auth";
}

}  // namespace

bool is_own_signer(std::string_view signer) {
  return signer == kKubeletClientSigner || signer == kServingSigner || signer == kClientSigner ||
         signer == kLegacySigner;
}

std::string signing_fault(const Value& request, const net::SigningRequest& asked) {
  const std::string_view signer = request["spec"]["signerName"].as_string();
  if (signer == kKubeletClientSigner) return kubelet_client_fault(request, asked);
  if (signer == kServingSigner) return kubelet_serving_fault(request, asked);
  if (signer == kClientSigner) return client_fault(request);
  return {};
}

net::Validity validity_for(const Value& request, Duration longest, Time authority_end, Time now) {
  const Value& seconds = request["spec"]["expirationSeconds"];
  Duration life = longest;
  if (!seconds.is_null())
    life = std::clamp<Duration>(std::chrono::seconds(seconds.as_int()), kLeast, longest);
  const Time end = now + (life < kShort ? life : life - kBackdate);
  return {now + -kBackdate, std::min(end, authority_end)};
}

std::optional<Duration> time_left(const Value& request, Time now) {
  const Value& status = request["status"];
  const bool issued = !status["certificate"].as_string().empty();
  std::optional<Time> end;
  const auto until = [&](Time since, Duration stays) {
    if (since != Time{} && (!end || since + stays < *end)) end = since + stays;
  };
  if (status["conditions"].empty()) until(created_at(request), kPendingStays);
  for (const Value& condition : status["conditions"].items()) {
    const std::string_view type = condition["type"].as_string();
    const Time since = time_at(condition["lastUpdateTime"]);
    if (type == "Denied" || type == "Failed") until(since, kDecidedStays);
    if (type != "Approved") continue;
    until(since, issued ? kDecidedStays : kPendingStays);
    std::string pem;
    if (!issued || !base64_decode(status["certificate"].as_string(), pem)) continue;
    if (const auto certificate = net::parse_certificate(pem); certificate.ok())
      until(certificate->not_after, Duration(0));
  }
  if (!end) return std::nullopt;
  return std::max(*end - now, Duration(0));
}

}  // namespace dibs::controllers
