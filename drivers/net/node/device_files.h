#pragma once
// Which device an interface of a pod is to be, for the node's agent (node/pods/pod_networks.h): the
// PCI address in the file <pod uid>_<interface> of a folder. Beside them, claim-<uid> lists the
// files of a claim, and is there before the first and until the last of them.

#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/files.h"

namespace dibs::drivers::net {

struct InterfaceDevice {
  std::string pod_uid = {};
  std::string interface = {};
  std::string pci_address = {};
};

class DeviceFiles {
 public:
  /// `files` must outlive it.
  DeviceFiles(runtime::Files& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}

  /// Repeatable. Nothing is written where there is nothing to say. Errors: a name that is none.
  Result<> write(const std::string& claim_uid, const std::vector<InterfaceDevice>& devices);
  /// Success too where there are none.
  Result<> remove(const std::string& claim_uid);

 private:
  std::string list_of(const std::string& claim_uid) const;

  runtime::Files& files_;
  const std::string folder_;
};

}  // namespace dibs::drivers::net
