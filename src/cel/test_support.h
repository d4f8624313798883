#pragma once
// Where the tests find the conformance data, and the zones of this machine.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cel/time_zones.h"

namespace dibs::cel {

/// Empty when there is none.
inline std::filesystem::path conformance_folder() {
  if (const char* set = std::getenv("DIBS_CONFORMANCE")) return std::filesystem::path(set) / "cel";
  for (auto at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    for (const char* below : {"shared/conformance/cel", "../shared/conformance/cel"}) {
      if (std::filesystem::exists(at / below)) return at / below;
    }
  }
  return {};
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::shared_ptr<const TimeZones> zones_of_this_machine() {
  return zones_from([](const std::string& name) -> std::optional<std::string> {
    const std::filesystem::path path = std::filesystem::path("/usr/share/zoneinfo") / name;
    if (!std::filesystem::is_regular_file(path)) return std::nullopt;
    return read_file(path);
  });
}

}  // namespace dibs::cel
