#pragma once
// The way to a server's socket, in steps of which only the look-up of a name blocks. Private to
// net.

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/reach.h"

namespace dibs::net {

struct Url {
  bool tls = true;
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;
  std::string path;  // "" or "/prefix" without a slash at its end
  /// Where it is dialled, if not at its own host and port; names and certificates stay those of the
  /// host.
  std::string at_host = {};
  std::uint16_t at_port = 0;

  /// http:// and https:// only. Errors: invalid.
  static Result<Url> parse(std::string_view text);
  /// "host:port" as it stands in a Host header; the default port of the scheme is left out.
  std::string authority() const;
  std::string host_port() const;
  const std::string& dialled_host() const { return at_host.empty() ? host : at_host; }
  std::uint16_t dialled_port() const { return at_host.empty() ? port : at_port; }
};

class SocketAddress {
 public:
  /// What begins any failure to reach it, in Go's words.
  std::string where() const;
  bool is_global() const;
  /// Errors: unavailable, where only the default route leads there; see route.h.
  Result<> check_route() const;

 private:
  friend Result<std::vector<SocketAddress>> resolve(const Url& url, Reach reach);
  friend Result<int> begin_connect(const SocketAddress& address);

  sockaddr_storage storage_ = {};
  socklen_t size_ = 0;
  bool of_cluster_ = false;
};

/// How many descriptors this process may have.
std::size_t descriptor_limit();

/// True where resolve() asks the system's resolver, which may take its time.
bool needs_lookup(const Url& url);
/// Where the server may be, in the order to try; never empty. Errors: unavailable; bad_request when
/// any of them is out of reach, so that it is no matter of order.
Result<std::vector<SocketAddress>> resolve(const Url& url, Reach reach);

/// A socket that connects. Where that is to a cluster's own address, the kernel's routes are asked
/// first. When it is writable, finish_connect() says what came of it.
Result<int> begin_connect(const SocketAddress& address);
/// Errors: unavailable, and the socket is still the caller's.
Result<> finish_connect(int fd, const SocketAddress& address);

}  // namespace dibs::net
