#pragma once
// The rules of the workloads whose pods have an identity: StatefulSet and DaemonSet.

#include "api/schema/kind.h"

namespace dibs::api::workload {

KindRules stateful_set_rules();
KindRules daemon_set_rules();

}  // namespace dibs::api::workload
