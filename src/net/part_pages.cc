#include "net/part_pages.h"

#include <utility>

namespace dibs::net {
namespace {

Response text(int status, std::string body) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(body);
  return response;
}

Response page(const metrics::Registry& registry, const std::function<bool()>& ready,
              const Request& request) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const bool known = path == "/metrics" ||
                     (ready && (path == "/healthz" || path == "/livez" || path == "/readyz"));
  if (!known) {
    return text(404, ready ? "only /metrics, /healthz, /livez and /readyz are here\n"
                           : "only /metrics is here\n");
  }
  if (request.method != "GET") {
    Response refused = text(405, "only GET\n");
    refused.headers.add("Allow", "GET");
    return refused;
  }
  if (path == "/metrics") {
    Response response;
    response.headers.add("Content-Type", std::string(metrics::Registry::kContentType));
    response.body = registry.expose();
    return response;
  }
  if (path == "/readyz" && !ready()) return text(500, "not ready: the first lists are not read\n");
  return text(200, "ok");
}

}  // namespace

Handler part_pages(metrics::Registry& registry, std::function<bool()> ready) {
  return
      [&registry, ready = std::move(ready)](Request request, std::unique_ptr<Exchange> exchange) {
        exchange->respond(page(registry, ready, request));
      };
}

}  // namespace dibs::net
