#pragma once
// Flags of the commands that run a cluster or a part of one.

#include "cli/command_line.h"
#include "cli/run_controllers.h"
#include "cli/run_node.h"
#include "cli/run_scheduler.h"
#include "cli/serve.h"

namespace dibs::cli {

inline constexpr const char* kExplainEvents = "--explain-events";

Flags server_flags(ServeFlags& flags);
Flags up_flags(ServeFlags& flags);
Flags controllers_flags(ControllersFlags& flags);
Flags scheduler_flags(SchedulerFlags& flags);
Flags node_flags(NodeFlags& flags);

}  // namespace dibs::cli
