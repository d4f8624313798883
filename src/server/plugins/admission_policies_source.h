#pragma once
// The admission policies of the store, compiled and paired with their bindings.
//
// Follows the store by two watches that only leave a mark; who asks a moment later brings the set
// up to date on his own thread. So many changes at once are compiled once, nothing is compiled for
// policies that no binding uses, and no thread or timer is needed. The moment is 30 ms: as in
// Kubernetes, which takes a second, a request sent right behind a change meets what was before it.
//
// Thread-safe. A set is immutable.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/expressions/policy_match.h"
#include "api/expressions/policy_program.h"
#include "api/schema/kind.h"
#include "base/mutex.h"
#include "runtime/runtime.h"
#include "store/store.h"

namespace dibs::server {

using json::Value;

struct AdmissionPolicy {
  std::string name;
  api::MatchResources constraints;
  Value param_kind;                       // null: no parameters
  api::GroupVersionKind param_kind_name;  // the same
  bool ignores_failures = false;
  bool may_be_asked_again = false;  // of one that mutates
  std::shared_ptr<const api::CompiledPolicy> program;
};

struct PolicyBinding {
  std::string name;
  std::string policy;
  api::MatchResources resources;
  Value param_reference;  // null: none
  Value actions;          // of one that validates
};

struct BoundPolicy {
  std::shared_ptr<const AdmissionPolicy> policy;
  std::vector<std::shared_ptr<const PolicyBinding>> bindings;  // by name
};
using PolicySet = std::vector<BoundPolicy>;  // by name

class PolicySource {
 public:
  /// Without a prefix there are never any.
  PolicySource(runtime::Clock& clock, store::Store& store, std::string policy_prefix,
               std::string binding_prefix);
  ~PolicySource();

  /// Null when there is none.
  std::shared_ptr<const PolicySet> current();

 private:
  struct Policy {
    Value object;
    std::shared_ptr<const AdmissionPolicy> compiled;  // made when a binding needs it
  };
  struct Follower {
    std::string prefix;
    std::unique_ptr<store::Watch> watch;
  };
  void open(Follower& follower) DIBS_REQUIRES(mutex_);
  /// False when the watch fell behind.
  bool pump(Follower& follower) DIBS_REQUIRES(mutex_);
  /// False when it cannot be read: what was known of it stays.
  bool take(const Follower& follower, const std::string& key, const store::Record* record)
      DIBS_REQUIRES(mutex_);
  void rebuild() DIBS_REQUIRES(mutex_);

  void mark();
  /// Something changed, long enough ago.
  bool is_due() const;

  runtime::Clock& clock_;
  store::Store& store_;
  std::atomic<Duration> changed_;  // when `stale_` was set
  std::atomic<bool> stale_{true};
  std::atomic<bool> any_{false};
  Mutex mutex_;
  Follower policies_ DIBS_GUARDED_BY(mutex_);
  Follower bindings_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, Policy> stored_policies_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<const PolicyBinding>> stored_bindings_
      DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<const PolicySet> set_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
