#pragma once
// "10.0.0.1", "10.0.0.1:53", "[fd00::1]:53" and the sockets' form of it. Private to dns.

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dibs::dns {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(sockaddr_storage);

  /// Null when it is no address. Names are not looked up.
  static std::optional<SocketAddress> parse(std::string_view text, std::uint16_t default_port);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// Four bytes or sixteen.
  std::string bytes() const;
};

}  // namespace dibs::dns
