#include "server/credentials.h"

#include <algorithm>

#include "base/strings.h"
#include "json/yaml.h"
#include "server/auth/request_header.h"

namespace dibs::server {
namespace {

constexpr Duration kCaLife = std::chrono::hours(24 * 3650);
constexpr Duration kLife = std::chrono::hours(24 * 365);
constexpr Duration kSkew = std::chrono::minutes(5);

class Folder {
 public:
  Folder(runtime::Files& files, runtime::Clock& clock, std::string path)
      : files_(files), clock_(clock), path_(std::move(path)) {}

  /// Both files, or nothing when either is missing.
  Result<std::optional<net::Credential>> read(const std::string& name) {
    if (!files_.exists(file(name, ".crt")) || !files_.exists(file(name, ".key"))) {
      return std::optional<net::Credential>();
    }
    net::Credential out;
    DIBS_TRY(out.certificate_pem, files_.read(file(name, ".crt")));
    DIBS_TRY(out.key_pem, files_.read(file(name, ".key")));
    return std::optional<net::Credential>(std::move(out));
  }

  Result<> write(const std::string& name, const net::Credential& credential) {
    DIBS_CHECK(files_.write(file(name, ".key"), credential.key_pem, 0600));
    return files_.write(file(name, ".crt"), credential.certificate_pem, 0644);
  }

  net::Validity validity(Duration life) const {
    Time now = clock_.now();
    return {now - kSkew, now + life};
  }

  /// Still good, with a third of its life ahead, and issued by this CA.
  bool fresh(const net::Credential& credential, const net::Credential& ca,
             const std::vector<std::string>& names) const {
    auto info = net::parse_certificate(credential.certificate_pem);
    if (!info.ok() || !net::is_issued_by(credential.certificate_pem, ca.certificate_pem))
      return false;
    for (const std::string& name : names) {
      if (name == "0.0.0.0" || name == "::" || name.empty()) continue;
      if (std::find(info->dns_names.begin(), info->dns_names.end(), name) ==
              info->dns_names.end() &&
          std::find(info->ip_addresses.begin(), info->ip_addresses.end(), name) ==
              info->ip_addresses.end()) {
        return false;
      }
    }
    Duration life = info->not_after - info->not_before;
    return info->not_after - clock_.now() > life / 3;
  }

  bool lasts(const net::Credential& authority) const {
    auto info = net::parse_certificate(authority.certificate_pem);
    return info.ok() && info->not_after - clock_.now() > kLife;
  }

  std::string file(const std::string& name, const char* ending) const {
    return cat(path_, "/", name, ending);
  }

