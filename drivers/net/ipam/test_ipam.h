#pragma once
// For tests of addresses: a cluster with the network's kinds, in one thread under virtual time;
// several Ipams and collectors on it, each over a way to the server that may die at any write; and
// what has to hold at the end.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cluster/test_cluster.h"
#include "drivers/net/ipam/collector.h"
#include "drivers/net/ipam/ipam.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net::test {

using cluster::test::from_text;
using json::Value;

inline const client::Gvr kPods = {"", "v1", "pods"};
inline const client::Gvr kNamespaces = {"", "v1", "namespaces"};
inline const client::Gvr kSets = {"apps", "v1", "statefulsets"};

/// A way to the server that dies at a write of the network's objects, before it arrives or after.
/// `between` is called before every such write, so that others may act in between.
class Way : public client::Transport {
 public:
  explicit Way(client::Transport& inner) : inner_(inner) {}

  void die_at(int write, bool arrives) {
    left_ = write;
    arrives_ = arrives;
  }
  bool dead() const { return dead_; }
  int writes() const { return writes_; }
  std::function<void(int write)> between = {};

  Result<client::Response> send(client::Request request) override {
    if (dead_) return lost();
    if (!is_counted(request)) return inner_.send(std::move(request));
    const int write = writes_++;
    if (const auto act = between) act(write);  // it may set another one
    if (dead_) return lost();
    if (write != left_) return inner_.send(std::move(request));
    dead_ = true;
    if (arrives_) (void)inner_.send(std::move(request));
    return lost();
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (!dead_) inner_.send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    if (dead_) return nullptr;
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

 private:
  static Error lost() { return Error::unavailable("connection lost"); }
  static bool is_counted(const client::Request& request) {
    return request.method != "GET" && request.target.find("spidernet") != std::string::npos;
  }

  client::Transport& inner_;
  int left_ = -1;
  int writes_ = 0;
  bool arrives_ = false;
  bool dead_ = false;
};

inline NicAsk ask(const std::string& interface, std::vector<std::string> v4 = {},
                  std::vector<std::string> v6 = {}) {
  NicAsk nic;
  nic.interface = interface;
  nic.multus = "kube-system/macvlan-conf";
  nic.ipv4_pools = std::move(v4);
  nic.ipv6_pools = std::move(v6);
  return nic;
}

class IpamWorld : public cluster::test::TestCluster {
 public:
  /// A process with its own way to the server.
  struct Process {
    explicit Process(IpamWorld& world) : way(world.way()), api(way) {}
    Way way;
    client::Client api;
    std::unique_ptr<Ipam> ipam;
    std::unique_ptr<Collector> collector;
  };

  explicit IpamWorld(const runtime::SimOptions& options = {})
      : TestCluster(cluster::Options{}, options) {
    for (int i = 0; i < 20; ++i) {
      sim.advance(std::chrono::seconds(1));
      const auto installed = install(*api);
      if (installed) break;
      EXPECT_EQ(installed.error().code(), Code::unavailable) << installed.error().message();
    }
    (void)api->create({"", "v1", "serviceaccounts"}, "default",
                      from_text("{'metadata': {'name': 'default'}}"));
    settle();
  }
  ~IpamWorld() {
    processes_.clear();
    close();
  }

  void settle(Duration time = std::chrono::seconds(1)) { sim.advance(time); }
  client::Transport& way() { return *transport_; }

  Process& process() {
    processes_.push_back(std::make_unique<Process>(*this));
    return *processes_.back();
  }
  Process& start_ipam(IpamOptions options = {}) {
    Process& made = process();
    auto started = Ipam::start({made.api, sim.runtime(), *files}, std::move(options));
    EXPECT_TRUE(started.ok());
    made.ipam = std::move(started).value();
    settle();
    EXPECT_TRUE(made.ipam->synced());
    return made;
  }
  Process& start_collector(CollectorOptions options = {}) {
    Process& made = process();
    auto started = Collector::start({made.api, sim.runtime(), *files}, options);
    EXPECT_TRUE(started.ok());
    made.collector = std::move(started).value();
    settle();
    EXPECT_TRUE(made.collector->synced());
    return made;
  }
  /// As a kill: nothing of it gets through any more.
  void end(Process& process) {
    process.way.die_at(process.way.writes(), false);
    process.ipam.reset();
    process.collector.reset();
  }

  /// `more`: further members of spec, with a comma before.
  void make_pool(const std::string& name, const std::string& subnet, const std::string& ips,
                 const std::string& more = "") {
    create(kIpPools, "",
           cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': 'SpiderIPPool', "
               "'metadata': {'name': '",
               name, "'}, 'spec': {'subnet': '", subnet, "', 'ips': ['", ips, "']", more, "}}"));
  }
  /// `more`: further members of metadata, with a comma before.
  Value make_pod(const std::string& name, const std::string& more = "") {
    return create(kPods, "default",
                  cat("{'metadata': {'name': '", name, "'", more,
                      "}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}"));
  }
  void kill_pod(const std::string& name) {
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    (void)api->remove(kPods, "default", name, options);
  }
  Value pool(const std::string& name) { return get(kIpPools, "", name); }
  PoolStatus status(const std::string& name) {
    auto parsed = parse_pool_status(pool(name));
    EXPECT_TRUE(parsed.ok()) << (parsed ? "" : parsed.error().message());
    return parsed ? *parsed : PoolStatus();
  }
  Value endpoint(const std::string& pod) { return get(kEndpoints, "default", pod); }

  /// What holds at any moment: no address is named twice, and what is named is recorded.
  void expect_exact() {
    std::map<Held, std::string> named;
    for (const auto& object : list(kEndpoints, "")) {
      for (const auto& held : held_by(parse_endpoint(object).nics)) {
        const auto [at, first] = named.emplace(held, client::key_of(object));
        EXPECT_TRUE(first) << held.ip.str() << " of " << at->second << " and "
                           << client::key_of(object);
        EXPECT_TRUE(status(held.pool).used().contains(held.ip))
            << held.ip.str() << " of " << client::key_of(object) << " is not recorded";
      }
    }
  }
  /// What holds after the collector ran: what is recorded is named, by the endpoint of a live pod.
  void expect_nothing_lost() {
    expect_exact();
    std::map<std::string, std::int64_t> named;
    for (const auto& object : list(kEndpoints, "")) {
      const Endpoint endpoint = parse_endpoint(object);
      const Value pod = get(kPods, endpoint.name_space, endpoint.name);
      const bool sticky = endpoint.owner_kind == "StatefulSet";
      EXPECT_TRUE(sticky || client::uid_of(pod) == endpoint.pod_uid)
          << "the pod of " << client::key_of(object) << " is gone";
      for (const auto& held : held_by(endpoint.nics)) ++named[held.pool];
    }
    for (const auto& object : list(kIpPools, "")) {
      const auto status = parse_pool_status(object);
      ASSERT_TRUE(status.ok());
      EXPECT_EQ(status->used().count(), named[std::string(client::name_of(object))])
          << client::name_of(object) << ": " << object["status"]["allocatedIPs"].as_string();
      EXPECT_EQ(status->used().count(), object["status"]["allocatedIPCount"].as_int());
    }
  }

 private:
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace dibs::drivers::net::test
