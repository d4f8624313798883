#pragma once
// Who may use a node's port, as the API server sees it: a client certificate of the cluster's CA or
// a token that a TokenReview knows, then a SubjectAccessReview on nodes/<subresource>.
//
// Answers are kept for a while (tokens 2 minutes; allowed 5 minutes, denied 30 seconds), so that a
// scraper does not ask the API server each time. Thread-safe.

#include <map>
#include <string>

#include "base/mutex.h"
#include "client/client.h"
#include "node/streams/node_server.h"
#include "runtime/runtime.h"

namespace dibs::node {

class NodeAccess {
 public:
  /// Both must outlive it.
  NodeAccess(client::Client& client, runtime::Runtime& runtime, std::string node_name);

  Result<Caller> authenticate(const net::Request& request);
  Result<> authorize(const Caller& caller, const std::string& verb, const std::string& subresource);

 private:
  struct KnownToken {
    Caller caller = {};
    bool good = false;
    Time until = {};
  };
  struct KnownAnswer {
    bool allowed = false;
    Time until = {};
  };
  client::Client& client_;
  runtime::Runtime& runtime_;
  std::string node_name_;
  Mutex mutex_;
  std::map<std::string, KnownToken> tokens_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, KnownAnswer> answers_ DIBS_GUARDED_BY(mutex_);
};

/// The caller that a verified client certificate names.
std::optional<Caller> caller_by_certificate(const net::Request& request);

/// What a path of the node's port is, for authorization: "proxy", "log", "stats", "metrics", …
std::string node_subresource(std::string_view path);
/// Any of these sub-resources gives the right: finer ones are covered by the old one for
/// everything.
std::vector<std::string> sufficient_subresources(const std::string& subresource);
Error node_forbidden(const Caller& caller, const std::string& verb, const std::string& subresource);
/// The API's verb of a method.
std::string node_verb(std::string_view method);

}  // namespace dibs::node
