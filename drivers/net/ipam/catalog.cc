#include "drivers/net/ipam/catalog.h"

#include "drivers/net/model/reserved_ip.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

// Owners of pods that are remembered; more begin anew.
constexpr std::size_t kMostOwners = 4096;

client::InformerOptions all_of(const client::Gvr& gvr) {
  client::InformerOptions options;
  options.gvr = gvr;
  return options;
}

bool same_but_records(const Value& a, const Value& b) {
  return a["spec"] == b["spec"] && a["metadata"]["labels"] == b["metadata"]["labels"] &&
         a["metadata"]["finalizers"] == b["metadata"]["finalizers"] &&
         a["metadata"]["deletionTimestamp"] == b["metadata"]["deletionTimestamp"] &&
         a["status"]["admittedIPs"] == b["status"]["admittedIPs"] &&
         a["metadata"]["uid"] == b["metadata"]["uid"];
}

std::optional<client::Gvr> resource_of(const Application& application) {
  static constexpr std::pair<const char*, const char*> kKinds[] = {{"Deployment", "deployments"},
                                                                   {"ReplicaSet", "replicasets"},
                                                                   {"StatefulSet", "statefulsets"},
                                                                   {"DaemonSet", "daemonsets"},
                                                                   {"Job", "jobs"},
                                                                   {"CronJob", "cronjobs"}};
  if (application.api_group != "apps" && application.api_group != "batch") return std::nullopt;
  for (const auto& [kind, resource] : kKinds) {
    if (application.kind == kind) {
      return client::Gvr{application.api_group, application.api_version, resource};
    }
  }
  return std::nullopt;
}

}  // namespace

PoolCatalog::PoolCatalog(client::Client& api, runtime::Runtime& runtime)
    : api_(api), informer_(api, runtime, all_of(kIpPools)) {
  informer_.add_handler({[this](const Value& object, bool) { put(object, nullptr); },
                         [this](const Value& before, const Value& object) { put(object, &before); },
                         [this](const Value& object) { drop(object); }});
}

void PoolCatalog::on_change(std::function<void(const std::string&)> judged,
                            std::function<void(const std::string&)> counted) {
  judged_ = std::move(judged);
  counted_ = std::move(counted);
}

PoolCatalog::Parsed PoolCatalog::parse(const Value& object) {
  Parsed parsed;
  parsed.generation = object["metadata"]["generation"];
  auto pool = parse_ip_pool(object);
  if (!pool) {
    parsed.fault = pool.error().message();
    return parsed;
  }
  parsed.pool = std::make_shared<IpPool>(std::move(pool).value());
  const auto status = parse_pool_status(object);
  parsed.fault = status ? admission_fault(*parsed.pool, *status) : status.error().message();
  parsed.admitted = parsed.fault.empty();
  return parsed;
}

Result<> PoolCatalog::refresh() {
  DIBS_TRY(const auto listed, api_.list(kIpPools, ""));
  std::map<std::string, Parsed> parsed;
  for (const auto& object : listed.items) {
    Parsed& one = parsed[std::string(client::name_of(object))];
    one = parse(object);
    one.object = object;
  }
  const MutexLock lock(mutex_);
  parsed_ = std::move(parsed);
  snapshot_ = nullptr;
  return success();
}

void PoolCatalog::put(const Value& object, const Value* before) {
  const std::string name(client::name_of(object));
  const bool same = before != nullptr && same_but_records(*before, object);
  if (!same) {
    Parsed parsed = parse(object);
    const MutexLock lock(mutex_);
    parsed_[name] = std::move(parsed);
    snapshot_ = nullptr;
  }
  const auto& tell = same ? counted_ : judged_;
  if (tell) tell(name);
}

void PoolCatalog::drop(const Value& object) {
  const std::string name(client::name_of(object));
  {
    const MutexLock lock(mutex_);
    parsed_.erase(name);
    snapshot_ = nullptr;
  }
  if (judged_) judged_(name);
}

std::optional<KnownPool> PoolCatalog::known(const std::string& pool) const {
  auto object = informer_.get(pool);
  const MutexLock lock(mutex_);
  const auto found = parsed_.find(pool);
  if (!object && found != parsed_.end() && found->second.object.is_object()) {
    object = found->second.object;
  }
  if (!object) return std::nullopt;
  // What the handler has not seen yet is parsed by who needs it.
  std::shared_ptr<const IpPool> parsed = found == parsed_.end() ? nullptr : found->second.pool;
  const Value& metadata = (*object)["metadata"];
  if (parsed != nullptr && (parsed->uid != metadata["uid"].as_string() ||
                            parsed->terminating != metadata.contains("deletionTimestamp") ||
                            !(found->second.generation == metadata["generation"]))) {
    parsed = nullptr;
  }
  return KnownPool{std::move(*object), std::move(parsed)};
}

