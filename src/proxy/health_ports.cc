#include "proxy/health_ports.h"

#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::proxy {

HealthPorts::~HealthPorts() { stop(); }

void HealthPorts::put(const std::string& key, int port, std::size_t backends) {
  MutexLock lock(mutex_);
  auto found = listeners_.find(key);
  if (found != listeners_.end() && found->second.port != port) {
    listeners_.erase(found);
    found = listeners_.end();
  }
  if (port <= 0) return;
  if (found != listeners_.end()) {
    *found->second.backends = backends;
    return;
  }
  Listener listener;
  listener.port = port;
  listener.backends = std::make_shared<std::atomic<std::size_t>>(backends);
  net::ServerOptions options;
  options.host = "0.0.0.0";
  options.port = static_cast<std::uint16_t>(port);
  options.threads = 1;
  options.max_connections = 100;
  auto server = net::HttpServer::start(
      std::move(options),
      [key, count = listener.backends](net::Request, std::unique_ptr<net::Exchange> exchange) {
        exchange->respond(health_answer(key, *count));
      });
  if (!server.ok()) {
    log::error("health check port cannot be served",
               {{"service", key}, {"port", port}, {"error", server.error()}});
    return;
  }
  listener.server = std::move(*server);
  listeners_[key] = std::move(listener);
}

void HealthPorts::stop() {
  MutexLock lock(mutex_);
  listeners_.clear();
}

std::size_t local_backends(const ServiceView& service, const Machine& machine) {
  std::set<std::string> found;
  for (const ServicePort& port : service.ports) {
    for (const Backend& backend : port.backends) {
      if (backend.ready && machine.nodes.contains(backend.node)) found.insert(backend.address);
    }
  }
  return found.size();
}

net::Response health_answer(const std::string& key, std::size_t backends) {
  using json::Value;
  const auto slash = key.find('/');
  net::Response out;
  out.status = backends > 0 ? 200 : 503;
  out.headers.set("Content-Type", "application/json");
  out.headers.set("X-Content-Type-Options", "nosniff");
  out.headers.set("X-Load-Balancing-Endpoint-Weight", std::to_string(backends));
  out.body =
      json::write(Value::object({{"service", Value::object({{"namespace", key.substr(0, slash)},
                                                            {"name", key.substr(slash + 1)}})},
                                 {"localEndpoints", static_cast<std::int64_t>(backends)},
                                 {"serviceProxyHealthy", true}}));
  return out;
}

}  // namespace dibs::proxy
