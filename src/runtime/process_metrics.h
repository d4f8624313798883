#pragma once
// What Prometheus' client libraries tell of the process itself: processor time, memory, files.

#include "base/metrics.h"

namespace dibs::runtime {

/// Read from /proc at each exposition; what is not there is not told.
void tell_of_process(metrics::Registry& registry);

}  // namespace dibs::runtime
