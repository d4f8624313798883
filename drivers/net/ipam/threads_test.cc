// Addresses for many threads at once, in real time: who waits for a pool shares its writes.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "cluster/cluster.h"
#include "drivers/net/ipam/test_ipam.h"

namespace dibs::drivers::net {
namespace {

using test::ask;
using test::from_text;
using test::Value;

/// Counts writes of pools.
class Counting : public client::Transport {
 public:
  explicit Counting(std::unique_ptr<client::Transport> inner) : inner_(std::move(inner)) {}

  Result<client::Response> send(client::Request request) override {
    if (request.method == "PUT" && request.target.find("spiderippools") != std::string::npos) {
      ++pool_writes;
    }
    return inner_->send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    inner_->send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_->open_stream(std::move(request), std::move(handlers));
  }

  std::atomic<int> pool_writes = 0;

 private:
  std::unique_ptr<client::Transport> inner_;
};

template <typename Condition>
bool wait_until(const Condition& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(IpamThreads, share_writes_and_get_different_addresses) {
  constexpr int kPods = 240;
  constexpr int kThreads = 48;
  const auto world = cluster::real_world();
  auto cluster = cluster::Cluster::start(world, store::make_memory_store({}), {}).value();
  client::Client& api = cluster->client();
  ASSERT_TRUE(wait_until([&] { return install(api).ok(); }));
  ASSERT_TRUE(wait_until([&] {
    return api
        .create({"", "v1", "serviceaccounts"}, "default",
                from_text("{'metadata': {'name': 'default'}}"))
        .ok();
  }));
  ASSERT_TRUE(
      api.create(kIpPools, "", from_text(R"({'apiVersion': 'spiderpool.spidernet.io/v2beta1',
          'kind': 'SpiderIPPool', 'metadata': {'name': 'p'},
          'spec': {'subnet': '172.18.0.0/16', 'ips': ['172.18.30.1-172.18.31.200']}})"))
          .ok());
  Counting ways[2] = {Counting(cluster->connect({})), Counting(cluster->connect({}))};
  client::Client clients[2] = {client::Client(ways[0]), client::Client(ways[1])};
  auto collector = Collector::start({api, world.control}).value();
  std::unique_ptr<Ipam> ipams[2];
  for (int i = 0; i < 2; ++i) {
    IpamOptions options;
    options.records = 64;
    ipams[i] = Ipam::start({clients[i], world.control}, options).value();
  }
  ASSERT_TRUE(wait_until([&] {
    return ipams[0]->synced() && ipams[1]->synced() &&
           api.get(kIpPools, "", "p").value()["status"].contains("admittedIPs");
  }));
  std::vector<Value> pods;
  for (int i = 0; i < kPods; ++i) {
    pods.push_back(api.create(test::kPods, "default",
                              from_text(cat("{'metadata': {'name': 'pod-", i, "'}, 'spec': ",
                                            "{'containers': [{'name': 'c', 'image': 'i'}]}}")))
                       .value());
  }
  ASSERT_TRUE(
      wait_until([&] { return ipams[0]->can_assign(pods[0], "n", {ask("eth0", {"p"})}).ok(); }));

  Mutex mutex;
  std::set<std::string> addresses;
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = next++; i < kPods; i = next++) {
        auto assigned =
            ipams[t % 2]->assign(pods[static_cast<std::size_t>(i)], "node-0", {ask("eth0", {"p"})});
        const MutexLock lock(mutex);
        if (!assigned) {
          ADD_FAILURE() << assigned.error().message();
        } else {
          addresses.insert(assigned->at(0).ipv4);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(addresses.size(), static_cast<std::size_t>(kPods));
  EXPECT_EQ(api.get(kIpPools, "", "p").value()["status"]["allocatedIPCount"], Value(kPods));
  EXPECT_LT(ways[0].pool_writes + ways[1].pool_writes, kPods) << "written together";
  for (const auto& pod : pods) {
    client::DeleteOptions options;
    options.grace_period_seconds = 0;
    EXPECT_TRUE(api.remove(test::kPods, "default", client::name_of(pod), options).ok());
  }
  EXPECT_TRUE(wait_until([&] {
    return api.get(kIpPools, "", "p").value()["status"]["allocatedIPCount"] == Value(0);
  })) << "all are collected";
  collector.reset();
  for (auto& ipam : ipams) ipam.reset();
  cluster->stop();
}

}  // namespace
}  // namespace dibs::drivers::net
