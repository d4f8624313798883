// Selectors over devices: compiled, asked about one device after the other, and by columns.
//
// cel-go/ asks upstream's engine the same selectors about the same devices; its lines have the
// names of ours. per_device is time divided by the number of devices.
//
//   compile/x         text to program
//   scalar/x/n        n devices one by one
//   columns/x/n       a new filter over n devices; the columns it reads are there
//   columns_cold/x/n  the same, but the columns must be read first
//   columns_change/x  one device of 100,000 changes, and the filter follows
//   by_hand/x/n       what the others are read beside: the same question in C++

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "api/devices/selector_language.h"
#include "api/devices/testing/device_table.h"
#include "base/strings.h"
#include "cel/libraries/quantity.h"

namespace dibs::api {
namespace {

using ByHand = bool (*)(const DeviceInput&);

struct Named {
  const char* name;
  const char* expression;
  ByHand by_hand;
};

const cel::Value* entry(std::span<const DeviceEntry> entries, std::string_view id) {
  for (const DeviceEntry& entry : entries) {
    if (entry.id == id && entry.domain == "gpu.example.com") return &entry.value;
  }
  return nullptr;
}

bool has_text(const DeviceInput& device, std::string_view id, std::string_view text) {
  const cel::Value* found = entry(device.attributes(), id);
  return found != nullptr && found->is(cel::Kind::string) && found->text() == text;
}

bool by_driver(const DeviceInput& device) { return device.driver() == "gpu.example.com"; }

bool by_model_and_memory(const DeviceInput& device) {
  static const Quantity kLeast = *Quantity::parse("80Gi");
  if (!has_text(device, "model", "h200")) return false;
  const cel::Value* memory = entry(device.capacities(), "memory");
  return memory != nullptr && cel::quantity_of(*memory) >= kLeast;
}

bool by_version(const DeviceInput& device) {
  static const SemanticVersion kLeast = *SemanticVersion::parse("570.100.0");
  const cel::Value* version = entry(device.attributes(), "driverVersion");
  return version != nullptr && version->is(cel::Kind::opaque) && cel::semver_of(*version) > kLeast;
}

bool by_architecture(const DeviceInput& device) {
  return (has_text(device, "architecture", "Hopper") ||
          has_text(device, "architecture", "Blackwell")) &&
         entry(device.attributes(), "mig") != nullptr;
}

bool by_three(const DeviceInput& device) {
  if (!has_text(device, "model", "h200")) return false;
  const cel::Value* node = entry(device.attributes(), "numaNode");
  if (node == nullptr || !node->is(cel::Kind::integer) || node->as_integer() != 1) return false;
  const cel::Value* healthy = entry(device.attributes(), "healthy");
  return healthy != nullptr && healthy->is_true();
}

constexpr Named kSelectors[] = {
    {"driver", R"(device.driver == "gpu.example.com")", by_driver},
    {"model_memory",
     R"(device.attributes["gpu.example.com"].model == "h200" && )"
     R"(device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0)",
     by_model_and_memory},
    {"version",
     R"(device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("570.100.0")))",
     by_version},
    {"in_has",
     R"(device.attributes["gpu.example.com"].architecture in ["Hopper", "Blackwell"] && )"
     R"(has(device.attributes["gpu.example.com"].mig))",
     by_architecture},
    {"three",
     R"(device.attributes["gpu.example.com"].model == "h200" && )"
     R"(device.attributes["gpu.example.com"].numaNode == 1 && )"
     R"(device.attributes["gpu.example.com"].healthy)",
     by_three},
};

const SelectorEnvironment kEnvironment{.stored = true, .list_attributes = true};

json::Value device(std::size_t i) {
  constexpr const char* kModels[] = {"a100", "h100", "h200", "b200"};
  constexpr const char* kArchitectures[] = {"Ampere", "Hopper", "Hopper", "Blackwell"};
  constexpr const char* kMemory[] = {"40Gi", "80Gi", "141Gi", "180Gi"};
  const auto attribute = [](const char* kind, json::Value value) {
    return json::Value::object({{kind, std::move(value)}});
  };
  const std::size_t model = i / 8 % 4;
  json::Value attributes = json::Value::object(
      {{"architecture", attribute("string", kArchitectures[model])},
       {"brand", attribute("string", "Example")},
       {"cudaComputeCapability", attribute("version", "9.0.0")},
       {"driverVersion", attribute("version", cat("570.", 80 + i / 64 % 40, ".0"))},
       {"healthy", attribute("bool", i % 50 != 0)},
       {"index", attribute("int", i % 8)},
       {"model", attribute("string", kModels[model])},
       {"numaNode", attribute("int", i % 8 / 4)},
       {"resource.kubernetes.io/pcieRoot", attribute("string", cat("pci0000:", 10 + i % 8))},
       {"type", attribute("string", "gpu")},
       {"uuid", attribute("string", cat("GPU-18db0e85-99e9-c746-8531-", 100000000000 + i))}});
  if (i % 3 == 0) attributes.set("mig", attribute("bool", true));
  return json::Value::object(
      {{"name", cat("gpu-", i)},
       {"attributes", attributes},
       {"capacity",
        json::Value::object({{"memory", json::Value::object({{"value", kMemory[model]}})},
                             {"multiprocessors", json::Value::object({{"value", "132"}})}})}});
}

const char* driver(std::size_t i) { return i % 10 == 9 ? "nic.example.com" : "gpu.example.com"; }

/// Read once for all benchmarks.
const std::vector<DeviceInput>& devices(std::size_t count) {
  static std::vector<DeviceInput> made;
  for (std::size_t i = made.size(); i < count; ++i)
    made.push_back(DeviceInput::read(driver(i), device(i), true));
  return made;
}

void fill(cel::Table& table, std::size_t count) {
  const std::vector<DeviceInput>& all = devices(count);
  for (std::size_t i = 0; i < count; ++i) table.add({&all[i].value(), 1});
}

void per_device(benchmark::State& state, std::size_t count) {
  state.counters["per_device"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void by_hand(benchmark::State& state, ByHand question) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<DeviceInput>& all = devices(count);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) benchmark::DoNotOptimize(question(all[i]));
  }
  per_device(state, count);
}

void compile(benchmark::State& state, const char* expression) {
  const cel::Environment& language = selector_language(kEnvironment);
  const auto bound = [](const cel::ValuePath& path) {
    return device_size_bound(path, kEnvironment.release);
  };
  for (auto _ : state) benchmark::DoNotOptimize(language.compile(expression, bound));
}

void scalar(benchmark::State& state, const char* expression) {
  const Selector selector = compile_selector(expression, kEnvironment);
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<DeviceInput>& all = devices(count);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) benchmark::DoNotOptimize(match(selector, all[i]));
  }
  per_device(state, count);
}

