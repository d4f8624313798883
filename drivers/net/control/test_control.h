#pragma once
// For tests of the cluster's half: a cluster with controllers and scheduler under virtual time, and
// nodes that are nothing but reports.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "driver/test_boxes.h"
#include "drivers/net/control/control_half.h"
#include "drivers/net/ipam/endpoint.h"
#include "drivers/net/model/ip_pool.h"
#include "drivers/net/model/node_state.h"
#include "drivers/net/objects/install.h"
#include "json/parse.h"

namespace dibs::drivers::net::test {

using driver::test::from_text;
using json::Value;

inline const client::Gvr kPods = {"", "v1", "pods"};
inline const client::Gvr kNodes = {"", "v1", "nodes"};
inline const client::Gvr kTemplates = {"resource.k8s.io", "v1alpha2", "resourceclaimtemplates"};
inline const client::Gvr kTodaysClaims = {"resource.k8s.io", "v1", "resourceclaims"};

inline Interface nic(const std::string& name, const std::string& address = {}) {
  Interface out;
  out.name = name;
  out.kind = "device";
  out.admin_up = true;
  out.oper_state = "up";
  out.link_layer = "ethernet";
  if (!address.empty()) {
    out.addresses = {address};
    out.subnets = {Subnet::parse_lenient(address)->str()};
  }
  return out;
}

class ControlWorld : public driver::test::ControllerWorld {
 public:
  explicit ControlWorld(const std::string& release = "") : ControllerWorld(options(release)) {
    settle();
    for (const char* node : {"node-0", "node-1"}) {
      patch(kNodes, "", node,
            "{'status': {'capacity': {'cpu': '64', 'memory': '64Gi', 'pods': '500'}, "
            "'allocatable': {'cpu': '64', 'memory': '64Gi', 'pods': '500'}}}",
            "status");
      patch(kNodes, "", node, "{'spec': {'taints': null}}");
    }
  }
  ~ControlWorld() {
    half = {};
    close();
  }

  void start(ControlHalfOptions options = {}) { start_over(*api, std::move(options)); }
  void start_over(client::Client& client, ControlHalfOptions options = {},
                  Duration time = std::chrono::seconds(15)) {
    auto started = start_control_half(environment_over(client), std::move(options));
    EXPECT_TRUE(started.ok());
    half = std::move(started).value();
    settle(time);
  }
  /// Another process goes on with the work of one that was killed.
  void take_over(client::Client& client) {
    half = {};
    start_over(client, {}, std::chrono::seconds(2));
  }

  void report(const std::string& node, std::vector<Interface> interfaces,
              std::vector<ResourcePool> pools = {}) {
    NodeState state;
    state.node = node;
    state.interfaces = std::move(interfaces);
    state.pools = std::move(pools);
    state.observed = sim.runtime().clock.now();
    const Value object = to_object(state, "");
    Value made = get(kNodeStates, "", node);
    if (made.is_null()) made = expect(api->create(kNodeStates, "", object));
    made.set("status", object["status"]);
    expect(api->update_status(kNodeStates, "", made));
    settle();
  }

