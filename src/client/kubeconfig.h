#pragma once
// kubeconfig files: how to reach a cluster and who one is there.
//
// Several files merge as kubectl merges them: of clusters, users and contexts with one name the
// first wins, and so does the first current context. File names inside an entry are relative to the
// file that holds it.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "net/tls.h"
#include "runtime/files.h"

namespace dibs::client {

/// What a transport needs to know, with files read and data decoded.
struct Access {
  std::string server = {};  // "https://127.0.0.1:6443"
  net::TlsClientOptions tls = {};
  std::string token = {};
  std::string token_file = {};  // wins over `token`; read again as it is renewed
  std::string username = {};    // basic authentication
  std::string password = {};
  std::string impersonate_user = {};
  std::vector<std::string> impersonate_groups = {};
  std::string impersonate_uid = {};
  std::string default_namespace = "default";
};

class Kubeconfig {
 public:
  /// An empty one.
  Kubeconfig();

  /// `folder` is where relative names start. Errors: invalid.
  static Result<Kubeconfig> parse(std::string_view text, const std::string& folder);
  /// Reads and merges; files that do not exist are left out unless there is only one name.
  static Result<Kubeconfig> load(runtime::Files& files, const std::vector<std::string>& paths);
  /// The files to load: the explicit one, else the list in $KUBECONFIG, else $HOME/.kube/config.
  /// The environment is the caller's to read.
  static std::vector<std::string> paths(std::string_view explicit_path, std::string_view variable,
                                        std::string_view home);

  /// Adds the entries of `other` whose names are not here yet.
  void merge(const Kubeconfig& other);

  /// `context` "" is the current one. Errors: not_found and invalid, naming the entry.
  Result<Access> resolve(runtime::Files& files, std::string_view context = "") const;

  std::string current_context() const;

 private:
  struct Entry {
    std::string name;
    json::Value body;
    std::string folder;
  };
  static const Entry* find(const std::vector<Entry>& entries, std::string_view name);

  json::Value document_;  // without the lists below
  std::vector<Entry> clusters_;
  std::vector<Entry> users_;
  std::vector<Entry> contexts_;
};

/// A service account's access inside a pod: the token, CA and namespace files that are mounted
/// there and the environment's KUBERNETES_SERVICE_HOST and _PORT. Errors: not_found outside of a
/// pod.
Result<Access> in_cluster_access(runtime::Files& files, std::string_view host,
                                 std::string_view port);

/// The cluster of a program, as kubectl finds it: what its flags name, else KUBECONFIG, else the
/// home folder's file, else that of the pod that it runs in. `variable` gives the value of an
/// environment variable, "" for none.
Result<Access> find_access(runtime::Files& files, const std::string& kubeconfig,
                           const std::string& context,
                           const std::function<std::string(const char*)>& variable);

}  // namespace dibs::client
