#include "cli/api_flags.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/common_flags.h"
#include "net/jwt.h"

namespace dibs::cli {
namespace {

Result<std::string> read(runtime::Files& files, const std::string& path, std::string_view flag) {
  auto text = files.read(path);
  if (!text.ok()) return text.error().within(flag);
  return text;
}

/// "cert,key" or "cert,key:name,name", as kube-apiserver has it.
struct SniFiles {
  std::string certificate;
  std::string key;
  std::vector<std::string> names;
};
Result<SniFiles> parse_sni(std::string_view text) {
  SniFiles out;
  const auto colon = text.rfind(':');
  const std::string_view files = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    for (const std::string_view name : split(text.substr(colon + 1), ',')) {
      if (!trim(name).empty()) out.names.emplace_back(trim(name));
    }
  }
  const auto parts = split(files, ',');
  if (parts.size() != 2 || trim(parts[0]).empty() || trim(parts[1]).empty()) {
    return Error::bad_request(cat("--tls-sni-cert-key ", quoted(text),
                                  ": must be CERTIFICATE_FILE,KEY_FILE[:NAME,NAME]"));
  }
  out.certificate = trim(parts[0]);
  out.key = trim(parts[1]);
  return out;
}

Result<> check_headers(const std::vector<std::string>& names, std::string_view flag) {
  for (const std::string& name : names) {
    if (trim(name).empty()) return Error::bad_request(cat(flag, ": empty value in the list"));
  }
  return success();
}

struct Other {
  const char* name;
  const char* harmless;  // a value that says how it is; "": none does
  const char* instead;
};
constexpr Other kOthers[] = {
    {"--allow-privileged", "true",
     "privileged pods are allowed; PodSecurity refuses them by label"},
    {"--authentication-token-webhook-config-file", "", "use --authentication-config"},
    {"--authorization-config", "", "requests are authorized by Node and RBAC"},
    {"--authorization-webhook-config-file", "", "requests are authorized by Node and RBAC"},
    {"--bind-address", "", "use --bind HOST:PORT"},
    {"--cert-dir", "", "certificates are in pki of --data-dir; use --tls-cert-file for others"},
    {"--enable-bootstrap-token-auth", "true", "bootstrap tokens are always taken"},
    {"--kubelet-certificate-authority", "", "certificates of nodes are not checked"},
    {"--kubelet-client-certificate", "", "nodes are shown pki/apiserver-kubelet-client.crt"},
    {"--kubelet-client-key", "", "nodes are shown pki/apiserver-kubelet-client.crt"},
    {"--profiling", "false", "there are no profiles"},
    {"--secure-port", "", "use --bind HOST:PORT"},
    {"--service-account-lookup", "true", "accounts are always looked up"},
    {"--service-account-signing-endpoint", "", "use --service-account-signing-key-file"},
};

Result<> check_others(const ApiFlags& flags) {
  for (const Other& one : kOthers) {
    const auto found = flags.others.find(one.name);
    if (found == flags.others.end() || found->second.empty()) continue;
    if (found->second == one.harmless) continue;
    return Error::bad_request(
        cat(one.name, " ", found->second, ": has no effect here: ", one.instead));
  }
  return success();
}

Result<> check_authorization(const std::vector<std::string>& modes) {
  std::vector<std::string> sorted = modes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == std::vector<std::string>{"Node", "RBAC"}) return success();
  return Error::bad_request(cat(
      "--authorization-mode ", join(modes, ","),
      ": must be Node,RBAC: requests are authorized by both, and by nothing else; to allow more, "
      "bind ClusterRoles"));
}

std::vector<std::string> issuers_of(const ApiFlags& flags) {
  return flags.issuers.empty() ? std::vector<std::string>{"https://kubernetes.default.svc"}
                               : flags.issuers;
}

