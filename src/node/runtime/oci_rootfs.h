#pragma once
// A container's root: the layers of its image, with a layer of its own on top.

#include <string>
#include <vector>

#include "base/result.h"

namespace dibs::node {

/// Mounts <folder>/merged over the layers, lowest first; copies them there where overlayfs does not
/// work. Returns the root's path.
Result<std::string> make_rootfs(const std::string& folder, const std::vector<std::string>& layers);
/// Mounts the files of an image at <folder>/images/<index>, as a volume of the container whose root
/// is in `folder`: nobody can write to them, and none is executed. Returns where `path` of them is
/// ("": all), links resolved as inside of the image.
Result<std::string> mount_image(const std::string& folder, std::size_t index,
                                const std::vector<std::string>& layers, const std::string& path);
/// Before `folder` is removed: the root and images. An error when something stays mounted.
Result<> unmake_rootfs(const std::string& folder);

/// Layers one over the other, as plain files. For machines without overlayfs.
Result<> copy_layers(const std::vector<std::string>& layers, const std::string& target);

/// A small file below `root`, links resolved as inside of it; "" when it cannot be read.
std::string read_inside(const std::string& root, const std::string& path);

}  // namespace dibs::node
