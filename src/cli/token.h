#pragma once
// `dibs token create`: a bootstrap token, and the command by which another machine joins with it.
//
// It also makes what a cluster needs for that and does not begin with: the right to ask for a
// node's certificate and to have it approved, and the ConfigMap kube-public/cluster-info, which
// everybody may read.

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace dibs::cli {

struct TokenFlags {
  std::string kubeconfig = {};
  std::string context = {};
  std::string server = {};  // "": that of the kubeconfig
  Duration life = std::chrono::hours(24);
};

/// Prints the command. Returns the exit status.
int create_token(const TokenFlags& flags);

/// "abcdef.0123456789abcdef"
bool is_bootstrap_token(std::string_view text);

/// "https://HOST:PORT" of it, with or without the scheme. Errors: bad_request, without a flag.
Result<std::string> parse_server_url(std::string_view text);

}  // namespace dibs::cli
