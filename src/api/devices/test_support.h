#pragma once
// Devices and files for the tests of this folder.

#include <filesystem>
#include <string>
#include <string_view>

#include "api/devices/device.h"
#include "cel/test_support.h"
#include "json/parse.h"

namespace dibs::api {

/// A device from JSON in the form of v1.
inline DeviceInput device_from(std::string_view text, bool lists = true,
                               std::string_view driver = "gpu.example.com") {
  return DeviceInput::read(driver, *json::parse(text), lists);
}

/// A file of the project, found from a folder inside it; empty when there is none.
inline std::filesystem::path project_file(std::string_view name) {
  for (auto at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    if (std::filesystem::exists(at / name)) return at / name;
  }
  return {};
}

}  // namespace dibs::api
