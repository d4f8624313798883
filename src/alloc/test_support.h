#pragma once
// Where the tests find the conformance data.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dibs::alloc {

/// Empty when there is none.
inline std::filesystem::path conformance_folder() {
  if (const char* set = std::getenv("DIBS_CONFORMANCE")) {
    return std::filesystem::path(set) / "allocator";
  }
  for (auto at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    for (const char* below : {"shared/conformance/allocator", "../shared/conformance/allocator"}) {
      if (std::filesystem::exists(at / below)) return at / below;
    }
  }
  return {};
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace dibs::alloc
