// Deletes what has lost its owners, and carries out what a deletion's propagation policy asks for.
//
// Watches the metadata of every resource that can be listed, watched and deleted, custom ones as
// they come and go, and keeps the graph of owners (owner_graph.h). Before anything is deleted, the
// object and the owners that are not in the graph are read from the server: the graph may lag, and
// an owner by an older API version is still an owner.
#include <set>

#include "base/finalizers.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/owner_graph.h"

namespace dibs::controllers {
namespace {

const Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const Gvr kApiServices = {"apiregistration.k8s.io", "v1", "apiservices"};
constexpr Duration kRescan = std::chrono::seconds(30);
constexpr Duration kSoon = std::chrono::milliseconds(10);
// A resource whose list never comes must not hold up all the others.
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr std::string_view kOrphan = "orphan/";

/// All that the graph needs; labels and field managers would only fill memory.
Value keep_owners(const Value& object) {
  const Value& from = object["metadata"];
  Value metadata = Value::object();
  for (const char* key : {"name", "namespace", "uid", "resourceVersion", "deletionTimestamp",
                          "finalizers", "ownerReferences"}) {
    if (const Value* found = from.find(key)) metadata.set(key, *found);
  }
  return Value::object({{"metadata", std::move(metadata)}});
}

class GarbageCollector : public Controller {
 public:
  explicit GarbageCollector(Environment& environment)
      : environment_(environment),
        loop_(
            environment, "garbage-collector",
            [this](const std::string& key) { return reconcile(key); }, 8),
        scan_(
            environment, "garbage-collector-scan", [this](const std::string&) { return scan(); },
            1) {
    for (const Gvr& what : {kDefinitions, kApiServices}) {
      if (!environment.discovery.serves(what.group, what.resource)) continue;
      scan_.follow(environment.informers.of(what), [this](const Value&) { scan_.add("all"); });
    }
  }
  ~GarbageCollector() override { GarbageCollector::stop(); }

  void start() override { scan_.add("all"); }

  void stop() override {
    scan_.stop();
    loop_.stop();
    std::map<std::string, Monitor> ending;
    {
      const MutexLock lock(monitors_mutex_);
      ending.swap(monitors_);
    }
    for (auto& [path, monitor] : ending) monitor.informer->stop();
  }

 private:
  struct Monitor {
    std::shared_ptr<client::Informer> informer;
    Duration since{0};
  };

  Result<WorkOutcome> scan() {
    DIBS_CHECK(environment_.discovery.refresh(environment_.client));
    std::set<std::string> present;
    for (const auto& resource : environment_.discovery.resources()) {
      const bool watched = resource.can("list") && resource.can("watch") && resource.can("delete");
      if (!watched || resource.gvr.resource == "events") continue;
      const std::string path = client::path_of(resource.gvr, "");
      present.insert(path);
      watch(path, resource);
    }
    std::vector<std::shared_ptr<client::Informer>> ending;
    {
      const MutexLock lock(monitors_mutex_);
      for (auto at = monitors_.begin(); at != monitors_.end();) {
        if (present.contains(at->first)) {
          ++at;
        } else {
          ending.push_back(at->second.informer);
          at = monitors_.erase(at);
        }
      }
    }
    for (auto& informer : ending) {
      informer->stop();
      for (const auto& object : informer->list()) seen_removed(object);
    }
    return WorkOutcome::again_after(kRescan);
  }

  void watch(const std::string& path, const ServedResource& resource) {
    std::shared_ptr<client::Informer> informer;
    {
      const MutexLock lock(monitors_mutex_);
      if (monitors_.contains(path)) return;
      client::InformerOptions options;
      options.gvr = resource.gvr;
      options.metadata_only = true;
      options.keep = keep_owners;
      informer = std::make_shared<client::Informer>(environment_.client, environment_.runtime,
                                                    std::move(options));
      monitors_[path] = {informer, environment_.runtime.clock.steady()};
    }
    const Gvr gvr = resource.gvr;
    const std::string kind = resource.kind;
    informer->add_handler(
        {.added = [this, gvr, kind](const Value& object, bool) { seen(gvr, kind, object); },
         .updated =
             [this, gvr, kind](const Value& before, const Value& after) {
               // The same name may be another object by now.
               if (uid_of(before) != uid_of(after)) seen_removed(before);
               seen(gvr, kind, after);
             },
         .removed = [this](const Value& object) { seen_removed(object); }});
    informer->start();
  }

