#pragma once
// The seccomp profile "RuntimeDefault".

#include "json/value.h"

namespace dibs::node {

/// Everything but what reaches beyond a container: mounting, modules, clocks, keys, other
/// processes' memory, swapping, rebooting and the like is refused with EPERM.
json::Value default_seccomp();

}  // namespace dibs::node