  void make(const client::Gvr& gvr, const char* kind, const std::string& name,
            const std::string& rest, const std::string& name_space = "") {
    create(gvr, name_space,
           cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': '", kind,
               "', 'metadata': {'name': '", name, "'}", rest, "}"));
    settle();
  }
  void make_config(const std::string& name, const std::string& spec) {
    make(kMultusConfigs, "SpiderMultusConfig", name, cat(", 'spec': {", spec, "}"), "kube-system");
  }
  void make_macvlan(const std::string& name = "macvlan-conf", const std::string& master = "eth0") {
    make_config(name, cat("'cniType': 'macvlan', 'macvlan': {'master': ['", master, "']}"));
  }
  void make_pool(const std::string& name, const std::string& subnet, const std::string& ips,
                 const std::string& more = "") {
    make(kIpPools, "SpiderIPPool", name,
         cat(", 'spec': {'subnet': '", subnet, "', 'ips': ['", ips, "']", more, "}"));
  }
  void make_parameter(const std::string& name, const std::string& rest = "") {
    make(kClaimParameters, "SpiderClaimParameter", name, rest, "default");
  }
  /// A classic template named as the parameter.
  void make_template(const std::string& name, const std::string& reference) {
    create(kTemplates, "default",
           cat("{'metadata': {'name': '", name,
               "'}, 'spec': {'spec': {'resourceClassName': 'netresources.spidernet.io'", reference,
               "}}}"));
  }
  static std::string refer(const std::string& name, const char* kind = "SpiderClaimParameter",
                           const char* group = "spiderpool.spidernet.io") {
    return cat(", 'parametersRef': {'apiGroup': '", group, "', 'kind': '", kind, "', 'name': '",
               name, "'}");
  }
  /// What the document applies: everything but pods.
  void make_seed(const std::string& ips = "172.18.30.131-172.18.30.140") {
    make_macvlan();
    make_pool("ippool-test", "172.18.0.0/16", ips, ", 'multusName': ['kube-system/macvlan-conf']");
    make_parameter("demo");
    make_template("demo", refer("demo"));
  }
  static constexpr const char* kOnMacvlan =
      "'v1.multus-cni.io/default-network': 'kube-system/macvlan-conf'";

  Value make_pod_of(const std::string& name, const std::string& annotations = kOnMacvlan,
                    const std::vector<std::string>& templates = {"demo"}) {
    std::string entries;
    std::string uses;
    for (const auto& one : templates) {
      const std::string from = cat("'resourceClaimTemplateName': '", one, "'");
      append(entries, entries.empty() ? "" : ", ", "{'name': '", one, "', 'source': {", from, "}, ",
             from, "}");
      append(uses, uses.empty() ? "" : ", ", "{'name': '", one, "'}");
    }
    return create(kPods, "default",
                  cat("{'metadata': {'name': '", name, "', 'annotations': {", annotations,
                      "}}, 'spec': {'resourceClaims': [", entries,
                      "], 'containers': [{'name': 'c', 'image': 'i', 'resources': {'claims': [",
                      uses, "]}}]}}"));
  }
  void delete_pod(const std::string& name) {
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    (void)api->remove(kPods, "default", name, options);
  }
  std::string node_of(const std::string& pod) {
    return get(kPods, "default", pod)["spec"]["nodeName"].str();
  }
  Value annotations_of(const std::string& pod) {
    return get(kPods, "default", pod)["metadata"]["annotations"];
  }
  /// "eth0 172.18.30.131/16" of each interface of the pod's endpoint.
  std::vector<std::string> addresses_of(const std::string& pod) {
    std::vector<std::string> out;
    const Value object = get(kEndpoints, "default", pod);
    if (object.is_null()) return out;
    for (const Assigned& one : parse_endpoint(object).nics) {
      out.push_back(cat(one.interface, " ", one.ipv4));
    }
    return out;
  }
  std::int64_t used_of(const std::string& pool) {
    return get(kIpPools, "", pool)["status"]["allocatedIPCount"].as_int();
  }
  /// The handle of the pod's only classic claim.
  Value handle_of_pod(const std::string& pod) {
    for (const Value& claim : list(driver::kClassicClaims, "default")) {
      const Value& owner = claim["metadata"]["ownerReferences"][0];
      if (owner["name"].as_string() != pod) continue;
      for (const auto& handle : driver::handles_of(claim, kClassicDriver)) {
        if (auto read = json::parse(handle.data)) return *read;
      }
    }
    return {};
  }
  /// Whether an event about the object begins with `start` and has `words` in it.
  bool says(const std::string& name, const std::string& start, const std::string& words) {
    for (const auto& event : events("default", name)) {
      if (event.starts_with(start) && event.find(words) != std::string::npos) return true;
    }
    return false;
  }

  driver::Running half;

 private:
  static cluster::Options options(const std::string& release) {
    cluster::Options out = options_of(release);
    // These nodes have no agents, and shall not be missed.
    out.controllers.emplace().node_monitor_grace_period = std::chrono::hours(24);
    out.scheduler.emplace();
    return out;
  }
};

}  // namespace dibs::drivers::net::test
