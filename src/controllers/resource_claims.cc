#include "controllers/resource_claims.h"

#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "controllers/group_claims.h"

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

}  // namespace

ResourceClaims::ResourceClaims(Environment& environment, const std::string& version)
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

void ResourceClaims::add_pod(const Value& pod) {
  if (pod_wants(pod)) loop_.add(cat(kPodKey, client::key_of(pod)));
}

void ResourceClaims::add_group(const Value& group) {
  if (pod_wants(group)) loop_.add(cat(kGroupKey, client::key_of(group)));
}

void ResourceClaims::add_claim(const Value& claim) {
  if (claim_wants(claim)) loop_.add(cat(kClaimKey, client::key_of(claim)));
}

void ResourceClaims::seen_pod(const Value& pod, bool gone) {
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

void ResourceClaims::seen_group(const Value& group, bool gone) {
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

void ResourceClaims::seen_claim(const Value& claim, bool gone) {
  if (!gone) add_claim(claim);
  const Value& owner = controller_of(claim);
  if (groups_ != nullptr && is_group(owner)) {
    const auto group = groups_->get(client::key_of(namespace_of(claim), owner["name"].as_string()));
    if (group) add_group(*group);
  }
  for (const auto& pod : pods_.by_index(kByClaim, client::key_of(claim))) add_pod(pod);
}

void ResourceClaims::reconcile(const std::string& key, const Done& done) {
  if (key.starts_with(kPodKey)) return sync_pod(pods_, key.substr(kPodKey.size()), done);
  if (key.starts_with(kGroupKey)) {
    return sync_pod(*groups_, key.substr(kGroupKey.size()), done);
  }
  sync_claim(key.substr(kClaimKey.size()), done);
}

ResourceClaims::Shared ResourceClaims::shared(const Value& pod, const PodClaim& entry) const {
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

bool ResourceClaims::pod_wants(const Value& pod) const {
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

void ResourceClaims::sync_pod(client::Informer& informer, const std::string& key,
                              const Done& done) {
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

void ResourceClaims::provide_claims(const PodTurnPtr& turn) {
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

void ResourceClaims::settle(PodTurn& turn, const std::string& name) {
  PodClaim& claim = turn.claims[turn.next];
  if (name == claim.claim) return;
  turn.changed = true;
  claim.claim = name;
  turn.statuses[claim.entry] = Value::object({{"name", claim.entry}, {"resourceClaimName", name}});
}

void ResourceClaims::refuse(const PodTurn& turn, const Error& error) {
  environment_.events.event(kComponent, turn.pod, true, "FailedResourceClaimCreation",
                            cat(is_group(turn.pod) ? "PodGroupResourceClaim " : "PodResourceClaim ",
                                turn.claims[turn.next].entry, ": ", error.message()));
  turn.done(error);
}

Result<std::optional<std::string>> ResourceClaims::find_claim(const Value& pod,
                                                              const PodClaim& claim) {
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

Error ResourceClaims::not_its_own(const Value& claim, const Value& pod) {
  return Error::conflict(cat("ResourceClaim ", client::key_of(claim), " was not created for pod ",
                             client::key_of(pod), " (pod is not owner)"));
}

bool ResourceClaims::is_for_entry(const Value& claim, const Value& pod, std::string_view entry) {
  const Value& annotation = claim["metadata"]["annotations"][kClaimNameAnnotation];
  if (annotation.is_string()) return annotation.as_string() == entry;
  return name_of(claim) == early_claim_name(name_of(pod), entry);
}

void ResourceClaims::make_claim(const PodTurnPtr& turn) {
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

void ResourceClaims::tell_pod(const PodTurnPtr& turn) {
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

void ResourceClaims::reserve_all(const PodTurn& turn) {
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

bool ResourceClaims::may_use(const Value& pod, const Value& claim) {
  const Value& owner = controller_of(claim);
  return (owner["kind"].as_string() != "Pod" && !is_group(owner)) || is_owned_by(claim, pod);
}

bool ResourceClaims::lacks_reservation(const Value& claim, const Value& pod) const {
  return !is_early(release_) && takes_another_pod(claim) && !is_reserved_for(claim, pod) &&
         may_use(pod, claim);
}

Result<> ResourceClaims::reserve(const Value& pod, const Value& claim) {
  if (!lacks_reservation(claim, pod)) return success();
  Value next = claim;
  next.mut("status").mut("reservedFor").push(consumer_of(pod));
  auto written = environment_.client.update_status(claims_gvr_, namespace_of(pod), next);
  if (!written && !is_gone(written.error())) return written.error();
  return success();
}

bool ResourceClaims::lacks_context(const Value& claim, const Value& pod) const {
  if (contexts_ == nullptr || !waits_for_node(claim) || !may_use(pod, claim)) return false;
  const auto context = contexts_->get(client::key_of(pod));
  return !context || (*context)["spec"]["selectedNode"] != pod["spec"]["nodeName"];
}

Result<> ResourceClaims::provide_context(const Value& pod, const Value& claim) {
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

ControllerPtr make_resource_claim_controller(Environment& environment) {
  const auto claims = environment.discovery.find("resource.k8s.io", "resourceclaims");
  if (!claims) return nullptr;
  return std::make_unique<ResourceClaims>(environment, claims->gvr.version);
}

}  // namespace dibs::controllers
