#include "server/webhook_address.h"

#include "base/strings.h"

namespace dibs::server {

Result<> address_webhook(WebhookCall& call, const std::string& url, const json::Value& service,
                         const ServiceFinder& find) {
  if (!service.is_object()) {
    call.url = url;
    return success();
  }
  const std::string_view name = service["name"].as_string();
  const std::string_view name_space = service["namespace"].as_string();
  const std::int64_t port = service["port"].as_int(443);
  const std::string_view path = service["path"].as_string();
  call.url = cat("https://", name, ".", name_space, ".svc:", port,
                 path.empty() || path.starts_with('/') ? "" : "/", path);
  call.at_port = static_cast<std::uint16_t>(port);
  const auto lost = [&](std::string_view why) {
    const std::string shown =
        cat(call.url, path.empty() ? "/" : "",
            "?timeout=", std::chrono::ceil<std::chrono::seconds>(call.timeout).count(), "s");
    return Error::unavailable(cat("Post ", quoted(shown), ": ", why));
  };
  const json::Value found = find(name_space, name);
  if (found.is_null()) return lost(cat("service ", quoted(name), " not found"));
  const json::Value& spec = found["spec"];
  if (spec["type"].as_string() == "ExternalName") {
    call.at_host = spec["externalName"].str();
    return success();
  }
  if (spec["clusterIP"].as_string() == "None") {
    return lost("cannot route to service with ClusterIP \"None\"");
  }
  for (const json::Value& one : spec["ports"].items()) {
    if (one["port"].as_int() != port) continue;
    call.at_host = spec["clusterIP"].str();
    call.reach = net::Reach::cluster;
    return success();
  }
  return lost(cat("no service port ", port, " found for service ", quoted(name)));
}

}  // namespace dibs::server
