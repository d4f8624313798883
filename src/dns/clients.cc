#include "dns/clients.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "dns/socket_address.h"

namespace dibs::dns {
namespace {

constexpr std::int64_t kQuiet = 10'000;  // milliseconds

/// An address that this machine has can be bound to.
bool is_own(const std::string& address) {
  auto place = SocketAddress::parse(address_text(address), 0);
  if (!place) return false;
  const int fd = ::socket(place->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool bound = ::bind(fd, place->get(), place->size) == 0;
  ::close(fd);
  return bound;
}

}  // namespace

bool Clients::is_allowed(const std::string& address) const {
  if (ranges_.empty()) return true;
  const auto within = [&](const Range& range) { return range.contains(address); };
  return std::any_of(ranges_.begin(), ranges_.end(), within) || is_own(address);
}

Client* Clients::find(const std::string& address, std::int64_t now) {
  auto found = clients_.find(address);
  if (found == clients_.end()) {
    if (clients_.size() >= kMostClients) return nullptr;
    found = clients_.emplace(address, Client{kBurst, now, is_allowed(address)}).first;
  }
  return found->second.allowed ? &found->second : nullptr;
}

Client* Clients::admit(const std::string& address, std::int64_t now) {
  Client* client = find(address, now);
  if (client == nullptr) return nullptr;
  const double passed = static_cast<double>(now - client->since) / 1000;
  client->questions = std::min(kBurst, client->questions + passed * kPerSecond);
  client->since = now;
  if (client->questions < 1) return nullptr;
  client->questions -= 1;
  return client;
}

Client* Clients::known(const std::string& address) {
  const auto found = clients_.find(address);
  return found == clients_.end() ? nullptr : &found->second;
}

void Clients::forget_quiet(std::int64_t now) {
  std::erase_if(clients_, [&](const auto& entry) {
    const Client& client = entry.second;
    return client.waiting == 0 && client.connections == 0 && now - client.since > kQuiet;
  });
}

}  // namespace dibs::dns
