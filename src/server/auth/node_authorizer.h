#pragma once
// What a node may read and write: its own objects, and what the pods bound to it need.
//
// A graph of objects in memory, brought up to date object by object: a pod stands between its node
// and the secrets, config maps, accounts and claims it names; a volume between a claim and the
// secrets it names. A node may get what a path leads to from it. Where this authorizer has no
// opinion it may say why.
//
// Thread-safe: decisions run beside each other, changes wait for them.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rw_lock.h"
#include "json/value.h"
#include "server/auth/attributes.h"
#include "server/auth/rule.h"

namespace dibs::server::auth {

/// The name of the node that the user is, "" for a node that does not say; nullopt for any other
/// user.
std::optional<std::string> node_identity(const UserInfo& user);

class NodeAuthorizer {
 public:
  /// `release` is the minor number of the release to answer as: old ones let every node read every
  /// claim.
  explicit NodeAuthorizer(int release = 37);

  /// A Pod, PersistentVolume, VolumeAttachment, ResourceSlice or PodCertificateRequest as it is
  /// now; other kinds are ignored.
  void upsert(const Value& object);
  void remove(std::string_view kind, std::string_view name_space, std::string_view name);

  /// `reason` may be set without `allowed`: others may still allow it.
  Decision authorize(const RequestAttributes& attributes) const;

 private:
  /// resource, namespace, name
  struct Id {
    std::string resource;
    std::string name_space;
    std::string name;
    friend auto operator<=>(const Id&, const Id&) = default;
  };
  struct Pod {
    std::string node;
    std::vector<Id> needs;
  };
  struct Volume {
    Id claim;
    std::vector<Id> secrets;
  };

  void put_pod(const Value& pod);
  void drop_pod(const Id& id);
  void put_volume(const Value& volume);
  void drop_volume(const std::string& name);
  bool needs(const std::string& node, const Id& id) const;
  bool has_path(const std::string& node, const Id& id) const;

  Decision authorize_path(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_get(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_read(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_account(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_slice(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_certificate(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_pod(const std::string& node, const RequestAttributes& what) const;

  const bool claims_by_graph_;
  std::vector<PolicyRule> rules_;  // of all nodes, for what is not judged by relation

  mutable RwLock mutex_;
  // All guarded by mutex_.
  std::map<Id, Pod> pods_;
  std::map<Id, std::map<std::string, int>> needed_by_;  // node to number of pods
  std::map<std::string, Volume> volumes_;
  std::map<Id, std::set<std::string>> volumes_of_secret_;
  std::map<Id, std::string> node_of_;  // of objects that name their node
};

}  // namespace dibs::server::auth
