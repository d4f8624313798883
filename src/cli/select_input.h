#pragma once
// Where dibs select gets its devices: files, folders, standard input, a cluster.

#include <iosfwd>
#include <string>
#include <vector>

#include "api/devices/slices.h"
#include "base/result.h"

namespace dibs::cli {

/// Reads YAML or JSON, one or many documents. A file that is named must hold ResourceSlices only;
/// in a folder (files .yaml, .yml and .json directly in it) other objects are passed over. Errors
/// name the file and the document.
Result<std::vector<api::SliceDevice>> read_slices(const std::vector<std::string>& paths,
                                                  std::istream& input);

/// Lists the ResourceSlices of a cluster, by the newest version that it serves.
Result<std::vector<api::SliceDevice>> fetch_slices(const std::string& kubeconfig,
                                                   const std::string& context);

/// Documents of a file, for errors: (name, document). `.jsonl`: one a line.
Result<std::vector<std::pair<std::string, json::Value>>> read_documents(const std::string& path,
                                                                        std::istream& input);

}  // namespace dibs::cli
