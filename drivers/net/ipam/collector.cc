#include "drivers/net/ipam/collector.h"

#include <atomic>

#include "base/strings.h"
#include "drivers/net/ipam/auto_pools.h"
#include "drivers/net/ipam/collecting.h"
#include "drivers/net/ipam/garbage.h"
#include "drivers/net/ipam/pool_judge.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

// Keys of the queue: "pools", "subnets", and these with a name behind.
constexpr std::string_view kReserved = "reserved ";
constexpr std::string_view kEndpoint = "endpoint ";
constexpr std::string_view kRecords = "records ";
constexpr std::string_view kPod = "pod ";
constexpr std::string_view kReclaim = "reclaim ";

client::InformerOptions all_of(const client::Gvr& gvr) {
  client::InformerOptions options;
  options.gvr = gvr;
  return options;
}

client::InformerOptions pods_kept() {
  client::InformerOptions options = all_of(kPodResource);
  options.keep = pod_kept;
  return options;
}

bool names_subnet(const Value& pod) {
  const Value& annotations = pod["metadata"]["annotations"];
  return annotations.contains("ipam.spidernet.io/subnet") ||
         annotations.contains("ipam.spidernet.io/subnets");
}

}  // namespace

struct Collector::State {
  State(driver::Environment environment, CollectorOptions given)
      : options(given),
        runtime(environment.runtime),
        pools(environment.api, runtime),
        reserved(environment.api, runtime),
        endpoints(environment.api, runtime, all_of(kEndpoints)),
        pods(environment.api, runtime, pods_kept()),
        subnets(environment.api, runtime, all_of(kSubnets)),
        owners(environment.api),
        events(environment.api, runtime, {std::string(kGroup), "spiderpool-controller"}),
        shared{environment.api,
               runtime,
               options,
               pools,
               reserved,
               endpoints,
               pods,
               owners,
               events,
               [this](const std::string& pool) { queue.add(cat(kRecords, pool)); }},
        judge(shared),
        garbage(shared),
        auto_pools(shared),
        queue(runtime, {}, [this](const std::string& key) { return work(key); }) {}

  void start() {
    pools.on_change([this](const std::string& pool) { pool_changed(pool); },
                    [this](const std::string& pool) { records_changed(pool); });
    reserved.on_change([this](const std::string& name) { queue.add(cat(kReserved, name)); });
    endpoints.add_handler(
        {[this](const Value& object, bool) { endpoint_changed(nullptr, &object); },
         [this](const Value& before, const Value& object) { endpoint_changed(&before, &object); },
         [this](const Value& object) { endpoint_changed(&object, nullptr); }});
    pods.add_handler({[this](const Value& pod, bool) { pod_changed(pod); },
                      [this](const Value&, const Value& pod) { pod_changed(pod); },
                      [this](const Value& pod) { pod_gone(pod); }});
    if (options.subnets) {
      const auto changed = [this](const Value&) { queue.add("subnets"); };
      subnets.add_handler({[changed](const Value& object, bool) { changed(object); },
                           [changed](const Value&, const Value& object) { changed(object); },
                           changed});
      subnets.start();
    }
    pools.start();
    reserved.start();
    endpoints.start();
    pods.start();
    arm();
  }

  void stop() {
    gate->close();
    {
      const MutexLock lock(mutex);
      if (timer) runtime.timers.cancel(*timer);
    }
    pools.stop();
    reserved.stop();
    endpoints.stop();
    pods.stop();
    subnets.stop();
    queue.stop();
  }

  bool informed() const {
    return pools.synced() && reserved.synced() && endpoints.synced() && pods.synced() &&
           (!options.subnets || subnets.synced());
  }

  void pool_changed(const std::string& pool) {
    queue.add("pools");
    if (options.subnets) queue.add("subnets");
    records_changed(pool);
  }

  void records_changed(const std::string& pool) {
    // One that is being deleted goes with its last record.
    const auto known = pools.known(pool);
    if (!known) return;
    if (known->object["metadata"].contains("deletionTimestamp")) queue.add("pools");
    if (options.subnets && known->pool != nullptr && is_auto_pool(*known->pool)) {
      queue.add(cat(kReclaim, pool));
    }
    // Too many records are made fewer at once, those without an endpoint later.
    const auto status = parse_pool_status(known->object);
    if (status && status->allocated.size() > options.records) {
      queue.add(cat(kRecords, pool));
    } else if (status && !status->used().empty()) {
      queue.add_after(cat(kRecords, pool), options.record_patience);
    }
  }