Result<> check_issuers(const std::vector<std::string>& issuers) {
  std::set<std::string> seen;
  for (const std::string& issuer : issuers) {
    if (issuer.empty()) {
      return Error::bad_request("--service-account-issuer: should not be an empty string");
    }
    if (!seen.insert(issuer).second) {
      return Error::bad_request(
          cat("--service-account-issuer ", quoted(issuer), ": is already specified"));
    }
  }
  return success();
}

/// Whether any of the --oidc-* flags says something.
bool has_oidc(const ApiFlags& flags) {
  const server::auth::OidcFlags usual;
  const auto& oidc = flags.oidc;
  return !oidc.issuer_url.empty() || !oidc.client_id.empty() || !flags.oidc_ca_file.empty() ||
         oidc.username_claim != usual.username_claim || !oidc.username_prefix.empty() ||
         !oidc.groups_claim.empty() || !oidc.groups_prefix.empty() ||
         !oidc.required_claims.empty() || oidc.signing_algs != usual.signing_algs;
}

Result<> check_oidc(const ApiFlags& flags) {
  if (!has_oidc(flags)) return success();
  if (!flags.authentication_config.empty()) {
    return Error::bad_request("authentication-config file and oidc-* flags are mutually exclusive");
  }
  if (flags.oidc.issuer_url.empty() || flags.oidc.client_id.empty()) {
    return Error::bad_request(
        "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are "
        "set");
  }
  return success();
}

Result<> check_times(const ApiFlags& flags) {
  if (flags.request_timeout <= Duration(0)) {
    return Error::bad_request("--request-timeout: must be more than 0");
  }
  if (flags.min_request_timeout < 0) {
    return Error::bad_request("--min-request-timeout can not be negative value");
  }
  if (flags.goaway_chance < 0 || flags.goaway_chance > 0.02) {
    return Error::bad_request("--goaway-chance can not be less than 0 or greater than 0.02");
  }
  if (flags.http2_max_streams < 1 || flags.http2_max_streams > 10000) {
    return Error::bad_request("--http2-max-streams-per-connection: must be between 1 and 10000");
  }
  if (flags.event_ttl < std::chrono::seconds(1)) {
    return Error::bad_request("--event-ttl: must be a second or more");
  }
  const Duration life = flags.max_token_life;
  if (life != Duration(0) &&
      (life < std::chrono::hours(1) || life > std::chrono::seconds(std::int64_t{1} << 32))) {
    return Error::bad_request(
        "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds");
  }
  if (!flags.jwks_uri.empty() && !flags.jwks_uri.starts_with("https://")) {
    return Error::bad_request(
        cat("service-account-jwks-uri requires https scheme, parsed as: ", flags.jwks_uri));
  }
  return success();
}

