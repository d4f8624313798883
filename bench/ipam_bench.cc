// Addresses of the network driver on an API server in this process, over a store on a disk: 1,000
// pods at once, and the last addresses of a large pool beside the first ones.
//
// DIBS_BENCH_DIR names the directory for the files: on a RAM disk the figures mean little.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <thread>

#include "base/strings.h"
#include "cluster/cluster.h"
#include "drivers/net/ipam/ipam.h"
#include "drivers/net/objects/install.h"
#include "json/parse.h"
#include "store/sqlite_store.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using Clock = std::chrono::steady_clock;

struct Directory {
  Directory() {
    const char* base = std::getenv("DIBS_BENCH_DIR");
    path = cat(base != nullptr ? base : "/var/tmp", "/dibs-ipam-bench-XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

template <typename Condition>
void wait_until(const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

/// A server with the network's kinds, and what assigns addresses.
struct Site {
  Site() {
    auto store = store::open_sqlite_store({.path = directory.path + "/store.db"});
    if (!store.ok()) std::abort();
    auto started = cluster::Cluster::start(world, std::move(store).value(), {});
    if (!started.ok()) std::abort();
    cluster = std::move(started).value();
    wait_until([&] { return install(cluster->client()).ok(); });
    ipam = Ipam::start({cluster->client(), world.control}, {}).value();
    wait_until([&] { return ipam->synced(); });
  }
  ~Site() {
    ipam.reset();
    cluster->stop();
  }

  /// A pool as if the collector had admitted it, with `settled` addresses in use.
  std::string make_pool(const Value& settled) {
    const std::string name = cat("pool-", ++pools);
    const std::string subnet = cat("10.", pools, ".0.0/16");
    const Value ips = Value::array({cat("10.", pools, ".0.1-10.", pools, ".253.232")});
    auto& api = cluster->client();
    Value object = Value::object(
        {{"apiVersion", cat(kGroup, "/", kVersion)},
         {"kind", "SpiderIPPool"},
         {"metadata", Value::object({{"name", name}})},
         {"spec", Value::object({{"subnet", subnet}, {"ipVersion", 4}, {"ips", ips}})}});
    object = api.create(kIpPools, "", object).value();
    object.set("status", Value::object({{"admittedIPs", ips}, {"settledIPs", settled}}));
    if (!api.update_status(kIpPools, "", object).ok()) std::abort();
    wait_until([&] { return ipam->can_assign(make_pod(), "node", ask(name)).ok(); });
    return name;
  }
  /// Nobody looks whether there is such a pod: that is the collector's.
  Value make_pod() {
    const std::string name = cat("pod-", ++pods);
    return Value::object({{"metadata", Value::object({{"name", name},
                                                      {"namespace", "default"},
                                                      {"uid", cat("uid-of-", name)}})}});
  }
  static std::vector<NicAsk> ask(const std::string& pool) {
    NicAsk nic;
    nic.interface = "eth0";
    nic.ipv4_pools = {pool};
    return {nic};
  }
  double assign(const std::string& pool, int count) {
    const auto begun = Clock::now();
    for (int i = 0; i < count; ++i) {
      if (!ipam->assign(make_pod(), "node", ask(pool)).ok()) std::abort();
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - begun).count() / count;
  }

  Directory directory;
  cluster::World world = cluster::real_world();
  std::unique_ptr<cluster::Cluster> cluster;
  std::unique_ptr<Ipam> ipam;
  int pools = 0;
  std::atomic<int> pods = 0;
};

void pods_at_once(benchmark::State& state) {
  Site site;
  const auto count = state.range(0);
  for (auto _ : state) {
    state.PauseTiming();
    const std::string pool = site.make_pool(Value::array());
    std::latch done(count);
    state.ResumeTiming();
    for (std::int64_t i = 0; i < count; ++i) {
      site.world.machines.executor.post([&] {
        if (!site.ipam->assign(site.make_pod(), "node", Site::ask(pool)).ok()) std::abort();
        done.count_down();
      });
    }
    done.wait();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(pods_at_once)->Arg(1000)->UseRealTime()->Unit(benchmark::kMillisecond);

/// One after another, in turns: addresses of an empty pool, and the last ones of the same size;
/// then one where every second address was given back.
void last_of_65000(benchmark::State& state) {
  constexpr int kEach = 50;
  Site site;
  double first = 0;
  double last = 0;
  double scattered = 0;
  for (auto _ : state) {
    const int next = site.pools + 1;
    first += site.assign(site.make_pool(Value::array()), kEach);
    last += site.assign(
        site.make_pool(Value::array({cat("10.", next + 1, ".0.1-10.", next + 1, ".253.180")})),
        kEach);
    Value odd = Value::array();
    for (int i = 0; i < 65000; i += 2) {
      odd.push(cat("10.", next + 2, ".", (i + 1) / 256, ".", (i + 1) % 256));
    }
    scattered += site.assign(site.make_pool(odd), kEach);
  }
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["first_us"] = first / rounds;
  state.counters["last_us"] = last / rounds;
  state.counters["last_to_first"] = last / first;
  state.counters["scattered_to_first"] = scattered / first;
}
BENCHMARK(last_of_65000)->Iterations(3)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dibs::drivers::net
