#pragma once
// How claims share a GPU among their containers: the length of time slices, and MPS daemons.
//
// Both are done by NVIDIA's programs, of the driver's own folder. A daemon is a process of the
// machine, which outlives this one: containers go on while the driver is restarted. Its folder
// below the driver's has the pipe by which containers reach it, its log, and the memory that they
// share with it; the latter is a filesystem of its own, so that no container sees the machine's
// /dev/shm.
//
// A daemon is root on the machine, and root in a container is no friend of it. So containers see
// the pipe's folder read-only: they connect to the sockets there, which needs no more, and cannot
// lay a link where the next daemon writes. And no answer is waited for longer than it may take.
//
// Everything may be repeated. Blocks while programs run.

#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/spec.h"
#include "drivers/nvidia/driver_files.h"
#include "drivers/nvidia/ledger.h"
#include "drivers/nvidia/programs.h"
#include "runtime/files.h"

namespace dibs::drivers::nvidia {

class TimeSlices {
 public:
  TimeSlices(RunProgram run, runtime::Files& machine, Roots roots);
  /// 0: the default.
  Result<> set(const std::string& gpu_uuid, int interval, const std::string& driver_version) const;

 private:
  RunProgram run_;
  runtime::Files& machine_;
  Roots roots_;
};

class MpsDaemons {
 public:
  /// `folder` has one for each daemon; it is made where it is needed. `files` are its, `machine`
  /// the driver's.
  MpsDaemons(RunProgram run, runtime::Files& files, runtime::Files& machine, Roots roots,
             std::string folder);

  /// Success too when it runs.
  Result<> start(const LedgerDaemon& daemon, const std::string& driver_version) const;
  /// Errors: timeout for one that does not answer, and is there all the same.
  Result<bool> runs(const LedgerDaemon& daemon, const std::string& driver_version) const;
  /// Success too when it does not run. Its folder is gone then.
  Result<> stop(const LedgerDaemon& daemon, const std::string& driver_version) const;
  cdi::ContainerEdits edits(const LedgerDaemon& daemon) const;

 private:
  std::string folder_of(const LedgerDaemon& daemon) const;
  Result<std::string> tell(const LedgerDaemon& daemon, const std::string& driver_version,
                           const std::string& command, Duration patience) const;
  Result<std::string> control(const LedgerDaemon& daemon) const;
  std::vector<std::string> environment(const LedgerDaemon& daemon) const;

  RunProgram run_;
  runtime::Files& files_;
  runtime::Files& machine_;
  Roots roots_;
  std::string folder_;
};

/// Of the claim and the devices that share it: a claim may have several.
std::string daemon_id(const std::string& claim_uid, const std::vector<std::string>& uuids);

}  // namespace dibs::drivers::nvidia
