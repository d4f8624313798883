#pragma once
// Who a node is to the API server: a key of its own, and a certificate for it that the cluster has
// signed, for the user system:node:NAME of the group system:nodes.
//
// It is asked for by a CertificateSigningRequest, first with a bootstrap token, later as the node,
// long before it ends. The key never leaves the machine.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"
#include "net/x509.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// The request to create. `life` zero: as long as the cluster gives.
Result<json::Value> certificate_request(const std::string& node, const std::string& key_pem,
                                        Duration life, runtime::Random& random);
/// What came of it: PEM, or nothing yet. Errors: denied or failed, with the reason.
Result<std::optional<std::string>> issued_certificate(const json::Value& request);

/// Keeps a node's certificate from running out: when less than a third of its life is left another
/// one is asked for, with another key. What fails is tried again every minute.
///
/// Nothing waits. Thread-safe.
class CertificateKeeper {
 public:
  struct Options {
    std::string node = {};
    net::Credential credential = {};  // as of now
    Duration life{0};                 // of those that are asked for
    /// Takes a new one, on the executor. One that it does not take is asked for again.
    std::function<Result<>(const net::Credential&)> renewed = {};
  };
  /// `client`, of the node, and `runtime` must outlive it.
  CertificateKeeper(client::Client& client, runtime::Runtime& runtime, Options options);
  /// As stop().
  ~CertificateKeeper();
  CertificateKeeper(const CertificateKeeper&) = delete;
  CertificateKeeper& operator=(const CertificateKeeper&) = delete;

  void start();
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
