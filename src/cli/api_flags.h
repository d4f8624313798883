#pragma once
// Flags that kube-apiserver has for certificates and for who somebody is, under the same names.
//
// What stands in files is read here, and read again while the server runs: a certificate or an
// authority that is replaced on the disk counts for the connections that begin after.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/command_line.h"
#include "net/tls.h"
#include "runtime/files.h"
#include "server/auth/issuers.h"
#include "server/auth/request_header.h"
#include "server/credentials.h"
#include "server/options.h"

namespace dibs::cli {

struct ApiFlags {
  std::string client_ca_file;
  std::string tls_cert_file;
  std::string tls_key_file;
  std::vector<std::string> tls_sni;
  std::string tls_min_version;
  std::vector<std::string> tls_cipher_suites;

  std::vector<std::string> account_key_files;
  std::string account_signing_key_file;
  std::vector<std::string> issuers;
  std::vector<std::string> audiences;
  Duration max_token_life{0};
  bool extend_tokens = true;
  std::string jwks_uri;

  bool anonymous = true;
  std::string authentication_config;
  server::auth::OidcFlags oidc;
  std::string oidc_ca_file;
  std::vector<std::string> authorization_modes = {"Node", "RBAC"};

  Duration request_timeout = std::chrono::seconds(60);
  int min_request_timeout = 1800;  // seconds
  Duration event_ttl = std::chrono::hours(1);
  bool shutdown_send_retry_after = false;

  bool disable_http2 = false;
  unsigned http2_max_streams = 100;
  double goaway_chance = 0;

  /// Flags of kube-apiserver that have no effect here, by name, with what was given.
  std::map<std::string, std::string> others;

  std::string proxy_ca_file;
  server::auth::RequestHeaderOptions proxies = {
      .allowed_names = {std::string(server::auth::kFrontProxyClient)}};
};

Flags api_flags(ApiFlags& flags);

/// Whether there is anything to be read again.
bool has_files(const ApiFlags& flags);
/// What needs no file. Errors name the flag.
Result<> check_api_flags(const ApiFlags& flags);

/// What does not change while the server runs. Errors name the flag.
Result<> add_api_options(const ApiFlags& flags, runtime::Files& files, server::Options& options);
/// Who may come in by which tokens, as the files say it now. Errors name the flag.
Result<server::auth::AuthenticationConfiguration> read_authentication(const ApiFlags& flags,
                                                                      runtime::Files& files);

/// The name by which the server is asked for its own certificate where --tls-cert-file has another.
inline constexpr std::string_view kOwnName = "dibs-apiserver";

/// The files of the flags, as they are now, beside what the server has of its own.
struct ServingFiles {
  net::TlsServerOptions tls = {};
  server::auth::RequestHeaderOptions proxies = {};
  std::string client_ca_pem = {};    // of all authorities of clients
  std::string account_key_pem = {};  // signs tokens of service accounts
  std::string root_ca_pem = {};      // what clients need to believe the server
};
Result<ServingFiles> read_serving_files(const ApiFlags& flags, runtime::Files& files,
                                        const server::Credentials& own);

}  // namespace dibs::cli
