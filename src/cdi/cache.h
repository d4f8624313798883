#pragma once
// The spec files of a machine.
//
// Directories come in the order of their priority, the last one counts most: by default /etc/cdi,
// which belongs to the administrator, then /var/run/cdi, which drivers write. Each lookup sees the
// files as they are at that moment; a file is parsed again only when its bytes changed. A file that
// cannot be used is left out, with a remark, and does no harm to the others. A device that two
// files of the same directory define cannot be used at all.
//
// Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cdi/inject.h"
#include "cdi/spec.h"
#include "json/value.h"

namespace dibs::cdi {

inline constexpr const char* kStaticDirectory = "/etc/cdi";
inline constexpr const char* kDynamicDirectory = "/var/run/cdi";

class Cache {
 public:
  /// `newest`: files of a later version are not used, as by a runtime with an older library; "":
  /// all that we know.
  explicit Cache(std::vector<std::string> directories = {kStaticDirectory, kDynamicDirectory},
                 HostNodes nodes = host_node, std::string newest = {});

  const std::vector<std::string>& directories() const { return directories_; }

  /// Edits of the named devices, each name once, file-wide ones before those of the first device of
  /// the file. When a name is unknown: "unresolvable CDI devices a, b", and what is wrong with
  /// files of that kind or with files that could not be read.
  Result<ContainerEdits> edits(const std::vector<std::string>& names);
  /// Applies them; on an error `config` is as it was.
  Result<> inject(const std::vector<std::string>& names, json::Value& config);

 private:
  struct File;
  struct View;

  using Files = std::map<std::string, std::shared_ptr<const File>>;  // by path

  /// Reads what changed since the last look. Without the lock: two at once both read.
  View look();
  Files last_seen();

  const std::vector<std::string> directories_;
  const HostNodes nodes_;
  const std::string newest_;
  Mutex mutex_;
  Files files_ DIBS_GUARDED_BY(mutex_);  // as last seen
};

}  // namespace dibs::cdi
