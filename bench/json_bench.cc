// What the API server does with every object: parse, look up, change a copy, write.
#include <benchmark/benchmark.h>

#include <string>

#include "json/parse.h"
#include "json/patch.h"
#include "json/yaml.h"

namespace {

using dibs::json::Value;

// A pod of about 2 KB as clients send it.
Value pod() {
  Value environment = Value::array();
  for (int i = 0; i < 8; ++i) {
    environment.push(
        Value::object({{"name", "VARIABLE_" + std::to_string(i)}, {"value", "some value"}}));
  }
  Value container = Value::object(
      {{"name", "main"},
       {"image", "registry.example.com/team/application:1.2.3"},
       {"command", Value::array({"/bin/app", "--flag=value", "--other"})},
       {"env", environment},
       {"resources",
        Value::object({{"requests", Value::object({{"cpu", "500m"}, {"memory", "1Gi"}})},
                       {"claims", Value::array({Value::object({{"name", "gpu"}})})}})},
       {"terminationMessagePath", "/dev/termination-log"},
       {"terminationMessagePolicy", "File"},
       {"imagePullPolicy", "IfNotPresent"}});
  Value sidecar = container;
  sidecar.set("name", "sidecar");
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata",
        Value::object({{"name", "example-7d4b9c-x2v8q"},
                       {"namespace", "default"},
                       {"uid", "5c1f6f0e-7a1b-4a9e-9a59-0d9d0f1f2c3d"},
                       {"resourceVersion", "123456"},
                       {"labels", Value::object({{"app", "example"}, {"tier", "backend"}})}})},
       {"spec", Value::object({{"containers", Value::array({container, sidecar})},
                               {"restartPolicy", "Always"},
                               {"terminationGracePeriodSeconds", 30},
                               {"nodeName", "node-17"}})}});
}

void parse_pod(benchmark::State& state) {
  const std::string text = dibs::json::write(pod());
  for (auto _ : state) benchmark::DoNotOptimize(dibs::json::parse(text));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK(parse_pod);

void write_pod(benchmark::State& state) {
  const Value value = pod();
  std::string out;
  for (auto _ : state) {
    out.clear();
    dibs::json::write_to(out, value, true);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(out.size()) * state.iterations());
}
BENCHMARK(write_pod);

void find_in_pod(benchmark::State& state) {
  const Value value = pod();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        value["spec"]["containers"][1]["resources"]["requests"]["cpu"].as_string());
  }
}
BENCHMARK(find_in_pod);

void find_in_large_object(benchmark::State& state) {
  Value object;
  for (int i = 0; i < 1000; ++i) object.set("key-" + std::to_string(i), i);
  for (auto _ : state) benchmark::DoNotOptimize(object["key-777"].as_int());
}
BENCHMARK(find_in_large_object);

void copy_and_change_pod(benchmark::State& state) {
  const Value value = pod();
  for (auto _ : state) {
    Value copy = value;
    copy.mut("metadata").set("resourceVersion", "123457");
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(copy_and_change_pod);

void compare_pods(benchmark::State& state) {
  const Value one = *dibs::json::parse(dibs::json::write(pod()));
  const Value two = *dibs::json::parse(dibs::json::write(pod()));
  for (auto _ : state) benchmark::DoNotOptimize(one == two);
}
BENCHMARK(compare_pods);

void merge_patch_pod(benchmark::State& state) {
  const Value value = pod();
  const Value patch =
      Value::object({{"metadata", Value::object({{"labels", Value::object({{"app", "x"}})}})}});
  for (auto _ : state) benchmark::DoNotOptimize(dibs::json::apply_merge_patch(value, patch));
}
BENCHMARK(merge_patch_pod);

void parse_yaml_pod(benchmark::State& state) {
  const std::string text = dibs::json::write_yaml(pod());
  for (auto _ : state) benchmark::DoNotOptimize(dibs::json::parse_yaml(text));
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK(parse_yaml_pod);

void write_yaml_pod(benchmark::State& state) {
  const Value value = pod();
  for (auto _ : state) benchmark::DoNotOptimize(dibs::json::write_yaml(value));
}
BENCHMARK(write_yaml_pod);

}  // namespace
