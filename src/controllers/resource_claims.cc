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
#include <optional>

#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "client/claim_metrics.h"
#include "controllers/claim_memory.h"
#include "controllers/classic_claims.h"
#include "controllers/controllers.h"
#include "controllers/group_claims.h"
#include "controllers/pod_claims.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kPodKey = "pod:";
constexpr std::string_view kGroupKey = "podgroup:";
constexpr std::string_view kClaimKey = "claim:";
constexpr const char* kComponent = "resource_claim";
constexpr const char* kByClaim = "claims";
constexpr const char* kByTemplate = "claim-templates";
constexpr const char* kByGroup = "pod-group";
/// They do little but wait for the disk, and those that wait at once share one turn of it.
constexpr unsigned kWorkers = 32;

const Gvr kContexts = {"resource.k8s.io", "v1alpha2", "podschedulingcontexts"};

client::ObjectStore::Index claims_by_name(int release) {
  return [release](const Value& pod) {
    std::vector<std::string> out;
    for (const auto& name : claim_names(pod, release)) {
      out.push_back(client::key_of(namespace_of(pod), name));
    }
    return out;
  };
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

std::vector<std::string> index_groups(const Value& pod) {
  std::string key = group_key_of(pod);
  if (key.empty()) return {};
  return {std::move(key)};
}

enum class Use : char { yes, no, unknown };

class ResourceClaims : public Controller {
 public:
  using Done = Reconciler::Done;

  ResourceClaims(Environment& environment, const std::string& version)
      : environment_(environment),
        release_(environment.discovery.release()),
        claims_gvr_{"resource.k8s.io", version, "resourceclaims"},
        templates_gvr_{"resource.k8s.io", version, "resourceclaimtemplates"},
        pods_(environment.informers.of(kPods, kByClaim, claims_by_name(release_))),
        claims_(environment.informers.of(claims_gvr_, kByController, index_by_controller)),
        templates_(environment.informers.of(templates_gvr_)),
        loop_(
            environment, "resource-claim",
            [this](const std::string& key, const Done& done) { reconcile(key, done); }, kWorkers) {
    if (environment.options.metrics != nullptr) created_.emplace(*environment.options.metrics);
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
    const auto contexts = environment.discovery.find(kContexts.group, kContexts.resource);
    if (contexts && contexts->gvr.version == kContexts.version && !is_early(release_)) {
      contexts_ = &environment.informers.of(kContexts);
      loop_.follow(*contexts_, [this](const Value& context) {
        if (const auto pod = pods_.get(client::key_of(context))) add_pod(*pod);
      });
    }
    if (const auto groups = environment.discovery.find("scheduling.k8s.io", "podgroups")) {
      groups_gvr_ = groups->gvr;
      groups_ = &environment.informers.of(groups_gvr_, kByTemplate, index_templates);
      environment.informers.of(kPods, kByGroup, index_groups);
      groups_->add_handler({.added = [this](const Value& group, bool) { seen_group(group, false); },
                            .updated =
                                [this](const Value& before, const Value& after) {
                                  if (uid_of(before) != uid_of(after)) seen_group(before, true);
                                  seen_group(after, false);
                                },
                            .removed = [this](const Value& group) { seen_group(group, true); }});
    }
    loop_.follow(templates_, [this](const Value& object) {
      const std::string key = client::key_of(object);
      for (const auto& pod : pods_.by_index(kByTemplate, key)) add_pod(pod);
      if (groups_ == nullptr) return;
      for (const auto& group : groups_->by_index(kByTemplate, key)) add_group(group);
    });
  }

  void stop() override { loop_.stop(); }

 private:
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

  void add_pod(const Value& pod) {
    if (pod_wants(pod)) loop_.add(cat(kPodKey, client::key_of(pod)));
  }

  void add_group(const Value& group) {
    if (pod_wants(group)) loop_.add(cat(kGroupKey, client::key_of(group)));
  }

  void add_claim(const Value& claim) {
    if (claim_wants(claim)) loop_.add(cat(kClaimKey, client::key_of(claim)));
  }

  void seen_pod(const Value& pod, bool gone) {
    if (pod["spec"]["resourceClaims"].empty() &&
        pod["status"]["extendedResourceClaimStatus"].is_null()) {
      return;
    }
    if (gone) memory_.note_gone(uid_of(pod));
    if (!gone && !is_done(pod)) return add_pod(pod);
    // A claim that is not known yet will be looked at when it comes.
    for (const auto& name : claim_names(pod, release_)) {
      if (const auto claim = claims_.get(client::key_of(namespace_of(pod), name))) {
        add_claim(*claim);
      }
    }
    // A claim may have been made whose name the pod never learned.
    for (const auto& claim : claims_.by_index(kByController, std::string(uid_of(pod)))) {
      add_claim(claim);
    }
  }

  void seen_group(const Value& group, bool gone) {
    if (group["spec"]["resourceClaims"].empty()) return;
    if (!gone) {
      add_group(group);
      // They may learn the names of its claims now.
      for (const auto& pod : pods_.by_index(kByGroup, client::key_of(group))) add_pod(pod);
      return;
    }
    memory_.note_gone(uid_of(group));
    for (const auto& name : claim_names(group)) {
      if (const auto claim = claims_.get(client::key_of(namespace_of(group), name))) {
        add_claim(*claim);
      }
    }
  }

  void seen_claim(const Value& claim, bool gone) {
    if (!gone) add_claim(claim);
    const Value& owner = controller_of(claim);
    if (groups_ != nullptr && is_group(owner)) {
      const auto group =
          groups_->get(client::key_of(namespace_of(claim), owner["name"].as_string()));
      if (group) add_group(*group);
    }
    for (const auto& pod : pods_.by_index(kByClaim, client::key_of(claim))) add_pod(pod);
  }

  void reconcile(const std::string& key, const Done& done) {
    if (key.starts_with(kPodKey)) return sync_pod(pods_, key.substr(kPodKey.size()), done);
    if (key.starts_with(kGroupKey)) {
      return sync_pod(*groups_, key.substr(kGroupKey.size()), done);
    }
    sync_claim(key.substr(kClaimKey.size()), done);
  }

  /// The pod will not use its claims any more.
  bool is_done(const Value& pod) const { return !is_early(release_) && is_done_with_claims(pod); }

  // Pods, and groups of them.

  /// The group that an entry of a pod is of.
  struct Shared {
    Value group;           // null: the entry is the pod's own
    Value entry;           // the group's
    bool unknown = false;  // the group is not there: nobody can tell
  };

  Shared shared(const Value& pod, const PodClaim& entry) const {
    Shared made;
    const std::string key = is_group(pod) ? std::string() : group_key_of(pod);
    if (key.empty() || groups_ == nullptr) return made;
    const auto group = groups_->get(key);
    made.unknown = !group;
    if (!group) return made;
    const Value& own = group_entry(*group, entry);
    if (own.is_null()) return made;
    made.group = *group;
    made.entry = own;
    return made;
  }

  /// As far as the informers know, sync_pod has something to do.
  bool pod_wants(const Value& pod) const {
    if (is_deleting(pod) || is_done(pod)) return false;
    for (const PodClaim& entry : pod_claims(pod, release_)) {
      const Shared of = shared(pod, entry);
      if (of.unknown && !entry.template_name.empty() && !entry.settled) continue;
      const Value& user = of.group.is_null() ? pod : of.group;
      if (!of.group.is_null() && !entry.template_name.empty()) {
        const std::string name = group_claim_name(of.group, of.entry);
        if (name.empty()) continue;  // the group's turn comes first
        if (name != entry.claim) return true;
      }
      if (!entry.settled) return true;
      if (entry.claim.empty()) continue;  // none is needed
      const auto claim = claims_.get(client::key_of(namespace_of(pod), entry.claim));
      if (of.group.is_null() && !entry.template_name.empty() &&
          (!claim || !is_owned_by(*claim, pod))) {
        return true;
      }
      if (!is_placed(pod) || !claim) continue;
      if (lacks_reservation(*claim, user) || lacks_context(*claim, pod)) return true;
    }
    return false;
  }

  void sync_pod(client::Informer& informer, const std::string& key, const Done& done) {
    const auto found = informer.get(key);
    if (!found || is_deleting(*found) || is_done(*found)) {
      return done(WorkOutcome::done());
    }
    auto turn = std::make_shared<PodTurn>();
    turn->pod = *found;
    turn->claims = pod_claims(*found, release_);
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
      const Shared of = shared(turn->pod, claim);
      if (of.unknown) continue;  // seen_group() comes back to it
      if (!of.group.is_null()) {
        if (!environment_.options.group_claims) {
          return refuse(*turn, Error::bad_request(cat(
                                   "claim ", claim.entry,
                                   " is a PodGroup claim but the DRAWorkloadResourceClaims feature "
                                   "is disabled")));
        }
        const std::string name = group_claim_name(of.group, of.entry);
        if (!name.empty()) settle(*turn, name);
        continue;
      }
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
        cat(is_group(turn.pod) ? "PodGroupResourceClaim " : "PodResourceClaim ",
            turn.claims[turn.next].entry, ": ", error.message()));
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
      if (known && is_early(release_)) return not_its_own(*known, pod);
    }
    for (const auto& owned : claims_.by_index(kByController, std::string(uid_of(pod)))) {
      if (is_for_entry(owned, pod, claim.entry) && !is_deleting(owned)) return Name(name_of(owned));
    }
    const std::string made = memory_.made(memory_of(pod, claim));
    if (!made.empty() && made != claim.claim) {
      auto live = environment_.client.get(claims_gvr_, name_space, made);
      if (live && is_owned_by(*live, pod)) return Name(made);
      if (!live && !is_gone(live.error())) return live.error();
    }
    return Name();
  }

  static Error not_its_own(const Value& claim, const Value& pod) {
    return Error::conflict(cat("ResourceClaim ", client::key_of(claim), " was not created for pod ",
                               client::key_of(pod), " (pod is not owner)"));
  }

  /// By its annotation; one that an early release has made, by its name.
  static bool is_for_entry(const Value& claim, const Value& pod, std::string_view entry) {
    const Value& annotation = claim["metadata"]["annotations"][kClaimNameAnnotation];
    if (annotation.is_string()) return annotation.as_string() == entry;
    return name_of(claim) == early_claim_name(name_of(pod), entry);
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
    // Releases without v1 of the group let a claim hold up the end of its pod.
    const bool holds_up = (*pattern)["apiVersion"].as_string() != api::kStructuredVersion;
    Value metadata =
        Value::object({{"ownerReferences", Value::array({owner_reference(pod, holds_up)})}});
    if (is_early(release_)) {
      metadata.set("name", claim.claim);
    } else {
      metadata.set("generateName", claim_name_base(name_of(pod), claim.entry));
      annotations.set(kClaimNameAnnotation, claim.entry);
    }
    if (!annotations.is_null()) metadata.set("annotations", std::move(annotations));
    if (!inner["metadata"]["labels"].is_null()) metadata.set("labels", inner["metadata"]["labels"]);
    const Value object = Value::object({{"apiVersion", (*pattern)["apiVersion"]},
                                        {"kind", "ResourceClaim"},
                                        {"metadata", std::move(metadata)},
                                        {"spec", inner["spec"]}});
    loop_.call(client::create_request(claims_gvr_, namespace_of(pod), object),
               [this, turn, object](const Result<Value>& made) {
                 if (created_) created_->count(object, made.ok());
                 if (!made) return refuse(*turn, made.error().within("create ResourceClaim "));
                 const std::string name(name_of(*made));
                 memory_.note_made(memory_of(turn->pod, turn->claims[turn->next]), name);
                 settle(*turn, name);
                 ++turn->next;
                 provide_claims(turn);
               });
  }

  void tell_pod(const PodTurnPtr& turn) {
    const Value& pod = turn->pod;
    Value list = Value::array();
    for (const auto& [name, status] : turn->statuses) list.push(status);
    const Gvr& gvr = is_group(pod) ? groups_gvr_ : kPods;
    const Value body =
        Value::object({{"apiVersion", pod["apiVersion"]},
                       {"kind", pod["kind"]},
                       {"metadata", Value::object({{"name", pod["metadata"]["name"]},
                                                   {"namespace", pod["metadata"]["namespace"]},
                                                   {"uid", pod["metadata"]["uid"]}})},
                       {"status", Value::object({{"resourceClaimStatuses", std::move(list)}})}});
    client::WriteOptions options;
    options.field_manager = "ResourceClaimController";
    options.force = true;
    options.subresource = "status";
    loop_.call(client::patch_request(gvr, namespace_of(pod), name_of(pod), client::PatchType::apply,
                                     body, options),
               [this, turn](const Result<Value>& written) {
                 if (!written && !is_gone(written.error())) return turn->done(written.error());
                 reserve_all(*turn);
               });
  }

  /// A pod that was put on a node by hand has nobody else to see to its claims.
  void reserve_all(const PodTurn& turn) {
    if (is_placed(turn.pod)) {
      for (const PodClaim& entry : turn.claims) {
        const auto claim = entry.claim.empty()
                               ? std::nullopt
                               : claims_.get(client::key_of(namespace_of(turn.pod), entry.claim));
        if (!claim) continue;
        const Shared of = shared(turn.pod, entry);
        if (of.unknown) continue;
        const Value& user = of.group.is_null() ? turn.pod : of.group;
        if (auto reserved = reserve(user, *claim); !reserved) {
          return turn.done(reserved.error());
        }
        if (auto provided = provide_context(turn.pod, *claim); !provided) {
          return turn.done(provided.error());
        }
      }
    }
    turn.done(WorkOutcome::done());
  }

  static bool is_placed(const Value& pod) { return !pod["spec"]["nodeName"].as_string().empty(); }

  /// Not made for another pod or group.
  static bool may_use(const Value& pod, const Value& claim) {
    const Value& owner = controller_of(claim);
    return (owner["kind"].as_string() != "Pod" && !is_group(owner)) || is_owned_by(claim, pod);
  }

  bool lacks_reservation(const Value& claim, const Value& pod) const {
    return !is_early(release_) && takes_another_pod(claim) && !is_reserved_for(claim, pod) &&
           may_use(pod, claim);
  }

  Result<> reserve(const Value& pod, const Value& claim) {
    if (!lacks_reservation(claim, pod)) return success();
    Value next = claim;
    next.mut("status").mut("reservedFor").push(consumer_of(pod));
    auto written = environment_.client.update_status(claims_gvr_, namespace_of(pod), next);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  /// No driver has been told yet for which node the claim is wanted.
  bool lacks_context(const Value& claim, const Value& pod) const {
    if (contexts_ == nullptr || !waits_for_node(claim) || !may_use(pod, claim)) return false;
    const auto context = contexts_->get(client::key_of(pod));
    return !context || (*context)["spec"]["selectedNode"] != pod["spec"]["nodeName"];
  }

  Result<> provide_context(const Value& pod, const Value& claim) {
    if (!lacks_context(claim, pod)) return success();
    // A scheduler's pod has its node right after its claims: those may not have come here yet.
    auto live = environment_.client.get(claims_gvr_, namespace_of(claim), name_of(claim));
    if (!live && !is_gone(live.error())) return live.error();
    if (!live || !waits_for_node(*live)) return success();
    const auto context = contexts_->get(client::key_of(pod));
    if (!context) {
      auto made = environment_.client.create(kContexts, namespace_of(pod), context_for(pod));
      return made ? success() : Result<>(made.error().within("create PodSchedulingContext"));
    }
    if (!is_owned_by(*context, pod)) return not_its_own(*context, pod);
    Value next = *context;
    next.mut("spec").set("selectedNode", pod["spec"]["nodeName"]);
    auto written = environment_.client.update(kContexts, namespace_of(pod), next);
    if (!written) return written.error().within("update PodSchedulingContext");
    return success();
  }

  static std::string memory_of(const Value& pod, const PodClaim& claim) {
    return cat(uid_of(pod), '/', claim.entry);
  }

  // Claims.

  /// As far as the informers know, sync_claim has something to do.
  bool claim_wants(const Value& claim) const {
    const Value& consumers = claim["status"]["reservedFor"];
    for (const auto& consumer : consumers.items()) {
      if (known_use(namespace_of(claim), consumer) != Use::yes) return true;
    }
    if (!consumers.empty()) return false;
    return is_deleting(claim) ? has_claim_finalizer(claim) : is_unused(claim);
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
    if (released) {
      if (valid.empty()) {
        claim.mut("status").erase("reservedFor");
        if (!is_early(release_)) end_allocation(claim);
      } else {
        claim.mut("status").set("reservedFor", std::move(valid));
      }
      return write_status(claim, !api::is_classic(claim), done, [this, done](const Value& written) {
        if (has_claim_finalizer(written) && written["status"]["allocation"].is_null())
          return let_go(written, done);
        remove_unused(written, done);
      });
    }
    if (is_deleting(claim) && has_claim_finalizer(claim) &&
        claim["status"]["reservedFor"].empty()) {
      if (claim["status"]["allocation"].is_null()) return let_go(claim, done);
      end_allocation(claim);
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

  /// What the informers know of a consumer.
  Use known_use(std::string_view name_space, const Value& consumer) const {
    if (is_group_consumer(consumer) && groups_ != nullptr) {
      const auto group = groups_->get(client::key_of(name_space, consumer["name"].as_string()));
      if (group && uid_of(*group) == consumer["uid"].as_string()) return Use::yes;
      return memory_.is_gone(consumer["uid"].as_string()) ? Use::no : Use::unknown;
    }
    if (consumer["resource"].as_string() != "pods" || !consumer["apiGroup"].as_string().empty()) {
      return Use::yes;  // somebody else's to release
    }
    const auto pod = pods_.get(client::key_of(name_space, consumer["name"].as_string()));
    // Another pod of that name may be the one that came before: only the server knows.
    if (pod && uid_of(*pod) == consumer["uid"].as_string())
      return is_done(*pod) ? Use::no : Use::yes;
    return memory_.is_gone(consumer["uid"].as_string()) ? Use::no : Use::unknown;
  }

  bool is_user(const Value& pod, const Value& consumer) const {
    return uid_of(pod) == consumer["uid"].as_string() && !is_done(pod);
  }

  Result<bool> still_uses(const std::string& name_space, const Value& consumer) {
    const Use known = known_use(name_space, consumer);
    if (known != Use::unknown) return known == Use::yes;
    const bool grouped = is_group_consumer(consumer);
    auto live = environment_.client.get(grouped ? groups_gvr_ : kPods, name_space,
                                        consumer["name"].as_string());
    if (live && grouped) return uid_of(*live) == consumer["uid"].as_string();
    if (live) return is_user(*live, consumer);
    if (is_gone(live.error())) return false;
    return live.error();
  }

  void let_go(const Value& claim, const Done& done) {
    Value next = claim;
    Value rest = Value::array();
    for (const auto& finalizer : claim["metadata"]["finalizers"].items()) {
      if (finalizer.as_string() != claim_finalizer(claim)) rest.push(finalizer);
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
    return uid_of(*pod) != owner["uid"].as_string() || is_done(*pod);
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

}  // namespace

ControllerPtr make_resource_claim_controller(Environment& environment) {
  const auto claims = environment.discovery.find("resource.k8s.io", "resourceclaims");
  if (!claims) return nullptr;
  return std::make_unique<ResourceClaims>(environment, claims->gvr.version);
}

}  // namespace dibs::controllers
