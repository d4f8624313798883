#include "drivers/net/control/binding.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "client/informer.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "driver/claim.h"
#include "driver/device_status.h"
#include "drivers/net/control/today.h"
#include "drivers/net/host/slice_devices.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const client::Gvr kPods = {"", "v1", "pods"};
constexpr const char* kByNode = "node";
constexpr Duration kSyncPoll = std::chrono::milliseconds(20);

bool is_reserved_for(const Value& claim, const Value& pod) {
  for (const Value& user : claim["status"]["reservedFor"].items()) {
    if (user["uid"] == pod["metadata"]["uid"]) return true;
  }
  return false;
}

std::vector<std::string> nodes_of(const Value& claim) {
  std::vector<std::string> out;
  for (const NicDevice& device : nic_devices(claim)) {
    if (std::find(out.begin(), out.end(), device.pool) == out.end()) out.push_back(device.pool);
  }
  return out;
}

bool condition_holds(const Value& claim, const Value& result, std::string_view type) {
  for (const Value& device : claim["status"]["devices"].items()) {
    if (device["driver"] != result["driver"] || device["pool"] != result["pool"] ||
        device["device"] != result["device"] || device["shareID"] != result["shareID"]) {
      continue;
    }
    return driver::has_condition(device, type);
  }
  return false;
}

/// Its results that wait for this controller.
std::vector<Value> waiting_in(const Value& claim) {
  std::vector<Value> out;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    if (result["driver"].as_string() != kDriver) continue;
    for (const Value& type : result["bindingConditions"].items()) {
      if (type.as_string() != kAddressesAssigned) continue;
      if (condition_holds(claim, result, kAddressesAssigned)) continue;
      if (!condition_holds(claim, result, kAddressesRefused)) out.push_back(result);
    }
  }
  return out;
}

}  // namespace

struct Binding::State {
  State(const driver::Environment& environment, Ipam& given_ipam, const Networks& given_networks,
        const NodeStates& given_states, client::EventRecorder& given_events,
        SelectionOptions given_options)
      : plain(environment.api),
        api(environment.api),
        runtime(environment.runtime),
        ipam(given_ipam),
        networks(given_networks),
        states(given_states),
        events(given_events),
        options(std::move(given_options)),
        claims(api, runtime, {.gvr = kClaims}),
        queue(runtime, {.concurrency = 16}, [this](const std::string& key) { return work(key); }) {
    claims.add_index(kByNode, nodes_of);
    client::InformerHandlers handlers;
    handlers.added = [this](const Value& claim, bool) { look_at(claim); };
    handlers.updated = [this](const Value&, const Value& claim) { look_at(claim); };
    claims.add_handler(std::move(handlers));
    claims.start();
  }

  void look_at(const Value& claim) {
    if (nic_devices(claim).empty()) return;
    for (const Value& user : claim["status"]["reservedFor"].items()) {
      if (user["resource"].as_string() != "pods") continue;
      queue.add(client::key_of(client::namespace_of(claim), user["name"].as_string()));
    }
  }

  bool ready() const {
    return claims.synced() && networks.synced() && states.synced() && ipam.synced();
  }

  /// The pod's claims, all of them allocated and reserved for it; nothing while one is not.
  std::optional<std::vector<Value>> claims_of(const Value& pod) const {
    std::vector<Value> out;
    for (const std::string& name : claims_of_pod(pod)) {
      if (name.empty()) continue;
      auto claim = claims.get(client::key_of(client::namespace_of(pod), name));
      if (!claim || !is_reserved_for(*claim, pod)) return std::nullopt;
      out.push_back(std::move(*claim));
    }
    return out;
  }

  WorkOutcome work(const std::string& key) {
    if (!ready()) return WorkOutcome::again_after(kSyncPoll);
    const auto [name_space, name] = client::split_key(key);
    const auto pod = plain.get(kPods, name_space, name);
    if (!pod) {
      return pod.error().code() == Code::not_found ? WorkOutcome::done() : WorkOutcome::retry();
    }
    if (!is_alive(*pod)) return WorkOutcome::done();
    const auto held = claims_of(*pod);
    if (!held) return WorkOutcome::done();  // whoever is missing will be seen
    const bool waits = std::any_of(held->begin(), held->end(),
                                   [](const Value& claim) { return !waiting_in(claim).empty(); });
    const auto done = serve(*pod, *held, waits);
    if (done) return waits ? tell(*held, nullptr) : WorkOutcome::done();
    const Error& error = done.error();
    const bool refused = error.code() == Code::conflict || error.code() == Code::invalid ||
                         error.code() == Code::not_found;
    log::warn("pod has no addresses", {{"pod", key}, {"error", error}});
    if (!refused) return WorkOutcome::retry();
    warn(*pod, error.message());
    return waits ? tell(*held, &error) : WorkOutcome::done();
  }

