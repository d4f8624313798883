#pragma once
// Programs of others that drive devices, run beside the nodes of a cluster: `dibs up --driver`.
//
// Each runs once for every node, as this user, with the variables that drivers of Kubernetes read:
//
//     NODE_NAME, KUBECONFIG, CDI_ROOT, KUBELET_REGISTRAR_DIRECTORY_PATH,
//     KUBELET_PLUGINS_DIRECTORY_PATH
//
// One that ends is started again, later and later as long as it does not stay.

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace dibs::cli {

struct DriverNode {
  std::string name = {};
  std::string folder = {};  // of its agent
};

/// Errors (bad_request): the program is not there, or nobody may run it.
Result<> check_program(const std::string& program);
/// The same for the first word of a command. Errors name --driver.
Result<> check_driver_command(const std::string& command);

/// This process' own variables, and those above.
std::vector<std::string> driver_environment(const DriverNode& node, const std::string& kubeconfig);

/// Ends programs of nodes below the folder whose `dibs up` was killed: they go on without it.
void end_left_programs(const std::string& folder);
/// The same without asking them first.
void kill_left_programs(const std::string& folder);

class DriverPrograms {
 public:
  DriverPrograms(const std::vector<std::string>& commands, const std::vector<DriverNode>& nodes,
                 const std::string& kubeconfig);
  /// Ends them.
  ~DriverPrograms();
  DriverPrograms(const DriverPrograms&) = delete;
  DriverPrograms& operator=(const DriverPrograms&) = delete;

 private:
  struct Program;
  void keep(Program& program);

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace dibs::cli
