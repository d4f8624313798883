#include "cli/listen_address.h"

#include <charconv>

#include "api/kinds/names.h"
#include "base/names.h"
#include "base/strings.h"

namespace dibs::cli {
namespace {

/// "" is every address, as with Go. What consists of numbers is an address or nothing.
bool is_host(std::string_view host, bool bracketed) {
  if (bracketed || host.find(':') != std::string_view::npos) {
    return bracketed && api::is_ip(host) && host.find(':') != std::string_view::npos;
  }
  if (host.empty() || api::is_ip(host)) return true;
  const bool numbers = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return !numbers && is_dns1123_subdomain(to_lower(host)).empty();
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view flag, std::string_view text) {
  const auto colon = text.rfind(':');
  ListenAddress out;
  int port = -1;
  if (colon != std::string_view::npos) {
    const auto digits = text.substr(colon + 1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (code != std::errc() || end != digits.data() + digits.size()) port = -1;
  }
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (port < 0 || port > 65535 || !is_host(host, bracketed)) {
    return Error::bad_request(
        cat(flag, " ", quoted(text), ": must be HOST:PORT, for example 127.0.0.1:6443"));
  }
  out.host = host;
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

}  // namespace dibs::cli