  Result<> serve(const Value& pod, const std::vector<Value>& held, bool waits) {
    std::string node;
    for (const Value& claim : held) {
      const auto devices = nic_devices(claim);
      if (!devices.empty()) node = devices.front().pool;
    }
    const auto state = states.get(node);
    DIBS_TRY(const TodayPlan plan, plan_today(pod, held, state.get(), networks, options));
    if (waits) {
      std::vector<NicAsk> asks;
      for (const TodayNic& nic : plan.nics) {
        if (uses_ipam(nic.need.config)) asks.push_back(ask_of(nic.need, state.get(), nic.vf, {}));
      }
      if (!asks.empty()) DIBS_CHECK(ipam.assign(pod, node, asks));
    }
    if (plan.annotations.is_null()) return success();
    // A pod that runs has its interfaces already.
    if (pod["status"]["phase"].as_string() == "Running") return success();
    const Value patch = Value::object(
        {{"metadata",
          Value::object({{"uid", pod["metadata"]["uid"]}, {"annotations", plan.annotations}})}});
    const auto written = plain.patch(kPods, client::namespace_of(pod), client::name_of(pod),
                                     client::PatchType::merge, patch);
    if (!written) return Error::unavailable(written.error().message());
    return success();
  }

  /// Says to the scheduler that the pod may be bound, or why not.
  WorkOutcome tell(const std::vector<Value>& held, const Error* refusal) {
    driver::Condition condition;
    condition.type = refusal == nullptr ? kAddressesAssigned : kAddressesRefused;
    condition.reason = refusal == nullptr ? "AddressesAssigned" : "AddressesRefused";
    condition.message = refusal == nullptr ? "the pod has its addresses" : refusal->message();
    WorkOutcome out = WorkOutcome::done();
    for (const Value& claim : held) {
      const auto waiting = waiting_in(claim);
      if (waiting.empty()) continue;
      const driver::ClaimName name = driver::claim_name(claim);
      const Value allocation = claim["status"]["allocation"];
      const auto written = driver::update_claim_status(api, name, [&](Value& now) {
        // Deallocated, or allocated anew: then it is another question.
        if (!(now["status"]["allocation"] == allocation)) return;
        for (const Value& result : waiting) {
          Value& device =
              driver::device_status(now, kDriver, result["pool"].as_string(),
                                    result["device"].as_string(), result["shareID"].as_string());
          driver::set_condition(device, condition, runtime.clock.now());
        }
      });
      if (written) continue;
      log::warn("binding condition not written",
                {{"claim", client::key_of(claim)}, {"error", written.error()}});
      out = WorkOutcome::retry();
    }
    return out;
  }

  void warn(const Value& pod, const std::string& note) {
    client::EventInput event;
    event.regarding = client::object_reference(pod);
    event.warning = true;
    event.reason = "AddressesRefused";
    event.note = note;
    events.record(std::move(event));
  }

  client::Client& plain;
  client::ResourceClient api;
  runtime::Runtime& runtime;
  Ipam& ipam;
  const Networks& networks;
  const NodeStates& states;
  client::EventRecorder& events;
  const SelectionOptions options;
  client::Informer claims;
  client::WorkQueue queue;
};

Binding::Binding(const driver::Environment& environment, Ipam& ipam, const Networks& networks,
                 const NodeStates& states, client::EventRecorder& events, SelectionOptions options)
    : state_(std::make_unique<State>(environment, ipam, networks, states, events,
                                     std::move(options))) {}

Binding::~Binding() { stop(); }

void Binding::add_used(const std::string& node, Used& used) const {
  const auto state = state_->states.get(node);
  if (!state) return;
  for (const Value& claim : state_->claims.by_index(kByNode, node)) {
    for (const NicDevice& device : nic_devices(claim)) {
      const auto what = device.pool == node ? find_device(*state, device.device) : std::nullopt;
      if (!what) continue;
      if (!what->vf.empty()) used.vfs.insert(what->vf);
      if (what->is_share) ++used.shares[what->resource_name];
    }
  }
}

void Binding::stop() {
  state_->claims.stop();
  state_->queue.stop();
}

}  // namespace dibs::drivers::net
