#include "node/streams/node_server.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "json/parse.h"
#include "net/http_server.h"
#include "net/websocket_stream.h"
#include "net/x509.h"
#include "node/streams/command.h"
#include "node/streams/log_stream.h"
#include "node/streams/node_access.h"
#include "node/streams/pages.h"
#include "node/streams/pod_lookup.h"
#include "node/streams/port_forward.h"

namespace dibs::node {
namespace {

using ExchangePtr = std::shared_ptr<net::Exchange>;

net::Response text(int status, std::string body) {
  net::Response out;
  out.status = status;
  out.headers.add("Content-Type", "text/plain; charset=utf-8");
  out.body = std::move(body);
  return out;
}

net::Response page(const json::Value& value) {
  net::Response out;
  out.headers.add("Content-Type", "application/json");
  out.body = json::write(value);
  return out;
}

net::Response refusal(const Error& error) {
  return text(http_status(error.code()), error.message());
}

/// "/exec/ns/pod[/uid]/container" without its first part.
struct StreamPath {
  std::string name_space = {};
  std::string pod = {};
  std::string container = {};
};

std::optional<StreamPath> read_path(const std::vector<std::string_view>& parts, bool to_container) {
  const std::size_t least = to_container ? 5 : 4;
  if (parts.size() != least && parts.size() != least + 1) return std::nullopt;
  StreamPath out{std::string(parts[2]), std::string(parts[3]), {}};
  if (to_container) out.container = parts.back();
  return out;
}

bool is_one(const net::Target& target, std::string_view name) {
  const std::string_view value = target.get(name);
  return value == "1" || value == "true";
}

Result<net::TlsServerOptions> self_signed(const NodeServerOptions& options, Time now) {
  const net::Validity validity{now - std::chrono::hours(1), now + std::chrono::hours(24 * 365)};
  const std::string name = options.node_name.empty() ? "node" : options.node_name;
  DIBS_TRY(const auto ca, net::make_ca(cat(name, "-ca@", now.seconds()), validity));
  std::vector<std::string> names = {name, "localhost", "127.0.0.1"};
  for (const std::string& address : options.addresses) {
    if (std::find(names.begin(), names.end(), address) == names.end()) names.push_back(address);
  }
  DIBS_TRY(const auto own,
           net::issue_server_certificate(ca, cat(name, "@", now.seconds()), names, validity));
  net::TlsServerOptions out = options.tls;
  out.certificate_pem = own.certificate_pem + ca.certificate_pem;
  out.key_pem = own.key_pem;
  return out;
}

}  // namespace

struct NodeServer::Impl : std::enable_shared_from_this<NodeServer::Impl> {
  Impl(runtime::Runtime& runtime, ContainerRuntime& containers, NodeServerOptions options)
      : runtime(runtime), containers(containers), options(std::move(options)) {}

  StreamHost host() const { return {runtime, containers, gate}; }

  runtime::Runtime& runtime;
  ContainerRuntime& containers;
  NodeServerOptions options;
  Time started = {};
  std::unique_ptr<NodeStats> stats;
  FileWatch files;
  const std::shared_ptr<client::Gate> gate = std::make_shared<client::Gate>();
  std::unique_ptr<net::HttpServer> http;
  Mutex mutex;
  /// Logs that are followed, by container.
  std::multimap<std::string, std::weak_ptr<LogStream>> followed DIBS_GUARDED_BY(mutex);

