#pragma once
// Where the tests find the conformance data, and the zones of this machine.

#include <filesystem>
#include <string>

#include "base/test_data.h"
#include "cel/libraries/time_zones.h"

namespace dibs::cel {

/// Empty when there is none.
inline std::filesystem::path conformance_folder() { return dibs::test::conformance_data("cel"); }
using dibs::test::read_file;

inline std::shared_ptr<const TimeZones> zones_of_this_machine() {
  return zones_from([](const std::string& name) -> std::optional<std::string> {
    const std::filesystem::path path = std::filesystem::path("/usr/share/zoneinfo") / name;
    if (!std::filesystem::is_regular_file(path)) return std::nullopt;
    return read_file(path);
  });
}

}  // namespace dibs::cel
