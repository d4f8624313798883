// ResourceClaims between pods and scheduler: makes claims from templates, takes back what ended
// pods have reserved, deallocates what nobody uses any more, and lets deleted claims go.
//
// Works on two kinds of keys, pods and claims, and only on those for which the informers' copies
// show something to do. Making a claim and telling the pod its name are two writes; a crash between
// them is found by the annotation that names the pod's entry. No thread waits for either: a turn
// goes on with the answer.
#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>

#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/pod_claims.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kPodKey = "pod:";
constexpr std::string_view kClaimKey = "claim:";
constexpr const char* kComponent = "resource_claim";
constexpr const char* kByClaim = "claims";
constexpr const char* kByTemplate = "claim-templates";
constexpr std::size_t kRemembered = 1000;
constexpr std::size_t kRememberedGone = 1000;
/// They do little but wait for the disk, and those that wait at once share one turn of it.
constexpr unsigned kWorkers = 32;

std::vector<std::string> index_claims(const Value& pod) {
  std::vector<std::string> out;
  for (const auto& name : claim_names(pod)) {
    out.push_back(client::key_of(namespace_of(pod), name));
  }
  return out;
}

std::vector<std::string> index_templates(const Value& pod) {
  std::vector<std::string> out;
  for (const PodClaim& claim : pod_claims(pod)) {
    if (!claim.template_name.empty()) {
      out.push_back(client::key_of(namespace_of(pod), claim.template_name));
    }
  }
  return out;
}

