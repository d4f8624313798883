#include "base/interface_name.h"

#include <algorithm>

namespace dibs {

bool is_interface_name(std::string_view name) {
  if (name.empty() || name.size() > kInterfaceNameMaxLength) return false;
  if (name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f && c != '/' && c != ':';
  });
}

}  // namespace dibs