  void handle(const net::Request& request, const ExchangePtr& exchange);
  Result<> admit(const net::Request& request, const net::Target& target) const;
  Result<net::Response> show(const net::Target& target);
  void logs(const net::Target& target, const StreamPath& path, const ExchangePtr& exchange);
  void command(const net::Request& request, const net::Target& target, const StreamPath& path,
               bool attach, const ExchangePtr& exchange);
  void ports(const net::Request& request, const net::Target& target, const StreamPath& path,
             const ExchangePtr& exchange);
  Result<json::Value> find_pod(const StreamPath& path) const;
  void follow(const std::string& container, const std::shared_ptr<LogStream>& log);
  void container_stopped(const std::string& container);
};

Result<> NodeServer::Impl::admit(const net::Request& request, const net::Target& target) const {
  Caller caller;
  if (options.authenticate) {
    DIBS_TRY(caller, options.authenticate(request));
  } else {
    auto shown = caller_by_certificate(request);
    if (!shown) return Error(Code::unauthorized, "Unauthorized");
    caller = std::move(*shown);
  }
  const std::string verb = node_verb(request.method);
  const std::string subresource = node_subresource(target.path);
  if (options.authorize) return options.authorize(caller, verb, subresource);
  const auto& groups = caller.groups;
  if (std::find(groups.begin(), groups.end(), "system:masters") != groups.end()) return success();
  return node_forbidden(caller, verb, subresource);
}

void NodeServer::Impl::handle(const net::Request& request, const ExchangePtr& exchange) {
  auto target = net::Target::parse(request.target);
  if (!target.ok()) return exchange->respond(text(400, "400 Bad Request\n"));
  if (target->path == "/healthz" || target->path == "/healthz/ping") {
    return exchange->respond(text(200, "ok"));
  }
  if (auto admitted = admit(request, *target); !admitted.ok()) {
    return exchange->respond(refusal(admitted.error()));
  }
  const auto parts = split(target->path, '/');
  const std::string_view what = parts.size() > 1 ? parts[1] : std::string_view();
  if (what == "containerLogs" || what == "exec" || what == "attach") {
    const auto path = read_path(parts, true);
    if (!path) return exchange->respond(text(404, "404 page not found\n"));
    if (what == "containerLogs") return logs(*target, *path, exchange);
    return command(request, *target, *path, what == "attach", exchange);
  }
  if (what == "portForward") {
    const auto path = read_path(parts, false);
    if (!path) return exchange->respond(text(404, "404 page not found\n"));
    return ports(request, *target, *path, exchange);
  }
  auto answer = show(*target);
  exchange->respond(answer.ok() ? std::move(*answer) : refusal(answer.error()));
}

Result<net::Response> NodeServer::Impl::show(const net::Target& target) {
  const std::string& path = target.path;
  const auto pods = [&] { return options.pods ? options.pods() : std::vector<json::Value>(); };
  if (path == "/pods") return page(pod_list(pods()));
  if (path == "/runningpods" || path == "/runningpods/") {
    DIBS_TRY(const json::Value list, running_pods(containers));
    return page(list);
  }
  const Time now = runtime.clock.now();
  if (path == "/stats/summary" || path == "/stats/summary/") {
    bool few = false;
    for (const auto& [name, value] : target.query) {
      few = few || (name == "only_cpu_and_memory" && value == "true");
    }
    return page(stats->summary(now, few));
  }
  if (path == "/configz") {
    return page(json::Value::object(
        {{"kubeletconfig", options.config.is_null() ? json::Value::object() : options.config}}));
  }
  const auto exposed = [](std::string lines) {
    net::Response out = text(200, std::move(lines));
    out.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    return out;
  };
  if (path == "/metrics") return exposed(options.metrics ? options.metrics() : std::string());
  if (path == "/metrics/resource") return exposed(stats->resource_metrics(now));
  if (path == "/metrics/cadvisor") return exposed(stats->cadvisor_metrics(now));
  if (path == "/metrics/probes") {
    return exposed(options.probe_metrics ? options.probe_metrics() : std::string());
  }
  return text(404, "404 page not found\n");
}

Result<json::Value> NodeServer::Impl::find_pod(const StreamPath& path) const {
  auto pod = options.pod ? options.pod(path.name_space, path.pod) : std::nullopt;
  if (!pod) return Error::not_found("pod does not exist");
  return std::move(*pod);
}

void NodeServer::Impl::logs(const net::Target& target, const StreamPath& path,
                            const ExchangePtr& exchange) {
  const auto begin = [&]() -> Result<std::shared_ptr<LogStream>> {
    DIBS_TRY(LogOptions wanted, parse_log_options(target));
    auto pod = options.pod ? options.pod(path.name_space, path.pod) : std::nullopt;
    if (!pod) return Error::not_found(cat("pod ", quoted(path.pod), " does not exist\n"));
    if (!has_container(*pod, path.container)) {
      return Error::not_found(
          cat("container ", quoted(path.container), " not found in pod ", quoted(path.pod), "\n"));
    }
    DIBS_TRY(const std::string id, container_with_log(*pod, path.container, wanted.previous));
    if (wanted.since_seconds) {
      wanted.since = runtime.clock.now() - std::chrono::seconds(*wanted.since_seconds);
    }
    auto status = containers.container_status(id);
    if (!status.ok()) {
      return Error::bad_request(
          cat("unable to retrieve container logs for ", containers.version().name, "://", id));
    }
    auto log = std::make_shared<LogStream>(runtime, files, status->log_path, wanted);
    if (auto opened = log->open(); !opened.ok()) {
      return Error::bad_request(opened.error().message());
    }
    if (wanted.follow) {
      follow(id, log);
      // It may have ended before anyone listened.
      status = containers.container_status(id);
      if (!status.ok() || status->state != ContainerState::running) container_stopped(id);
    }
    return log;
  };
  auto log = begin();
  if (!log.ok()) return exchange->respond(refusal(log.error()));
  net::Response head;
  head.headers.add("Content-Type", "text/plain");
  (*log)->start(exchange->stream(std::move(head)));
}

void NodeServer::Impl::follow(const std::string& container, const std::shared_ptr<LogStream>& log) {
  const MutexLock lock(mutex);
  std::erase_if(followed, [](const auto& entry) { return entry.second.expired(); });
  followed.emplace(container, log);
}

void NodeServer::Impl::container_stopped(const std::string& container) {
  std::vector<std::shared_ptr<LogStream>> ending;
  {
    const MutexLock lock(mutex);
    const auto [first, last] = followed.equal_range(container);
    for (auto entry = first; entry != last; ++entry) {
      if (auto log = entry->second.lock()) ending.push_back(std::move(log));
    }
    followed.erase(first, last);
  }
  for (const auto& log : ending) log->container_ended();
}

void NodeServer::Impl::command(const net::Request& request, const net::Target& target,
                               const StreamPath& path, bool attach, const ExchangePtr& exchange) {
  CommandStreams streams;
  streams.in = is_one(target, "input") || is_one(target, "stdin");
  streams.out = is_one(target, "output") || is_one(target, "stdout");
  streams.err = is_one(target, "error") || is_one(target, "stderr");
  streams.tty = is_one(target, "tty");
  // A terminal has one way out.
  if (streams.tty) streams.err = false;
  if (!streams.in && !streams.out && !streams.err) {
    return exchange->respond(text(400, "you must specify at least 1 of stdin, stdout, stderr"));
  }
  auto pod = find_pod(path);
  if (!pod.ok()) return exchange->respond(refusal(pod.error()));
  auto found = running_container(containers, *pod, path.container);
  if (!found.ok()) return exchange->respond(text(500, found.error().message()));
  if (!*found) {
    return exchange->respond(text(500, cat("container not found (", quoted(path.container), ")")));
  }
  CommandTarget what;
  what.container = (*found)->id;
  what.attach = attach;
  for (const auto& [name, value] : target.query) {
    if (name == "command") what.exec.command.push_back(value);
  }
  what.exec.tty = streams.tty;
  what.exec.stdin_open = streams.in;

  const auto self = shared_from_this();
  if (net::is_websocket_upgrade(request)) {
    std::string protocol;
    if (!choose_websocket_protocol(request.headers.get("Sec-WebSocket-Protocol"), protocol)) {
      return exchange->respond(text(400, "no supported WebSocket sub-protocol is offered\n"));
    }
    return exchange->upgrade(protocol, [self, what, streams,
                                        protocol](std::shared_ptr<net::WebSocket> socket) {
      if (socket == nullptr) return;
      run_command(self->host(), what, make_websocket_wire(std::move(socket), protocol, streams));
    });
  }
  if (!equals_ignoring_case(request.headers.get("Upgrade"), "SPDY/3.1")) {
    return exchange->respond(text(400, "unable to upgrade: missing upgrade headers in request\n"));
  }
  auto protocol = choose_spdy_protocol(request, spdy_command_protocols());
  if (!protocol.ok()) return exchange->respond(refusal(protocol.error()));
  net::Response head;
  head.status = 101;
  head.headers.add("Connection", "Upgrade");
  head.headers.add("Upgrade", "SPDY/3.1");
  if (!protocol->empty()) head.headers.add("X-Stream-Protocol-Version", *protocol);
  exchange->upgrade_to(std::move(head), [self, what, streams, protocol = *protocol](
                                            std::shared_ptr<net::ByteStream> stream) {
    if (stream == nullptr) return;
    auto connection =
        net::SpdyConnection::make(std::move(stream), net::SpdyConnection::End::server);
    run_command(self->host(), what,
                make_spdy_wire(self->runtime, std::move(connection), protocol, streams));
  });
}

void NodeServer::Impl::ports(const net::Request& request, const net::Target& target,
                             const StreamPath& path, const ExchangePtr& exchange) {
  auto pod = find_pod(path);
  if (!pod.ok()) return exchange->respond(refusal(pod.error()));
  auto sandbox = ready_sandbox(containers, *pod);
  if (!sandbox.ok()) return exchange->respond(text(500, sandbox.error().message()));
  if (!*sandbox) {
    return exchange->respond(
        text(500, cat("pod not found (", quoted(cat(path.pod, "_", path.name_space)), ")")));
  }
  const std::string what = (*sandbox)->id;
  const auto self = shared_from_this();
  const auto forward = [self, what](std::shared_ptr<net::ByteStream> stream) {
    forward_ports(self->host(), what,
                  net::SpdyConnection::make(std::move(stream), net::SpdyConnection::End::server));
  };
  if (net::is_websocket_upgrade(request)) {
    const std::string_view offer = request.headers.get("Sec-WebSocket-Protocol");
    if (net::has_token(offer, kPortForwardTunnel)) {
      return exchange->upgrade(std::string(kPortForwardTunnel),
                               [forward](std::shared_ptr<net::WebSocket> socket) {
                                 if (socket != nullptr) forward(net::bytes_of(std::move(socket)));
                               });
    }
    std::vector<int> wanted;
    for (const auto& [name, value] : target.query) {
      if (name != "port" && name != "ports") continue;
      for (const std::string_view one : split(value, ',')) {
        int port = 0;
        std::from_chars(one.data(), one.data() + one.size(), port);
        if (port < 1 || port > 65535) {
          return exchange->respond(text(400, cat("invalid port ", quoted(one))));
        }
        wanted.push_back(port);
      }
    }
    if (wanted.empty()) {
      return exchange->respond(text(400, "query parameter \"port\" is required"));
    }
    std::string protocol;
    if (!choose_websocket_protocol(offer, protocol)) {
      return exchange->respond(text(400, "no supported WebSocket sub-protocol is offered\n"));
    }
    const bool base64 = protocol.find("base64") != std::string::npos;
    return exchange->upgrade(protocol,
                             [self, what, base64, wanted](std::shared_ptr<net::WebSocket> socket) {
                               if (socket == nullptr) return;
                               forward_ports(self->host(), what, std::move(socket), base64, wanted);
                             });
  }
  if (!equals_ignoring_case(request.headers.get("Upgrade"), "SPDY/3.1")) {
    return exchange->respond(text(400, "unable to upgrade: missing upgrade headers in request\n"));
  }
  auto protocol = choose_spdy_protocol(request, {std::string(kPortForwardProtocol)});
  if (!protocol.ok()) return exchange->respond(refusal(protocol.error()));
  net::Response head;
  head.status = 101;
  head.headers.add("Connection", "Upgrade");
  head.headers.add("Upgrade", "SPDY/3.1");
  if (!protocol->empty()) head.headers.add("X-Stream-Protocol-Version", *protocol);
  exchange->upgrade_to(std::move(head), [forward](std::shared_ptr<net::ByteStream> stream) {
    if (stream != nullptr) forward(std::move(stream));
  });
}

NodeServer::NodeServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

NodeServer::~NodeServer() {
  impl_->http->stop();
  impl_->gate->close();
}

Result<std::unique_ptr<NodeServer>> NodeServer::start(runtime::Runtime& runtime,
                                                      ContainerRuntime& containers,
                                                      NodeServerOptions options) {
  auto impl = std::make_shared<Impl>(runtime, containers, std::move(options));
  impl->started = runtime.clock.now();
  NodeStatsSources sources;
  sources.node_name = impl->options.node_name;
  sources.started = impl->started;
  sources.pods = impl->options.pods;
  sources.disk = impl->options.disk;
  sources.storage = impl->options.storage;
  impl->stats = std::make_unique<NodeStats>(containers, std::move(sources));
  net::ServerOptions http;
  http.host = impl->options.host;
  http.port = impl->options.port;
  http.threads = impl->options.threads;
  http.max_connections = 4096;
  http.max_body = 1024 * 1024;
  http.patient = [](const net::Request&) { return true; };
  http.tls = impl->options.tls;
  if (http.tls->certificate_pem.empty()) {
    DIBS_TRY(http.tls, self_signed(impl->options, runtime.clock.now()));
  }
  const std::weak_ptr<Impl> weak = impl;
  containers.listen([weak](const RuntimeEvent& event) {
    if (event.container_id.empty()) return;
    if (event.kind != RuntimeEvent::Kind::stopped && event.kind != RuntimeEvent::Kind::removed) {
      return;
    }
    if (const auto alive = weak.lock()) alive->container_stopped(event.container_id);
  });
  DIBS_TRY(impl->http, net::HttpServer::start(http, [weak](net::Request request,
                                                           std::unique_ptr<net::Exchange> answer) {
             const auto alive = weak.lock();
             if (alive == nullptr) return;
             const ExchangePtr exchange = std::move(answer);
             const auto shared = std::make_shared<net::Request>(std::move(request));
             alive->runtime.executor.post([alive, shared, exchange] {
               client::GateEntry entry(*alive->gate);
               if (entry) alive->handle(*shared, exchange);
             });
           }));
  return std::unique_ptr<NodeServer>(new NodeServer(std::move(impl)));
}

std::uint16_t NodeServer::port() const { return impl_->http->port(); }

}  // namespace dibs::node
