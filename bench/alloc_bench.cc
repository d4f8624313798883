// What the scheduler asks of the allocator: one pod on one node of a cluster, what a change costs,
// and the cases that take a plain search longest.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "alloc/cases.h"
#include "alloc/failure.h"
#include "alloc/search.h"
#include "alloc/testing/hard_cases.h"
#include "base/strings.h"

namespace {

using dibs::cat;
using dibs::json::Value;
using namespace dibs::alloc;

constexpr int kDevices = 8;

std::string node_name(int n) { return cat("node-", n); }

/// A slice of eight GPUs, four to a numa node.
Value slice(int n, int generation = 1) {
  Value devices = Value::array();
  for (int i = 0; i < kDevices; ++i) {
    devices.push(Value::object(
        {{"name", cat("gpu-", i)},
         {"attributes",
          Value::object({{"index", Value::object({{"int", i}})},
                         {"uuid", Value::object({{"string", cat("gpu-", n, "-", i)}})},
                         {"model", Value::object({{"string", "a100"}})},
                         {"numa", Value::object({{"int", i / 4}})},
                         {"driverVersion", Value::object({{"version", "1.2.3"}})}})},
         {"capacity", Value::object({{"memory", Value::object({{"value", "80Gi"}})}})}}));
  }
  return Value::object(
      {{"metadata", Value::object({{"name", cat("slice-", n)}})},
       {"spec", Value::object({{"driver", "gpu.example.com"},
                               {"nodeName", node_name(n)},
                               {"pool", Value::object({{"name", node_name(n)},
                                                       {"generation", generation},
                                                       {"resourceSliceCount", 1}})},
                               {"devices", std::move(devices)}})}});
}

Value selector(std::string_view expression) {
  return Value::object({{"cel", Value::object({{"expression", expression}})}});
}

std::shared_ptr<const Claim> claim(int requests, int count, bool match) {
  Value list = Value::array();
  for (int r = 0; r < requests; ++r) {
    list.push(Value::object(
        {{"name", cat("r", r)},
         {"exactly",
          Value::object({{"deviceClassName", "gpu"},
                         {"allocationMode", "ExactCount"},
                         {"count", count},
                         {"selectors",
                          Value::array({selector(
                              R"(device.attributes["gpu.example.com"].model == "a100")")})}})}}));
  }
  Value devices = Value::object({{"requests", std::move(list)}});
  if (match) {
    devices.set("constraints",
                Value::array({Value::object({{"matchAttribute", "gpu.example.com/numa"}})}));
  }
  return std::make_shared<Claim>(Claim::read(
      Value::object({{"metadata", Value::object({{"name", "c"}, {"namespace", "default"}})},
                     {"spec", Value::object({{"devices", std::move(devices)}})}})));
}

struct Cluster {
  explicit Cluster(int count) : inventory(Features::all()) {
    for (int n = 0; n < count; ++n) {
      inventory.put(cat("slice-", n), slice(n));
      nodes.emplace_back();
      nodes.back().name = node_name(n);
    }
    device_class = std::make_shared<DeviceClass>(DeviceClass::read(Value::object(
        {{"metadata", Value::object({{"name", "gpu"}})},
         {"spec",
          Value::object({{"selectors",
                          Value::array({selector(R"(device.driver == "gpu.example.com")")})}})}})));
  }
  /// Ready and known to all nodes: what is measured is the cluster at work, not its start.
  Demand demand(const std::shared_ptr<const Claim>& wanted) {
    Demand made =
        Demand::prepare(inventory, {wanted}, [this](std::string_view) { return device_class; });
    for (const Node& node : nodes) benchmark::DoNotOptimize(probe(inventory, node, made));
    return made;
  }
  Inventory inventory;
  std::vector<Node> nodes;
  std::shared_ptr<const DeviceClass> device_class;
};

/// Pods placed one after the other, each on the next node, and taken away again after a while.
void run_pods(benchmark::State& state, const std::shared_ptr<const Claim>& wanted) {
  Cluster cluster(static_cast<int>(state.range(0)));
  const Demand demand = cluster.demand(wanted);
  std::vector<Value> held;
  std::size_t n = 0;
  for (auto _ : state) {
    Outcome outcome =
        allocate(cluster.inventory, cluster.nodes[n], demand, [] { return std::string("share"); });
    if (outcome.answer != Answer::allocated) {
      state.SkipWithError("not allocated");
      return;
    }
    cluster.inventory.take(outcome.allocations[0]);
    held.push_back(std::move(outcome.allocations[0]));
    n = (n + 1) % cluster.nodes.size();
    if (held.size() == cluster.nodes.size()) {
      for (const Value& allocation : held) cluster.inventory.release(allocation);
      held.clear();
    }
  }
}

void allocate_one(benchmark::State& state) { run_pods(state, claim(1, 1, false)); }
BENCHMARK(allocate_one)->Arg(100)->Arg(1000)->Arg(5000);

void allocate_four_matching(benchmark::State& state) { run_pods(state, claim(1, 4, true)); }
BENCHMARK(allocate_four_matching)->Arg(1000);

void allocate_three_requests(benchmark::State& state) { run_pods(state, claim(3, 1, true)); }
BENCHMARK(allocate_three_requests)->Arg(1000);

/// Whether a pod fits, without the allocation: what filtering nodes costs.
void probe_one(benchmark::State& state) {
  Cluster cluster(1000);
  const Demand demand = cluster.demand(claim(1, 1, false));
  std::size_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(probe(cluster.inventory, cluster.nodes[n], demand));
    n = (n + 1) % cluster.nodes.size();
  }
}
BENCHMARK(probe_one);

