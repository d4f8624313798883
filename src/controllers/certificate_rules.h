#pragma once
// CertificateSigningRequests: what the signers of Kubernetes sign, and when a request is done with.
//
// Functions; certificates.cc approves, signs and removes by them.

#include <optional>
#include <string>

#include "base/time.h"
#include "json/value.h"
#include "net/x509.h"

namespace dibs::controllers {

inline constexpr const char* kKubeletClientSigner = "kubernetes.io/kube-apiserver-client-kubelet";

bool is_own_signer(std::string_view signer);

/// Why the signer that the request names does not sign it; "" when it does.
std::string signing_fault(const json::Value& request, const net::SigningRequest& asked);

/// From when to when a certificate holds that is signed now. `longest`: what certificates last
/// unless they ask for less.
net::Validity validity_for(const json::Value& request, Duration longest, Time authority_end,
                           Time now);

/// How long a request stays from now on; 0 when its time is over, nothing where nothing ends it.
std::optional<Duration> time_left(const json::Value& request, Time now);

}  // namespace dibs::controllers
