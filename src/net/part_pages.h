#pragma once
// What a part of a cluster serves of itself, for who watches over it: /metrics in Prometheus' form,
// and /healthz, /livez and /readyz for probes. To everybody who reaches the port.

#include <functional>

#include "base/metrics.h"
#include "net/http.h"

namespace dibs::net {

/// `registry` must outlive the handler. `ready`: must not block; empty: /metrics is all there is.
Handler part_pages(metrics::Registry& registry, std::function<bool()> ready);

}  // namespace dibs::net
