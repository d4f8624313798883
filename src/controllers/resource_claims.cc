// ResourceClaims between pods and scheduler: makes claims from templates, takes back what ended
// pods have reserved, deallocates what nobody uses any more, and lets deleted claims go.
//
// Works on two kinds of keys, pods and claims. Making a claim and telling the pod its name are two
// writes; a crash between them is found by the annotation that names the pod's entry.
#include <algorithm>
#include <deque>

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

class ResourceClaims : public Controller {
 public:
  ResourceClaims(Environment& environment, const std::string& version)
      : environment_(environment),
        claims_gvr_{"resource.k8s.io", version, "resourceclaims"},
        templates_gvr_{"resource.k8s.io", version, "resourceclaimtemplates"},
        pods_(environment.informers.of(kPods, kByClaim, index_claims)),
        claims_(environment.informers.of(claims_gvr_, kByController, index_by_controller)),
        templates_(environment.informers.of(templates_gvr_)),
        loop_(
            environment, "resource-claim",
            [this](const std::string& key) { return reconcile(key); }, kWorkers) {
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
  void add_pod(const Value& pod) { loop_.add(cat(kPodKey, client::key_of(pod))); }

  void seen_pod(const Value& pod, bool gone) {
    const auto names = claim_names(pod);
    if (names.empty() && pod["spec"]["resourceClaims"].empty()) return;
    if (gone || is_done_with_claims(pod)) {
      for (const auto& name : names) {
        loop_.add(cat(kClaimKey, client::key_of(namespace_of(pod), name)));
      }
      // A claim may have been made whose name the pod never learned.
      for (const auto& claim : claims_.by_index(kByController, std::string(uid_of(pod)))) {
        loop_.add(cat(kClaimKey, client::key_of(claim)));
      }
    } else {
      add_pod(pod);
    }
  }

  void seen_claim(const Value& claim, bool gone) {
    const std::string key = client::key_of(claim);
    if (!gone) loop_.add(cat(kClaimKey, key));
    for (const auto& pod : pods_.by_index(kByClaim, key)) add_pod(pod);
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    if (key.starts_with(kPodKey)) return sync_pod(key.substr(kPodKey.size()));
    return sync_claim(key.substr(kClaimKey.size()));
  }

  // Pods.

  Result<WorkOutcome> sync_pod(const std::string& key) {
    const auto found = pods_.get(key);
    if (!found || is_deleting(*found) || is_done_with_claims(*found)) return done();
    const Value& pod = *found;
    std::map<std::string, Value> statuses;
    for (const auto& status : pod["status"]["resourceClaimStatuses"].items()) {
      statuses[status["name"].str()] = status;
    }
    bool changed = false;
    std::vector<std::string> names;
    for (PodClaim& claim : pod_claims(pod)) {
      if (!claim.template_name.empty()) {
        auto name = provide_claim(pod, claim);
        if (!name) {
          environment_.events.event(
              kComponent, pod, true, "FailedResourceClaimCreation",
              cat("PodResourceClaim ", claim.entry, ": ", name.error().message()));
          return name.error();
        }
        if (*name != claim.claim) {
          changed = true;
          claim.claim = *name;
          statuses[claim.entry] =
              Value::object({{"name", claim.entry}, {"resourceClaimName", *name}});
        }
      }
      if (!claim.claim.empty()) names.push_back(claim.claim);
    }
    if (changed) DIBS_CHECK(tell_pod(pod, statuses));
    if (!pod["spec"]["nodeName"].as_string().empty()) {
      for (const auto& name : names) DIBS_CHECK(reserve(pod, name));
    }
    return done();
  }

  /// The name of the claim for an entry of a template; made when there is none.
  Result<std::string> provide_claim(const Value& pod, const PodClaim& claim) {
    const std::string name_space(namespace_of(pod));
    if (claim.settled && claim.claim.empty()) return std::string();  // none is needed
    if (!claim.claim.empty()) {
      auto known = claims_.get(client::key_of(name_space, claim.claim));
      if (!known) {
        // The pod may know of it before the informer does.
        auto live = environment_.client.get(claims_gvr_, name_space, claim.claim);
        if (!live && !is_gone(live.error())) return live.error();
        if (live) known = *live;
      }
      if (known && is_owned_by(*known, pod)) return claim.claim;
    }
    for (const auto& owned : claims_.by_index(kByController, std::string(uid_of(pod)))) {
      if (owned["metadata"]["annotations"][kClaimNameAnnotation].as_string() == claim.entry &&
          !is_deleting(owned)) {
        return std::string(name_of(owned));
      }
    }
    const std::string memory = cat(uid_of(pod), '/', claim.entry);
    if (const std::string made = remembered(memory); !made.empty() && made != claim.claim) {
      auto live = environment_.client.get(claims_gvr_, name_space, made);
      if (live && is_owned_by(*live, pod)) return made;
      if (!live && !is_gone(live.error())) return live.error();
    }
    DIBS_TRY(const std::string name, make_claim(pod, claim));
    remember(memory, name);
    return name;
  }

  Result<std::string> make_claim(const Value& pod, const PodClaim& claim) {
    const std::string name_space(namespace_of(pod));
    const auto pattern = templates_.get(client::key_of(name_space, claim.template_name));
    if (!pattern) {
      return Error::not_found(cat("resource claim template ", quoted(claim.template_name),
                                  ": resourceclaimtemplate.resource.k8s.io ",
                                  quoted(claim.template_name), " not found"));
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
    Value object = Value::object({{"apiVersion", cat(claims_gvr_.group, '/', claims_gvr_.version)},
                                  {"kind", "ResourceClaim"},
                                  {"metadata", std::move(metadata)},
                                  {"spec", inner["spec"]}});
    auto made = environment_.client.create(claims_gvr_, name_space, object);
    if (!made) return made.error().within("create ResourceClaim ");
    return std::string(name_of(*made));
  }

  Result<> tell_pod(const Value& pod, const std::map<std::string, Value>& statuses) {
    Value list = Value::array();
    for (const auto& [name, status] : statuses) list.push(status);
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
    auto written = environment_.client.patch(kPods, namespace_of(pod), name_of(pod),
                                             client::PatchType::apply, body, options);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  /// A pod that was put on a node by hand has nobody else to reserve its claims.
  Result<> reserve(const Value& pod, const std::string& name) {
    const auto claim = claims_.get(client::key_of(namespace_of(pod), name));
    if (!claim || (*claim)["status"]["allocation"].is_null() || is_reserved_for(*claim, pod)) {
      return success();
    }
    const Value& owner = controller_of(*claim);
    if (owner["kind"].as_string() == "Pod" && !is_owned_by(*claim, pod)) return success();
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

  std::string remembered(const std::string& key) {
    std::lock_guard lock(mutex_);
    const auto found = made_.find(key);
    return found == made_.end() ? std::string() : found->second;
  }

  void remember(const std::string& key, const std::string& name) {
    std::lock_guard lock(mutex_);
    if (made_.insert_or_assign(key, name).second) made_order_.push_back(key);
    while (made_order_.size() > kRemembered) {
      made_.erase(made_order_.front());
      made_order_.pop_front();
    }
  }

  // Claims.

  Result<WorkOutcome> sync_claim(const std::string& key) {
    const auto found = claims_.get(key);
    if (!found) return done();
    Value claim = *found;
    const std::string name_space(namespace_of(claim));
    Value valid = Value::array();
    for (const auto& consumer : claim["status"]["reservedFor"].items()) {
      DIBS_TRY(const bool keep, still_uses(name_space, consumer));
      if (keep) valid.push(consumer);
    }
    const bool released = valid.size() < claim["status"]["reservedFor"].size();
    const bool finalizer = has_finalizer(claim);
    if (released) {
      const bool last = valid.empty();
      if (last) {
        claim.mut("status").erase("reservedFor");
        deallocate(claim, finalizer);
      } else {
        claim.mut("status").set("reservedFor", std::move(valid));
      }
      DIBS_TRY(claim, write_status(claim));
      if (has_finalizer(claim) && claim["status"]["allocation"].is_null()) {
        DIBS_CHECK(let_go(claim));
      }
    } else if (is_deleting(claim) && finalizer && claim["status"]["reservedFor"].empty()) {
      if (!claim["status"]["allocation"].is_null()) {
        deallocate(claim, true);
        DIBS_TRY(claim, environment_.client.update_status(claims_gvr_, name_space, claim));
      }
      DIBS_CHECK(let_go(claim));
    }
    if (claim["status"]["reservedFor"].empty() && !is_deleting(claim)) {
      DIBS_CHECK(remove_unused(claim));
    }
    return done();
  }

  Result<Value> write_status(const Value& claim) {
    client::WriteOptions options;
    options.subresource = "status";
    auto request = client::update_request(claims_gvr_, namespace_of(claim), claim, options);
    if (environment_.options.own_server) {
      append(request.target, request.target.find('?') == std::string::npos ? '?' : '&',
             "protect=false");
    }
    return environment_.client.call(std::move(request));
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

  Result<bool> still_uses(const std::string& name_space, const Value& consumer) {
    if (consumer["resource"].as_string() != "pods" || !consumer["apiGroup"].as_string().empty()) {
      return true;  // somebody else's to release
    }
    const std::string key = client::key_of(name_space, consumer["name"].as_string());
    auto pod = pods_.get(key);
    if (!pod) {
      auto live = environment_.client.get(kPods, name_space, consumer["name"].as_string());
      if (!live) {
        if (is_gone(live.error())) return false;
        return live.error();
      }
      pod = *live;
    }
    return uid_of(*pod) == consumer["uid"].as_string() && !is_done_with_claims(*pod);
  }

  Result<> let_go(const Value& claim) {
    Value next = claim;
    Value rest = Value::array();
    for (const auto& finalizer : claim["metadata"]["finalizers"].items()) {
      if (finalizer.as_string() != kClaimFinalizer) rest.push(finalizer);
    }
    next.mut("metadata").set("finalizers", std::move(rest));
    auto written = environment_.client.update(claims_gvr_, namespace_of(claim), next);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  /// A claim of a pod that has ended goes now, though the pod may stay for long.
  Result<> remove_unused(const Value& claim) {
    const Value& owner = controller_of(claim);
    if (owner["kind"].as_string() != "Pod" || owner["apiVersion"].as_string() != "v1") {
      return success();
    }
    const auto pod = pods_.get(client::key_of(namespace_of(claim), owner["name"].as_string()));
    if (!pod) return success();  // the garbage collector's
    if (uid_of(*pod) == owner["uid"].as_string() && !is_done_with_claims(*pod)) return success();
    client::DeleteOptions options;
    options.uid = uid_of(claim);
    auto removed =
        environment_.client.remove(claims_gvr_, namespace_of(claim), name_of(claim), options);
    if (!removed && !is_gone(removed.error())) return removed.error();
    return success();
  }

  Environment& environment_;
  const Gvr claims_gvr_;
  const Gvr templates_gvr_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& templates_;
  std::mutex mutex_;
  std::map<std::string, std::string> made_;  // "pod uid/entry" -> claim; guarded by mutex_
  std::deque<std::string> made_order_;       // guarded by mutex_
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_resource_claim_controller(Environment& environment) {
  const auto claims = environment.discovery.find("resource.k8s.io", "resourceclaims");
  if (!claims) return nullptr;
  return std::make_unique<ResourceClaims>(environment, claims->gvr.version);
}

}  // namespace dibs::controllers
