#pragma once
// Files that change all at once, for volumes whose content comes from the API.
//
//   volume/..data        -> ..2026_11_15_12_30_00.123456789
//   volume/..2026_…/     the files as they are now
//   volume/name          -> ..data/name
//
// A new content is written beside the old one; then one rename of ..data switches every file over.
// A reader that opened the folder by ..data sees one content to the end.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace dibs::node {

struct VolumeFile {
  std::string bytes = {};
  unsigned mode = 0644;
  std::optional<std::int64_t> owner = {};
  friend bool operator==(const VolumeFile&, const VolumeFile&) = default;
};

/// By relative path: no "..", not absolute.
using VolumeFiles = std::map<std::string, VolumeFile>;

struct VolumeWrite {
  /// Files become this group's, readable for it.
  std::optional<std::int64_t> group = {};
  Time now = {};  // names the folder
};

/// Makes `folder`, which must exist, hold exactly these files. True when it had to be changed.
Result<bool> write_volume(const std::string& folder, const VolumeFiles& files,
                          const VolumeWrite& how);

}  // namespace dibs::node
