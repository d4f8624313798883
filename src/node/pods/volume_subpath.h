#pragma once
// A part of a volume as a mount of its own (subPath).
//
// The pod may write to the volume while the path is looked up, so no step may follow a link out of
// it: the path is opened part by part and what was opened is bound to a place of the node's own,
// which is then mounted into the container.

#include <string>

#include "base/result.h"

namespace dibs::node {

struct SubPath {
  std::string volume_folder = {};
  std::string path = {};  // relative, without ".."
  /// Where the part is bound: made here, unmounted by Volumes::tear_down().
  std::string place = {};
};

/// The host path to mount: `place`, or where this process may not mount, the path itself. Missing
/// folders are made with the mode of the volume's.
Result<std::string> bind_sub_path(const SubPath& part);

/// The content of a file that a pod wrote into a volume, at most `limit` bytes. Errors: not_found
/// also for a path that leads out of it.
Result<std::string> read_sub_path(const std::string& volume_folder, const std::string& path,
                                  std::size_t limit);

}  // namespace dibs::node
