#pragma once
// ResourceClaims between pods and scheduler: makes claims from templates, takes back what ended
// pods have reserved, deallocates what nobody uses any more, and lets deleted claims go.
//
// A PodGroup with claims of its own is served as a pod is (group_claims.h); its pods are told the
// names of its claims.
//
// Works on three kinds of keys, pods, groups and claims, and only on those for which the informers'
// copies show something to do. Making a claim and telling the pod its name are two writes; a crash
// between them is found by the annotation that names the pod's entry. No thread waits for either: a
// turn goes on with the answer.
//
// Claims come in the form of their own model (client/resource_versions.h); what is particular to
// the classic one, and to early releases, is in classic_claims.h.
//
// Pods and groups are seen to in resource_claims.cc, claims in resource_claims_release.cc.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "client/claim_metrics.h"
#include "controllers/claim_memory.h"
#include "controllers/classic_claims.h"
#include "controllers/controllers.h"
#include "controllers/pod_claims.h"

namespace dibs::controllers {

class ResourceClaims : public Controller {
 public:
  ResourceClaims(Environment& environment, const std::string& version);
  void stop() override { loop_.stop(); }

 private:
  using Done = Reconciler::Done;
  enum class Use : char { yes, no, unknown };

  /// What one turn of a pod, or of a group, has come to.
  struct PodTurn {
    Value pod;  // or the group
    std::vector<PodClaim> claims;
    std::size_t next = 0;                   // of claims
    std::map<std::string, Value> statuses;  // by entry
    bool changed = false;                   // the pod does not know them yet
    Done done;
  };
  using PodTurnPtr = std::shared_ptr<PodTurn>;

  /// The group that an entry of a pod is of.
  struct Shared {
    Value group;           // null: the entry is the pod's own
    Value entry;           // the group's
    bool unknown = false;  // the group is not there: nobody can tell
  };

  // What has changed.
  void add_pod(const Value& pod);
  void add_group(const Value& group);
  void add_claim(const Value& claim);
  void seen_pod(const Value& pod, bool gone);
  void seen_group(const Value& group, bool gone);
  void seen_claim(const Value& claim, bool gone);
  void reconcile(const std::string& key, const Done& done);

  /// The pod will not use its claims any more.
  bool is_done(const Value& pod) const { return !is_early(release_) && is_done_with_claims(pod); }

  // Pods, and groups of them.
  Shared shared(const Value& pod, const PodClaim& entry) const;
  /// As far as the informers know, sync_pod has something to do.
  bool pod_wants(const Value& pod) const;
  void sync_pod(client::Informer& informer, const std::string& key, const Done& done);
  void provide_claims(const PodTurnPtr& turn);
  /// The entry's claim is known.
  static void settle(PodTurn& turn, const std::string& name);
  void refuse(const PodTurn& turn, const Error& error);
  /// The name of the claim for an entry of a template; nothing when it has to be made.
  Result<std::optional<std::string>> find_claim(const Value& pod, const PodClaim& claim);
  static Error not_its_own(const Value& claim, const Value& pod);
  /// By its annotation; one that an early release has made, by its name.
  static bool is_for_entry(const Value& claim, const Value& pod, std::string_view entry);
  void make_claim(const PodTurnPtr& turn);
  void tell_pod(const PodTurnPtr& turn);
  /// A pod that was put on a node by hand has nobody else to see to its claims.
  void reserve_all(const PodTurn& turn);
  /// Not made for another pod or group.
  static bool may_use(const Value& pod, const Value& claim);
  bool lacks_reservation(const Value& claim, const Value& pod) const;
  Result<> reserve(const Value& pod, const Value& claim);
  /// No driver has been told yet for which node the claim is wanted.
  bool lacks_context(const Value& claim, const Value& pod) const;
  Result<> provide_context(const Value& pod, const Value& claim);
  static bool is_placed(const Value& pod) { return !pod["spec"]["nodeName"].as_string().empty(); }
  static std::string memory_of(const Value& pod, const PodClaim& claim) {
    return cat(uid_of(pod), '/', claim.entry);
  }

  // Claims.
  /// As far as the informers know, sync_claim has something to do.
  bool claim_wants(const Value& claim) const;
  void sync_claim(const std::string& key, const Done& done);
  /// `unprotect`: the finalizer goes in the same write, where the server can do that.
  void write_status(const Value& claim, bool unprotect, const Done& done,
                    std::function<void(const Value& written)> then);
  /// What the informers know of a consumer.
  Use known_use(std::string_view name_space, const Value& consumer) const;
  bool is_user(const Value& pod, const Value& consumer) const;
  Result<bool> still_uses(const std::string& name_space, const Value& consumer);
  void let_go(const Value& claim, const Done& done);
  /// The claim of a pod that has ended, though the pod may stay for long.
  bool is_unused(const Value& claim) const;
  void remove_unused(const Value& claim, const Done& done);

  Environment& environment_;
  const int release_;
  const Gvr claims_gvr_;
  const Gvr templates_gvr_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& templates_;
  Gvr groups_gvr_;
  client::Informer* groups_ = nullptr;    // null: the server has no groups of pods
  client::Informer* contexts_ = nullptr;  // null: the server, or the release, has none for us
  std::optional<client::ClaimsCreated> created_;  // nothing: nobody counts
  ClaimMemory memory_;
  Reconciler loop_;
};

}  // namespace dibs::controllers
