#pragma once
// Clusters of this user on this machine, by name: where each is kept, whether it runs, and its end.
//
//     ~/.local/share/dibs        data folder of the cluster without a name, "dibs"
//     ~/.local/share/dibs-NAME   data folder of another, or a link to that of --data-dir. Short,
//                                since sockets lie below it
//     ~/.local/share/dibs-%2F…   a link to that of --data-dir without a name
//     <data>/cluster.lock        held while it runs
//     <data>/cluster.json        its name, URL and kubeconfig, as of its last start, and the files
//                                elsewhere that know it: what --kubeconfig-out has made, and the
//                                users' kubeconfigs that --merge has written to

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "runtime/files.h"

namespace dibs::cli {

inline constexpr const char* kUnnamed = "dibs";

/// The folder of a cluster: `data_dir`, or else by its name ("": the one without). Changes nothing.
/// Errors name what is wrong with the name.
Result<std::string> cluster_folder(const std::string& name, const std::string& data_dir);
/// The cluster, its user and its context in a kubeconfig: "dibs", "dibs-NAME".
std::string context_of(const std::string& name);

/// Before the first start in a folder. Errors (bad_request): it has something that the cluster
/// would write over, and `dibs down` take away.
Result<> check_data_folder(const std::string& folder);

/// Whether a process has the folder open.
bool is_running(const std::string& folder);

/// A cluster that runs in this process, for others to find.
class RunningCluster {
 public:
  /// Takes the folder, which must be there. Errors: another process has it, and which.
  static Result<RunningCluster> take(const std::string& name, const std::string& folder,
                                     bool has_own_folder);

  /// What `dibs list` shows of it. `merged`: the user's kubeconfig that knows it from now on,
  /// beside those of earlier starts; `dibs down` takes it out of all of them.
  Result<> tell(const std::string& url, const std::string& kubeconfig,
                const std::string& merged = "");

 private:
  RunningCluster() = default;
  std::string name_;
  std::string folder_;
  std::vector<std::string> kubeconfigs_;  // of --kubeconfig-out
  std::vector<std::string> merged_;
  std::unique_ptr<runtime::FileLock> lock_;
};

struct ListFlags {
  std::string output = "table";
};
/// Prints them. Returns the exit status.
int list_clusters(const ListFlags& flags);

struct DownFlags {
  std::string name;
  std::string data_dir;
  bool keep = false;       // all but the process
  bool keep_data = false;  // files, but no container
};
/// Ends the cluster and takes away all of it: processes, containers, mounts, networks and files.
int take_down(const DownFlags& flags);

}  // namespace dibs::cli
