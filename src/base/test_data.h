#pragma once
// For tests: recordings and vectors of a real Kubernetes. They are no part of the project: they lie
// in shared/conformance beside it, or where DIBS_CONFORMANCE says, and tests that need them are
// skipped where they are not.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace dibs::test {

/// A file or folder of them ("cel", "http/objects.json"), or all; empty when it is not there.
inline std::filesystem::path conformance_data(std::string_view below = "") {
  std::error_code ignored;
  if (const char* set = std::getenv("DIBS_CONFORMANCE")) {
    const auto path = std::filesystem::path(set) / below;
    return std::filesystem::exists(path, ignored) ? path : std::filesystem::path();
  }
  for (auto at = std::filesystem::current_path(ignored);; at = at.parent_path()) {
    const auto path = at / "shared/conformance" / below;
    if (std::filesystem::exists(path, ignored)) return path;
    if (at == at.parent_path()) return {};
  }
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace dibs::test
