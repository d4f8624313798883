#include "cli/check_serve.h"

#include <filesystem>

#include "api/kinds/names.h"
#include "base/strings.h"
#include "cli/clusters.h"
#include "cli/process.h"
#include "cli/user_kubeconfig.h"
#include "cli/values.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "net/x509.h"
#include "node/agent.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "server/builtin_resources.h"
#include "server/credentials.h"
#include "store/stores.h"

namespace dibs::cli {
namespace {

namespace fs = std::filesystem;

/// It is one, or may be made one.
bool can_be_folder(fs::path path) {
  std::error_code failed;
  while (!fs::exists(path, failed) && path.has_relative_path()) path = path.parent_path();
  return fs::is_directory(path, failed);
}

/// Whoever starts the server knows best what it refuses: it is started on nothing, and ended.
Result<> rehearse(server::Options options) {
  options.audit_log = {};
  options.audit_policy.clear();
  cluster::World world = cluster::real_world();
  DIBS_TRY(const auto store, store::open_store("memory", {}));
  auto server = server::ApiServer::open(world.runtime, *store, std::move(options));
  if (server.ok()) (*server)->close();
  world.finish();
  if (!server.ok()) return server.error();
  return success();
}

Result<> check_options(const ServeFlags& flags, const server::Options& options) {
  const bool unusual = !flags.enabled_plugins.empty() || !flags.disabled_plugins.empty() ||
                       !flags.token_auth_file.empty();
  if (unusual) return rehearse(options);
  if (flags.release.empty() && flags.feature_gates.empty() && flags.runtime_config.empty()) {
    return success();
  }
  DIBS_CHECK(server::builtin_resources(options));
  return success();
}

/// Files that the port shows and believes, as far as they can be judged without the cluster's own.
Result<> check_files(const ServeFlags& flags) {
  const ApiFlags& api = flags.api;
  if (!has_files(api) && api.account_signing_key_file.empty() && api.tls_cipher_suites.empty()) {
    return success();
  }
  DIBS_TRY(const ServingFiles files,
           read_serving_files(api, runtime::system_files(), server::Credentials()));
  net::TlsServerOptions shown;
  if (!api.tls_cert_file.empty()) {
    shown.certificate_pem = files.tls.certificate_pem;
    shown.key_pem = files.tls.key_pem;
    const auto context = net::TlsContext::server(shown);
    if (!context.ok()) return as_usage(context.error(), "--tls-cert-file, --tls-private-key-file");
  }
  if (!api.tls_cipher_suites.empty()) {
    const Time now = runtime::system_clock().now();
    DIBS_TRY(const auto any, net::make_ca("any", {now, now + std::chrono::hours(1)}));
    shown.certificate_pem = any.certificate_pem;
    shown.key_pem = any.key_pem;
    shown.cipher_suites = api.tls_cipher_suites;
    const auto context = net::TlsContext::server(shown);
    if (!context.ok()) return as_usage(context.error(), "--tls-cipher-suites");
  }
  return success();
}

}  // namespace

Result<> check_server(const ServeFlags& flags, const server::Options& options) {
  DIBS_CHECK(check_files(flags));
  return check_options(flags, options);
}

Result<> check_places(const ServeFlags& flags, const ListenAddress& address,
                      const std::string& folder) {
  const fs::path data = fs::absolute(folder).lexically_normal();
  if (!can_be_folder(data)) {
    return Error::bad_request(cat("--data-dir ", quoted(folder), ": is no folder, nor can be one"));
  }
  DIBS_CHECK(check_data_folder(folder));
  if (!flags.kubeconfig_out.empty()) {
    const fs::path file = fs::absolute(flags.kubeconfig_out).lexically_normal();
    std::error_code failed;
    const bool is_there =
        fs::is_directory(file.parent_path(), failed) || file.parent_path() == data;
    if (!is_there || fs::is_directory(file, failed)) {
      return Error::bad_request(
          cat("--kubeconfig-out ", quoted(flags.kubeconfig_out),
              is_there ? ": is a folder" : ": its folder is not there: make it first"));
    }
  }
  if (!flags.images.empty() && !can_be_folder(fs::absolute(flags.images))) {
    return Error::bad_request(cat("--images ", quoted(flags.images), ": is no folder"));
  }
  // One that runs has the port, and is told of otherwise.
  if (is_running(folder)) return success();
  if (flags.merge)
    DIBS_CHECK(check_user_kubeconfig(context_of(flags.name), fs::weakly_canonical(data)));
  if (address.port == 0) return success();
  const auto free = net::HttpServer::can_listen(address.host, address.port);
  if (free.ok()) return success();
  return Error::unavailable(cat("--bind ", flags.bind, ": ", free.error().message(),
                                "; give another port: 0, as in --bind 127.0.0.1:0, takes a free "
                                "one"));
}

Result<> check_nodes(const cluster::NodesOptions& nodes, const server::Options& server) {
  DIBS_CHECK(cluster::driver_accounts(nodes.drivers(), server.release));
  if (nodes.count() == 0) return success();
  std::string longest;
  for (const cluster::NodeGroup& group : nodes.groups) {
    if (group.count == 0) continue;
    const std::string last = cat(group.prefix, group.count - 1);
    if (last.size() > longest.size()) longest = last;
    if (const auto wrong = is_dns1123_subdomain(last); !wrong.empty()) {
      return Error::bad_request(cat("--node-prefix ", quoted(group.prefix), ": ", quoted(last),
                                    " is no name for a node: ", wrong.front()));
    }
  }
  if (!nodes.host.empty() && !api::is_ip(nodes.host) && nodes.host != "localhost") {
    return Error::bad_request(
        cat("--node-address ", quoted(nodes.host), ": must be an IP address of this machine"));
  }
  for (const std::string& name : nodes.network_namespaces) {
    if (name == "*" || is_dns1123_label(name).empty()) continue;
    return Error::bad_request(
        cat("--network-namespaces ", quoted(name), ": must be names of namespaces, or *"));
  }
  node::AgentOptions agent;
  agent.name = longest;
  agent.root = cat(nodes.folder, "/nodes/", longest);
  agent.root_flag = "--data-dir";
  agent.images = nodes.images;
  agent.image_aliases = nodes.image_aliases;
  agent.insecure_registries = nodes.insecure_registries;
  agent.disk = nodes.disk;
  agent.allowed_unsafe_sysctls = nodes.allowed_unsafe_sysctls;
  return node::check_options(agent);
}

}  // namespace dibs::cli
