// The IPAM plugin `spiderpool`.
#include <sys/stat.h>

#include <cstdio>

#include "base/strings.h"
#include "drivers/net/cni/plugin_call.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

// Less than an agent gives a plugin, so that its answer says what was waited for.
constexpr Duration kHealthLimit = std::chrono::seconds(5);
constexpr Duration kCallLimit = std::chrono::seconds(50);

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.push_back(item.str());
  return out;
}

std::string socket_of(const PluginCall& call) {
  const std::string configured = call.config["ipam"]["ipam_unix_socket_path"].str();
  if (!configured.empty()) return configured;
  struct stat there = {};
  if (!call.socket.empty() && ::stat(call.socket.c_str(), &there) == 0) return call.socket;
  return std::string(kDefaultSocket);
}

NicRequest request_of(const PluginCall& call) {
  const Value& ipam = call.config["ipam"];
  NicRequest request;
  request.pod = call.pod;
  request.interface = call.interface;
  request.container = call.container;
  request.network_namespace = call.network_namespace;
  request.network = call.config["name"].str();
  request.ipv4_pools = texts_of(ipam["default_ipv4_ippool"]);
  request.ipv6_pools = texts_of(ipam["default_ipv6_ippool"]);
  request.clean_gateway = ipam["clean_gateway"].as_bool();
  return request;
}

Error with_prefix(std::string_view prefix, const Error& error) {
  return Error(error.code(), cat(prefix, ": ", error.message()));
}

}  // namespace

Result<Value> run_ipam(const PluginCall& call) {
  const std::string socket = socket_of(call);
  LocalClient client(socket);
  const auto alive = client.health(kHealthLimit);
  if (!alive.ok()) {
    if (call.command == "DEL") {
      // A pod must be able to go while its driver is away. Whose pod is gone has no address: the
      // cluster's half of the driver collects it.
      std::fprintf(stderr, "%s does not answer, the address is left to the collector\n",
                   socket.c_str());
      return Value();
    }
    return with_prefix("unhealthy spiderpool-agent backend",
                       alive.error().within(cat("socket ", socket)));
  }
  if (call.command == "CHECK") return Value();
  if (call.command == "DEL") {
    const auto released = client.del(request_of(call), kCallLimit);
    if (!released.ok()) return with_prefix("spiderpool IP release error", released.error());
    return Value();
  }
  const auto addresses = client.add(request_of(call), kCallLimit);
  if (!addresses.ok()) return with_prefix("spiderpool IP allocation error", addresses.error());
  if (addresses->ipv4.empty() && addresses->ipv6.empty()) {
    return Error::internal("spiderpool IP allocation error: no address was assigned");
  }
  return ipam_result(*addresses, call.version());
}

}  // namespace dibs::drivers::net
