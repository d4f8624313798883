#pragma once
// What the parts of the collector share. Each part works on one thing at a time, in the collector's
// queue.

#include <functional>
#include <string>

#include "client/client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "drivers/net/ipam/catalog.h"
#include "drivers/net/ipam/collector.h"
#include "drivers/net/ipam/endpoints.h"

namespace dibs::drivers::net {

struct Collecting {
  client::Client& api;
  runtime::Runtime& runtime;
  const CollectorOptions& options;
  PoolCatalog& pools;
  ReservedCatalog& reserved;
  client::Informer& endpoints;
  client::Informer& pods;  // pod_kept() of them
  Owners& owners;
  client::EventRecorder& events;
  /// Has that looked at soon: the records of a pool.
  std::function<void(const std::string& pool)> look_at_records;
};

/// What the collector needs of a pod.
json::Value pod_kept(const json::Value& pod);
/// When the addresses of a pod that has ended are free.
Time end_of_use(const json::Value& pod, Duration delay);

/// done, or retry with the reason in the log. A conflict is no news, nor a server that is away.
client::WorkOutcome outcome_of(const Result<>& result, std::string_view what);

/// The object without the driver's finalizer.
json::Value without_finalizer(const json::Value& object);

/// Tells once what is wrong with an object, and again when that changes.
class Complaints {
 public:
  explicit Complaints(client::EventRecorder& events) : events_(events) {}
  /// `fault` "": nothing is.
  void tell(const json::Value& object, std::string_view reason, const std::string& fault);

 private:
  client::EventRecorder& events_;
  std::map<std::string, std::string> told_;  // by uid
};

}  // namespace dibs::drivers::net
