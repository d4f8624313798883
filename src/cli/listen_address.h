#pragma once
// HOST:PORT of a flag that says where to listen.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::cli {

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};

/// "127.0.0.1:6443", "[::1]:6443". Errors: bad_request, naming the flag.
Result<ListenAddress> parse_listen_address(std::string_view flag, std::string_view text);

}  // namespace dibs::cli
