#include "drivers/net/node/pod_networks_writer.h"

#include "base/log.h"
#include "base/strings.h"
#include "driver/device_status.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const client::Gvr kPods = {"", "v1", "pods"};

}  // namespace

PodNetworksWriter::PodNetworksWriter(const driver::Environment& environment,
                                     const Networks& networks,
                                     std::function<std::optional<NodeState>()> state,
                                     std::string node, SelectionOptions options)
    : api_(environment.api),
      resources_(environment.api),
      runtime_(environment.runtime),
      networks_(networks),
      state_(std::move(state)),
      node_(std::move(node)),
      options_(std::move(options)),
      queue_(environment.runtime, {.concurrency = 4},
             [this](const std::string& key) { return write_data(key); }) {}

PodNetworksWriter::~PodNetworksWriter() { stop(); }

void PodNetworksWriter::stop() { queue_.stop(); }

/// Nothing where no claim of the pod has a device of this driver.
Result<std::optional<TodayPlan>> PodNetworksWriter::plan_of(const Value& pod,
                                                            std::vector<Value>& claims) {
  using Plan = std::optional<TodayPlan>;
  bool ours = false;
  for (const std::string& name : claims_of_pod(pod)) {
    if (name.empty()) continue;
    auto claim = resources_.get(kClaims, client::namespace_of(pod), name);
    if (!claim) return claim.error();
    ours = ours || !nic_devices(*claim).empty();
    claims.push_back(std::move(claim).value());
  }
  if (!ours) return Plan();
  if (!networks_.synced()) return Error::unavailable("networks are not known yet");
  const auto state = state_();
  DIBS_TRY(auto plan, plan_today(pod, claims, state ? &*state : nullptr, networks_, options_));
  return Plan(std::move(plan));
}

Result<std::vector<InterfaceDevice>> PodNetworksWriter::make_ready(const Value& claim) {
  std::vector<InterfaceDevice> out;
  for (const Value& user : claim["status"]["reservedFor"].items()) {
    if (user["resource"].as_string() != "pods") continue;
    const auto pod = api_.get(kPods, client::namespace_of(claim), user["name"].as_string());
    if (!pod && pod.error().code() == Code::not_found) continue;
    if (!pod) return pod.error();
    if ((*pod)["metadata"]["uid"] != user["uid"]) continue;
    if ((*pod)["spec"]["nodeName"].as_string() != node_) continue;
    std::vector<Value> claims;
    DIBS_TRY(const auto plan, plan_of(*pod, claims));
    if (!plan) continue;
    for (const TodayNic& nic : plan->nics) {
      if (nic.vf.empty() || claims[nic.claim]["metadata"]["uid"] != claim["metadata"]["uid"]) {
        continue;
      }
      out.push_back({user["uid"].str(), nic.need.interface, nic.vf});
    }
    const bool runs = (*pod)["status"]["phase"].as_string() == "Running";
    if (runs || plan->annotations.is_null()) continue;
    const Value patch = Value::object(
        {{"metadata", Value::object({{"uid", user["uid"]}, {"annotations", plan->annotations}})}});
    const auto written = api_.patch(kPods, client::namespace_of(*pod), client::name_of(*pod),
                                    client::PatchType::merge, patch);
    if (!written) return written.error().within("annotations of the pod");
  }
  return out;
}

void PodNetworksWriter::attached(const AttachedNic& nic) {
  const std::string key = cat(nic.pod.name_space, "/", nic.pod.name, "/", nic.interface);
  {
    const MutexLock lock(mutex_);
    attached_[key] = nic;
  }
  queue_.add(key);
}

WorkOutcome PodNetworksWriter::write_data(const std::string& key) {
  AttachedNic nic;
  {
    const MutexLock lock(mutex_);
    const auto found = attached_.find(key);
    if (found == attached_.end()) return WorkOutcome::done();
    nic = found->second;
  }
  const auto write = [&]() -> Result<> {
    const auto pod = api_.get(kPods, nic.pod.name_space, nic.pod.name);
    if (!pod && pod.error().code() == Code::not_found) return success();
    if (!pod) return pod.error();
    if (!nic.pod.uid.empty() && client::uid_of(*pod) != nic.pod.uid) return success();
    if ((*pod)["spec"]["resourceClaims"].empty()) return success();
    std::vector<Value> claims;
    DIBS_TRY(const auto plan, plan_of(*pod, claims));
    if (!plan) return success();
    for (const TodayNic& planned : plan->nics) {
      if (planned.need.interface != nic.interface || planned.device.device.empty()) continue;
      Value ips = Value::array();
      for (const auto& ip : nic.ips) ips.push(ip);
      Value data = Value::object({{"interfaceName", nic.interface}});
      if (!ips.empty()) data.set("ips", std::move(ips));
      if (!nic.mac.empty()) data.set("hardwareAddress", nic.mac);
      const Value& claim = claims[planned.claim];
      const driver::ClaimName name = driver::claim_name(claim);
      return driver::update_claim_status(resources_, name, [&](Value& now) {
        if (!now["status"]["allocation"].is_object()) return;
        Value& device = driver::device_status(now, kDriver, planned.device.pool,
                                              planned.device.device, planned.device.share_id);
        device.set("networkData", data);
        driver::set_condition(
            device, {"Ready", true, "InterfaceAttached", cat("the pod has it as ", nic.interface)},
            runtime_.clock.now());
      });
    }
    return success();
  };
  if (const auto written = write(); !written) {
    log::warn("status of a pod's interface not written",
              {{"interface", key}, {"error", written.error()}});
    return WorkOutcome::retry();
  }
  const MutexLock lock(mutex_);
  // Unless it was made anew meanwhile.
  const auto found = attached_.find(key);
  if (found != attached_.end() && found->second.container == nic.container) attached_.erase(found);
  return WorkOutcome::done();
}

}  // namespace dibs::drivers::net
