#include "cli/serve.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "base/strings.h"
#include "cli/local_nodes.h"
#include "cli/process.h"
#include "client/client.h"
#include "client/resource_versions.h"
#include "client/transport.h"
#include "controllers/controllers.h"
#include "net/http_server.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "scheduler/scheduler.h"
#include "server/api_server.h"
#include "server/credentials.h"
#include "server/status.h"
#include "store/compactor.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace dibs::cli {
namespace {

constexpr Duration kDrainDeadline = std::chrono::seconds(10);

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

Result<Address> parse_address(std::string_view text) {
  auto colon = text.rfind(':');
  Address out;
  int port = -1;
  if (colon != std::string_view::npos) {
    auto digits = text.substr(colon + 1);
    auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (code != std::errc() || end != digits.data() + digits.size()) port = -1;
  }
  if (port < 0 || port > 65535) {
    return Error::bad_request(
        cat("--bind ", quoted(text), ": must be HOST:PORT, for example 127.0.0.1:6443"));
  }
  out.host = text.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

Result<std::string> data_folder(const ServeFlags& flags) {
  if (!flags.data_dir.empty()) return flags.data_dir;
  const char* home = std::getenv("HOME");
  if (!home || !*home) return Error::bad_request("--data-dir: must be given where HOME is not set");
  return cat(home, "/.local/share/dibs");
}

Result<std::unique_ptr<store::Store>> open_store(const ServeFlags& flags,
                                                 const std::string& folder) {
  constexpr store::Revision kFirstRevision = 1000;
  if (flags.store == "memory") {
    store::MemoryOptions memory;
    memory.first_revision = kFirstRevision;
    return store::make_memory_store(memory);
  }
  store::SqliteOptions options;
  options.first_revision = kFirstRevision;
  options.path = folder + "/store.db";
  return store::open_sqlite_store(options);
}

std::string url_host(const std::string& host) {
  if (host == "0.0.0.0" || host.empty()) return "127.0.0.1";
  if (host == "::") return "[::1]";
  return host.find(':') == std::string::npos ? host : cat("[", host, "]");
}

/// Everything that runs, in the order it must end.
class Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> start(const ServeFlags& flags) {
    auto cluster = std::unique_ptr<Cluster>(new Cluster());
    DIBS_CHECK(cluster->open(flags));
    return cluster;
  }

  ~Cluster() {
    if (nodes_) nodes_->stop();
    if (scheduler_) scheduler_->stop();
    if (controllers_) controllers_->stop();
    if (server_) server_->close();
    if (http_) http_->drain(kDrainDeadline);
    nodes_.reset();
    controllers_.reset();
    scheduler_.reset();
    compactor_.reset();
    if (store_) store_->close();  // calls back for every write that nobody waits for
    runtime_.reset();             // finishes what was posted
    client_.reset();
    transport_.reset();
    scheduler_client_.reset();
    scheduler_transport_.reset();
    http_.reset();
    server_.reset();
  }

  const std::string& url() const { return url_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  /// What runs the containers of the nodes, and why; "" without nodes.
  std::string runtime_explanation() const { return nodes_ ? nodes_->explanation() : ""; }

 private:
  Cluster() = default;

  /// A server that runs for a year outlives its certificate: it is looked at twice a day.
  void renew_later(std::string folder, std::vector<std::string> names) {
    runtime_->runtime().timers.after(std::chrono::hours(12), [this, folder, names] {
      auto credentials = server::load_credentials(runtime::system_files(),
                                                  runtime_->runtime().clock, folder, names);
      Result<> renewed = success();
      if (credentials.ok()) {
        renewed = http_->set_tls({credentials->server.certificate_pem, credentials->server.key_pem,
                                  credentials->ca.certificate_pem});
      }
      if (!credentials.ok() || !renewed.ok()) {
        log::error("certificate cannot be renewed",
                   {{"error", credentials.ok() ? renewed.error() : credentials.error()}});
      }
      renew_later(folder, names);
    });
  }

  /// The other parts of a cluster reach the server without a socket.
  void start_controllers(const ServeFlags& flags, const std::string& ca_pem) {
    client::InProcessOptions in_process;
    in_process.trees = server_->trees();
    in_process.identity = {"system:kube-controller-manager", {"system:masters"}};
    transport_ =
        client::make_in_process_transport(server_->handler(), runtime_->runtime(), in_process);
    client_ = std::make_unique<client::Client>(*transport_);
    controllers::ControllersOptions options;
    options.ca_pem = ca_pem;
    options.node_monitor_grace_period = flags.node_monitor_grace_period;
    controllers_ =
        std::make_unique<controllers::Controllers>(*client_, runtime_->runtime(), options);
    controllers_->start();
  }

  Result<> start_scheduler(const ServeFlags& flags) {
    client::InProcessOptions in_process;
    in_process.trees = server_->trees();
    in_process.identity = {"system:kube-scheduler", {"system:masters"}};
    scheduler_transport_ = client::make_resource_transport(
        client::make_in_process_transport(server_->handler(), runtime_->runtime(), in_process));
    scheduler_client_ = std::make_unique<client::Client>(*scheduler_transport_);
    DIBS_TRY(
        const api::Features gates,
        api::Features::parse(flags.release.empty() ? "1.37" : flags.release, flags.feature_gates));
    scheduler::Options options;
    options.features = alloc::Features::from_gates(gates);
    options.metrics = &server_->metrics();
    options.explain_events = flags.explain_events;
    scheduler_ =
        std::make_unique<scheduler::Scheduler>(*scheduler_client_, runtime_->runtime(), options);
    scheduler_->start();
    return success();
  }

  Result<> start_nodes(const ServeFlags& flags, const std::string& folder,
                       const std::string& ca_pem) {
    LocalNodesOptions options;
    options.nodes = flags.nodes;
    options.drivers = flags.drivers;
    options.runtime = flags.runtime;
    options.images = flags.images;
    options.folder = std::filesystem::absolute(folder).lexically_normal();
    options.release = flags.release;
    options.feature_gates = flags.feature_gates;
    options.client_ca_pem = ca_pem;
    options.server = server_->handler();
    options.trees = server_->trees();
    DIBS_TRY(nodes_,
             LocalNodes::start(std::move(options), runtime_->runtime(), runtime::system_files()));
    return success();
  }

  Result<> open(const ServeFlags& flags) {
    DIBS_TRY(Address address, parse_address(flags.bind));
    DIBS_TRY(std::string folder, data_folder(flags));
    runtime::Files& files = runtime::system_files();
    DIBS_CHECK(files.make_dirs(folder, 0700));
    runtime_ = std::make_unique<runtime::RealRuntime>();
    runtime::Runtime& runtime = runtime_->runtime();

    server::Options options;
    options.release = flags.release;
    options.feature_gates = flags.feature_gates;
    options.runtime_config = flags.runtime_config;
    options.enabled_plugins = flags.enabled_plugins;
    options.disabled_plugins = flags.disabled_plugins;
    options.service_range = flags.service_range;
    options.issuer = flags.issuer;
    if (!flags.token_auth_file.empty()) {
      auto tokens = files.read(flags.token_auth_file);
      if (!tokens.ok()) return tokens.error().within("--token-auth-file");
      options.static_tokens = std::move(tokens).value();
    }
    DIBS_TRY(auto credentials,
             server::load_credentials(files, runtime.clock, folder + "/pki", {address.host}));
    options.account_key_pem = credentials.account_key_pem;
    options.ca_pem = credentials.ca.certificate_pem;
    options.node_client_certificate_pem = credentials.node_client.certificate_pem;
    options.node_client_key_pem = credentials.node_client.key_pem;

    DIBS_TRY(store_, open_store(flags, folder));
    compactor_ = std::make_unique<store::Compactor>(*store_, runtime.timers);

    net::ServerOptions http;
    http.host = address.host;
    http.port = address.port;
    http.threads =
        flags.threads > 0 ? flags.threads : std::max(1U, std::thread::hardware_concurrency());
    http.tls = net::TlsServerOptions{credentials.server.certificate_pem, credentials.server.key_pem,
                                     credentials.ca.certificate_pem};
    // Logs and what pods serve go to people, who pause; watches to programs, which do not.
    http.patient = [](const net::Request& request) {
      const std::string_view path =
          std::string_view(request.target).substr(0, request.target.find('?'));
      return path.ends_with("/log") || path.find("/proxy") != std::string_view::npos;
    };
    http.body_too_large = [](const net::Request&) {
      return server::status_response(
          Error::too_large("Request entity too large: limit is 3145728"));
    };
    // The port must be known before the first objects are written, and nothing may be answered
    // before they are there.
    DIBS_TRY(http_, net::HttpServer::start(http, [this](net::Request request,
                                                        std::unique_ptr<net::Exchange> exchange) {
               if (auto* server = ready_.load(std::memory_order_acquire)) {
                 server->handle(std::move(request), std::move(exchange));
               } else {
                 exchange->respond(
                     server::status_response(server::try_again_error("the server is starting")));
               }
             }));
    url_ = cat("https://", url_host(address.host), ":", http_->port());
    options.advertise = cat(url_host(address.host), ":", http_->port());
    DIBS_TRY(server_, server::ApiServer::open(runtime, *store_, options));
    ready_.store(server_.get(), std::memory_order_release);
    renew_later(folder + "/pki", {address.host});
    if (flags.whole_cluster) {
      start_controllers(flags, credentials.ca.certificate_pem);
      DIBS_CHECK(start_scheduler(flags));
      if (flags.nodes > 0) DIBS_CHECK(start_nodes(flags, folder, credentials.ca.certificate_pem));
    }

    kubeconfig_ = flags.kubeconfig_out.empty() ? folder + "/kubeconfig" : flags.kubeconfig_out;
    // It is pasted into another terminal, which may stand in another folder.
    kubeconfig_ = std::filesystem::absolute(kubeconfig_).lexically_normal();
    // Not written again when it is the same: a server must start on a full disk too.
    std::string text = server::make_kubeconfig(credentials, url_);
    auto before = files.read(kubeconfig_);
    if (!before.ok() || *before != text) {
      auto written = files.write(kubeconfig_, text, 0600);
      if (!written.ok()) return written.error().within("--kubeconfig-out");
    }
    return success();
  }

  std::unique_ptr<runtime::RealRuntime> runtime_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Compactor> compactor_;
  std::unique_ptr<server::ApiServer> server_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<client::Transport> transport_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<client::Transport> scheduler_transport_;
  std::unique_ptr<client::Client> scheduler_client_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<LocalNodes> nodes_;
  std::atomic<server::ApiServer*> ready_{nullptr};
  std::string url_;
  std::string kubeconfig_;
};

}  // namespace

int serve(const ServeFlags& flags, std::string_view command) {
  auto began = std::chrono::steady_clock::now();
  begin_process(flags.log_level);
  auto cluster = Cluster::start(flags);
  if (!cluster.ok()) return exit_status(command, cluster.error());
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("dibs is ready at %s in %.3f s; export KUBECONFIG=%s\n", (*cluster)->url().c_str(),
              seconds, (*cluster)->kubeconfig().c_str());
  if (const std::string runtime = (*cluster)->runtime_explanation(); !runtime.empty()) {
    std::printf("%u %s; containers: %s\n", flags.nodes, flags.nodes == 1 ? "node" : "nodes",
                runtime.c_str());
  }
  std::fflush(stdout);

  wait_for_end();
  cluster->reset();
  return 0;
}

}  // namespace dibs::cli
