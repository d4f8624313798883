#pragma once
// What an API server is told at its start.

#include <string>
#include <vector>

namespace dibs::server {

struct Options {
  std::string release = "1.37";
  std::string issuer = "https://kubernetes.default.svc";
  std::string service_range = "10.0.0.0/24";
  /// Contents of a --token-auth-file: token,user,uid,"group,group" a line.
  std::string static_tokens;
  /// PEM of the key that signs service account tokens, and of what else may verify them.
  std::string account_key_pem;
  /// PEM of the CA that clients are given (kube-root-ca.crt).
  std::string ca_pem;
  /// host:port that clients reach, for discovery and the kubernetes Service.
  std::string advertise = "127.0.0.1:6443";
};

}  // namespace dibs::server
