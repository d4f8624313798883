#pragma once
// One exec or attach: a process in a container joined to its client.
//
// No thread waits for either: input is queued by the runtime and output by the connection, and
// whichever side is faster than the other is held up. When the client goes away, the process of an
// exec ends, that of an attach goes on.

#include <memory>
#include <string>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"
#include "node/streams/command_wire.h"
#include "node/streams/stream_host.h"

namespace dibs::node {

struct CommandTarget {
  std::string container = {};  // the runtime's id
  bool attach = false;
  ExecConfig exec = {};
};

/// Returns at once.
void run_command(const StreamHost& host, CommandTarget target, std::shared_ptr<CommandWire> wire);

/// The Status that a client gets at the end.
json::Value command_status(const CommandTarget& target, const Result<int>& outcome,
                           bool wraps_errors);

}  // namespace dibs::node