Flags token_flags(ApiFlags& flags) {
  auto& oidc = flags.oidc;
  return {
      {"--service-account-issuer", &flags.issuers,
       "Issuer of service account tokens; may be repeated: new tokens have the first, all are "
       "believed (default: https://kubernetes.default.svc)"},
      {"--service-account-key-file", &flags.account_key_files,
       "PEM of keys that verify service account tokens, beside the one that signs them; may be "
       "repeated",
       kFile},
      {"--service-account-signing-key-file", &flags.account_signing_key_file,
       "PEM of the key that signs them, EC or RSA (default: pki/sa.key of the data folder)", kFile},
      {"--service-account-jwks-uri", &flags.jwks_uri,
       "URL of the keys in the discovery document (default: this server's)"},
      {"--service-account-max-token-expiration", &flags.max_token_life,
       "Longest life of a service account token, an hour at least; 0: as asked for"},
      {"--service-account-extend-token-expiration", &flags.extend_tokens,
       "Let tokens that kubelets ask for go on for a year", kHasValue},
      {"--api-audiences", &flags.audiences,
       "Audiences of this server, with commas between them (default: the issuers)", kCommas},
      {"--anonymous-auth", &flags.anonymous,
       "Let requests without credentials in, as "
       "system:anonymous",
       kHasValue},
      {"--authentication-config", &flags.authentication_config,
       "An AuthenticationConfiguration (apiserver.config.k8s.io/v1): issuers of tokens, and who "
       "needs none",
       kFile},
      {"--oidc-issuer-url", &oidc.issuer_url, "URL of an issuer of OpenID Connect tokens"},
      {"--oidc-client-id", &oidc.client_id, "The audience that its tokens must have"},
      {"--oidc-ca-file", &flags.oidc_ca_file,
       "PEM of the authority of its certificate (default: the machine's)", kFile},
      {"--oidc-username-claim", &oidc.username_claim, "Claim that is the user's name"},
      {"--oidc-username-prefix", &oidc.username_prefix,
       "What is put before it; -: nothing (default: the issuer's URL and #, but for email)"},
      {"--oidc-groups-claim", &oidc.groups_claim, "Claim that is the user's groups"},
      {"--oidc-groups-prefix", &oidc.groups_prefix, "What is put before each of them"},
      {"--oidc-required-claim", &oidc.required_claims,
       "KEY=VALUE that tokens must have; may be repeated"},
      {"--oidc-signing-algs", &oidc.signing_algs,
       "Algorithms that tokens may be signed by, with commas between them", kCommas},
      {"--authorization-mode", &flags.authorization_modes, "Node,RBAC", kCommas},
  };
}

}  // namespace

