#pragma once
// Who may do what, by roles and bindings.
//
// An index of all roles and bindings in memory, brought up to date object by object. A request is
// allowed by any rule of a role that a binding gives to its user or one of his groups: cluster
// bindings count everywhere, the others in their own namespace. Bindings are looked at by name, so
// that the reason given for a decision is always the same one. A ClusterRole with an
// aggregationRule has the rules of those it selects.
//
// What a cluster binding allows whatever the object's name is kept with its reason until a role or
// binding changes: the parts of a cluster ask the same few questions all day.
//
// Thread-safe: decisions run beside each other, changes wait for them.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "json/value.h"
#include "server/auth/attributes.h"
#include "server/auth/rule.h"

namespace dibs::server::auth {

class Rbac {
 public:
  /// A Role, ClusterRole, RoleBinding or ClusterRoleBinding as it is now; other kinds are ignored.
  void upsert(const Value& object);
  void remove(std::string_view kind, std::string_view name_space, std::string_view name);

  Decision authorize(const RequestAttributes& attributes) const;

  /// All rules that bind the user in the namespace ("" for those of the cluster alone). `missing`
  /// gets the roles that bindings name and that are not there.
  std::vector<PolicyRule> rules_for(const UserInfo& user, std::string_view name_space,
                                    std::vector<std::string>* missing = nullptr) const;
  /// The rules of a role that a binding in the namespace names. Errors: not_found.
  Result<std::vector<PolicyRule>> rules_of_role(const Value& role_ref,
                                                std::string_view name_space) const;

 private:
  struct Role {
    std::vector<PolicyRule> rules;
    Value raw;        // rules as they were written
    Value labels;     // of a ClusterRole
    Value selectors;  // of its aggregationRule; null without one
  };
  struct Subject {
    std::string kind;
    std::string name;
    std::string name_space;
  };
  struct Binding {
    std::string name;
    std::string name_space;  // "" for a ClusterRoleBinding
    bool to_cluster_role = true;
    std::string role;
    std::vector<Subject> subjects;
  };
  using RolePtr = std::shared_ptr<const Role>;
  using BindingPtr = std::shared_ptr<const Binding>;
  using Key = std::pair<std::string, std::string>;  // namespace, name
  /// Calls with each rule, and with null and a fault for a role that is not there; false ends it.
  using Visit = std::function<bool(const Binding*, const Subject*, const PolicyRule*,
                                   const std::string& fault)>;

  /// Looks through the rules; `keep` tells whether the answer is the same for every name and
  /// namespace.
  Decision look_through(const RequestAttributes& attributes, bool& keep) const
      DIBS_REQUIRES_SHARED(mutex_);
  void forget_answers() DIBS_REQUIRES(mutex_);
  void put_role(bool is_cluster, const Key& key, const Value& object) DIBS_REQUIRES(mutex_);
  void put_binding(const Key& key, const Value& object) DIBS_REQUIRES(mutex_);
  void drop_binding(const Key& key) DIBS_REQUIRES(mutex_);
  void aggregate() DIBS_REQUIRES(mutex_);
  std::vector<const Binding*> bindings_for(const UserInfo& user,
                                           const std::string& name_space) const
      DIBS_REQUIRES_SHARED(mutex_);
  const Role* role_of(const Binding& binding, std::string& fault) const
      DIBS_REQUIRES_SHARED(mutex_);
  void visit(const UserInfo& user, std::string_view name_space, const Visit& visitor) const
      DIBS_REQUIRES_SHARED(mutex_);

  mutable SharedMutex mutex_;
  /// Cluster roles have the namespace "".
  std::map<Key, RolePtr> roles_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, RolePtr> aggregated_ DIBS_GUARDED_BY(mutex_);
  std::map<Key, BindingPtr> bindings_ DIBS_GUARDED_BY(mutex_);
  /// "user:x", "group:x" to the bindings that name it, by their namespace.
  std::map<std::string, std::map<std::string, std::set<std::string>>, std::less<>> by_subject_
      DIBS_GUARDED_BY(mutex_);
  /// Taken inside of `mutex_`.
  mutable Mutex answers_mutex_;
  mutable std::unordered_map<std::string, Decision> answers_ DIBS_GUARDED_BY(answers_mutex_);
};

/// "system:serviceaccount:ns:name"
std::string account_user_name(std::string_view name_space, std::string_view name);

}  // namespace dibs::server::auth
