#pragma once
// Admission of what is sent to a sub-resource and not stored: an Eviction, a TokenRequest, the
// options of a stream. Nothing of the server fills anything in there, but it can be refused, and
// webhooks may change a body.

#include "base/result.h"
#include "server/admission.h"
#include "server/context.h"

namespace dibs::server {

/// Asks about the body of the sub-resource that the request names, which may be changed. Errors:
/// the refusal.
Result<> admit_body(const AdmissionChain& chain, Context& context, Operation operation,
                    Value& body);

/// The same about a stream (exec, attach, port-forward, proxy), whose options are in the query.
Result<> admit_stream(const AdmissionChain& chain, Context& context);

}  // namespace dibs::server
