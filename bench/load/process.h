#pragma once
// The server under test: a child process in a folder of its own, both gone with this object.

#include <sys/types.h>

#include <string>
#include <vector>

namespace dibs::bench {

/// A temporary folder under $DIBS_BENCH_DIR or /var/tmp, removed with everything in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Memory {
  double resident_mb = 0;   // all pages, those of the binary too
  double anonymous_mb = 0;  // what the process made itself
};

class ServerProcess {
 public:
  /// Returns when the server says that it is ready.
  ServerProcess(const std::string& binary, const std::string& folder, const std::string& store,
                const std::vector<std::string>& more = {}, const char* command = "apiserver");
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  double start_ms() const { return start_ms_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  Memory memory() const;
  /// User and system time so far.
  double cpu_seconds() const;
  void stop();

 private:
  pid_t pid_ = -1;
  double start_ms_ = 0;
  std::string kubeconfig_;
};

/// User and system time of a process so far.
double cpu_seconds(pid_t pid);
/// Of this process.
double own_cpu_seconds();

}  // namespace dibs::bench