  void endpoint_changed(const Value* before, const Value* after) {
    garbage.endpoint_changed(before, after);
    if (after != nullptr) queue.add(cat(kEndpoint, client::key_of(*after)));
  }

  void pod_changed(const Value& pod) {
    if (!is_alive(pod)) queue.add(cat(kEndpoint, client::key_of(pod)));
    if (options.subnets && names_subnet(pod)) queue.add(cat(kPod, client::key_of(pod)));
  }

  void pod_gone(const Value& pod) {
    queue.add(cat(kEndpoint, client::key_of(pod)));
    if (options.subnets && names_subnet(pod)) queue.add("reclaim");
  }

  WorkOutcome work(const std::string& key) {
    // Half of the truth would free what is in use.
    if (!informed()) return WorkOutcome::again_after(std::chrono::milliseconds(100));
    const std::string_view all(key);
    const auto name = [&](std::string_view prefix) {
      return std::string(all.substr(prefix.size()));
    };
    if (key == "pools") return judge.judge_pools();
    if (key == "subnets") return auto_pools.look_at_subnets();
    if (key == "reclaim") return reclaim_all();
    if (key == "scanned") {
      scanned = true;
      return WorkOutcome::done();
    }
    if (all.starts_with(kReserved)) return judge.judge_reserved(name(kReserved));
    if (all.starts_with(kEndpoint)) return garbage.look_at_endpoint(name(kEndpoint));
    if (all.starts_with(kRecords)) return garbage.look_at_records(name(kRecords));
    if (all.starts_with(kPod)) return auto_pools.look_at_pod(name(kPod));
    if (all.starts_with(kReclaim)) return auto_pools.look_at_pool(name(kReclaim));
    return WorkOutcome::done();
  }

  WorkOutcome reclaim_all() {
    for (const auto& pool : pools.names()) queue.add(cat(kReclaim, pool));
    return WorkOutcome::done();
  }

  void scan() {
    queue.add("pools");
    if (options.subnets) queue.add("subnets");
    for (const auto& endpoint : endpoints.list()) {
      queue.add(cat(kEndpoint, client::key_of(endpoint)));
    }
    for (const auto& pool : pools.names()) {
      queue.add(cat(kRecords, pool));
      queue.add(cat(kReclaim, pool));
    }
    queue.add("scanned");
  }

  /// The first scan once everything is known, then again and again.
  void arm() {
    const bool ready = informed();
    if (ready) scan();
    const Duration wait = ready ? options.scan_interval : std::chrono::milliseconds(100);
    const MutexLock lock(mutex);
    if (gate->closed()) return;
    timer = runtime.timers.after(wait, [this, gate = gate] {
      const client::GateEntry inside(*gate);
      if (inside) arm();
    });
  }

  const CollectorOptions options;
  runtime::Runtime& runtime;
  PoolCatalog pools;
  ReservedCatalog reserved;
  client::Informer endpoints;
  client::Informer pods;
  client::Informer subnets;
  Owners owners;
  client::EventRecorder events;
  Collecting shared;
  PoolJudge judge;
  Garbage garbage;
  AutoPools auto_pools;
  std::atomic<bool> scanned = false;
  const std::shared_ptr<client::Gate> gate = std::make_shared<client::Gate>();
  Mutex mutex;
  std::optional<runtime::TimerId> timer DIBS_GUARDED_BY(mutex);
  client::WorkQueue queue;
};

Collector::Collector() = default;
Collector::~Collector() { stop(); }

Result<std::unique_ptr<Collector>> Collector::start(driver::Environment environment,
                                                    CollectorOptions options) {
  if (options.scan_interval <= Duration(0)) {
    return Error::invalid("the interval of scans must be positive");
  }
  std::unique_ptr<Collector> made(new Collector());
  made->state_ = std::make_unique<State>(std::move(environment), options);
  made->state_->start();
  return made;
}

bool Collector::synced() const { return state_->scanned; }

void Collector::stop() {
  if (state_ != nullptr) state_->stop();
}

}  // namespace dibs::drivers::net
