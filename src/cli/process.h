#pragma once
// What every long-running subcommand does as a process: log, take signals, find its cluster.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "client/kubeconfig.h"
#include "runtime/interruption.h"

namespace dibs::cli {

/// Sets the log level and keeps SIGINT and SIGTERM for wait_for_end(). Before any thread is
/// started.
void begin_process(std::string_view log_level);

/// Lets the system have what the allocator keeps of a busy moment, where that is much.
void give_memory_back();
/// Returns when SIGINT or SIGTERM arrives, with its number; the next one ends the process at once.
int wait_for_end();
/// Who presses Ctrl-C does not wait: after SIGINT the process has less than a second, and `more`,
/// to end in order, and is gone then, as after a kill; `last` is done before. Null after SIGTERM.
std::unique_ptr<runtime::LastMoment> hurry(int signal, Duration more = Duration(0),
                                           std::function<void()> last = {});
/// Lets wait_for_end() return, as if somebody had sent a signal. Any thread.
void end_from_within();

/// The cluster that the flags, KUBECONFIG or the home folder's file name, or that of the pod that
/// this runs in.
Result<client::Access> find_access(const std::string& kubeconfig, const std::string& context);

std::string host_name();

/// The folder of --data-dir, or the default. Errors: bad_request without a home folder.
Result<std::string> data_folder(const std::string& flag);

/// What is wrong with a file or a word that a flag names is wrong usage: a bad_request that names
/// the flag.
Error as_usage(const Error& error, std::string_view flag);

/// Prints what went wrong, if anything; returns the exit status: 2 for a bad_request, which is what
/// somebody asked for, and 1 for what went wrong otherwise.
int exit_status(std::string_view command, const Result<>& ran);

}  // namespace dibs::cli
