#pragma once
// Certificate signing requests, and how the writes of their sub-resources are judged.
//
// The rules of certificatesigningrequests/approval are those of kind_rules("certificates.k8s.io",
// "CertificateSigningRequest/approval"), used as for a status.

#include "api/schema/kind.h"

namespace dibs::api {

KindRules signing_request_rules();
KindRules signing_request_approval_rules();

/// "example.com/signer-name".
void validate_signer_name(const Value& name, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