/// A node that has nothing left.
void find_full(benchmark::State& state) {
  Cluster cluster(1000);
  const Demand demand = cluster.demand(claim(1, 1, false));
  for (int n = 0; n < 1000; ++n) {
    for (int i = 0; i < kDevices; ++i) {
      cluster.inventory.take_device("gpu.example.com", node_name(n), cat("gpu-", i));
    }
  }
  std::size_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(probe(cluster.inventory, cluster.nodes[n], demand));
    n = (n + 1) % cluster.nodes.size();
  }
}
BENCHMARK(find_full);

/// A driver publishes its devices anew; the next pod sees them.
void change_slice(benchmark::State& state) {
  Cluster cluster(static_cast<int>(state.range(0)));
  const Demand demand = cluster.demand(claim(1, 1, false));
  int generation = 1;
  for (auto _ : state) {
    state.PauseTiming();
    const Value changed = slice(0, ++generation);
    state.ResumeTiming();
    cluster.inventory.put("slice-0", changed);
    benchmark::DoNotOptimize(probe(cluster.inventory, cluster.nodes[0], demand));
  }
}
BENCHMARK(change_slice)->Arg(100)->Arg(5000);

/// A selector that nobody used before, on all nodes.
void new_selector(benchmark::State& state) {
  Cluster cluster(static_cast<int>(state.range(0)));
  benchmark::DoNotOptimize(cluster.demand(claim(1, 1, false)));
  int number = 0;
  for (auto _ : state) {
    const SelectorId id = cluster.inventory.selectors().intern(
        cat(R"(device.attributes["gpu.example.com"].index > )", ++number));
    for (Row row = 0; row < cluster.inventory.row_count(); ++row) {
      benchmark::DoNotOptimize(cluster.inventory.selectors().verdict(id, row));
    }
  }
}
BENCHMARK(new_selector)->Arg(1000)->Unit(benchmark::kMicrosecond);

void explain_full(benchmark::State& state) {
  Cluster cluster(1);
  const Demand demand = cluster.demand(claim(3, 4, true));
  for (auto _ : state) {
    benchmark::DoNotOptimize(explain(cluster.inventory, cluster.nodes[0], demand));
  }
}
BENCHMARK(explain_full)->Unit(benchmark::kMicrosecond);

void hard_case(benchmark::State& state, const HardCase& hard) {
  Case example(hard.source);
  for (auto _ : state) benchmark::DoNotOptimize(example.run());
  state.counters["steps"] = static_cast<double>(example.run().stats.steps);
}

const int kRegistered = [] {
  for (const HardCase& hard : hard_cases()) {
    benchmark::RegisterBenchmark(cat("hard/", hard.name).c_str(), [hard](benchmark::State& state) {
      hard_case(state, hard);
    })->Unit(benchmark::kMicrosecond);
  }
  return 0;
}();

}  // namespace
