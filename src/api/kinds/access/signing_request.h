#pragma once
// Certificate signing requests, and how the writes of their sub-resources are judged.

#include "api/schema/kind.h"

namespace dibs::api {

KindRules signing_request_rules();
/// trust_bundle.cc
KindRules trust_bundle_rules();
KindRules signing_request_approval_rules();

/// "example.com/signer-name".
void validate_signer_name(const Value& name, const Path& path, FieldErrors& errors);

}  // namespace dibs::api
