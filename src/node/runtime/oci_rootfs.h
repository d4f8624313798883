#pragma once
// A container's root: the layers of its image, with a layer of its own on top.

#include <string>
#include <vector>

#include "base/result.h"

namespace dibs::node {

/// Mounts <folder>/merged over the layers, lowest first; copies them there where overlayfs does not
/// work. Returns the root's path.
Result<std::string> make_rootfs(const std::string& folder, const std::vector<std::string>& layers);
/// Before `folder` is removed. An error when something stays mounted.
Result<> unmake_rootfs(const std::string& folder);

/// Layers one over the other, as plain files. For machines without overlayfs.
Result<> copy_layers(const std::vector<std::string>& layers, const std::string& target);

/// A small file below `root`, links resolved as inside of it; "" when it cannot be read.
std::string read_inside(const std::string& root, const std::string& path);

}  // namespace dibs::node
