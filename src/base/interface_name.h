#pragma once
// Names of network interfaces, as the kernel takes them.

#include <cstddef>
#include <string_view>

namespace dibs {

inline constexpr std::size_t kInterfaceNameMaxLength = 15;

/// So none that leads to another folder.
bool is_interface_name(std::string_view name);

}  // namespace dibs
