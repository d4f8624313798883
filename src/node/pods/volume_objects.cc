#include "node/pods/volume_objects.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/informer.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr& resource_of(PodObjectKind kind) {
  static const client::Gvr config_maps{"", "v1", "configmaps"};
  static const client::Gvr secrets{"", "v1", "secrets"};
  return kind == PodObjectKind::config_map ? config_maps : secrets;
}

struct ObjectKey {
  PodObjectKind kind = PodObjectKind::config_map;
  std::string name_space;
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

void add_volume(const Value& volume, const std::string& name_space, std::set<ObjectKey>& keys) {
  const auto add = [&](PodObjectKind kind, const Value& name) {
    if (name.is_string()) keys.insert({kind, name_space, name.str()});
  };
  add(PodObjectKind::config_map, volume["configMap"]["name"]);
  add(PodObjectKind::secret, volume["secret"]["secretName"]);
  for (const auto& source : volume["projected"]["sources"].items()) {
    add(PodObjectKind::config_map, source["configMap"]["name"]);
    add(PodObjectKind::secret, source["secret"]["name"]);
  }
}

std::set<ObjectKey> objects_of(const Value& pod) {
  std::set<ObjectKey> keys;
  const std::string name_space = pod["metadata"]["namespace"].str();
  const auto add = [&](PodObjectKind kind, const Value& name) {
    if (name.is_string()) keys.insert({kind, name_space, name.str()});
  };
  for (const auto& volume : pod["spec"]["volumes"].items()) add_volume(volume, name_space, keys);
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      for (const auto& from : container["envFrom"].items()) {
        add(PodObjectKind::config_map, from["configMapRef"]["name"]);
        add(PodObjectKind::secret, from["secretRef"]["name"]);
      }
      for (const auto& variable : container["env"].items()) {
        add(PodObjectKind::config_map, variable["valueFrom"]["configMapKeyRef"]["name"]);
        add(PodObjectKind::secret, variable["valueFrom"]["secretKeyRef"]["name"]);
      }
    }
  }
  return keys;
}

Error not_found(PodObjectKind kind, const std::string& name) {
  return Error::not_found(cat(kind_name(kind), ' ', quoted(name), " not found"));
}

class WatchedObjects : public PodObjects {
 public:
  WatchedObjects(client::Client& client, runtime::Runtime& runtime, PodObjectsOptions options)
      : client_(client), runtime_(runtime), options_(options) {}

  ~WatchedObjects() override {
    std::map<ObjectKey, std::shared_ptr<Entry>> entries;
    {
      const MutexLock lock(mutex_);
      entries.swap(entries_);
    }
    for (auto& [key, entry] : entries) entry->informer->stop();
  }

  void retain(const Value& pod) override {
    if (!options_.watch) return;
    const std::string uid = pod["metadata"]["uid"].str();
    auto wanted = objects_of(pod);
    std::vector<std::shared_ptr<Entry>> fresh;
    std::vector<std::shared_ptr<Entry>> unused;
    {
      const MutexLock lock(mutex_);
      auto& held = pods_[uid];
      for (const auto& key : wanted) {
        auto& entry = entries_[key];
        if (entry == nullptr) {
          entry = make_entry(key);
          fresh.push_back(entry);
        }
        entry->pods.insert(uid);
      }
      for (const auto& key : held) {
        if (wanted.count(key) == 0) drop(key, uid, unused);
      }
      held = std::move(wanted);
    }
    for (const auto& entry : fresh) entry->informer->start();
    // Handlers of these may wait for the mutex: they are ended without it.
    for (const auto& entry : unused) entry->informer->stop();
  }

  void release(const std::string& pod_uid) override {
    std::vector<std::shared_ptr<Entry>> unused;
    {
      const MutexLock lock(mutex_);
      const auto at = pods_.find(pod_uid);
      if (at == pods_.end()) return;
      for (const auto& key : at->second) drop(key, pod_uid, unused);
      pods_.erase(at);
    }
    for (const auto& entry : unused) entry->informer->stop();
  }

