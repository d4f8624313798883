#include "cli/time_zones.h"

#include <optional>
#include <string>

#include "base/strings.h"
#include "cel/libraries/time_zones.h"
#include "runtime/files.h"

namespace dibs::cli {

void use_zones_of_this_machine() {
  cel::install_time_zones(
      cel::zones_from([](const std::string& name) -> std::optional<std::string> {
        auto content = runtime::system_files().read(cat("/usr/share/zoneinfo/", name));
        if (!content.ok()) return std::nullopt;
        return std::move(*content);
      }));
}

}  // namespace dibs::cli
