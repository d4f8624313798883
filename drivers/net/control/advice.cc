#include "drivers/net/control/advice.h"

#include <map>

#include "base/strings.h"
#include "client/informer.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "driver/allocator.h"
#include "driver/claim.h"
#include "drivers/net/control/today.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kPods = {"", "v1", "pods"};
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};
/// The scheduler goes first, and may find a node at the second try.
constexpr Duration kPatience = std::chrono::seconds(2);
constexpr Duration kAgain = std::chrono::minutes(1);

bool is_unschedulable(const Value& pod) {
  if (pod["spec"]["resourceClaims"].empty() || !pod["spec"]["nodeName"].as_string().empty()) {
    return false;
  }
  for (const Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].as_string() != "PodScheduled") continue;
    return condition["status"].as_string() == "False" &&
           condition["reason"].as_string() == "Unschedulable";
  }
  return false;
}

/// Configurations of a class or claim that are this driver's, as an allocation has them.
void add_configs(const Value& list, const char* source, const std::string& request, Value& out) {
  for (const Value& config : list.items()) {
    if (config["opaque"]["driver"].as_string() != kDriver) continue;
    Value entry = config;
    entry.set("source", source);
    if (!request.empty()) entry.set("requests", Value::array({request}));
    out.push(std::move(entry));
  }
}

}  // namespace

struct Advice::State {
  State(const driver::Environment& environment, Ipam& given_ipam, const Networks& given_networks,
        const NodeStates& given_states, client::EventRecorder& given_events,
        SelectionOptions given_options)
      : api(environment.api),
        runtime(environment.runtime),
        ipam(given_ipam),
        networks(given_networks),
        states(given_states),
        events(given_events),
        options(std::move(given_options)),
        pods(environment.api, runtime, {.gvr = kPods, .field_selector = "spec.nodeName="}),
        queue(runtime, {}, [this](const std::string& key) { return work(key); }) {
    client::InformerHandlers handlers;
    handlers.added = [this](const Value& pod, bool) { look_at(pod); };
    handlers.updated = [this](const Value&, const Value& pod) { look_at(pod); };
    pods.add_handler(std::move(handlers));
    pods.start();
  }

  void look_at(const Value& pod) {
    if (is_unschedulable(pod)) queue.add_after(client::key_of(pod), kPatience);
  }

  /// The claim as if it had been allocated: its interfaces can be told then. Null where it has
  /// nothing of this driver, or has been allocated.
  Result<Value> supposed(Value claim) {
    if (driver::is_classic(claim) || claim["status"]["allocation"].is_object()) return Value();
    Value results = Value::array();
    Value configs = Value::array();
    for (const Value& request : claim["spec"]["devices"]["requests"].items()) {
      const std::string class_name = request["exactly"]["deviceClassName"].str();
      // Of alternatives nobody knows which it will be.
      if (class_name.empty()) continue;
      const auto found = api.get(kDeviceClasses, "", class_name);
      if (!found && found.error().code() == Code::not_found) continue;
      if (!found) return found.error();
      Value own = Value::array();
      add_configs((*found)["spec"]["config"], "FromClass", request["name"].str(), own);
      if (own.empty() && class_name != kStaticClass) continue;
      for (const Value& config : own.items()) configs.push(config);
      results.push(Value::object(
          {{"driver", kDriver}, {"pool", ""}, {"device", ""}, {"request", request["name"]}}));
    }
    if (results.empty()) return Value();
    for (const Value& config : claim["spec"]["devices"]["config"].items()) {
      add_configs(Value::array({config}), "FromClaim", "", configs);
    }
    claim.mut("status").set(
        "allocation",
        Value::object({{"devices", Value::object({{"results", std::move(results)},
                                                  {"config", std::move(configs)}})}}));
    return claim;
  }

  Result<> can_run_on(const std::string& node, const Value& pod, const TodayPlan& plan) {
    const auto state = states.get(node);
    std::vector<Need> needs;
    std::vector<NicAsk> asks;
    for (const TodayNic& nic : plan.nics) {
      needs.push_back(nic.need);
      if (uses_ipam(nic.need.config)) asks.push_back(ask_of(nic.need, state.get(), "", {}));
    }
    // What others hold the scheduler sees by itself.
    DIBS_CHECK(fit(state.get(), needs, ClaimParameter(), Used(), runtime.clock.now()));
    return asks.empty() ? success() : ipam.can_assign(pod, node, asks);
  }

  WorkOutcome work(const std::string& key) {
    const auto pod = pods.get(key);
    if (!pod || !is_unschedulable(*pod)) return WorkOutcome::done();
    if (!networks.synced() || !states.synced() || !ipam.synced()) {
      return WorkOutcome::again_after(kPatience);
    }
    std::vector<Value> claims;
    for (const std::string& name : claims_of_pod(*pod)) {
      if (name.empty()) continue;
      auto claim = api.get(kClaims, client::namespace_of(*pod), name);
      if (!claim) return WorkOutcome::again_after(kAgain);
      auto known = supposed(std::move(claim).value());
      if (!known) return WorkOutcome::again_after(kAgain);
      if (!known->is_null()) claims.push_back(std::move(known).value());
    }
    if (claims.empty()) return WorkOutcome::done();
    tell(*pod, claims);
    return WorkOutcome::again_after(kAgain);
  }

  void tell(const Value& pod, const std::vector<Value>& claims) {
    const auto plan = plan_today(pod, claims, nullptr, networks, options);
    if (plan && plan->nics.empty()) return;
    std::map<std::string, std::string> reasons;
    for (const auto& node : states.names()) {
      const Result<> can = plan ? can_run_on(node, pod, *plan) : plan.error();
      // Then it is something else that the pod waits for.
      if (can) return;
      reasons[node] = can.error().message();
    }
    if (reasons.empty()) return;
    client::EventInput event;
    event.regarding = client::object_reference(pod);
    event.warning = true;
    event.reason = "UnsuitableNodes";
    event.note = driver::describe_reasons(reasons);
    events.record(std::move(event));
  }

  client::ResourceClient api;
  runtime::Runtime& runtime;
  Ipam& ipam;
  const Networks& networks;
  const NodeStates& states;
  client::EventRecorder& events;
  const SelectionOptions options;
  client::Informer pods;
  client::WorkQueue queue;
};

Advice::Advice(const driver::Environment& environment, Ipam& ipam, const Networks& networks,
               const NodeStates& states, client::EventRecorder& events, SelectionOptions options)
    : state_(std::make_unique<State>(environment, ipam, networks, states, events,
                                     std::move(options))) {}

Advice::~Advice() { stop(); }

void Advice::stop() {
  state_->pods.stop();
  state_->queue.stop();
}

}  // namespace dibs::drivers::net
