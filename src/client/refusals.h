#pragma once
// A way to the server that tells when it is refused what its owner needs: a part without its rights
// would otherwise only be found not to work.

#include <memory>

#include "client/transport.h"

namespace dibs::client {

/// Logs, for each verb, resource and user that authorization refuses (403), at once and then every
/// minute as long as it goes on. `runtime` must outlive it.
std::unique_ptr<Transport> warn_of_refusals(std::unique_ptr<Transport> inner,
                                            runtime::Runtime& runtime);

}  // namespace dibs::client