  void seen(const Gvr& gvr, const std::string& kind, const Value& object) {
    GraphWork work;
    {
      const MutexLock lock(mutex_);
      work = graph_.put(read_owned(gvr, kind, object));
    }
    queue(work);
  }

  void seen_removed(const Value& object) {
    GraphWork work;
    {
      const MutexLock lock(mutex_);
      work = graph_.remove(std::string(uid_of(object)));
    }
    queue(work);
  }

  void queue(const GraphWork& work) {
    for (const auto& uid : work.check) loop_.add(uid);
    for (const auto& uid : work.orphan) loop_.add(cat(kOrphan, uid));
  }

  bool synced() {
    const Duration now = environment_.runtime.clock.steady();
    const MutexLock lock(monitors_mutex_);
    if (monitors_.empty()) return false;
    for (const auto& [path, monitor] : monitors_) {
      if (!monitor.informer->synced() && now - monitor.since < kPatience) return false;
    }
    return true;
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    if (!synced()) return WorkOutcome::again_after(kSoon);
    const bool orphan = key.starts_with(kOrphan);
    const std::string uid = orphan ? key.substr(kOrphan.size()) : key;
    OwnedObject object;
    {
      const MutexLock lock(mutex_);
      const OwnedObject* found = graph_.find(uid);
      if (found == nullptr) return done();
      object = *found;
    }
    if (orphan) return orphan_dependents(object);
    return check(object);
  }

  /// The object as the server has it, or null when it is gone.
  Result<Value> read(const OwnedObject& object) {
    auto live = environment_.client.get(object.gvr, object.name_space, object.name);
    if (!live) {
      if (is_gone(live.error())) return Value();
      return live.error();
    }
    if (uid_of(*live) != object.uid) return Value();
    return live;
  }

  Result<WorkOutcome> check(const OwnedObject& known) {
    if (known.deleting && !known.deletes_dependents()) return done();
    DIBS_TRY(const Value live, read(known));
    if (live.is_null()) return done();
    const OwnedObject object = read_owned(known.gvr, known.kind, live);
    if (object.deletes_dependents()) return finish_foreground(object, live);
    if (object.deleting || object.owners.empty()) return done();

    std::vector<Owner> solid;
    std::vector<Owner> waiting;
    bool dangling = false;
    for (const Owner& owner : object.owners) {
      DIBS_TRY(const OwnerState state, state_of(owner, object));
      if (state == OwnerState::gone) {
        dangling = true;
      } else if (state == OwnerState::waits && owner.blocks) {
        waiting.push_back(owner);
      } else {
        solid.push_back(owner);
      }
    }
    if (!solid.empty()) {
      if (!dangling && waiting.empty()) return done();
      DIBS_CHECK(set_owners(object, live, solid));
      return done();
    }
    std::string policy = "Background";
    if (!waiting.empty()) {
      const auto dependents = dependents_of(object.uid);
      if (!dependents.empty()) {
        // In a circle each would wait for the other.
        for (const OwnedObject& dependent : dependents) {
          if (dependent.deletes_dependents()) {
            DIBS_CHECK(unblock(object, live));
            break;
          }
        }
        policy = "Foreground";
      }
    }
    if (object.orphan) policy = "Orphan";
    if (object.foreground) policy = "Foreground";
    client::DeleteOptions options;
    options.propagation = policy;
    options.uid = object.uid;
    auto removed = environment_.client.remove(object.gvr, object.name_space, object.name, options);
    if (!removed && !is_gone(removed.error())) {
      // Another object of that name, so this one is gone.
      if (removed.error().code() == Code::conflict) return done();
      return removed.error();
    }
    return done();
  }

  enum class OwnerState : std::uint8_t { there, waits, gone };

  Result<OwnerState> state_of(const Owner& owner, const OwnedObject& dependent) {
    {
      const MutexLock lock(mutex_);
      const OwnedObject* found = graph_.find(owner.uid);
      if (found != nullptr && found->kind == owner.kind && found->name == owner.name &&
          found->gvr.group == group_of(owner.api_version) &&
          (found->name_space.empty() || found->name_space == dependent.name_space)) {
        return found->deletes_dependents() ? OwnerState::waits : OwnerState::there;
      }
    }
    const auto resource = environment_.discovery.find_kind(owner.api_version, owner.kind);
    if (!resource) {
      return Error::unavailable(
          cat("owner kind ", owner.kind, " of ", owner.api_version, " is not served"));
    }
    // A cluster-wide object cannot be owned by a namespaced one: there is no such owner.
    if (resource->namespaced && dependent.name_space.empty()) return OwnerState::gone;
    auto live = environment_.client.get(
        resource->gvr, resource->namespaced ? dependent.name_space : "", owner.name);
    if (!live) {
      if (is_gone(live.error())) return OwnerState::gone;
      return live.error();
    }
    if (uid_of(*live) != owner.uid) return OwnerState::gone;
    return read_owned(resource->gvr, resource->kind, *live).deletes_dependents()
               ? OwnerState::waits
               : OwnerState::there;
  }