void columns(benchmark::State& state, const char* expression) {
  const Selector selector = compile_selector(expression, kEnvironment);
  const auto count = static_cast<std::size_t>(state.range(0));
  cel::Table table(1);
  fill(table, count);
  cel::Filter other(table, selector.program, kSelectorCostLimit);
  other.update();
  for (auto _ : state) {
    cel::Filter filter(table, selector.program, kSelectorCostLimit);
    filter.update();
    benchmark::DoNotOptimize(filter.yes().words().data());
  }
  per_device(state, count);
}

void columns_cold(benchmark::State& state, const char* expression) {
  const Selector selector = compile_selector(expression, kEnvironment);
  const auto count = static_cast<std::size_t>(state.range(0));
  cel::Table table(1);
  fill(table, count);
  for (auto _ : state) {
    cel::Filter filter(table, selector.program, kSelectorCostLimit);
    filter.update();
    benchmark::DoNotOptimize(filter.yes().words().data());
  }
  per_device(state, count);
}

void columns_change(benchmark::State& state, const char* expression) {
  constexpr std::size_t kCount = 100'000;
  const Selector selector = compile_selector(expression, kEnvironment);
  cel::Table table(1);
  fill(table, kCount);
  cel::Filter filter(table, selector.program, kSelectorCostLimit);
  filter.update();
  std::size_t next = 0;
  for (auto _ : state) {
    next = (next + 7919) % kCount;
    table.change(static_cast<cel::Row>(next), {&devices(kCount)[(next * 31) % kCount].value(), 1});
    filter.update();
    benchmark::DoNotOptimize(filter.yes().words().data());
  }
}

const int kRegistered = [] {
  using Body = void (*)(benchmark::State&, const char*);
  constexpr std::pair<const char*, Body> kSized[] = {
      {"scalar", scalar}, {"columns", columns}, {"columns_cold", columns_cold}};
  const auto name = [](const char* what, const Named& selector) {
    return cat(what, "/", selector.name);
  };
  for (const Named& selector : kSelectors)
    benchmark::RegisterBenchmark(name("compile", selector).c_str(), compile, selector.expression);
  for (const auto& [what, body] : kSized) {
    for (const Named& selector : kSelectors)
      benchmark::RegisterBenchmark(name(what, selector).c_str(), body, selector.expression)
          ->Arg(1)
          ->Arg(1000)
          ->Arg(100'000);
  }
  for (const Named& selector : kSelectors)
    benchmark::RegisterBenchmark(name("by_hand", selector).c_str(), by_hand, selector.by_hand)
        ->Arg(1)
        ->Arg(1000)
        ->Arg(100'000);
  for (const Named& selector : kSelectors)
    benchmark::RegisterBenchmark(name("columns_change", selector).c_str(), columns_change,
                                 selector.expression);
  return 0;
}();

}  // namespace
}  // namespace dibs::api
