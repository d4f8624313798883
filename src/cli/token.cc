#include "cli/token.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "cli/process.h"
#include "client/client.h"
#include "client/https_transport.h"
#include "json/yaml.h"
#include "net/x509.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

using json::Value;

const client::Gvr kSecrets{"", "v1", "secrets"};
const client::Gvr kMaps{"", "v1", "configmaps"};
const client::Gvr kClusterBindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings"};
const client::Gvr kRoles{"rbac.authorization.k8s.io", "v1", "roles"};
const client::Gvr kBindings{"rbac.authorization.k8s.io", "v1", "rolebindings"};
constexpr const char* kRbac = "rbac.authorization.k8s.io";
constexpr const char* kGroup = "system:bootstrappers:dibs:nodes";
constexpr const char* kPublic = "kube-public";
constexpr const char* kInfo = "cluster-info";

constexpr std::size_t kIdSize = 6;
constexpr std::size_t kSecretSize = 16;
constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";

std::string draw(runtime::Random& random, std::size_t size) {
  std::string out;
  while (out.size() < size) out.push_back(kLetters[random.below(kLetters.size())]);
  return out;
}

Value named(const char* kind, const std::string& name) {
  return Value::object({{"apiVersion", std::string(kRbac) + "/v1"},
                        {"kind", kind},
                        {"metadata", Value::object({{"name", name}})}});
}

Value binding(const char* kind, const std::string& name, const char* role_kind,
              const std::string& role, const char* subject_kind, const std::string& subject) {
  Value out = named(kind, name);
  out.set("roleRef", Value::object({{"apiGroup", kRbac}, {"kind", role_kind}, {"name", role}}));
  out.set("subjects", Value::array({Value::object(
                          {{"apiGroup", kRbac}, {"kind", subject_kind}, {"name", subject}})}));
  return out;
}

/// What is there stays as it is: somebody may have wanted it otherwise.
Result<> ensure(client::Client& client, const client::Gvr& gvr, const char* name_space,
                const Value& object) {
  const auto made = client.create(gvr, name_space, object);
  if (made.ok() || made.error().code() == Code::already_exists) return success();
  return made.error();
}

Result<> ensure_rights(client::Client& client) {
  const auto of_group = [](const char* name, const char* role, const char* group) {
    return binding("ClusterRoleBinding", name, "ClusterRole", role, "Group", group);
  };
  const std::string requests = "system:certificates.k8s.io:certificatesigningrequests:";
  DIBS_CHECK(ensure(client, kClusterBindings, "",
                    of_group("dibs:join-nodes", "system:node-bootstrapper", kGroup)));
  DIBS_CHECK(ensure(client, kClusterBindings, "",
                    of_group("dibs:approve-nodes", (requests + "nodeclient").c_str(), kGroup)));
  DIBS_CHECK(
      ensure(client, kClusterBindings, "",
             of_group("dibs:renew-nodes", (requests + "selfnodeclient").c_str(), "system:nodes")));
  Value role = named("Role", "dibs:cluster-info");
  role.set("rules", Value::array({Value::object({{"apiGroups", Value::array({""})},
                                                 {"resources", Value::array({"configmaps"})},
                                                 {"resourceNames", Value::array({kInfo})},
                                                 {"verbs", Value::array({"get"})}})}));
  DIBS_CHECK(ensure(client, kRoles, kPublic, role));
  return ensure(client, kBindings, kPublic,
                binding("RoleBinding", "dibs:cluster-info", "Role", "dibs:cluster-info", "User",
                        "system:anonymous"));
}

/// Whom machines may believe that know the hash of the authority and nothing else.
Result<> ensure_info(client::Client& client, const client::Access& access,
                     const std::string& server) {
  Value cluster = Value::object(
      {{"server", server}, {"certificate-authority-data", base64_encode(access.tls.ca_pem)}});
  if (!access.tls.server_name.empty()) cluster.set("tls-server-name", access.tls.server_name);
  const std::string text = json::write_yaml(Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Config"},
       {"clusters", Value::array({Value::object({{"name", ""}, {"cluster", cluster}})})}}));
  const Value data = Value::object({{"data", Value::object({{"kubeconfig", text}})}});
  const auto there = client.get(kMaps, kPublic, kInfo);
  if (there.ok()) {
    if ((*there)["data"]["kubeconfig"].as_string() == text) return success();
    DIBS_CHECK(client.patch(kMaps, kPublic, kInfo, client::PatchType::merge, data));
    return success();
  }
  if (there.error().code() != Code::not_found) return there.error();
  Value map = data;
  map.set("apiVersion", "v1");
  map.set("kind", "ConfigMap");
  map.set("metadata", Value::object({{"name", kInfo}}));
  DIBS_CHECK(client.create(kMaps, kPublic, map));
  return success();
}

