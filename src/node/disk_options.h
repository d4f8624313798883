#pragma once
// What a node does about its disk, as flags say it; their names are the kubelet's.

#include <string>

#include "base/time.h"

namespace dibs::node {

struct DiskOptions {
  std::string eviction_hard =
      "imagefs.available<15%,imagefs.inodesFree<5%,nodefs.available<10%,nodefs.inodesFree<5%";
  Duration pressure_transition = std::chrono::minutes(5);
  int image_gc_high = 85;
  int image_gc_low = 80;
  std::string log_max_size = "10Mi";
  int log_max_files = 5;
  /// emptyDir.sizeLimit and ephemeral-storage count.
  bool isolation = true;
};

}  // namespace dibs::node
