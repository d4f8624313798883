#pragma once
// --admission-control-config-file: an AdmissionConfiguration (apiserver.config.k8s.io/v1), as
// kube-apiserver takes it. PodSecurity is the only plugin that has something to configure.

#include <string>

#include "api/kinds/pod_security/pod_security.h"
#include "base/result.h"
#include "runtime/files.h"

namespace dibs::server {

/// What the file says of PodSecurity, in itself or in the file that it names, which is looked for
/// beside it. Errors: of reading; bad_request for whatever is not known or not valid.
Result<api::PodSecurityConfiguration> read_admission_configuration(runtime::Files& files,
                                                                   const std::string& path);

}  // namespace dibs::server
