#include "cluster/front_door.h"

#include <chrono>

#include "base/strings.h"
#include "server/status.h"

namespace dibs::cluster {
namespace {

constexpr Duration kDrainDeadline = std::chrono::seconds(10);

std::string url_host(const std::string& host) {
  if (host == "0.0.0.0" || host.empty()) return "127.0.0.1";
  if (host == "::") return "[::1]";
  return host.find(':') == std::string::npos ? host : cat("[", host, "]");
}

}  // namespace

Result<std::unique_ptr<FrontDoor>> FrontDoor::open(net::ServerOptions options) {
  // Logs and what pods serve go to people, who pause; watches to programs, which do not.
  options.patient = [](const net::Request& request) {
    const std::string_view path =
        std::string_view(request.target).substr(0, request.target.find('?'));
    return path.ends_with("/log") || path.find("/proxy") != std::string_view::npos;
  };
  options.body_too_large = [](const net::Request&) {
    return server::status_response(Error::too_large("Request entity too large: limit is 3145728"));
  };
  auto door = std::unique_ptr<FrontDoor>(new FrontDoor());
  auto handle = [door = door.get()](net::Request request, std::unique_ptr<net::Exchange> exchange) {
    if (auto* server = door->server_.load(std::memory_order_acquire)) {
      server->handle(std::move(request), std::move(exchange));
    } else {
      exchange->respond(server::status_response(server::try_again_error("the server is starting")));
    }
  };
  const std::string host = url_host(options.host);
  DIBS_TRY(door->http_, net::HttpServer::start(std::move(options), std::move(handle)));
  door->address_ = cat(host, ":", door->http_->port());
  return door;
}

std::string FrontDoor::address_at(const std::string& host) const {
  return host.empty() ? address_ : cat(url_host(host), ":", http_->port());
}

void FrontDoor::admit(server::ApiServer& server) {
  server_.store(&server, std::memory_order_release);
}

void FrontDoor::drain() { http_->drain(kDrainDeadline); }

}  // namespace dibs::cluster