std::vector<std::string> PoolCatalog::names() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, parsed] : parsed_) out.push_back(name);
  return out;
}

std::shared_ptr<const PoolCatalog::Snapshot> PoolCatalog::snapshot() {
  const MutexLock lock(mutex_);
  if (snapshot_ != nullptr) return snapshot_;
  auto made = std::make_shared<Snapshot>();
  std::vector<IpPool> others;
  for (const auto& [name, parsed] : parsed_) {
    if (parsed.admitted) {
      made->pools[name] = parsed.pool;
    } else {
      made->refused[name] = parsed.fault;
    }
  }
  for (const auto& [name, parsed] : parsed_) {
    if (parsed.admitted || parsed.pool == nullptr) continue;
    if (others.empty()) {
      for (const auto& [other, its] : parsed_) {
        if (its.pool != nullptr) others.push_back(*its.pool);
      }
    }
    if (const auto faults = conflicts(*parsed.pool, others); !faults.empty()) {
      made->refused[name] = faults.front();
    }
  }
  snapshot_ = made;
  return snapshot_;
}

ReservedCatalog::ReservedCatalog(client::Client& api, runtime::Runtime& runtime)
    : api_(api), informer_(api, runtime, all_of(kReservedIps)) {
  const auto changed = [this](const Value& object) {
    gather(informer_.list());
    if (changed_) changed_(std::string(client::name_of(object)));
  };
  informer_.add_handler({[changed](const Value& object, bool) { changed(object); },
                         [changed](const Value&, const Value& object) { changed(object); },
                         changed});
}

void ReservedCatalog::on_change(std::function<void(const std::string&)> changed) {
  changed_ = std::move(changed);
}

Result<> ReservedCatalog::refresh() {
  DIBS_TRY(const auto listed, api_.list(kReservedIps, ""));
  gather(listed.items);
  return success();
}

void ReservedCatalog::gather(const std::vector<Value>& objects) {
  auto all = std::make_shared<IpSet>();
  for (const auto& object : objects) {
    const auto reserved = parse_reserved_ip(object);
    if (reserved && !reserved->terminating) all->add(reserved->ips);
  }
  const MutexLock lock(mutex_);
  if (!(*all == *addresses_)) addresses_ = std::move(all);
}

std::shared_ptr<const IpSet> ReservedCatalog::addresses() const {
  const MutexLock lock(mutex_);
  return addresses_;
}

Result<Application> Owners::application(const Value& pod) {
  Application direct = controller_of(pod);
  const bool has_owner = direct.kind == "ReplicaSet" || direct.kind == "Job";
  const auto gvr = resource_of(direct);
  if (!has_owner || !gvr) return application_of(pod, Value());
  {
    const MutexLock lock(mutex_);
    const auto found = known_.find(direct.uid);
    if (found != known_.end()) return application_of(pod, found->second);
  }
  DIBS_TRY(Value controller, find_object(api_, *gvr, client::namespace_of(pod), direct.name));
  if (controller.is_object() && client::uid_of(controller) == direct.uid) {
    Value kept = controller;
    kept.erase("spec");
    kept.erase("status");
    const MutexLock lock(mutex_);
    if (known_.size() >= kMostOwners) known_.clear();
    known_[direct.uid] = std::move(kept);
  }
  return application_of(pod, controller);
}

bool Owners::knows(const Application& application) { return resource_of(application).has_value(); }

Result<Value> Owners::controller(const Application& application) {
  const auto gvr = resource_of(application);
  if (!gvr) return Value();
  DIBS_TRY(Value found, find_object(api_, *gvr, application.name_space, application.name));
  if (!application.uid.empty() && client::uid_of(found) != application.uid) return Value();
  return found;
}

Result<Value> find_object(client::Client& api, const client::Gvr& gvr, std::string_view name_space,
                          std::string_view name) {
  auto found = api.get(gvr, name_space, name);
  if (!found && found.error().code() == Code::not_found) return Value();
  return found;
}

}  // namespace dibs::drivers::net
