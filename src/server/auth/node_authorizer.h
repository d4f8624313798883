#pragma once
// What a node may read and write: its own objects, and what the pods bound to it need.
//
// A graph of objects in memory, brought up to date object by object: a pod stands between its node
// and the secrets, config maps, accounts and claims it names; a volume between a claim and the
// secrets it names. A node may get what a path leads to from it. Where this authorizer has no
// opinion it may say why.
//
// Thread-safe: decisions run beside each other, changes wait for them.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/release.h"
#include "json/value.h"
#include "server/auth/attributes.h"
#include "server/auth/rule.h"

namespace dibs::server::auth {

/// The name of the node that the user is, "" for a node that does not say; nullopt for any other
/// user.
std::optional<std::string> node_identity(const UserInfo& user);
/// A node asks for what a pod needs, or writes about it, while the pod goes elsewhere: then it is
/// refused without a fault of its own.
bool may_have_lost_a_pod(const UserInfo& user, std::string_view resource, std::string_view refusal);

class NodeAuthorizer {
 public:
  /// `release` is the minor number of the release to answer as: old ones let every node read every
  /// claim.
  explicit NodeAuthorizer(int release = kNewestRelease);

  /// A Pod, PersistentVolume, VolumeAttachment, ResourceSlice or PodCertificateRequest as it is
  /// now; other kinds are ignored.
  void upsert(const Value& object);
  void remove(std::string_view kind, std::string_view name_space, std::string_view name);

  /// `reason` may be set without `allowed`: others may still allow it.
  Decision authorize(const RequestAttributes& attributes) const;

 private:
  /// "resource/namespace/name"
  using Id = std::string;
  /// A node's name, held once for all that name it.
  using NodeNames = std::unordered_map<std::string, std::size_t>;  // number of uses
  using NodeName = NodeNames::value_type*;

  /// The nodes whose pods need an object. Most objects are of one pod, so that has a place of its
  /// own.
  struct Users {
    NodeName node = nullptr;
    std::uint32_t pods = 0;
    std::unique_ptr<std::unordered_map<NodeName, std::uint32_t>> others;
  };
  using NeededObject = std::unordered_map<Id, Users>::value_type;
  struct Pod {
    NodeName node = nullptr;
    std::vector<NeededObject*> needs;
  };
  struct Volume {
    Id claim;
    std::vector<Id> secrets;
  };

  NodeName hold_name(std::string_view node) DIBS_REQUIRES(mutex_);
  void drop_name(NodeName node) DIBS_REQUIRES(mutex_);
  void put_pod(const Value& pod) DIBS_REQUIRES(mutex_);
  void drop_pod(const std::string& key) DIBS_REQUIRES(mutex_);
  void need(Pod& pod, Id id) DIBS_REQUIRES(mutex_);
  void let_go(NeededObject& object, NodeName node) DIBS_REQUIRES(mutex_);
  void put_volume(const Value& volume) DIBS_REQUIRES(mutex_);
  void drop_volume(const std::string& name) DIBS_REQUIRES(mutex_);
  void put_owned(Id id, std::string_view node) DIBS_REQUIRES(mutex_);
  void drop_owned(const Id& id) DIBS_REQUIRES(mutex_);
  bool needs(NodeName node, const Id& id) const DIBS_REQUIRES_SHARED(mutex_);
  bool has_path(const std::string& node, const RequestAttributes& what) const;

  Decision authorize_path(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_get(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_read(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_account(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_slice(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_certificate(const std::string& node, const RequestAttributes& what) const;
  Decision authorize_pod(const std::string& node, const RequestAttributes& what) const;

  const bool claims_by_graph_;
  std::vector<PolicyRule> rules_;  // of all nodes, for what is not judged by relation

  mutable SharedMutex mutex_;
  NodeNames node_names_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Pod> pods_ DIBS_GUARDED_BY(mutex_);  // by "namespace/name"
  std::unordered_map<Id, Users> needed_by_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Volume> volumes_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<Id, std::set<std::string>> volumes_of_secret_ DIBS_GUARDED_BY(mutex_);
  std::unordered_map<Id, NodeName> node_of_
      DIBS_GUARDED_BY(mutex_);  // of objects that name their node
};

}  // namespace dibs::server::auth
