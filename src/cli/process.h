#pragma once
// What every long-running subcommand does as a process: log, take signals, find its cluster.

#include <string>
#include <string_view>

#include "base/result.h"
#include "client/kubeconfig.h"

namespace dibs::cli {

/// Sets the log level and keeps SIGINT and SIGTERM for wait_for_end(). Before any thread is
/// started.
void begin_process(std::string_view log_level);

/// Lets the system have what the allocator keeps of a busy moment, where that is much.
void give_memory_back();
/// Returns when SIGINT or SIGTERM arrives; the next one ends the process at once.
void wait_for_end();

/// The cluster that the flags, KUBECONFIG or the home folder's file name.
Result<client::Access> find_access(const std::string& kubeconfig, const std::string& context);

std::string host_name();

/// The folder of --data-dir, or the default. Errors: bad_request without a home folder.
Result<std::string> data_folder(const std::string& flag);

/// Prints what went wrong, if anything; returns the exit status.
int exit_status(std::string_view command, const Result<>& ran);

}  // namespace dibs::cli