Flags api_flags(ApiFlags& flags) {
  Flags refused;
  for (const Other& one : kOthers) {
    refused.push_back({one.name, &flags.others[one.name], one.instead, kHidden});
  }
  return both(
      both(token_flags(flags), refused),
      {
          {"--request-timeout", &flags.request_timeout,
           "After how long a request that is no watch is answered with a 504"},
          {"--min-request-timeout", &flags.min_request_timeout,
           "Seconds after which watches end that name no time, or up to twice as many",
           between(0, 1'000'000'000)},
          {"--disable-http2-serving", &flags.disable_http2, "Speak HTTP/1.1 alone", kHasValue},
          {"--http2-max-streams-per-connection", &flags.http2_max_streams,
           "Requests that an HTTP/2 connection may have under way", between(1, 10'000)},
          {"--goaway-chance", &flags.goaway_chance,
           "Share of requests, up to 0.02, after which an HTTP/2 client is sent away, to find "
           "another server",
           between(0, 0.02)},
          {"--event-ttl", &flags.event_ttl, "How long events are kept"},
          {"--shutdown-send-retry-after", &flags.shutdown_send_retry_after,
           "Answer what comes while the server ends with a 429", kHasValue},
          {"--client-ca-file", &flags.client_ca_file,
           "PEM of authorities whose client certificates are believed, beside the cluster's own",
           kFile},
          {"--tls-cert-file", &flags.tls_cert_file,
           "PEM of the server's certificate, with its chain (default: one of the cluster's own)",
           kFile},
          {"--tls-private-key-file", &flags.tls_key_file, "PEM of its key", kFile},
          {"--tls-sni-cert-key", &flags.tls_sni,
           "CERTIFICATE_FILE,KEY_FILE[:NAME,NAME] for clients that ask for the names; may be "
           "repeated"},
          {"--tls-min-version", &flags.tls_min_version,
           "VersionTLS12 or VersionTLS13 (default: VersionTLS12)"},
          {"--tls-cipher-suites", &flags.tls_cipher_suites,
           "Cipher suites by the names of IANA, with commas between them (default: OpenSSL's)",
           kCommas},
          {"--requestheader-client-ca-file", &flags.proxy_ca_file,
           "PEM of authorities of front proxies, beside the cluster's own", kFile},
          {"--requestheader-allowed-names", &flags.proxies.allowed_names,
           "Common names of front proxies' certificates, with commas between them; \"\": any",
           kCommas},
          {"--requestheader-username-headers", &flags.proxies.username_headers,
           "Headers by which front proxies name the user, with commas between them", kCommas},
          {"--requestheader-uid-headers", &flags.proxies.uid_headers, "… his uid", kCommas},
          {"--requestheader-group-headers", &flags.proxies.group_headers, "… his groups", kCommas},
          {"--requestheader-extra-headers-prefix", &flags.proxies.extra_prefixes,
           "… beginnings of headers for what else is known of him", kCommas},
      });
}

bool has_files(const ApiFlags& flags) {
  return !flags.client_ca_file.empty() || !flags.tls_cert_file.empty() || !flags.tls_sni.empty() ||
         !flags.proxy_ca_file.empty() || !flags.authentication_config.empty();
}

Result<> check_api_flags(const ApiFlags& flags) {
  if (flags.tls_cert_file.empty() != flags.tls_key_file.empty()) {
    return Error::bad_request("--tls-cert-file, --tls-private-key-file: give both or none of them");
  }
  if (!flags.tls_min_version.empty() && flags.tls_min_version != "VersionTLS12" &&
      flags.tls_min_version != "VersionTLS13") {
    return Error::bad_request(cat("--tls-min-version ", quoted(flags.tls_min_version),
                                  ": must be VersionTLS12 or VersionTLS13; older ones are not "
                                  "spoken"));
  }
  DIBS_CHECK(check_others(flags));
  DIBS_CHECK(check_authorization(flags.authorization_modes));
  DIBS_CHECK(check_issuers(flags.issuers));
  DIBS_CHECK(check_oidc(flags));
  DIBS_CHECK(check_times(flags));
  for (const std::string& text : flags.tls_sni) DIBS_CHECK(parse_sni(text));
  if (flags.proxies.username_headers.empty()) {
    return Error::bad_request("--requestheader-username-headers: must name a header");
  }
  DIBS_CHECK(check_headers(flags.proxies.username_headers, "--requestheader-username-headers"));
  DIBS_CHECK(check_headers(flags.proxies.group_headers, "--requestheader-group-headers"));
  DIBS_CHECK(check_headers(flags.proxies.extra_prefixes, "--requestheader-extra-headers-prefix"));
  return success();
}

Result<> add_api_options(const ApiFlags& flags, runtime::Files& files, server::Options& options) {
  const std::vector<std::string> issuers = issuers_of(flags);
  options.issuer = issuers[0];
  options.more_issuers.assign(issuers.begin() + 1, issuers.end());
  options.api_audiences = flags.audiences;
  options.max_token_life = flags.max_token_life;
  options.extend_tokens = flags.extend_tokens;
  options.jwks_uri = flags.jwks_uri;
  for (const std::string& file : flags.account_key_files) {
    DIBS_TRY(const std::string pem, read(files, file, "--service-account-key-file"));
    net::JwtVerifier trial;
    if (auto added = trial.add(pem); !added.ok()) {
      return added.error().within(cat("--service-account-key-file ", file));
    }
    append(options.account_verifying_pem, pem, "\n");
  }
  options.request_timeout = flags.request_timeout;
  options.min_watch_time = std::chrono::seconds(flags.min_request_timeout);
  options.event_ttl = flags.event_ttl;
  options.sends_retry_after = flags.shutdown_send_retry_after;
  DIBS_TRY(options.authentication, read_authentication(flags, files));
  return success();
}

Result<server::auth::AuthenticationConfiguration> read_authentication(const ApiFlags& flags,
                                                                      runtime::Files& files) {
  server::auth::AuthenticationConfiguration out;
  const std::vector<std::string> own = issuers_of(flags);
  if (!flags.authentication_config.empty()) {
    DIBS_TRY(const std::string text,
             read(files, flags.authentication_config, "--authentication-config"));
    auto made = server::auth::parse_authentication_configuration(text, own);
    if (!made.ok()) {
      return made.error().within(cat("--authentication-config ", flags.authentication_config));
    }
    out = std::move(made).value();
  } else if (has_oidc(flags)) {
    server::auth::OidcFlags oidc = flags.oidc;
    if (!flags.oidc_ca_file.empty()) {
      DIBS_TRY(oidc.ca_pem, read(files, flags.oidc_ca_file, "--oidc-ca-file"));
    }
    auto made = server::auth::configuration_of_flags(oidc, own);
    if (!made.ok()) return made.error().within("--oidc-issuer-url");
    out = std::move(made).value();
  }
  if (out.anonymous && !flags.anonymous) {
    return Error::bad_request(
        "--anonymous-auth flag cannot be set when anonymous field is configured in authentication "
        "configuration file");
  }
  if (!out.anonymous) out.anonymous = server::auth::AnonymousOptions{.enabled = flags.anonymous};
  return out;
}

Result<ServingFiles> read_serving_files(const ApiFlags& flags, runtime::Files& files,
                                        const server::Credentials& own) {
  ServingFiles out;
  out.client_ca_pem = out.root_ca_pem = own.ca.certificate_pem;
  out.account_key_pem = own.account_key_pem;
  if (!flags.account_signing_key_file.empty()) {
    DIBS_TRY(out.account_key_pem,
             read(files, flags.account_signing_key_file, "--service-account-signing-key-file"));
    if (auto signer = net::JwtSigner::open(out.account_key_pem); !signer.ok()) {
      return signer.error().within("--service-account-signing-key-file");
    }
  }
  if (!flags.client_ca_file.empty()) {
    DIBS_TRY(const std::string more, read(files, flags.client_ca_file, "--client-ca-file"));
    if (net::split_certificates(more).empty()) {
      return Error::invalid(
          cat("--client-ca-file ", flags.client_ca_file, ": no PEM certificate found"));
    }
    out.client_ca_pem += more;
  }
  out.proxies = flags.proxies;
  if (out.proxies.allowed_names == std::vector<std::string>{""}) out.proxies.allowed_names.clear();
  out.proxies.ca_pem = own.front_proxy_ca.certificate_pem;
  if (!flags.proxy_ca_file.empty()) {
    DIBS_TRY(const std::string more,
             read(files, flags.proxy_ca_file, "--requestheader-client-ca-file"));
    if (net::split_certificates(more).empty()) {
      return Error::invalid(cat("--requestheader-client-ca-file ", flags.proxy_ca_file,
                                ": no PEM certificate found"));
    }
    out.proxies.ca_pem += more;
  }

  net::TlsServerOptions& tls = out.tls;
  tls.certificate_pem = own.server.certificate_pem;
  tls.key_pem = own.server.key_pem;
  tls.client_ca_pem = out.client_ca_pem;
  tls.front_proxy_ca_pem = out.proxies.ca_pem;
  tls.only_tls_1_3 = flags.tls_min_version == "VersionTLS13";
  tls.cipher_suites = flags.tls_cipher_suites;
  tls.http2 = !flags.disable_http2;
  for (const std::string& text : flags.tls_sni) {
    DIBS_TRY(SniFiles names, parse_sni(text));
    net::TlsIdentity identity;
    DIBS_TRY(identity.certificate_pem, read(files, names.certificate, "--tls-sni-cert-key"));
    DIBS_TRY(identity.key_pem, read(files, names.key, "--tls-sni-cert-key"));
    identity.names = std::move(names.names);
    tls.by_name.push_back(std::move(identity));
  }
  if (!flags.tls_cert_file.empty()) {
    tls.by_name.push_back(
        {own.server.certificate_pem, own.server.key_pem, {std::string(kOwnName)}});
    DIBS_TRY(tls.certificate_pem, read(files, flags.tls_cert_file, "--tls-cert-file"));
    DIBS_TRY(tls.key_pem, read(files, flags.tls_key_file, "--tls-private-key-file"));
    out.root_ca_pem += tls.certificate_pem;
  }
  return out;
}

}  // namespace dibs::cli
