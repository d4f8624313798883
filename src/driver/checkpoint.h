#pragma once
// Which claims are prepared, on disk.
//
// The file is read on every use and replaced as a whole, so that two instances of a driver (the old
// and the new one of a rolling update) see one state; whoever uses it holds the claims' lock. A
// missing file is an empty checkpoint.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "runtime/files.h"

namespace dibs::driver {

struct CheckpointEntry {
  std::string uid = {};
  /// [{"pool", "device", "shared"}, …]; null where the driver does not ask for it.
  json::Value devices = {};
};

class Checkpoint {
 public:
  /// `api_version` is what the file calls its format.
  Checkpoint(runtime::Files& files, std::string path, std::string api_version);

  Result<std::vector<CheckpointEntry>> read() const;
  Result<> write(const std::vector<CheckpointEntry>& entries) const;

  const std::string& path() const { return path_; }

 private:
  runtime::Files& files_;
  std::string path_;
  std::string api_version_;
};

}  // namespace dibs::driver