Result<std::string> make_token(client::Client& client, runtime::Runtime& runtime, Duration life) {
  const std::string id = draw(runtime.random, kIdSize);
  const std::string secret = draw(runtime.random, kSecretSize);
  Value data = Value::object({{"description", "for `dibs node join`"},
                              {"token-id", id},
                              {"token-secret", secret},
                              {"usage-bootstrap-authentication", "true"},
                              {"usage-bootstrap-signing", "true"},
                              {"auth-extra-groups", kGroup}});
  if (life > Duration(0)) data.set("expiration", format_rfc3339(runtime.clock.now() + life));
  DIBS_CHECK(client.create(
      kSecrets, "kube-system",
      Value::object({{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", Value::object({{"name", cat("bootstrap-token-", id)}})},
                     {"type", "bootstrap.kubernetes.io/token"},
                     {"stringData", std::move(data)}})));
  return cat(id, ".", secret);
}

/// Where other machines find the server.
Result<std::string> server_for_others(const TokenFlags& flags, const client::Access& access) {
  auto url = parse_server_url(flags.server.empty() ? access.server : flags.server);
  if (!url.ok()) return url.error().within("--server");
  if (!flags.server.empty()) return url;
  const std::string host = url->substr(std::string_view("https://").size());
  if (host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")) {
    return Error::bad_request(
        cat("no other machine reaches ", *url,
            ": start the server with --bind 0.0.0.0:6443 --advertise-address IP, or name it by "
            "--server"));
  }
  return url;
}

Result<> create(const TokenFlags& flags) {
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  DIBS_TRY(const std::string server, server_for_others(flags, access));
  const auto authorities = net::split_certificates(access.tls.ca_pem);
  if (authorities.empty()) {
    return Error::bad_request("--kubeconfig: has no authority of the cluster for others to check");
  }
  DIBS_TRY(const std::string hash, net::public_key_hash(authorities.front()));
  runtime::RealRuntime runtime;
  DIBS_TRY(const auto transport,
           client::make_https_transport(access, runtime::system_files(), runtime.runtime()));
  client::Client client(*transport);
  DIBS_CHECK(ensure_rights(client));
  DIBS_CHECK(ensure_info(client, access, server));
  DIBS_TRY(const std::string token, make_token(client, runtime.runtime(), flags.life));
  std::printf("dibs node join %s --token %s --ca-cert-hash %s\n", server.c_str(), token.c_str(),
              hash.c_str());
  return success();
}

}  // namespace

int create_token(const TokenFlags& flags) { return exit_status("token create", create(flags)); }

bool is_bootstrap_token(std::string_view text) {
  const auto is_part = [](std::string_view part) {
    return part.find_first_not_of(kLetters) == std::string_view::npos;
  };
  return text.size() == kIdSize + 1 + kSecretSize && text[kIdSize] == '.' &&
         is_part(text.substr(0, kIdSize)) && is_part(text.substr(kIdSize + 1));
}

Result<std::string> parse_server_url(std::string_view text) {
  constexpr std::string_view kScheme = "https://";
  const std::string_view place = text.starts_with(kScheme) ? text.substr(kScheme.size()) : text;
  const auto colon = place.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? "" : place.substr(colon + 1);
  const bool good = colon != std::string_view::npos && colon > 0 && !port.empty() &&
                    port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos &&
                    place.find_first_of("/@? ") == place.npos;
  if (!good) {
    return Error::bad_request(
        cat(quoted(text), ": must be https://HOST:PORT, for example https://10.0.0.11:6443"));
  }
  return cat(kScheme, place);
}

}  // namespace dibs::cli