  std::vector<OwnedObject> dependents_of(const std::string& uid) {
    const MutexLock lock(mutex_);
    return graph_.dependents(uid);
  }

  Result<WorkOutcome> finish_foreground(const OwnedObject& object, const Value& live) {
    std::vector<OwnedObject> blocking;
    {
      const MutexLock lock(mutex_);
      blocking = graph_.blocking(object.uid);
    }
    if (blocking.empty()) {
      DIBS_CHECK(drop_finalizer(object, live, kForegroundFinalizer));
      return done();
    }
    for (const OwnedObject& dependent : blocking) {
      if (!dependent.deletes_dependents()) loop_.add(dependent.uid);
    }
    return done();
  }

  Result<WorkOutcome> orphan_dependents(const OwnedObject& known) {
    for (const OwnedObject& dependent : dependents_of(known.uid)) {
      DIBS_TRY(const Value live, read(dependent));
      if (live.is_null()) continue;
      const OwnedObject object = read_owned(dependent.gvr, dependent.kind, live);
      if (!object.owned_by(known.uid)) continue;
      std::vector<Owner> rest = object.owners;
      std::erase_if(rest, [&](const Owner& owner) { return owner.uid == known.uid; });
      DIBS_CHECK(set_owners(object, live, rest));
    }
    DIBS_TRY(const Value live, read(known));
    if (!live.is_null()) DIBS_CHECK(drop_finalizer(known, live, kOrphanFinalizer));
    return done();
  }

  /// Leaves only the references to `owners`, as they are written.
  Result<> set_owners(const OwnedObject& object, const Value& live,
                      const std::vector<Owner>& owners) {
    Value references = Value::array();
    for (const auto& reference : live["metadata"]["ownerReferences"].items()) {
      for (const Owner& owner : owners) {
        if (reference["uid"].as_string() == owner.uid) references.push(reference);
      }
    }
    return patch(object, live, "ownerReferences",
                 references.empty() ? Value() : std::move(references));
  }

  Result<> unblock(const OwnedObject& object, const Value& live) {
    Value references = live["metadata"]["ownerReferences"];
    for (std::size_t i = 0; i < references.size(); ++i) {
      references.mut(i).set("blockOwnerDeletion", false);
    }
    return patch(object, live, "ownerReferences", std::move(references));
  }

  Result<> drop_finalizer(const OwnedObject& object, const Value& live, std::string_view name) {
    Value rest = Value::array();
    bool found = false;
    for (const auto& finalizer : live["metadata"]["finalizers"].items()) {
      if (finalizer.as_string() == name) {
        found = true;
      } else {
        rest.push(finalizer);
      }
    }
    if (!found) return success();
    return patch(object, live, "finalizers", std::move(rest));
  }

  /// Of the object exactly as it was read; a change in between is a conflict and tried again.
  Result<> patch(const OwnedObject& object, const Value& live, std::string_view field,
                 Value value) {
    const Value body = Value::object(
        {{"metadata", Value::object({{field, std::move(value)},
                                     {"uid", object.uid},
                                     {"resourceVersion", live["metadata"]["resourceVersion"]}})}});
    auto written = environment_.client.patch(object.gvr, object.name_space, object.name,
                                             client::PatchType::merge, body);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  Environment& environment_;
  Mutex mutex_;
  OwnerGraph graph_ DIBS_GUARDED_BY(mutex_);
  Mutex monitors_mutex_;
  std::map<std::string, Monitor> monitors_ DIBS_GUARDED_BY(monitors_mutex_);  // by path
  Reconciler loop_;
  Reconciler scan_;
};

}  // namespace

ControllerPtr make_garbage_collector(Environment& environment) {
  return std::make_unique<GarbageCollector>(environment);
}

}  // namespace dibs::controllers
