#include "dns/cluster_dns.h"

#include "dns/server.h"
#include "dns/zone.h"
#include "dns/zone_watch.h"

namespace dibs::dns {

struct ClusterDns::State {
  State(ZoneOptions options, client::Client& client, runtime::Runtime& runtime)
      : zone(std::move(options)), watch(client, runtime, zone) {}

  Zone zone;
  ZoneWatch watch;
  std::unique_ptr<Server> server;
};

ClusterDns::ClusterDns(std::unique_ptr<State> state) : state_(std::move(state)) {}
ClusterDns::~ClusterDns() { stop(); }

Result<std::unique_ptr<ClusterDns>> ClusterDns::start(ClusterDnsOptions options,
                                                      client::Client& client,
                                                      runtime::Runtime& runtime) {
  DIBS_TRY(const Name domain, Zone::parse_domain(options.domain));
  ZoneOptions zone{.domain = options.domain, .server_addresses = {options.service_address}};
  ServerOptions how;
  for (const auto& text : {options.services, options.pods}) {
    if (text.empty()) continue;
    DIBS_TRY(const Range range, Range::parse(text));
    zone.ranges.push_back(range);
    if (text == options.pods) how.clients.push_back(range);
  }
  how.host = options.host;
  how.forwarding.servers = std::move(options.servers);
  how.forwarding.never = {options.service_address, options.host};
  how.metrics = options.metrics;
  auto state = std::make_unique<State>(std::move(zone), client, runtime);
  DIBS_TRY(state->server, Server::start(std::move(how), state->zone, runtime.random));
  state->watch.start();
  return std::unique_ptr<ClusterDns>(new ClusterDns(std::move(state)));
}

const std::string& ClusterDns::address() const { return state_->server->address(); }

void ClusterDns::stop() {
  state_->watch.stop();
  state_->server->stop();
}

}  // namespace dibs::dns
