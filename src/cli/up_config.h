#pragma once
// `dibs up --config FILE`: all that its flags say, and nodes of several shapes (docs/config.md).
//
//     drivers: gpu
//     nodes:
//     - prefix: big-
//       count: 2
//       labels: {size: big}
//       taints: [{key: dedicated, value: gpu, effect: NoSchedule}]
//       capacity: {cpu: 64, memory: 256Gi, pods: 250}
//       drivers: {gpu: {num-devices: 8, partitions: 4}}
//     - prefix: small-

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/serve.h"

namespace dibs::cli {

/// Reads the file that `flags` name, if they do, into them; `table` is theirs. What was `given`
/// beside it stays. Errors: bad_request with file, line and key.
Result<> read_up_config(ServeFlags& flags, const Flags& table, const std::set<std::string>& given);

/// Flags that say something of nodes alone, given beside `--nodes 0` or by the file with it.
std::vector<std::string> idle_flags(const ServeFlags& flags, const std::set<std::string>& given);

/// Of an error that begins with a flag: with the place in the file that gave it, if one did.
Error with_place(const ServeFlags& flags, const Error& error);

}  // namespace dibs::cli
