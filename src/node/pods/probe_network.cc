#include "node/pods/probe_network.h"

#include <chrono>

#include "base/strings.h"
#include "net/client_connection.h"
#include "net/http_client.h"
#include "rpc/tcp_call.h"

namespace dibs::node {
namespace {

using json::Value;
using Outcome = ProbeAnswer::Outcome;

constexpr const char* kUserAgent = "kube-probe/1.37";
constexpr int kMaxRedirects = 10;
constexpr std::size_t kMaxBody = 10 * 1024;

std::string host_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? cat(host, ':', port) : cat('[', host, "]:", port);
}

ProbeAnswer failure(std::string why) { return {Outcome::failure, std::move(why)}; }

net::Request make_request(const Value& probe, std::string target) {
  net::Request request;
  request.method = "GET";
  request.target = std::move(target);
  for (const auto& header : probe["httpHeaders"].items()) {
    request.headers.add(header["name"].str(), header["value"].str());
  }
  // An empty value means: do not send it at all.
  if (!request.headers.has("User-Agent")) request.headers.add("User-Agent", kUserAgent);
  if (request.headers.get("User-Agent").empty()) request.headers.remove("User-Agent");
  if (!request.headers.has("Accept")) request.headers.add("Accept", "*/*");
  if (request.headers.get("Accept").empty()) request.headers.remove("Accept");
  request.headers.add("Connection", "close");
  return request;
}

/// Where a redirect leads on the same host; nothing when it leads elsewhere.
std::optional<std::string> redirect_target(const net::Response& response, const std::string& base) {
  std::string location(response.headers.get("Location"));
  if (location.starts_with(base)) location.erase(0, base.size());
  if (location.empty()) return "/";
  if (location.front() == '/' && !location.starts_with("//")) return location;
  return std::nullopt;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

ProbeAnswer probe_http(const Value& probe, const std::string& host, int port, Duration timeout) {
  const bool tls = probe["scheme"].as_string() == "HTTPS";
  const std::string base = cat(tls ? "https://" : "http://", host_port(host, port));
  net::ClientOptions options;
  options.url = base;
  options.tls.insecure = true;
  options.max_idle = 0;
  auto client = net::HttpClient::open(std::move(options));
  if (!client) return failure(client.error().message());
  std::string target = probe["path"].str();
  if (!target.starts_with('/')) target.insert(0, "/");
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (int i = 0; i <= kMaxRedirects; ++i) {
    const Duration left = end - std::chrono::steady_clock::now();
    auto response = (*client)->send(make_request(probe, target), left);
    if (!response) {
      std::string text = response.error().message();
      if (response.error().code() == Code::timeout && text.ends_with("deadline exceeded")) {
        text.append(" (Client.Timeout exceeded while awaiting headers)");
      }
      return failure(std::move(text));
    }
    if (is_redirect(response->status)) {
      auto next = redirect_target(*response, base);
      if (!next) {
        return {Outcome::warning, cat("Probe terminated redirects, Response body: ",
                                      std::string_view(response->body).substr(0, kMaxBody))};
      }
      target = std::move(*next);
      continue;
    }
    if (response->status >= 200 && response->status < 400) {
      return {Outcome::success, response->body.substr(0, kMaxBody)};
    }
    return failure(cat("HTTP probe failed with statuscode: ", response->status));
  }
  return failure(cat("Get ", quoted(target), ": stopped after 10 redirects"));
}

ProbeAnswer probe_tcp(const std::string& host, int port, Duration timeout) {
  net::Url url;
  url.tls = false;
  url.host = host;
  url.port = static_cast<decltype(url.port)>(port);
  auto connection =
      net::ClientConnection::dial(url, nullptr, std::chrono::steady_clock::now() + timeout);
  if (!connection) return failure(connection.error().message());
  return {};
}

ProbeAnswer probe_grpc(const std::string& host, int port, const std::string& service,
                       Duration timeout) {
  const std::string address = host_port(host, port);
  const auto end = std::chrono::steady_clock::now() + timeout;
  // Tells a port where nobody listens from a server that does not answer.
  if (const auto dialled = probe_tcp(host, port, timeout); dialled.outcome != Outcome::success) {
    return failure(cat("timeout: failed to connect service ", quoted(address), " within ",
                       format_duration(timeout), ": context deadline exceeded"));
  }
  // HealthCheckRequest{service = 1}
  std::string request;
  if (!service.empty()) {
    request.push_back('\x0a');
    for (std::size_t size = service.size(); true; size >>= 7) {
      request.push_back(static_cast<char>(size > 0x7f ? (size & 0x7f) | 0x80 : size));
      if (size <= 0x7f) break;
    }
    request.append(service);
  }
  const auto reply = rpc::call_tcp(address, "/grpc.health.v1.Health/Check", request,
                                   end - std::chrono::steady_clock::now(), kUserAgent);
  switch (reply.status.code) {
    case rpc::Code::ok:
      break;
    case rpc::Code::unimplemented:
      return failure(
          cat("error: this server does not implement the grpc health protocol "
              "(grpc.health.v1.Health): ",
              reply.status.message));
    case rpc::Code::deadline_exceeded:
      return failure(cat("timeout: health rpc did not complete within ", format_duration(timeout)));
    default:
      return failure(cat("error: health rpc probe failed: ", reply.status.text()));
  }
  // HealthCheckResponse{status = 1}; an absent field is 0.
  static constexpr std::string_view kStatuses[] = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                   "SERVICE_UNKNOWN"};
  const std::size_t status =
      reply.bytes.size() >= 2 && reply.bytes[0] == '\x08'
          ? static_cast<std::size_t>(static_cast<unsigned char>(reply.bytes[1]))
          : 0;
  if (status == 1) return {};
  return failure(cat("service unhealthy (responded with ",
                     quoted(status < 4 ? std::string(kStatuses[status]) : std::to_string(status)),
                     ')'));
}

}  // namespace dibs::node
