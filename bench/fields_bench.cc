// What the record of field owners adds to each write in the life of a pod with a device.
#include <benchmark/benchmark.h>

#include <string_view>

#include "api/merge/apply.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/defaults.h"
#include "api/schema/kind.h"
#include "json/parse.h"

namespace {

using dibs::json::Value;
using namespace dibs::api;

constexpr std::string_view kPod = R"({
  "apiVersion":"v1","kind":"Pod",
  "metadata":{"name":"test-dra-x2v8q","generateName":"test-dra","namespace":"test",
    "uid":"5c1f6f0e-7a1b-4a9e-9a59-0d9d0f1f2c3d","creationTimestamp":"2026-01-01T00:00:00Z"},
  "spec":{"containers":[{"image":"registry.k8s.io/pause:3.10.1","name":"pause",
      "resources":{"claims":[{"name":"resource"}]}}],
    "resourceClaims":[{"name":"resource","resourceClaimTemplateName":"test-claim-template"}]}})";

constexpr std::string_view kClaim = R"({
  "apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
  "metadata":{"generateName":"test-dra-x2v8q-resource-","namespace":"test",
    "uid":"5c1f6f0e-7a1b-4a9e-9a59-0d9d0f1f2c3e",
    "annotations":{"resource.kubernetes.io/pod-claim-name":"resource"},
    "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"test-dra-x2v8q",
      "uid":"5c1f6f0e-7a1b-4a9e-9a59-0d9d0f1f2c3d","controller":true,"blockOwnerDeletion":true}]},
  "spec":{"devices":{"requests":[{"name":"req-0","exactly":{"deviceClassName":"test-class"}}]}}})";

constexpr std::string_view kAllocated = R"({
  "allocation":{"devices":{"results":[{"request":"req-0","driver":"test-driver.cdi.k8s.io",
      "pool":"node-17","device":"instance-3"}]},
    "nodeSelector":{"nodeSelectorTerms":[{"matchFields":[
      {"key":"metadata.name","operator":"In","values":["node-17"]}]}]}},
  "reservedFor":[{"resource":"pods","name":"test-dra-x2v8q",
    "uid":"5c1f6f0e-7a1b-4a9e-9a59-0d9d0f1f2c3d"}]})";

constexpr std::string_view kRunning = R"({
  "phase":"Running","hostIP":"10.0.0.1","podIP":"10.1.0.7","podIPs":[{"ip":"10.1.0.7"}],
  "startTime":"2026-01-01T00:00:02Z",
  "conditions":[
    {"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"},
    {"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:02Z"},
    {"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:03Z"},
    {"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T00:00:03Z"}],
  "containerStatuses":[{"name":"pause","ready":true,"started":true,"restartCount":0,
    "image":"registry.k8s.io/pause:3.10.1","imageID":"x","containerID":"runc://5c1f6f0e",
    "state":{"running":{"startedAt":"2026-01-01T00:00:02Z"}}}]})";

struct Kind {
  const Schema* schema;
  std::string_view group, version, kind;

  // Nothing of the result is shared with anything: as a body that came over the wire.
  Value normal(const Value& raw) const {
    std::vector<std::string> unknown;
    Value object = *decode(raw, *schema, Strictness::ignore, unknown);
    apply_defaults(object, *schema);
    if (const auto& defaults = kind_rules(group, kind).set_defaults) defaults(object);
    return object;
  }
  FieldWriter writer(std::string_view manager, std::string_view subresource,
                     const FieldSet& reset) const {
    FieldWriter out;
    out.schema = schema;
    out.api_version = group.empty() ? version : "resource.k8s.io/v1";
    out.kind = kind;
    out.manager = manager;
    out.subresource = subresource;
    out.reset = &reset;
    out.now = dibs::Time::from_seconds(1767225600);
    return out;
  }
};

Value parsed(std::string_view text) { return *dibs::json::parse(text); }

const FieldSet kStatus = FieldSet::of({{"status"}});
const FieldSet kSpec = FieldSet::of({{"spec"}});

Kind pods() { return {builtin_schema("", "v1", "Pod"), "", "v1", "Pod"}; }
Kind claims() {
  return {builtin_schema("resource.k8s.io", "v1", "ResourceClaim"), "resource.k8s.io", "v1",
          "ResourceClaim"};
}

Value created(const Kind& kind, std::string_view text) {
  return track_update(kind.writer("dibs", "", kStatus), nullptr, kind.normal(parsed(text)));
}

// Copies of a copy: track_update gets an object whose root nobody else holds, as in the server.
void measure(benchmark::State& state, const FieldWriter& writer, const Value* live,
             const Value& object) {
  for (auto _ : state) {
    Value copy = object;
    copy.mut("metadata").mut("name");
    benchmark::DoNotOptimize(track_update(writer, live, std::move(copy)));
  }
}

void create_pod(benchmark::State& state) {
  const Kind kind = pods();
  measure(state, kind.writer("dibs", "", kStatus), nullptr, kind.normal(parsed(kPod)));
}
BENCHMARK(create_pod);

Value bound() {
  const Kind kind = pods();
  Value object = created(kind, kPod);
  object.mut("spec").set("nodeName", "node-17");
  object.mut("status").set(
      "conditions",
      Value::array({parsed(
          R"({"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"})")}));
  return object;
}

void bind_pod(benchmark::State& state) {
  const Kind kind = pods();
  const Value live = created(kind, kPod);
  measure(state, kind.writer("dibs", "binding", kStatus), &live, bound());
}
BENCHMARK(bind_pod);

Value running() {
  const Kind kind = pods();
  Value raw = parsed(dibs::json::write(bound()));
  raw.set("status", parsed(kRunning));
  return kind.normal(raw);
}

void patch_pod_status(benchmark::State& state) {
  const Kind kind = pods();
  const Value live = bound();
  measure(state, kind.writer("kubelet", "status", kSpec), &live, running());
}
BENCHMARK(patch_pod_status);

// All as it was but one condition.
void patch_pod_status_again(benchmark::State& state) {
  const Kind kind = pods();
  const Value live = track_update(kind.writer("kubelet", "status", kSpec), nullptr, running());
  Value raw = parsed(dibs::json::write(live));
  raw.mut("status").mut("conditions").mut(std::size_t{2}).set("status", "False");
  measure(state, kind.writer("kubelet", "status", kSpec), &live, kind.normal(raw));
}
BENCHMARK(patch_pod_status_again);

void create_claim(benchmark::State& state) {
  const Kind kind = claims();
  measure(state, kind.writer("dibs", "", kStatus), nullptr, kind.normal(parsed(kClaim)));
}
BENCHMARK(create_claim);

void allocate_claim(benchmark::State& state) {
  const Kind kind = claims();
  const Value live = created(kind, kClaim);
  Value raw = parsed(dibs::json::write(live));
  raw.set("status", parsed(kAllocated));
  measure(state, kind.writer("dibs", "status", kSpec), &live, kind.normal(raw));
}
BENCHMARK(allocate_claim);

void apply_pod(benchmark::State& state) {
  const Kind kind = pods();
  const Value live = bound();
  Value config = parsed(kPod);
  config.mut("metadata").set("labels", Value::object({{"app", "x"}}));
  const FieldWriter writer = kind.writer("kubectl", "", kStatus);
  for (auto _ : state) benchmark::DoNotOptimize(apply(writer, &live, config, true));
}
BENCHMARK(apply_pod);

}  // namespace
