// Claims that are no longer used: what ended pods have reserved is taken back, what nobody uses is
// deallocated, deleted claims go.
#include "api/kinds/resource/versions/model.h"
#include "controllers/group_claims.h"
#include "controllers/resource_claims.h"

namespace dibs::controllers {

bool ResourceClaims::claim_wants(const Value& claim) const {
  const Value& consumers = claim["status"]["reservedFor"];
  for (const auto& consumer : consumers.items()) {
    if (known_use(namespace_of(claim), consumer) != Use::yes) return true;
  }
  if (!consumers.empty()) return false;
  return is_deleting(claim) ? has_claim_finalizer(claim) : is_unused(claim);
}

void ResourceClaims::sync_claim(const std::string& key, const Done& done) {
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
  if (is_deleting(claim) && has_claim_finalizer(claim) && claim["status"]["reservedFor"].empty()) {
    if (claim["status"]["allocation"].is_null()) return let_go(claim, done);
    end_allocation(claim);
    return write_status(claim, false, done,
                        [this, done](const Value& written) { let_go(written, done); });
  }
  remove_unused(claim, done);
}

void ResourceClaims::write_status(const Value& claim, bool unprotect, const Done& done,
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

ResourceClaims::Use ResourceClaims::known_use(std::string_view name_space,
                                              const Value& consumer) const {
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
  if (pod && uid_of(*pod) == consumer["uid"].as_string()) return is_done(*pod) ? Use::no : Use::yes;
  return memory_.is_gone(consumer["uid"].as_string()) ? Use::no : Use::unknown;
}

bool ResourceClaims::is_user(const Value& pod, const Value& consumer) const {
  return uid_of(pod) == consumer["uid"].as_string() && !is_done(pod);
}

Result<bool> ResourceClaims::still_uses(const std::string& name_space, const Value& consumer) {
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

void ResourceClaims::let_go(const Value& claim, const Done& done) {
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

bool ResourceClaims::is_unused(const Value& claim) const {
  const Value& owner = controller_of(claim);
  if (owner["kind"].as_string() != "Pod" || owner["apiVersion"].as_string() != "v1") {
    return false;
  }
  const auto pod = pods_.get(client::key_of(namespace_of(claim), owner["name"].as_string()));
  if (!pod) return false;  // the garbage collector's
  return uid_of(*pod) != owner["uid"].as_string() || is_done(*pod);
}

void ResourceClaims::remove_unused(const Value& claim, const Done& done) {
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

}  // namespace dibs::controllers
