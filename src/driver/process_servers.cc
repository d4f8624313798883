#include "driver/process_servers.h"

#include "base/log.h"
#include "base/strings.h"
#include "driver/process.h"
#include "net/http_server.h"
#include "net/part_pages.h"
#include "rpc/channel.h"
#include "runtime/process_metrics.h"

namespace dibs::driver {
namespace {

constexpr Duration kProbeDeadline = std::chrono::seconds(5);
// HealthCheckResponse: field 1, an enum.
constexpr std::string_view kServing("\x08\x01", 2);
constexpr std::string_view kNotServing("\x08\x02", 2);

/// The service of a HealthCheckRequest, whose only field is a short string.
std::string service_in(std::string_view request) {
  if (request.size() < 2 || request[0] != '\x0a') return "";
  return std::string(request.substr(2, static_cast<unsigned char>(request[1])));
}

bool answers(const std::string& socket, const std::string& method) {
  const auto channel = rpc::connect_unix(socket);
  const auto reply = channel->call(method, "", kProbeDeadline);
  if (!reply.status.ok()) {
    log::warn("own socket does not answer", {{"socket", socket}, {"error", reply.status.text()}});
  }
  return reply.status.ok();
}

Result<> check_port(std::string_view flag, int port) {
  if (port <= 65535) return success();
  return Error::invalid(cat("--", flag, ": not a port: ", port));
}

}  // namespace

rpc::Methods health_methods(std::function<bool()> is_serving) {
  rpc::Methods methods;
  methods.unary["/grpc.health.v1.Health/Check"] =
      [is_serving = std::move(is_serving)](std::string_view request) -> rpc::Reply {
    const std::string service = service_in(request);
    if (!service.empty() && service != "liveness") {
      return {{rpc::Code::not_found, "unknown service"}, ""};
    }
    return {{}, std::string(is_serving() ? kServing : kNotServing)};
  };
  return methods;
}

rpc::Methods health_methods(const std::string& registration_socket,
                            const std::string& service_socket) {
  return health_methods([registration_socket, service_socket] {
    return answers(registration_socket, "/pluginregistration.Registration/GetInfo") &&
           answers(service_socket,
                   "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources");
  });
}

struct ProcessServers::State {
  std::unique_ptr<net::HttpServer> metrics;
  std::unique_ptr<rpc::Server> health;
};

ProcessServers::ProcessServers() : state_(std::make_unique<State>()) {}

ProcessServers::~ProcessServers() { stop(); }

Result<std::unique_ptr<ProcessServers>> ProcessServers::start(const ProcessOptions& options,
                                                              metrics::Registry& registry,
                                                              Plugin* plugin) {
  std::unique_ptr<ProcessServers> servers(new ProcessServers());
  if (options.metrics_port >= 0) {
    DIBS_CHECK(check_port("metrics-port", options.metrics_port));
    net::ServerOptions listen;
    listen.host = "0.0.0.0";
    listen.port = static_cast<std::uint16_t>(options.metrics_port);
    listen.threads = 1;
    runtime::tell_of_process(registry);
    auto started = net::HttpServer::start(std::move(listen), net::part_pages(registry, {}));
    if (!started) return started.error().within("--metrics-port");
    servers->state_->metrics = std::move(started).value();
    log::info("metrics", {{"port", servers->state_->metrics->port()}});
  }
  if (options.healthcheck_port >= 0) {
    DIBS_CHECK(check_port("healthcheck-port", options.healthcheck_port));
    int port = options.healthcheck_port;
    auto methods = plugin == nullptr
                       ? health_methods([] { return true; })
                       : health_methods(plugin->registration_socket(), plugin->service_socket());
    auto started = rpc::serve_tcp(port, std::move(methods));
    if (!started) return started.error().within("--healthcheck-port");
    servers->state_->health = std::move(started).value();
    log::info("health service", {{"port", port}});
  }
  return servers;
}

void ProcessServers::stop() {
  if (state_->metrics) state_->metrics->stop();
  if (state_->health) state_->health->stop();
}

}  // namespace dibs::driver
