#include "cli/join.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/strings.h"
#include "cli/api_flags.h"
#include "cli/node_names.h"
#include "cli/part_flags.h"
#include "cli/process.h"
#include "cli/starting.h"
#include "cli/token.h"
#include "client/https_transport.h"
#include "json/yaml.h"
#include "net/x509.h"
#include "node/certificate.h"
#include "node/pods/node_lease.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "server/credentials.h"

namespace dibs::cli {
namespace {

using json::Value;

constexpr const char* kName = "node join";
constexpr Duration kPatience = std::chrono::minutes(1);  // for the certificate
constexpr Duration kAnswer = std::chrono::seconds(20);
const client::Gvr kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests"};
const client::Gvr kMaps{"", "v1", "configmaps"};

std::string file_of(const JoinFlags& flags) { return node_kubeconfig(flags.node); }

/// The words of the command line, before anything is asked.
Result<JoinFlags> checked(JoinFlags flags) {
  if (!flags.server.empty()) {
    auto server = parse_server_url(flags.server);
    if (!server.ok()) return server.error().within("SERVER");
    flags.server = *server;
  }
  if (!flags.token.empty() && !is_bootstrap_token(flags.token)) {
    return Error::bad_request(
        "--token: must be as `dibs token create` prints it, abcdef.0123456789abcdef");
  }
  if (!flags.ca_cert_hash.empty()) {
    const std::string hash = to_lower(flags.ca_cert_hash);
    constexpr std::string_view kKind = "sha256:";
    if (!hash.starts_with(kKind) || hash.size() != kKind.size() + 64 ||
        hash.find_first_not_of("0123456789abcdef", kKind.size()) != std::string::npos) {
      return Error::bad_request(cat("--ca-cert-hash ", quoted(flags.ca_cert_hash),
                                    ": must be sha256: and 64 hexadecimal digits"));
    }
    flags.ca_cert_hash = hash;
  }
  DIBS_CHECK(check_node(flags.node));
  return flags;
}

/// The certificates that the hash is of, and no others: whoever answers may have added his own.
std::string pinned(std::string_view pem, const std::string& hash) {
  std::string out;
  for (const std::string& certificate : net::split_certificates(pem)) {
    const auto own = net::public_key_hash(certificate);
    if (own.ok() && *own == hash) append(out, certificate, "\n");
  }
  return out;
}

Result<std::unique_ptr<client::HttpsTransport>> connect(const client::Access& access,
                                                        runtime::Runtime& runtime) {
  client::HttpsOptions https;
  https.user_agent = "kubelet";
  https.timeout = kAnswer;
  return client::make_https_transport(access, runtime::system_files(), runtime, https);
}

/// How to reach the cluster, as nobody yet. What a stranger says is believed as far as the hash
/// goes.
Result<client::Access> discover(const JoinFlags& flags, runtime::Runtime& runtime) {
  client::Access access;
  access.server = flags.server;
  access.tls.insecure = true;
  DIBS_TRY(const auto transport, connect(access, runtime));
  client::Client client(*transport);
  const auto info = client.get(kMaps, "kube-public", "cluster-info");
  if (!info.ok()) {
    const Code code = info.error().code();
    if (code == Code::unavailable || code == Code::timeout) {
      return info.error().within(cat("cannot reach ", flags.server));
    }
    return Error(code, cat(flags.server,
                           " does not show its authority (ConfigMap "
                           "kube-public/cluster-info): run `dibs token create` there, and join "
                           "with what it prints; it said: ",
                           info.error().message()));
  }
  const auto config = json::parse_yaml((*info)["data"]["kubeconfig"].as_string());
  const Value cluster = config.ok() ? (*config)["clusters"][0]["cluster"] : Value();
  std::string authorities;
  base64_decode(cluster["certificate-authority-data"].as_string(), authorities);
  access.tls.insecure = false;
  access.tls.ca_pem = pinned(authorities, flags.ca_cert_hash);
  if (access.tls.ca_pem.empty()) {
    const auto found = net::public_key_hash(authorities);
    return Error::forbidden(
        cat("--ca-cert-hash: the authority of ", flags.server, " is another, ",
            found.ok() ? *found : "one that cannot be read",
            ": the hash is of another cluster, or somebody else answers in its place"));
  }
  // Another name would let any certificate of the authority stand for the server.
  if (cluster["tls-server-name"].as_string() == kOwnName) access.tls.server_name = kOwnName;
  return access;
}

/// What went wrong with a token, in the words of who has it.
Error explain(const JoinFlags& flags, const Error& error) {
  const std::string id = flags.token.substr(0, flags.token.find('.'));
  if (error.code() == Code::unauthorized) {
    return Error(error.code(), cat("--token: the server does not know ", quoted(id),
                                   ", or its secret is another, or its time is up: `dibs token "
                                   "create` there makes a new one"));
  }
  if (error.code() == Code::forbidden) {
    return error.within(cat("--token: ", quoted(id), " may not join machines"));
  }
  if (error.message().find("certificate") != std::string::npos) {
    return error.within(cat(flags.server,
                            " has no certificate for that name: start the server with "
                            "--advertise-address or --tls-san, or join by another name"));
  }
  return error;
}

Result<net::Credential> get_certificate(const JoinFlags& flags, const std::string& node,
                                        client::Client& client, runtime::Runtime& runtime) {
  net::Credential out;
  DIBS_TRY(out.key_pem, net::make_private_key());
  DIBS_TRY(Value request,
           node::certificate_request(node, out.key_pem, Duration(0), runtime.random));
  const std::string name(client::name_of(request));
  const Duration until = runtime.clock.steady() + kPatience;
  auto answer = client.create(kRequests, "", request);
  while (true) {
    if (!answer.ok()) return explain(flags, answer.error());
    DIBS_TRY(const auto certificate, node::issued_certificate(*answer));
    if (certificate) {
      out.certificate_pem = *certificate;
      return out;
    }
    if (runtime.clock.steady() > until) {
      return Error::timeout(cat("the certificate that ", name,
                                " asks for is not signed: `kubectl describe csr ", name,
                                "` may tell why; controllers sign it, where they run"));
    }
    wait_a_moment();
    answer = client.get(kRequests, "", name);
  }
}

/// The name must not be that of another agent that lives. Which one this is, its folder says, if it
/// has been one before.
Result<> check_name(const JoinFlags& flags, const std::string& node, client::Client& client,
                    runtime::Runtime& runtime) {
  const auto agent = runtime::system_files().read(cat(flags.node.root_dir, "/.agent"));
  const auto lease = [&] {
    return client.get({"coordination.k8s.io", "v1", "leases"}, node::kNodeLeases, node);
  };
  return check_name_is_free(
      {node, agent.ok() ? *agent : "", "--name", runtime.clock, wait_a_moment}, lease);
}

Result<> join(const JoinFlags& flags, runtime::Runtime& runtime) {
  for (const auto& [flag, value] : {std::pair("SERVER", &flags.server),
                                    {"--token", &flags.token},
                                    {"--ca-cert-hash", &flags.ca_cert_hash}}) {
    if (!value->empty()) continue;
    return Error::bad_request(cat(flag, ": is needed, since ", file_of(flags),
                                  " is not there: `dibs token create` on the server's machine "
                                  "prints the whole command"));
  }
  const std::string node = node_name(flags.node);
  DIBS_TRY(client::Access access, discover(flags, runtime));
  access.token = flags.token;
  DIBS_TRY(const auto stranger, connect(access, runtime));
  client::Client asking(*stranger);
  DIBS_TRY(const net::Credential credential, get_certificate(flags, node, asking, runtime));
  access.token.clear();
  access.tls.certificate_pem = credential.certificate_pem;
  access.tls.key_pem = credential.key_pem;
  DIBS_TRY(const auto transport, connect(access, runtime));
  client::Client client(*transport);
  DIBS_CHECK(check_name(flags, node, client, runtime));
  return write_node_kubeconfig(flags.node, access, credential);
}

/// Of a machine that has joined before: nothing is asked for again, and what does not fit is told.
Result<> go_on(const JoinFlags& flags, runtime::Runtime& runtime) {
  const std::string file = file_of(flags);
  runtime::Files& files = runtime::system_files();
  const Error other = Error::conflict(
      cat(file,
          " is of another cluster or node: choose another --root-dir, or remove it to join "
          "anew"));
  DIBS_TRY(const auto config, client::Kubeconfig::load(files, {file}));
  DIBS_TRY(client::Access access, config.resolve(files));
  DIBS_TRY(const auto info, net::parse_certificate(access.tls.certificate_pem));
  if (info.common_name != cat("system:node:", node_name(flags.node))) {
    return other.within(cat("--name ", quoted(node_name(flags.node)), ": the certificate is for ",
                            info.common_name));
  }
  if (!flags.ca_cert_hash.empty() && pinned(access.tls.ca_pem, flags.ca_cert_hash).empty()) {
    return other.within("--ca-cert-hash");
  }
  if (info.not_after <= runtime.clock.now()) {
    if (!flags.token.empty()) return join(flags, runtime);
    return Error::unavailable(cat("the certificate in ", file, " ended at ",
                                  format_rfc3339(info.not_after),
                                  ": `dibs token create` on the server's machine prints the "
                                  "command to join again"));
  }
  if (flags.server.empty() || flags.server == access.server) return success();
  // The server has moved, or has several addresses.
  access.server = flags.server;
  return write_node_kubeconfig(flags.node, access,
                               {access.tls.certificate_pem, access.tls.key_pem});
}

Result<JoinFlags> prepare(const JoinFlags& given) {
  DIBS_TRY(JoinFlags flags, checked(given));
  runtime::RealRuntime runtime;
  const bool has_joined = runtime::system_files().exists(file_of(flags));
  DIBS_CHECK(has_joined ? go_on(flags, runtime.runtime()) : join(flags, runtime.runtime()));
  flags.node.kubeconfig = file_of(flags);
  flags.node.joined = true;
  return flags;
}

}  // namespace

Flags join_flags(JoinFlags& flags) {
  Flags out = {
      {"SERVER", &flags.server, "URL of the server, https://HOST:PORT"},
      {"--token", &flags.token, "Bootstrap token, as `dibs token create` prints it"},
      {"--ca-cert-hash", &flags.ca_cert_hash,
       "What the cluster's authority must be: sha256: and the hash of its public key"},
  };
  for (Flag& flag : node_flags(flags.node)) {
    // Both are what joining is about.
    if (flag.name != "--kubeconfig" && flag.name != "--context") out.push_back(std::move(flag));
  }
  return out;
}

int join_node(const JoinFlags& flags) {
  begin_process(flags.node.log_level);
  auto interruption = std::make_optional<Interruption>(kName);
  const auto joined = prepare(flags);
  interruption.reset();
  if (!joined.ok()) return exit_status(kName, joined.error());
  return exit_status(kName, run_agent(joined->node));
}

}  // namespace dibs::cli
