#pragma once
// What containers of a node have on the machine, taken away without its agent: whoever made them
// may be killed, and his folder deleted.
//
// Each runtime of real containers (oci_runtime.h) says who it is in two places:
//
//     <run>/owner      its root folder and control group, a line each; locked while it is open
//     <root>/run-in    its <run>
//
// One whose second mark is gone, and that nobody has open, belongs to nobody: the folder was
// deleted, as far as mounts below it let that happen.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/runtime/cgroups.h"
#include "runtime/files.h"

namespace dibs::node {

/// Where runtimes of this machine have their <run>.
inline constexpr const char* kRunHome = "/run/dibs";

struct Trace {
  std::string run = {};
  std::string root = {};
  std::string group = {};
};

/// Leaves both marks. The runtime is open as long as what it returns lives; null: another has it.
Result<std::unique_ptr<runtime::FileLock>> leave_trace(const Trace& trace);

/// All that is found.
std::vector<Trace> find_traces(const std::string& home = kRunHome);
/// Nobody has it open, and its folder is deleted.
bool is_abandoned(const Trace& trace);

/// Ends its processes, and takes away mounts, control groups and <run>. <root> stays, with no mount
/// in it. Errors: of what cannot be taken away; the rest is gone.
Result<> remove_trace(const Trace& trace, const Cgroups& groups = Cgroups());
/// All abandoned ones; those that cannot be removed are told in the log.
void remove_abandoned(const std::string& home = kRunHome);

}  // namespace dibs::node
