#pragma once
// One exec or attach: a process in a container joined to its client.
//
// Input waits in a bounded queue and is written on the executor; output waits in the connection,
// and a process that writes faster than its client reads is held up. When the client goes away, the
// process of an exec ends, that of an attach goes on.

#include <memory>
#include <string>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"
#include "node/streams/command_wire.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct CommandTarget {
  std::string container = {};  // the runtime's id
  bool attach = false;
  ExecConfig exec = {};
};

/// Returns at once.
void run_command(runtime::Runtime& runtime, ContainerRuntime& containers, CommandTarget target,
                 std::shared_ptr<CommandWire> wire);

/// The Status that a client gets at the end.
json::Value command_status(const CommandTarget& target, const Result<int>& outcome,
                           bool wraps_errors);

}  // namespace dibs::node
