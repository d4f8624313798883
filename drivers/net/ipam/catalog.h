#pragma once
// What is known of the cluster when addresses are given: pools, parsed once per change, reserved
// addresses, and the applications that pods belong to.
//
// Kept true by informers. Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "client/informer.h"
#include "drivers/net/ipam/applications.h"
#include "drivers/net/ipam/ledger.h"
#include "drivers/net/ipam/selection.h"

namespace dibs::drivers::net {

class PoolCatalog {
 public:
  /// Pools that may be used, and why others may not.
  struct Snapshot {
    Pools pools;
    std::map<std::string, std::string, std::less<>> refused;
  };

  PoolCatalog(client::Client& api, runtime::Runtime& runtime);

  /// For the start: `judged` is told that something other than the records of a pool has changed,
  /// `counted` that they have.
  void on_change(std::function<void(const std::string& pool)> judged,
                 std::function<void(const std::string& pool)> counted);
  void start() { informer_.start(); }
  void stop() { informer_.stop(); }
  bool synced() const { return informer_.synced(); }
  /// For who has not started it: asks the server.
  Result<> refresh();

  std::optional<KnownPool> known(const std::string& pool) const;
  std::vector<std::string> names() const;
  std::shared_ptr<const Snapshot> snapshot();

 private:
  struct Parsed {
    std::shared_ptr<const IpPool> pool;  // null: `fault`
    std::string fault;
    bool admitted = false;
    json::Value generation;
    json::Value object;  // only after refresh()
  };
  static Parsed parse(const json::Value& object);
  void put(const json::Value& object, const json::Value* before);
  void drop(const json::Value& object);

  client::Client& api_;
  client::Informer informer_;
  std::function<void(const std::string&)> judged_;
  std::function<void(const std::string&)> counted_;
  mutable Mutex mutex_;
  std::map<std::string, Parsed> parsed_ DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<const Snapshot> snapshot_ DIBS_GUARDED_BY(mutex_);  // null: to be made
};

/// SpiderReservedIPs.
class ReservedCatalog {
 public:
  ReservedCatalog(client::Client& api, runtime::Runtime& runtime);

  void on_change(std::function<void(const std::string& name)> changed);
  void start() { informer_.start(); }
  void stop() { informer_.stop(); }
  bool synced() const { return informer_.synced(); }
  /// As PoolCatalog::refresh().
  Result<> refresh();

  std::optional<json::Value> get(const std::string& name) const { return informer_.get(name); }
  /// All addresses of both families; another pointer when they have changed.
  std::shared_ptr<const IpSet> addresses() const;

 private:
  void gather(const std::vector<json::Value>& objects);

  client::Client& api_;
  client::Informer informer_;
  std::function<void(const std::string&)> changed_;
  mutable Mutex mutex_;
  std::shared_ptr<const IpSet> addresses_ DIBS_GUARDED_BY(mutex_) = std::make_shared<IpSet>();
};

/// Finds the application of a pod. What controls a ReplicaSet or a Job is asked for once.
class Owners {
 public:
  explicit Owners(client::Client& api) : api_(api) {}

  /// Errors: the server does not answer.
  Result<Application> application(const json::Value& pod);
  /// Is it of a kind whose replicas are known here?
  static bool knows(const Application& application);
  /// The object; null where it is gone, or a kind that is not known here.
  Result<json::Value> controller(const Application& application);

 private:
  client::Client& api_;
  Mutex mutex_;
  std::map<std::string, json::Value> known_ DIBS_GUARDED_BY(mutex_);  // metadata, by uid
};

/// Gets the object; null where it is not there.
Result<json::Value> find_object(client::Client& api, const client::Gvr& gvr,
                                std::string_view name_space, std::string_view name);

inline const client::Gvr kPodResource = {"", "v1", "pods"};
inline const client::Gvr kStatefulSetResource = {"apps", "v1", "statefulsets"};

}  // namespace dibs::drivers::net