 private:
  runtime::Files& files_;
  runtime::Clock& clock_;
  std::string path_;
};

/// An earlier release put this certificate into system:masters.
bool has_no_group(const net::Credential& credential) {
  auto info = net::parse_certificate(credential.certificate_pem);
  return info.ok() && info->organizations.empty();
}

struct Authority {
  net::Credential ca;
  std::string account_key_pem;
};

/// A certificate and two keys, and nothing else.
Result<Authority> read_authority(std::string_view text) {
  const Error wrong = Error::invalid(
      "must be what `dibs pki export` prints: a certificate and two private keys, as PEM");
  std::vector<std::string> blocks;
  text = trim(text);
  while (!text.empty()) {
    constexpr std::string_view kEnd = "-----END ";
    const auto end = text.find(kEnd);
    const auto line = end == std::string_view::npos ? end : text.find("-----", end + kEnd.size());
    if (!text.starts_with("-----BEGIN ") || line == std::string_view::npos) return wrong;
    blocks.push_back(cat(text.substr(0, line + 5), "\n"));
    text = trim(text.substr(line + 5));
  }
  const auto is = [&](std::size_t i, std::string_view label) {
    const std::string_view first = std::string_view(blocks[i]).substr(0, blocks[i].find('\n'));
    return trim(first).ends_with(cat(label, "-----"));
  };
  if (blocks.size() != 3 || !is(0, "BEGIN CERTIFICATE") || !is(1, " PRIVATE KEY") ||
      !is(2, " PRIVATE KEY")) {
    return wrong;
  }
  return Authority{{blocks[0], blocks[1]}, blocks[2]};
}

}  // namespace

Result<Credentials> load_credentials(runtime::Files& files, runtime::Clock& clock,
                                     const std::string& folder,
                                     const std::vector<std::string>& names) {
  DIBS_CHECK(files.make_dirs(folder, 0700));
  Folder disk(files, clock, folder);
  Credentials out;

  DIBS_TRY(auto ca, disk.read("ca"));
  if (ca) {
    out.ca = std::move(*ca);
    auto info = net::parse_certificate(out.ca.certificate_pem);
    if (!info.ok()) return info.error().within(disk.file("ca", ".crt"));
    if (info->not_after < clock.now()) {
      return Error::invalid(cat(disk.file("ca", ".crt"),
                                ": expired; move it and ca.key away to make a new one, then hand "
                                "out the new kubeconfig"));
    }
  } else {
    DIBS_TRY(out.ca, net::make_ca("dibs-ca", disk.validity(kCaLife)));
    DIBS_CHECK(disk.write("ca", out.ca));
  }

  std::vector<std::string> all = {"localhost",
                                  "127.0.0.1",
                                  "::1",
                                  "kubernetes",
                                  "kubernetes.default",
                                  "kubernetes.default.svc",
                                  "kubernetes.default.svc.cluster.local"};
  for (const std::string& name : names) {
    if (name == "0.0.0.0" || name == "::" || name.empty())
      continue;  // everywhere: no name of one server
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  DIBS_TRY(auto server, disk.read("server"));
  if (server && disk.fresh(*server, out.ca, names)) {
    out.server = std::move(*server);
  } else {
    DIBS_TRY(out.server,
             net::issue_server_certificate(out.ca, "dibs-apiserver", all, disk.validity(kLife)));
    DIBS_CHECK(disk.write("server", out.server));
  }

  DIBS_TRY(auto admin, disk.read("admin"));
  if (admin && disk.fresh(*admin, out.ca, {})) {
    out.admin = std::move(*admin);
  } else {
    DIBS_TRY(out.admin, net::issue_client_certificate(out.ca, "kubernetes-admin",
                                                      {"system:masters"}, disk.validity(kLife)));
    DIBS_CHECK(disk.write("admin", out.admin));
  }

  DIBS_TRY(auto node_client, disk.read("apiserver-kubelet-client"));
  if (node_client && disk.fresh(*node_client, out.ca, {}) && has_no_group(*node_client)) {
    out.node_client = std::move(*node_client);
  } else {
    DIBS_TRY(out.node_client, net::issue_client_certificate(out.ca, std::string(kNodeClientUser),
                                                            {}, disk.validity(kLife)));
    DIBS_CHECK(disk.write("apiserver-kubelet-client", out.node_client));
  }

  DIBS_TRY(auto proxy_ca, disk.read("front-proxy-ca"));
  if (proxy_ca && disk.lasts(*proxy_ca)) {
    out.front_proxy_ca = std::move(*proxy_ca);
  } else {
    DIBS_TRY(out.front_proxy_ca, net::make_ca("front-proxy-ca", disk.validity(kCaLife)));
    DIBS_CHECK(disk.write("front-proxy-ca", out.front_proxy_ca));
  }
  DIBS_TRY(auto proxy_client, disk.read("front-proxy-client"));
  if (proxy_client && disk.fresh(*proxy_client, out.front_proxy_ca, {})) {
    out.front_proxy_client = std::move(*proxy_client);
  } else {
    DIBS_TRY(out.front_proxy_client,
             net::issue_client_certificate(out.front_proxy_ca, auth::kFrontProxyClient, {},
                                           disk.validity(kLife)));
    DIBS_CHECK(disk.write("front-proxy-client", out.front_proxy_client));
  }

  std::string key_file = cat(folder, "/sa.key");
  if (files.exists(key_file)) {
    DIBS_TRY(out.account_key_pem, files.read(key_file));
  } else {
    DIBS_TRY(out.account_key_pem, net::make_private_key());
    DIBS_CHECK(files.write(key_file, out.account_key_pem, 0600));
  }
  return out;
}

Result<std::string> authority_of(runtime::Files& files, const std::string& folder) {
  const std::string file = cat(folder, "/ca.crt");
  if (!files.exists(file)) {
    return Error::not_found(cat(file, ": there is none; a server makes it at its first start"));
  }
  return files.read(file);
}

std::vector<std::string> credential_files() {
  std::vector<std::string> files = {"sa.key"};
  for (const char* name : {"ca", "server", "admin", "apiserver-kubelet-client", "front-proxy-ca",
                           "front-proxy-client"}) {
    for (const char* ending : {".crt", ".key"}) files.push_back(cat(name, ending));
  }
  return files;
}

Result<std::string> export_authority(runtime::Files& files, const std::string& folder) {
  std::string out;
  DIBS_TRY(out, authority_of(files, folder));
  for (const char* name : {"/ca.key", "/sa.key"}) {
    DIBS_TRY(const std::string key, files.read(cat(folder, name)));
    out += key;
  }
  return out;
}

Result<> import_authority(runtime::Files& files, runtime::Clock& clock, const std::string& folder,
                          std::string_view pem) {
  DIBS_TRY(const Authority given, read_authority(pem));
  DIBS_TRY(const auto info, net::parse_certificate(given.ca.certificate_pem));
  if (!info.is_ca || info.not_after < clock.now()) {
    return Error::invalid(info.is_ca ? "the authority has expired" : "it is no authority");
  }
  // It can issue with its key.
  const net::Validity trial{clock.now(), clock.now() + kSkew};
  DIBS_CHECK(net::issue_client_certificate(given.ca, "trial", {}, trial));
  if (!net::is_private_key(given.account_key_pem)) {
    return Error::invalid("the second key cannot be read");
  }

  struct File {
    const char* name;
    const std::string& content;
    unsigned mode;
  };
  // The certificate last: without it the others are not looked at.
  const File parts[] = {{"/sa.key", given.account_key_pem, 0600},
                        {"/ca.key", given.ca.key_pem, 0600},
                        {"/ca.crt", given.ca.certificate_pem, 0644}};
  for (const File& part : parts) {
    const std::string path = folder + part.name;
    if (!files.exists(path)) continue;
    DIBS_TRY(const std::string there, files.read(path));
    if (there == part.content) continue;
    return Error(Code::conflict,
                 cat(path,
                     ": is another one: this folder belongs to another cluster; give "
                     "--data-dir an empty one, or move ",
                     folder, " away"));
  }
  DIBS_CHECK(files.make_dirs(folder, 0700));
  for (const File& part : parts) {
    DIBS_CHECK(files.write(folder + part.name, part.content, part.mode));
  }
  return success();
}

Result<net::Credential> issue_client(runtime::Files& files, runtime::Clock& clock,
                                     const std::string& folder, std::string_view user,
                                     const std::vector<std::string>& groups) {
  net::Credential ca;
  DIBS_TRY(ca.certificate_pem, authority_of(files, folder));
  DIBS_TRY(ca.key_pem, files.read(cat(folder, "/ca.key")));
  return net::issue_client_certificate(ca, user, groups,
                                       Folder(files, clock, folder).validity(kLife));
}

std::string make_kubeconfig(std::string_view ca_pem, std::string_view name,
                            const net::Credential& client, std::string_view server_url,
                            std::string_view server_name) {
  using json::Value;
  Value cluster = Value::object(
      {{"server", server_url}, {"certificate-authority-data", base64_encode(ca_pem)}});
  if (!server_name.empty()) cluster.set("tls-server-name", server_name);
  Value user = Value::object({{"client-certificate-data", base64_encode(client.certificate_pem)},
                              {"client-key-data", base64_encode(client.key_pem)}});
  Value context = Value::object({{"cluster", name}, {"user", name}});
  const auto named = [&](std::string_view what, Value value) {
    return Value::array({Value::object({{"name", name}, {what, std::move(value)}})});
  };
  return json::write_yaml(Value::object({{"apiVersion", "v1"},
                                         {"kind", "Config"},
                                         {"clusters", named("cluster", std::move(cluster))},
                                         {"users", named("user", std::move(user))},
                                         {"contexts", named("context", std::move(context))},
                                         {"current-context", name}}));
}

}  // namespace dibs::server
