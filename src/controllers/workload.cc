#include "controllers/workload.h"

#include <charconv>
#include <utility>

#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

std::int64_t version_of(const Value& object) {
  const std::string_view text = object["metadata"]["resourceVersion"].as_string();
  std::int64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

std::vector<std::string> index_orphans(const Value& object) {
  if (!controller_of(object).is_null()) return {};
  return {std::string(namespace_of(object))};
}

api::LabelSelector selector_of(const Value& owner) {
  const Value& selector = owner["spec"]["selector"];
  auto parsed = owner["kind"].as_string() == "ReplicationController"
                    ? api::to_label_selector(Value::object({{"matchLabels", selector}}))
                    : api::to_label_selector(selector);
  return parsed.ok() ? std::move(*parsed) : api::LabelSelector::nothing();
}

bool is_namespace_ending(const Error& error) {
  if (error.details() == nullptr) return false;
  for (const Cause& cause : error.details()->causes)
    if (cause.reason == "NamespaceTerminating") return true;
  return false;
}

Workload::Workload(Environment& environment, WorkloadKind kind)
    : environment_(environment),
      kind_(std::move(kind)),
      owners_(environment.informers.of(kind_.gvr, kByNamespace, client::index_by_namespace)),
      reconciler_(environment, kind_.component,
                  [this](const std::string& key) { return work(key); }) {
  reconciler_.follow(owners_);
  owners_.add_handler(
      {.removed = [this](const Value& owner) { expectations_.forget(client::key_of(owner)); }});
}

Result<WorkOutcome> Workload::work(const std::string& key) {
  const auto owner = owners_.get(key);
  if (!owner) {
    expectations_.forget(key);
    const MutexLock lock(mutex_);
    written_.erase(key);
    return done();
  }
  // The update that is under way starts this again.
  if (is_stale(key, *owner)) return done();
  return sync(key, *owner);
}

bool Workload::is_stale(const std::string& key, const Value& owner) {
  const MutexLock lock(mutex_);
  const auto found = written_.find(key);
  if (found == written_.end()) return false;
  if (version_of(owner) < found->second) return true;
  written_.erase(found);
  return false;
}

client::Informer& Workload::watch_children(const Gvr& gvr, bool counted) {
  environment_.informers.of(gvr, kByController, index_by_controller);
  client::Informer& children = environment_.informers.of(gvr, kOrphans, index_orphans);
  client::InformerHandlers handlers;
  handlers.added = [this, counted](const Value& child, bool) {
    const std::string key = owner_key(child);
    if (counted && !key.empty()) {
      expectations_.creation_seen(key);
      if (is_deleting(child)) expectations_.deletion_seen(key, std::string(uid_of(child)));
    }
    child_seen(child, true);
  };
  handlers.updated = [this](const Value& before, const Value& after) {
    const std::string old_key = owner_key(before);
    const std::string key = owner_key(after);
    if (is_deleting(after) && !key.empty())
      expectations_.deletion_seen(key, std::string(uid_of(after)));
    if (!old_key.empty() && old_key != key) reconciler_.add(old_key);
    child_seen(after,
               !(before["metadata"]["labels"] == after["metadata"]["labels"]) || old_key != key);
  };
  handlers.removed = [this](const Value& child) {
    const std::string key = owner_key(child);
    if (key.empty()) return;
    expectations_.deletion_seen(key, std::string(uid_of(child)));
    reconciler_.add(key);
  };
  children.add_handler(std::move(handlers));
  return children;
}

std::string Workload::owner_key(const Value& child) const {
  const Value& controller = controller_of(child);
  if (controller["kind"].as_string() != kind_.kind) return {};
  const std::string_view group_version = controller["apiVersion"].as_string();
  const std::string_view group = group_version.find('/') == std::string_view::npos
                                     ? std::string_view()
                                     : group_version.substr(0, group_version.find('/'));
  if (group != kind_.gvr.group) return {};
  return client::key_of(namespace_of(child), controller["name"].as_string());
}

void Workload::child_seen(const Value& child, bool labels_new) {
  const std::string key = owner_key(child);
  if (!key.empty()) {
    reconciler_.add(key);
    return;
  }
  if (!labels_new || !controller_of(child).is_null() || is_deleting(child)) return;
  for (const Value& owner : owners_.by_index(kByNamespace, std::string(namespace_of(child)))) {
    const api::LabelSelector selector = selector_of(owner);
    if (!selector.empty() && selector.matches(child["metadata"]["labels"]))
      reconciler_.add(client::key_of(owner));
  }
}

client::WriteOptions Workload::writing() { return {.field_manager = std::string(kFieldManager)}; }

Result<std::vector<Value>> Workload::claim(const Value& owner, client::Informer& children,
                                           const Gvr& gvr,
                                           const std::function<bool(const Value&)>& fits) {
  std::vector<Value> claimed;
  const api::LabelSelector selector = selector_of(owner);
  const std::string name_space(namespace_of(owner));
  for (const Value& child : children.by_index(kByController, std::string(uid_of(owner)))) {
    if (namespace_of(child) != name_space) continue;
    if (selector.matches(child["metadata"]["labels"])) {
      claimed.push_back(child);
    } else if (!is_deleting(owner)) {
      auto released =
          environment_.client.patch(gvr, name_space, name_of(child), client::PatchType::strategic,
                                    release_patch(child, owner), writing());
      // Invalid: somebody else took the reference away, so that none is left to delete.
      if (!released.ok() && !is_gone(released.error()) && released.error().code() != Code::invalid)
        return std::move(released).error();
    }
  }
  if (is_deleting(owner) || selector.empty()) return claimed;
  bool owner_confirmed = false;
  for (const Value& orphan : children.by_index(kOrphans, name_space)) {
    if (is_deleting(orphan) || !selector.matches(orphan["metadata"]["labels"])) continue;
    if (fits && !fits(orphan)) continue;
    if (!owner_confirmed) {
      // The cache may still show an owner that is gone, or was replaced by one of the same name.
      DIBS_TRY(const Value fresh, environment_.client.get(kind_.gvr, name_space, name_of(owner)));
      if (uid_of(fresh) != uid_of(owner) || is_deleting(fresh)) return claimed;
      owner_confirmed = true;
    }
    auto adopted =
        environment_.client.patch(gvr, name_space, name_of(orphan), client::PatchType::strategic,
                                  adoption_patch(orphan, owner), writing());
    if (adopted.ok()) {
      claimed.push_back(std::move(*adopted));
    } else if (!is_gone(adopted.error())) {
      return std::move(adopted).error();
    }
  }
  return claimed;
}

void Workload::event(const Value& owner, bool warning, const std::string& reason,
                     const std::string& note) {
  environment_.events.event(kind_.component, owner, warning, reason, note);
}

Result<Value> Workload::create_pod(const std::string& key, const Value& owner, const Value& pod) {
  auto created = environment_.client.create(kPods, namespace_of(owner), pod, writing());
  if (created.ok()) {
    event(owner, false, "SuccessfulCreate", cat("Created pod: ", name_of(*created)));
    return created;
  }
  expectations_.creation_seen(key);
  if (!is_namespace_ending(created.error()))
    event(owner, true, "FailedCreate", cat("Error creating: ", created.error().message()));
  return created;
}

Result<> Workload::create_pods(const std::string& key, const Value& owner,
                               const std::vector<Value>& pods) {
  expectations_.expect_creations(key, static_cast<int>(pods.size()), now());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    auto created = create_pod(key, owner, pods[i]);
    if (created.ok()) continue;
    for (std::size_t rest = i + 1; rest < pods.size(); ++rest) expectations_.creation_seen(key);
    if (is_namespace_ending(created.error())) return success();
    return std::move(created).error();
  }
  return success();
}