  Result<Value> get(PodObjectKind kind, const std::string& name_space,
                    const std::string& name) override {
    std::shared_ptr<Entry> entry;
    {
      const MutexLock lock(mutex_);
      const auto at = entries_.find({kind, name_space, name});
      if (at != entries_.end()) entry = at->second;
      // A change that comes while it is being read is told of, whatever the reader gets to see.
      if (entry != nullptr) entry->told = "?";
    }
    if (entry != nullptr && entry->informer->synced()) {
      auto known = entry->informer->get(client::key_of(name_space, name));
      note(*entry, known ? *known : Value());
      if (!known) return not_found(kind, name);
      return *known;
    }
    auto read = client_.get(resource_of(kind), name_space, name);
    if (entry != nullptr) note(*entry, read ? *read : Value());
    if (!read && read.error().code() == Code::not_found) return not_found(kind, name);
    return read;
  }

  void on_change(std::function<void(const std::string&)> changed) override {
    const MutexLock lock(mutex_);
    changed_ = std::move(changed);
  }

 private:
  struct Entry {
    std::unique_ptr<client::Informer> informer;
    std::set<std::string> pods;
    /// Version of the object as it was last given out; "" for none, nothing when nobody asked.
    std::optional<std::string> told;
  };

  std::shared_ptr<Entry> make_entry(const ObjectKey& key) {
    auto entry = std::make_shared<Entry>();
    client::InformerOptions options;
    options.gvr = resource_of(key.kind);
    options.name_space = key.name_space;
    options.field_selector = cat("metadata.name=", key.name);
    entry->informer = std::make_unique<client::Informer>(client_, runtime_, std::move(options));
    const std::weak_ptr<Entry> weak = entry;
    client::InformerHandlers handlers;
    handlers.added = [this, weak](const Value& object, bool) { on_seen(weak, object); };
    handlers.updated = [this, weak](const Value&, const Value& object) { on_seen(weak, object); };
    handlers.removed = [this, weak](const Value&) { on_seen(weak, Value()); };
    entry->informer->add_handler(std::move(handlers));
    return entry;
  }

  void drop(const ObjectKey& key, const std::string& uid,
            std::vector<std::shared_ptr<Entry>>& unused) DIBS_REQUIRES(mutex_) {
    const auto at = entries_.find(key);
    if (at == entries_.end()) return;
    at->second->pods.erase(uid);
    if (!at->second->pods.empty()) return;
    unused.push_back(std::move(at->second));
    entries_.erase(at);
  }

  void note(Entry& entry, const Value& object) {
    const MutexLock lock(mutex_);
    entry.told = object["metadata"]["resourceVersion"].str();
  }

  void on_seen(const std::weak_ptr<Entry>& weak, const Value& object) {
    const auto entry = weak.lock();
    if (entry == nullptr) return;
    std::vector<std::string> pods;
    std::function<void(const std::string&)> changed;
    {
      const MutexLock lock(mutex_);
      // What nobody has read yet cannot have changed for anybody.
      if (!entry->told || *entry->told == object["metadata"]["resourceVersion"].as_string()) return;
      pods.assign(entry->pods.begin(), entry->pods.end());
      changed = changed_;
    }
    if (!changed) return;
    for (const auto& uid : pods) changed(uid);
  }

  client::Client& client_;
  runtime::Runtime& runtime_;
  const PodObjectsOptions options_;
  Mutex mutex_;
  std::map<ObjectKey, std::shared_ptr<Entry>> entries_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::set<ObjectKey>> pods_ DIBS_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> changed_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace

std::string_view kind_name(PodObjectKind kind) {
  return kind == PodObjectKind::config_map ? "configmap" : "secret";
}

std::unique_ptr<PodObjects> make_pod_objects(client::Client& client, runtime::Runtime& runtime,
                                             PodObjectsOptions options) {
  return std::make_unique<WatchedObjects>(client, runtime, options);
}

}  // namespace dibs::node
