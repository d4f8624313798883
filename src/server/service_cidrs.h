#pragma once
// The ranges that Services have their addresses of, and the objects that say who has which.
//
// The Service is the truth about its address. An IPAddress of that name is written and removed in
// the same transaction (plugins/service_addresses.cc), so it is there whenever the Service is, and
// what somebody else has reserved by one is never given out. Nothing is left to repair but what
// others did: a Service from a time, or a store, without these objects, an IPAddress that a user
// made or removed. AddressRepair sees to that.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ipv4.h"
#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/options.h"
#include "server/plugins/store_follower.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

/// The ServiceCIDR that every cluster begins with: its --service-cluster-ip-range.
inline constexpr std::string_view kDefaultServiceCidr = "kubernetes";
Value default_service_cidr(const std::string& range, Time now);

/// The IPv4 ranges of ServiceCIDRs that addresses may be given out of: those that are ready and
/// stay. The default one comes first, each once.
std::vector<Ipv4Range> usable_ranges(const std::vector<Value>& cidrs);

/// An IPAddress of a Service, without what the store's own are given (uid, time).
Value ip_address(const Resource& resource, std::string_view address, std::string_view name_space,
                 std::string_view service, const std::string& uid, Time now);
/// "NAMESPACE/NAME" of the Service that the IPAddress is of; "" where it is of something else.
std::string service_of_address(const Value& ip_address);

/// Runs from construction to stop(). Looks every minute, which costs what has changed since.
class AddressRepair {
 public:
  AddressRepair(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
                const Options& options);
  ~AddressRepair() { stop(); }
  void stop();

  /// One look; returns how many objects it wrote or removed.
  std::size_t sweep();

 private:
  struct Address {
    std::string service;  // "": of something else
    bool managed = false;
    Time made = {};
    store::Revision modified = 0;
  };
  void schedule();
  void catch_up(const Resource& services, const Resource& addresses) DIBS_REQUIRES(mutex_);
  std::vector<store::Op> faults(const Resource& services, const Resource& addresses)
      DIBS_REQUIRES(mutex_);

  runtime::Runtime& runtime_;
  store::Store& store_;
  ResourceTable& resources_;
  const Options& options_;
  Mutex mutex_;
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
  bool begun_ DIBS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<StoreFollower> service_follower_ DIBS_GUARDED_BY(mutex_);
  std::unique_ptr<StoreFollower> address_follower_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> services_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, Address> addresses_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