Result<> Workload::remove_pod(const std::string& key, const Value& owner, const Value& pod) {
  const std::string uid(uid_of(pod));
  expectations_.expect_deletion(key, uid, now());
  auto removed = environment_.client.remove(kPods, namespace_of(pod), name_of(pod), {.uid = uid});
  if (removed.ok()) {
    event(owner, false, "SuccessfulDelete", cat("Deleted pod: ", name_of(pod)));
    return success();
  }
  expectations_.deletion_seen(key, uid);
  // A conflict is another uid: the pod that was meant is gone.
  if (is_gone(removed.error()) || removed.error().code() == Code::conflict) return success();
  event(owner, true, "FailedDelete", cat("Error deleting: ", removed.error().message()));
  return std::move(removed).error();
}

Result<Value> Workload::write_status(const Value& owner, const Value& status) {
  if (owner["status"] == status) return owner;
  Value changed = owner;
  changed.set("status", status);
  return write_whole_status(changed);
}

Result<Value> Workload::write_whole_status(const Value& changed) {
  auto written =
      environment_.client.update_status(kind_.gvr, namespace_of(changed), changed, writing());
  if (written.ok()) {
    const MutexLock lock(mutex_);
    written_[client::key_of(changed)] = version_of(*written);
  }
  return written;
}

Result<> Workload::keep_revision(const Value& owner, const RevisionPlan& plan) {
  if (plan.update) {
    auto updated =
        environment_.client.update(kRevisionResource, namespace_of(owner), plan.current, writing());
    if (!updated.ok()) return std::move(updated).error();
  }
  if (!plan.create) return success();
  auto made =
      environment_.client.create(kRevisionResource, namespace_of(owner), plan.current, writing());
  if (made.ok() || is_namespace_ending(made.error())) return success();
  if (made.error().code() != Code::already_exists) return std::move(made).error();
  auto found =
      environment_.client.get(kRevisionResource, namespace_of(owner), name_of(plan.current));
  if (found.ok() && (*found)["data"] == plan.current["data"]) return success();
  Value status = owner["status"];
  status.set("collisionCount", status["collisionCount"].as_int() + 1);
  auto written = write_status(owner, status);
  if (!written.ok()) return std::move(written).error();
  return std::move(made).error();
}

Result<> Workload::forget_revisions(const Value& owner, const RevisionPlan& plan,
                                    const std::vector<std::string>& in_use) {
  for (const Value& revision : surplus_revisions(owner, plan.past, in_use)) {
    auto removed =
        environment_.client.remove(kRevisionResource, namespace_of(owner), name_of(revision));
    if (!removed.ok() && !is_gone(removed.error())) return std::move(removed).error();
  }
  return success();
}

}  // namespace dibs::controllers