bool has_finalizer(const Value& claim) {
  for (const auto& finalizer : claim["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() == kClaimFinalizer) return true;
  }
  return false;
}

enum class Use : char { yes, no, unknown };

class ResourceClaims : public Controller {
 public:
  using Done = Reconciler::Done;

  ResourceClaims(Environment& environment, const std::string& version)
      : environment_(environment),
        claims_gvr_{"resource.k8s.io", version, "resourceclaims"},
        templates_gvr_{"resource.k8s.io", version, "resourceclaimtemplates"},
        pods_(environment.informers.of(kPods, kByClaim, index_claims)),
        claims_(environment.informers.of(claims_gvr_, kByController, index_by_controller)),
        templates_(environment.informers.of(templates_gvr_)),
        loop_(
            environment, "resource-claim",
            [this](const std::string& key, const Done& done) { reconcile(key, done); }, kWorkers) {
    environment.informers.of(kPods, kByTemplate, index_templates);
    pods_.add_handler({.added = [this](const Value& pod, bool) { seen_pod(pod, false); },
                       .updated =
                           [this](const Value& before, const Value& after) {
                             // Another pod of the same name: the first one is gone.
                             if (uid_of(before) != uid_of(after)) seen_pod(before, true);
                             seen_pod(after, false);
                           },
                       .removed = [this](const Value& pod) { seen_pod(pod, true); }});
    claims_.add_handler(
        {.added = [this](const Value& claim, bool) { seen_claim(claim, false); },
         .updated = [this](const Value&, const Value& claim) { seen_claim(claim, false); },
         .removed = [this](const Value& claim) { seen_claim(claim, true); }});
    loop_.follow(templates_, [this](const Value& object) {
      for (const auto& pod : pods_.by_index(kByTemplate, client::key_of(object))) add_pod(pod);
    });
  }

  void stop() override { loop_.stop(); }

 private:
  /// What one turn of a pod has come to.
  struct PodTurn {
    Value pod;
    std::vector<PodClaim> claims;
    std::size_t next = 0;                   // of claims
    std::map<std::string, Value> statuses;  // by entry
    bool changed = false;                   // the pod does not know them yet
    Done done;
  };
  using PodTurnPtr = std::shared_ptr<PodTurn>;

  void add_pod(const Value& pod) {
    if (pod_wants(pod)) loop_.add(cat(kPodKey, client::key_of(pod)));
  }

  void add_claim(const Value& claim) {
    if (claim_wants(claim)) loop_.add(cat(kClaimKey, client::key_of(claim)));
  }

  void seen_pod(const Value& pod, bool gone) {
    if (pod["spec"]["resourceClaims"].empty() &&
        pod["status"]["extendedResourceClaimStatus"].is_null()) {
      return;
    }
    if (gone) note_gone(uid_of(pod));
    if (!gone && !is_done_with_claims(pod)) return add_pod(pod);
    // A claim that is not known yet will be looked at when it comes.
    for (const auto& name : claim_names(pod)) {
      if (const auto claim = claims_.get(client::key_of(namespace_of(pod), name))) {
        add_claim(*claim);
      }
    }
    // A claim may have been made whose name the pod never learned.
    for (const auto& claim : claims_.by_index(kByController, std::string(uid_of(pod)))) {
      add_claim(claim);
    }
  }

  void seen_claim(const Value& claim, bool gone) {
    if (!gone) add_claim(claim);
    for (const auto& pod : pods_.by_index(kByClaim, client::key_of(claim))) add_pod(pod);
  }

  void reconcile(const std::string& key, const Done& done) {
    if (key.starts_with(kPodKey)) return sync_pod(key.substr(kPodKey.size()), done);
    sync_claim(key.substr(kClaimKey.size()), done);
  }

  // Pods.

  /// As far as the informers know, sync_pod has something to do.
  bool pod_wants(const Value& pod) const {
    if (is_deleting(pod) || is_done_with_claims(pod)) return false;
    const bool placed = !pod["spec"]["nodeName"].as_string().empty();
    for (const PodClaim& entry : pod_claims(pod)) {
      if (!entry.settled) return true;
      if (entry.claim.empty()) continue;  // none is needed
      const auto claim = claims_.get(client::key_of(namespace_of(pod), entry.claim));
      if (!entry.template_name.empty() && (!claim || !is_owned_by(*claim, pod))) return true;
      if (placed && claim && lacks_reservation(*claim, pod)) return true;
    }
    return false;
  }

  void sync_pod(const std::string& key, const Done& done) {
    const auto found = pods_.get(key);
    if (!found || is_deleting(*found) || is_done_with_claims(*found)) {
      return done(WorkOutcome::done());
    }
    auto turn = std::make_shared<PodTurn>();
    turn->pod = *found;
    turn->claims = pod_claims(*found);
    for (const auto& status : (*found)["status"]["resourceClaimStatuses"].items()) {
      turn->statuses[status["name"].str()] = status;
    }
    turn->done = done;
    provide_claims(turn);
  }

  void provide_claims(const PodTurnPtr& turn) {
    for (; turn->next < turn->claims.size(); ++turn->next) {
      const PodClaim& claim = turn->claims[turn->next];
      if (claim.template_name.empty()) continue;
      auto name = find_claim(turn->pod, claim);
      if (!name) return refuse(*turn, name.error());
      if (!*name) return make_claim(turn);
      settle(*turn, **name);
    }
    if (turn->changed) return tell_pod(turn);
    reserve_all(*turn);
  }

  /// The entry's claim is known.
  static void settle(PodTurn& turn, const std::string& name) {
    PodClaim& claim = turn.claims[turn.next];
    if (name == claim.claim) return;
    turn.changed = true;
    claim.claim = name;
    turn.statuses[claim.entry] =
        Value::object({{"name", claim.entry}, {"resourceClaimName", name}});
  }

  void refuse(const PodTurn& turn, const Error& error) {
    environment_.events.event(
        kComponent, turn.pod, true, "FailedResourceClaimCreation",
        cat("PodResourceClaim ", turn.claims[turn.next].entry, ": ", error.message()));
    turn.done(error);
  }

  /// The name of the claim for an entry of a template; nothing when it has to be made.
  Result<std::optional<std::string>> find_claim(const Value& pod, const PodClaim& claim) {
    const std::string name_space(namespace_of(pod));
    using Name = std::optional<std::string>;
    if (claim.settled && claim.claim.empty()) return Name("");  // none is needed
    if (!claim.claim.empty()) {
      auto known = claims_.get(client::key_of(name_space, claim.claim));
      if (!known) {
        // The pod may know of it before the informer does.
        auto live = environment_.client.get(claims_gvr_, name_space, claim.claim);
        if (!live && !is_gone(live.error())) return live.error();
        if (live) known = *live;
      }
      if (known && is_owned_by(*known, pod)) return Name(claim.claim);
    }
    for (const auto& owned : claims_.by_index(kByController, std::string(uid_of(pod)))) {
      if (owned["metadata"]["annotations"][kClaimNameAnnotation].as_string() == claim.entry &&
          !is_deleting(owned)) {
        return Name(name_of(owned));
      }
    }
    const std::string made = remembered(memory_of(pod, claim));
    if (!made.empty() && made != claim.claim) {
      auto live = environment_.client.get(claims_gvr_, name_space, made);
      if (live && is_owned_by(*live, pod)) return Name(made);
      if (!live && !is_gone(live.error())) return live.error();
    }
    return Name();
  }

  void make_claim(const PodTurnPtr& turn) {
    const Value& pod = turn->pod;
    const PodClaim& claim = turn->claims[turn->next];
    const auto pattern = templates_.get(client::key_of(namespace_of(pod), claim.template_name));
    if (!pattern) {
      return refuse(*turn,
                    Error::not_found(cat("resource claim template ", quoted(claim.template_name),
                                         ": resourceclaimtemplate.resource.k8s.io ",
                                         quoted(claim.template_name), " not found")));
    }
    const Value& inner = (*pattern)["spec"];
    Value annotations = inner["metadata"]["annotations"];
    annotations.set(kClaimNameAnnotation, claim.entry);
    Value metadata = Value::object(
        {{"generateName", claim_name_base(name_of(pod), claim.entry)},
         {"annotations", std::move(annotations)},
         // Releases without v1 of the group let a claim hold up the end of its pod.
         {"ownerReferences", Value::array({owner_reference(pod, claims_gvr_.version != "v1")})}});
    if (!inner["metadata"]["labels"].is_null()) metadata.set("labels", inner["metadata"]["labels"]);
    const Value object =
        Value::object({{"apiVersion", cat(claims_gvr_.group, '/', claims_gvr_.version)},
                       {"kind", "ResourceClaim"},
                       {"metadata", std::move(metadata)},
                       {"spec", inner["spec"]}});
    loop_.call(client::create_request(claims_gvr_, namespace_of(pod), object),
               [this, turn](const Result<Value>& made) {
                 if (!made) return refuse(*turn, made.error().within("create ResourceClaim "));
                 const std::string name(name_of(*made));
                 remember(memory_of(turn->pod, turn->claims[turn->next]), name);
                 settle(*turn, name);
                 ++turn->next;
                 provide_claims(turn);
               });
  }

  void tell_pod(const PodTurnPtr& turn) {
    const Value& pod = turn->pod;
    Value list = Value::array();
    for (const auto& [name, status] : turn->statuses) list.push(status);
    const Value body =
        Value::object({{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata", Value::object({{"name", pod["metadata"]["name"]},
                                                   {"namespace", pod["metadata"]["namespace"]},
                                                   {"uid", pod["metadata"]["uid"]}})},
                       {"status", Value::object({{"resourceClaimStatuses", std::move(list)}})}});
    client::WriteOptions options;
    options.field_manager = "ResourceClaimController";
    options.force = true;
    options.subresource = "status";
    loop_.call(client::patch_request(kPods, namespace_of(pod), name_of(pod),
                                     client::PatchType::apply, body, options),
               [this, turn](const Result<Value>& written) {
                 if (!written && !is_gone(written.error())) return turn->done(written.error());
                 reserve_all(*turn);
               });
  }

  void reserve_all(const PodTurn& turn) {
    if (!turn.pod["spec"]["nodeName"].as_string().empty()) {
      for (const PodClaim& claim : turn.claims) {
        if (claim.claim.empty()) continue;
        if (auto reserved = reserve(turn.pod, claim.claim); !reserved) {
          return turn.done(reserved.error());
        }
      }
    }
    turn.done(WorkOutcome::done());
  }

  static bool lacks_reservation(const Value& claim, const Value& pod) {
    if (claim["status"]["allocation"].is_null() || is_reserved_for(claim, pod)) return false;
    return controller_of(claim)["kind"].as_string() != "Pod" || is_owned_by(claim, pod);
  }

  /// A pod that was put on a node by hand has nobody else to reserve its claims.
  Result<> reserve(const Value& pod, const std::string& name) {
    const auto claim = claims_.get(client::key_of(namespace_of(pod), name));
    if (!claim || !lacks_reservation(*claim, pod)) return success();
    Value next = *claim;
    next.mut("status")
        .mut("reservedFor")
        .push(Value::object({{"resource", "pods"},
                             {"name", pod["metadata"]["name"]},
                             {"uid", pod["metadata"]["uid"]}}));
    auto written = environment_.client.update_status(claims_gvr_, namespace_of(pod), next);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  static std::string memory_of(const Value& pod, const PodClaim& claim) {
    return cat(uid_of(pod), '/', claim.entry);
  }

  std::string remembered(const std::string& key) {
    const MutexLock lock(mutex_);
    const auto found = made_.find(key);
    return found == made_.end() ? std::string() : found->second;
  }

  void remember(const std::string& key, const std::string& name) {
    const MutexLock lock(mutex_);
    if (made_.insert_or_assign(key, name).second) made_order_.push_back(key);
    while (made_order_.size() > kRemembered) {
      made_.erase(made_order_.front());
      made_order_.pop_front();
    }
  }

  /// Whose pods are gone is known for a while, so that the server need not be asked.
  void note_gone(std::string_view uid) {
    const MutexLock lock(mutex_);
    if (!gone_.emplace(uid).second) return;
    gone_order_.emplace_back(uid);
    if (gone_order_.size() <= kRememberedGone) return;
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }

  bool is_known_gone(std::string_view uid) const {
    const MutexLock lock(mutex_);
    return gone_.contains(std::string(uid));
  }

  // Claims.

  /// As far as the informers know, sync_claim has something to do.
  bool claim_wants(const Value& claim) const {
    const Value& consumers = claim["status"]["reservedFor"];
    for (const auto& consumer : consumers.items()) {
      if (known_use(namespace_of(claim), consumer) != Use::yes) return true;
    }
    if (!consumers.empty()) return false;
    return is_deleting(claim) ? has_finalizer(claim) : is_unused(claim);
  }

  void sync_claim(const std::string& key, const Done& done) {
    const auto found = claims_.get(key);
    if (!found) return done(WorkOutcome::done());
    Value claim = *found;
    const std::string name_space(namespace_of(claim));
    Value valid = Value::array();
    for (const auto& consumer : claim["status"]["reservedFor"].items()) {
      const auto keep = still_uses(name_space, consumer);
      if (!keep) return done(keep.error());
      if (*keep) valid.push(consumer);
    }
    const bool released = valid.size() < claim["status"]["reservedFor"].size();
    const bool finalizer = has_finalizer(claim);
    if (released) {
      if (valid.empty()) {
        claim.mut("status").erase("reservedFor");
        deallocate(claim, finalizer);
      } else {
        claim.mut("status").set("reservedFor", std::move(valid));
      }
      return write_status(claim, true, done, [this, done](const Value& written) {
        if (has_finalizer(written) && written["status"]["allocation"].is_null())
          return let_go(written, done);
        remove_unused(written, done);
      });
    }
    if (is_deleting(claim) && finalizer && claim["status"]["reservedFor"].empty()) {
      if (claim["status"]["allocation"].is_null()) return let_go(claim, done);
      deallocate(claim, true);
      return write_status(claim, false, done,
                          [this, done](const Value& written) { let_go(written, done); });
    }
    remove_unused(claim, done);
  }

  /// `unprotect`: the finalizer goes in the same write, where the server can do that.
  void write_status(const Value& claim, bool unprotect, const Done& done,
                    std::function<void(const Value& written)> then) {
    client::WriteOptions options;
    options.subresource = "status";
    auto request = client::update_request(claims_gvr_, namespace_of(claim), claim, options);
    request.protects_allocation = unprotect;
    loop_.call(std::move(request), [done, then = std::move(then)](const Result<Value>& written) {
      if (!written) return done(written.error());
      then(*written);
    });
  }

  static void deallocate(Value& claim, bool finalizer) {
    if (finalizer) {
      claim.mut("status").erase("allocation");
      claim.mut("status").erase("devices");
      claim.mut("status").erase("driverName");
      claim.mut("status").erase("deallocationRequested");
    } else if (claim["spec"]["allocationMode"].as_string() == "WaitForFirstConsumer" &&
               !claim["status"]["allocation"].is_null()) {
      // Allocated by a driver's own controller (v1alpha2), which has to take it back.
      claim.mut("status").set("deallocationRequested", true);
    }
  }

  /// What the informers know of a consumer.
  Use known_use(std::string_view name_space, const Value& consumer) const {
    if (consumer["resource"].as_string() != "pods" || !consumer["apiGroup"].as_string().empty()) {
      return Use::yes;  // somebody else's to release
    }
    const auto pod = pods_.get(client::key_of(name_space, consumer["name"].as_string()));
    // Another pod of that name may be the one that came before: only the server knows.
    if (pod && uid_of(*pod) == consumer["uid"].as_string())
      return is_done_with_claims(*pod) ? Use::no : Use::yes;
    return is_known_gone(consumer["uid"].as_string()) ? Use::no : Use::unknown;
  }

  static bool is_user(const Value& pod, const Value& consumer) {
    return uid_of(pod) == consumer["uid"].as_string() && !is_done_with_claims(pod);
  }

  Result<bool> still_uses(const std::string& name_space, const Value& consumer) {
    const Use known = known_use(name_space, consumer);
    if (known != Use::unknown) return known == Use::yes;
    auto live = environment_.client.get(kPods, name_space, consumer["name"].as_string());
    if (live) return is_user(*live, consumer);
    if (is_gone(live.error())) return false;
    return live.error();
  }

  void let_go(const Value& claim, const Done& done) {
    Value next = claim;
    Value rest = Value::array();
    for (const auto& finalizer : claim["metadata"]["finalizers"].items()) {
      if (finalizer.as_string() != kClaimFinalizer) rest.push(finalizer);
    }
    next.mut("metadata").set("finalizers", std::move(rest));
    loop_.call(client::update_request(claims_gvr_, namespace_of(claim), next),
               [this, claim, done](const Result<Value>& written) {
                 if (!written && !is_gone(written.error())) return done(written.error());
                 remove_unused(claim, done);
               });
  }

  /// The claim of a pod that has ended, though the pod may stay for long.
  bool is_unused(const Value& claim) const {
    const Value& owner = controller_of(claim);
    if (owner["kind"].as_string() != "Pod" || owner["apiVersion"].as_string() != "v1") {
      return false;
    }
    const auto pod = pods_.get(client::key_of(namespace_of(claim), owner["name"].as_string()));
    if (!pod) return false;  // the garbage collector's
    return uid_of(*pod) != owner["uid"].as_string() || is_done_with_claims(*pod);
  }

  void remove_unused(const Value& claim, const Done& done) {
    if (!claim["status"]["reservedFor"].empty() || is_deleting(claim) || !is_unused(claim)) {
      return done(WorkOutcome::done());
    }
    client::DeleteOptions options;
    options.uid = uid_of(claim);
    loop_.call(client::delete_request(claims_gvr_, namespace_of(claim), name_of(claim), options),
               [done](const Result<Value>& removed) {
                 if (!removed && !is_gone(removed.error())) return done(removed.error());
                 done(WorkOutcome::done());
               });
  }

  Environment& environment_;
  const Gvr claims_gvr_;
  const Gvr templates_gvr_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& templates_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> made_ DIBS_GUARDED_BY(mutex_);  // "pod uid/entry" -> claim
  std::deque<std::string> made_order_ DIBS_GUARDED_BY(mutex_);
  std::unordered_set<std::string> gone_ DIBS_GUARDED_BY(mutex_);  // uids of pods
  std::deque<std::string> gone_order_ DIBS_GUARDED_BY(mutex_);
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_resource_claim_controller(Environment& environment) {
  const auto claims = environment.discovery.find("resource.k8s.io", "resourceclaims");
  if (!claims) return nullptr;
  return std::make_unique<ResourceClaims>(environment, claims->gvr.version);
}

}  // namespace dibs::controllers
