#pragma once
// What the load is made of: ConfigMaps of about 2 KB as they are stored, and requests about them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "load/connection.h"
#include "load/load.h"

namespace dibs::bench {

inline constexpr std::size_t kObjectBytes = 2048;
/// Where a request has its number (Work).
inline constexpr std::string_view kNumber = "0000000";

std::string config_map(std::string_view name, std::string_view mark);
/// Of a ConfigMap, or of all in the namespace.
std::string path_of(std::string_view name_space, std::string_view name = {});

/// Of map-NUMBER.
Work creates(std::string_view name_space);
Work gets(std::string_view name_space, std::uint64_t count);
Work deletes(std::string_view name_space, std::uint64_t first, std::uint64_t count);

/// The same of another user than the administrator, who may play everybody.
Work as_user(std::string_view name, Work work);

void make_namespace(Connection& connection, std::string_view name);
/// Ends the program unless the answer is a 201.
void must_create(Connection& connection, std::string_view path, std::string_view body);

std::string round_text(double value, int decimals);

}  // namespace dibs::bench
