#pragma once
// Certificates of pods: the requests for them, and what those share with the volumes that want one.

#include "api/schema/kind.h"

namespace dibs::api {

/// How long a certificate may be asked for, in seconds.
inline constexpr std::int64_t kShortestCertificate = 60LL * 60;
/// Of signers of Kubernetes itself a day, of others 91.
std::int64_t longest_certificate(std::string_view signer);

/// What a pod's author says to a signer: as annotations, with a domain before every key.
void validate_user_annotations(const Value& annotations, const Path& path, FieldErrors& errors);

/// PodCertificateRequest, in the form of v1beta1, which has all fields.
KindRules pod_certificate_request_rules();

}  // namespace dibs::api
