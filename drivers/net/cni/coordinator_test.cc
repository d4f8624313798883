// The plugins on real network namespaces: a machine, a switch and pods, none of which any packet
// leaves.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "drivers/net/cni/coordinator_config.h"
#include "drivers/net/cni/netlink.h"
#include "drivers/net/cni/network_namespace.h"
#include "drivers/net/cni/plugin_call.h"
#include "json/parse.h"
#include "runtime/processes.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using testing::HasSubstr;
using testing::Not;

int sh(const std::string& command) {
  const auto ran = runtime::run({.argv = {"sh", "-c", command}});
  if (ran.ok() && ran->status.code != 0)
    std::fprintf(stderr, "%s: %s\n", command.c_str(), ran->err.c_str());
  return ran.ok() ? ran->status.code : -1;
}

std::string text_of(const std::string& command) {
  const auto ran = runtime::run({.argv = {"sh", "-c", command}, .out = runtime::Stdio::pipe});
  return ran.ok() ? ran->out : "";
}

/// A namespace that a sleeping process holds.
class Space {
 public:
  Space() {
    auto started = runtime::Process::start(
        {.argv = {"unshare", "-n", "sh", "-c", "ip link set lo up; echo; exec sleep 1000"},
         .out = runtime::Stdio::pipe});
    EXPECT_TRUE(started.ok());
    process_ = std::move(started).value();
    char byte = 0;
    EXPECT_EQ(::read(process_->out().get(), &byte, 1), 1);
  }
  ~Space() {
    process_->kill(SIGKILL);
    (void)process_->wait();
  }
  pid_t pid() const { return process_->pid(); }
  std::string path() const { return cat("/proc/", pid(), "/ns/net"); }
  std::string run(const std::string& command) const {
    return text_of(cat("nsenter -t ", pid(), " -n ", command));
  }

 private:
  std::unique_ptr<runtime::Process> process_;
};

/// A machine with eth0 (172.18.0.11/16) on a switch, where the gateway 172.18.0.1 is, too.
class CoordinatorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    own_ = runtime::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespaces here";
    if (sh("ip link add eth0 type veth peer name sw0 && ip link add link eth0 name probe type "
           "macvlan "
           "mode bridge && ip link del probe") != 0) {
      GTEST_SKIP() << "this kernel has no veth or no macvlan devices";
    }
    switch_ = std::make_unique<Space>();
    ASSERT_EQ(sh(cat("ip link set lo up; ip link set sw0 netns ", switch_->pid(),
                     "; ip addr add 172.18.0.11/16 dev eth0; ip addr add fd18::11/64 dev eth0 "
                     "nodad; ip link set eth0 up")),
              0);
    switch_->run("ip link add br0 type bridge");
    switch_->run("ip link set br0 up");
    switch_->run("ip link set sw0 master br0");
    switch_->run("ip link set sw0 up");
    switch_->run("ip addr add 172.18.0.1/16 dev br0");
    switch_->run("ip addr add 10.6.0.1/16 dev br0");
    switch_->run("ip addr add fd18::1/64 dev br0 nodad");
  }
  void TearDown() override {
    switch_.reset();
    if (own_.ok()) {
      ASSERT_EQ(::setns(own_.get(), CLONE_NEWNET), 0);
    }
  }

  /// What macvlan and IPAM leave: an interface with an address, and a result that names it.
  PluginCall attach(const Space& pod, const std::string& interface, const std::string& address,
                    const std::string& gateway, const std::string& config = "{}") {
    EXPECT_EQ(
        sh(cat("ip link add link eth0 name m0 type macvlan mode bridge && ip link set m0 netns ",
               pod.pid())),
        0);
    const bool v6 = address.find(':') != std::string::npos;
    pod.run(cat("ip link set m0 name ", interface));
    pod.run(cat("ip addr add ", address, " dev ", interface, v6 ? " nodad" : ""));
    pod.run(cat("ip link set ", interface, " up"));
    if (!gateway.empty()) pod.run(cat("ip ", v6 ? "-6 " : "", "route add default via ", gateway));
    PluginCall call = call_of(pod, interface, config);
    const std::string mac(trim(pod.run(cat("cat /sys/class/net/", interface, "/address"))));
    Value ip = Value::object({{"address", address}, {"interface", 0}});
    if (!gateway.empty()) ip.set("gateway", gateway);
    call.config.set(
        "prevResult",
        Value::object({{"cniVersion", "1.0.0"},
                       {"interfaces", Value::array({Value::object({{"name", interface},
                                                                   {"mac", "00:00:00:00:00:00"},
                                                                   {"sandbox", pod.path()}})})},
                       {"ips", Value::array({ip})}}));
    return call;
  }
  static PluginCall call_of(const Space& pod, const std::string& interface,
                            const std::string& config = "{}") {
    PluginCall call;
    call.command = "ADD";
    call.container = cat("sandbox-", pod.pid());
    call.network_namespace = pod.path();
    call.interface = interface;
    call.config = *json::parse(config);
    call.config.set("cniVersion", "1.0.0");
    return call;
  }
  static Result<Value> remove(PluginCall call) {
    call.command = "DEL";
    return run_coordinator(call);
  }

  /// Whether a connection from one namespace ("": the machine's) to an address of another works,
  /// and from which address it comes.
  static std::string reach(const std::string& from, const std::string& to, const char* address) {
    int listener = -1;
    int port = 0;
    const bool v6 = std::strchr(address, ':') != nullptr;
    const int family = v6 ? AF_INET6 : AF_INET;
    const auto fill = [&](sockaddr_storage& where, int number) -> socklen_t {
      where = {};
      if (v6) {
        auto& six = reinterpret_cast<sockaddr_in6&>(where);
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<std::uint16_t>(number));
        ::inet_pton(AF_INET6, address, &six.sin6_addr);
        return sizeof six;
      }
      auto& four = reinterpret_cast<sockaddr_in&>(where);
      four.sin_family = AF_INET;
      four.sin_port = htons(static_cast<std::uint16_t>(number));
      ::inet_pton(AF_INET, address, &four.sin_addr);
      return sizeof four;
    };
    const auto in = [](const std::string& path, const std::function<Result<>()>& work) {
      if (path.empty()) return work();
      auto space = NetworkNamespace::open(path);
      return space.ok() ? space->inside(work) : Result<>(space.error());
    };
    (void)in(to, [&]() -> Result<> {
      sockaddr_storage where = {};
      listener = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      socklen_t size = fill(where, 0);
      if (::bind(listener, reinterpret_cast<sockaddr*>(&where), size) != 0) {
        return Error::internal("bind");
      }
      ::listen(listener, 1);
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size);
      port = ntohs(v6 ? reinterpret_cast<sockaddr_in6&>(where).sin6_port
                      : reinterpret_cast<sockaddr_in&>(where).sin_port);
      return success();
    }).ok();
    std::string source;
    (void)in(from, [&]() -> Result<> {
      const runtime::Fd caller(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      sockaddr_storage where = {};
      const socklen_t size = fill(where, port);
      (void)::connect(caller.get(), reinterpret_cast<sockaddr*>(&where), size);
      pollfd wait{listener, POLLIN, 0};
      if (::poll(&wait, 1, 1500) != 1) return success();
      sockaddr_storage peer = {};
      socklen_t length = sizeof peer;
      const runtime::Fd accepted(::accept(listener, reinterpret_cast<sockaddr*>(&peer), &length));
      pollfd done{caller.get(), POLLOUT, 0};
      if (::poll(&done, 1, 1500) != 1 || (done.revents & POLLERR) != 0) return success();
      char text[INET6_ADDRSTRLEN];
      ::inet_ntop(family,
                  v6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(peer).sin6_addr)
                     : static_cast<void*>(&reinterpret_cast<sockaddr_in&>(peer).sin_addr),
                  text, sizeof text);
      source = text;
      return success();
    }).ok();
    ::close(listener);
    return source;
  }

  runtime::Fd own_;
  std::unique_ptr<Space> switch_;
};

TEST_F(CoordinatorTest, lets_pods_and_their_host_reach_each_other) {
  const Space one, two;
  const auto first = attach(one, "eth0", "172.18.30.131/16", "172.18.0.1");
  const auto second = attach(two, "eth0", "172.18.30.132/16", "172.18.0.1");
  EXPECT_EQ(reach("", one.path(), "172.18.30.131"), "") << "macvlan alone should not";

  ASSERT_TRUE(run_coordinator(first).ok()) << run_coordinator(first).error().message();
  ASSERT_TRUE(run_coordinator(second).ok());

  EXPECT_EQ(reach("", one.path(), "172.18.30.131"), "172.18.0.11");
  EXPECT_EQ(reach("", two.path(), "172.18.30.132"), "172.18.0.11");
  EXPECT_EQ(reach(one.path(), "", "172.18.0.11"), "172.18.30.131");
  EXPECT_EQ(reach(one.path(), two.path(), "172.18.30.132"), "172.18.30.131");
  EXPECT_EQ(reach(one.path(), switch_->path(), "172.18.0.1"), "172.18.30.131");
}

TEST_F(CoordinatorTest, of_ipv6_too) {
  const Space pod;
  const auto call = attach(pod, "eth0", "fd18::131/64", "fd18::1");
  const auto done = run_coordinator(call);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(reach("", pod.path(), "fd18::131"), "fd18::11");
  EXPECT_EQ(reach(pod.path(), "", "fd18::11"), "fd18::131");
}

TEST_F(CoordinatorTest, may_be_repeated_and_leaves_nothing) {
  const Space pod;
  const auto call = attach(pod, "eth0", "172.18.30.131/16", "172.18.0.1");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run_coordinator(call).ok());
  EXPECT_EQ(reach("", pod.path(), "172.18.30.131"), "172.18.0.11");
  EXPECT_THAT(text_of("ip rule"), HasSubstr("lookup 500"));

  for (int i = 0; i < 2; ++i) ASSERT_TRUE(remove(call).ok()) << remove(call).error().message();

  EXPECT_THAT(text_of("ip rule"), Not(HasSubstr("lookup 500")));
  EXPECT_THAT(text_of("ip link"), Not(HasSubstr(host_veth_name(call.container))));
  EXPECT_EQ(text_of("ip route show table 500"), "");
}

TEST_F(CoordinatorTest, what_is_left_of_a_pod_whose_namespace_is_gone_goes_too) {
  auto pod = std::make_unique<Space>();
  const Space other;
  auto call = attach(*pod, "eth0", "172.18.30.131/16", "172.18.0.1");
  const auto others = attach(other, "eth0", "172.18.30.132/16", "172.18.0.1");
  ASSERT_TRUE(run_coordinator(call).ok());
  ASSERT_TRUE(run_coordinator(others).ok());
  pod.reset();
  // As after a kill: what was added was never noted.
  call.network_namespace = "";
  call.config.erase("prevResult");

  ASSERT_TRUE(remove(call).ok());

  EXPECT_THAT(text_of("ip link"), Not(HasSubstr(host_veth_name(call.container))));
  EXPECT_EQ(reach("", other.path(), "172.18.30.132"), "172.18.0.11") << "the other one needs it";
  ASSERT_TRUE(remove(others).ok());
  EXPECT_THAT(text_of("ip rule"), Not(HasSubstr("lookup 500")));
}

TEST_F(CoordinatorTest, sends_what_is_the_clusters_through_the_host) {
  ASSERT_EQ(sh("ip addr add 10.96.0.10/32 dev lo"), 0);
  const Space pod;
  const auto call =
      attach(pod, "eth0", "172.18.30.131/16", "172.18.0.1",
             R"({"serviceCIDR": ["10.96.0.0/12"], "hijackCIDR": ["169.254.0.0/16"]})");
  const auto done = run_coordinator(call);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(pod.run("ip route"), HasSubstr("10.96.0.0/12 via 172.18.0.11 dev veth0"));
  EXPECT_THAT(pod.run("ip route"), HasSubstr("169.254.0.0/16 via 172.18.0.11 dev veth0"));
  EXPECT_EQ(reach(pod.path(), "", "10.96.0.10"), "172.18.30.131");
}

TEST_F(CoordinatorTest, answers_by_the_interface_that_was_asked) {
  const Space pod, far;
  // Somebody behind the gateway of the second network, who is not in either subnet.
  ASSERT_EQ(sh(cat("nsenter -t ", switch_->pid(),
                   " -n ip link add far0 type veth peer name eth0 netns ", far.pid())),
            0);
  switch_->run("ip addr add 192.0.2.1/24 dev far0");
  switch_->run("ip link set far0 up");
  switch_->run("sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'");
  far.run("ip addr add 192.0.2.2/24 dev eth0");
  far.run("ip link set eth0 up");
  far.run("ip route add default via 192.0.2.1");
  const auto first = attach(pod, "eth0", "172.18.30.131/16", "172.18.0.1");
  ASSERT_TRUE(run_coordinator(first).ok());
  auto second = attach(pod, "net1", "10.6.0.7/16", "");
  second.config.mut("prevResult").mut("ips").mut(std::size_t{0}).set("gateway", "10.6.0.1");

  const auto done = run_coordinator(second);
  ASSERT_TRUE(done.ok()) << done.error().message();

  EXPECT_THAT(pod.run("ip rule"), HasSubstr("from 10.6.0.7 lookup 101"));
  EXPECT_THAT(pod.run("ip rule"), HasSubstr("from 172.18.30.131 lookup 100"));
  EXPECT_THAT(pod.run("ip route show table 101"), HasSubstr("default via 10.6.0.1 dev net1"));
  EXPECT_THAT(pod.run("ip route show table 100"), HasSubstr("default via 172.18.0.1 dev eth0"));
  EXPECT_THAT(pod.run("ip route"), HasSubstr("default via 172.18.0.1 dev eth0"));
  EXPECT_EQ(reach(far.path(), pod.path(), "10.6.0.7"), "192.0.2.2");
  EXPECT_EQ(reach(far.path(), pod.path(), "172.18.30.131"), "192.0.2.2");
  EXPECT_EQ(reach("", pod.path(), "10.6.0.7"), "172.18.0.11");
  EXPECT_EQ(reach("", pod.path(), "172.18.30.131"), "172.18.0.11");

  ASSERT_TRUE(remove(second).ok());
  EXPECT_THAT(pod.run("ip rule"), Not(HasSubstr("lookup 101")));
  EXPECT_EQ(reach("", pod.path(), "172.18.30.131"), "172.18.0.11") << "eth0 is still there";
  ASSERT_TRUE(remove(first).ok());
  EXPECT_THAT(text_of("ip rule"), Not(HasSubstr("lookup 500")));
}

TEST_F(CoordinatorTest, the_default_route_goes_to_the_interface_that_is_asked_for) {
  const Space pod;
  ASSERT_TRUE(run_coordinator(attach(pod, "eth0", "172.18.30.131/16", "172.18.0.1")).ok());
  auto second = attach(pod, "net1", "10.6.0.7/16", "", R"({"podDefaultRouteNIC": "net1"})");
  second.config.mut("prevResult").mut("ips").mut(std::size_t{0}).set("gateway", "10.6.0.1");

  const auto done = run_coordinator(second);
  ASSERT_TRUE(done.ok()) << done.error().message();

  EXPECT_THAT(pod.run("ip route"), HasSubstr("default via 10.6.0.1 dev net1"));
  EXPECT_THAT(pod.run("ip route"), Not(HasSubstr("default via 172.18.0.1")));
  EXPECT_THAT(pod.run("ip route show table 100"), HasSubstr("default via 172.18.0.1 dev eth0"));
  EXPECT_EQ(reach("", pod.path(), "172.18.30.131"), "172.18.0.11");
}

TEST_F(CoordinatorTest, plugins_that_add_default_routes_for_all_do_not_move_the_pods) {
  for (const bool wanted : {false, true}) {
    const Space pod;
    ASSERT_TRUE(run_coordinator(attach(pod, "eth0", "172.18.30.131/16", "172.18.0.1")).ok());
    auto second =
        attach(pod, "net1", "10.6.0.7/16", "", wanted ? R"({"podDefaultRouteNIC": "net1"})" : "{}");
    pod.run("ip route prepend default via 10.6.0.1 dev net1");
    second.config.mut("prevResult").mut("ips").mut(std::size_t{0}).set("gateway", "10.6.0.1");

    const auto done = run_coordinator(second);
    ASSERT_TRUE(done.ok()) << done.error().message();

    EXPECT_EQ(trim(pod.run("ip route show default")),
              wanted ? "default via 10.6.0.1 dev net1" : "default via 172.18.0.1 dev eth0");
    EXPECT_THAT(pod.run("ip route show table 101"), HasSubstr("default via 10.6.0.1 dev net1"));
    EXPECT_THAT(pod.run("ip route show table 100"), HasSubstr("default via 172.18.0.1 dev eth0"));
    EXPECT_EQ(reach("", pod.path(), "172.18.30.131"), "172.18.0.11");
    EXPECT_EQ(reach("", pod.path(), "10.6.0.7"), "172.18.0.11");
  }
}

TEST_F(CoordinatorTest, two_default_routes_of_ipv6_become_one) {
  const Space pod;
  ASSERT_TRUE(run_coordinator(attach(pod, "eth0", "fd18::131/64", "fd18::1")).ok());
  auto second = attach(pod, "net1", "fd06::7/64", "");
  pod.run("ip -6 route append default via fd06::1 dev net1");
  second.config.mut("prevResult").mut("ips").mut(std::size_t{0}).set("gateway", "fd06::1");

  const auto done = run_coordinator(second);
  ASSERT_TRUE(done.ok()) << done.error().message();

  EXPECT_THAT(pod.run("ip -6 route show default"), HasSubstr("default via fd18::1 dev eth0"));
  EXPECT_THAT(pod.run("ip -6 route show default"), Not(HasSubstr("fd06::1")));
  EXPECT_THAT(pod.run("ip -6 route show table 101"), HasSubstr("default via fd06::1 dev net1"));
}

TEST_F(CoordinatorTest, gives_the_interface_an_address_and_a_queue) {
  const Space pod;
  const auto call = attach(pod, "eth0", "172.18.30.131/16", "172.18.0.1",
                           R"({"podMACPrefix": "0a:1b", "txQueueLen": 77, "vethMTU": 1400})");
  const auto done = run_coordinator(call);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ((*done)["interfaces"][0]["mac"].as_string(), "0a:1b:ac:12:1e:83");
  EXPECT_THAT(pod.run("ip link show eth0"), HasSubstr("0a:1b:ac:12:1e:83"));
  EXPECT_THAT(pod.run("ip link show eth0"), HasSubstr("qlen 77"));
  EXPECT_THAT(pod.run("ip link show veth0"), HasSubstr("mtu 1400"));
  EXPECT_EQ(reach("", pod.path(), "172.18.30.131"), "172.18.0.11");
}

TEST_F(CoordinatorTest, finds_the_gateway_or_says_that_it_is_not_there) {
  const Space one, two, three;
  const char* detect = R"({"detectGateway": true})";
  const auto good = run_coordinator(attach(one, "eth0", "172.18.30.131/16", "172.18.0.1", detect));
  EXPECT_TRUE(good.ok()) << good.error().message();
  const auto bad = run_coordinator(attach(two, "eth0", "172.18.30.132/16", "172.18.0.99", detect));
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().message(), HasSubstr("gateway 172.18.0.99 is unreachable"));
  const auto six = run_coordinator(attach(three, "eth0", "fd18::133/64", "fd18::1", detect));
  EXPECT_TRUE(six.ok()) << six.error().message();
}

TEST_F(CoordinatorTest, finds_out_who_has_the_address_already) {
  const Space one, two;
  const char* detect = R"({"detectIPConflict": true})";
  const auto first = run_coordinator(attach(one, "eth0", "172.18.30.131/16", "", detect));
  ASSERT_TRUE(first.ok()) << first.error().message();
  const auto again = run_coordinator(attach(two, "eth0", "172.18.30.131/16", "", detect));
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message(), HasSubstr("IP 172.18.30.131 of interface eth0 is in use"));
}

TEST_F(CoordinatorTest, tells_neighbours_of_the_new_owner) {
  const Space one, two;
  ASSERT_TRUE(run_coordinator(attach(one, "eth0", "172.18.30.131/16", "")).ok());
  ASSERT_EQ(reach(switch_->path(), one.path(), "172.18.30.131"), "172.18.0.1");
  one.run("ip link del eth0");
  // The switch still believes in the first one, which is gone.
  const auto call = attach(two, "eth0", "172.18.30.131/16", "");
  ASSERT_TRUE(run_coordinator(call).ok());
  const std::string mac(trim(two.run("cat /sys/class/net/eth0/address")));
  EXPECT_THAT(switch_->run("ip neigh show 172.18.30.131"), Not(testing::IsEmpty()));
  EXPECT_EQ(reach(switch_->path(), two.path(), "172.18.30.131"), "172.18.0.1");
}

TEST_F(CoordinatorTest, does_nothing_when_it_is_disabled) {
  const Space pod;
  const auto call = attach(pod, "eth0", "172.18.30.131/16", "", R"({"mode": "disabled"})");
  ASSERT_TRUE(run_coordinator(call).ok());
  EXPECT_EQ(pod.run("ip link show veth0"), "");
  EXPECT_THAT(text_of("ip rule"), Not(HasSubstr("lookup 500")));
}

TEST_F(CoordinatorTest, beside_an_overlay_the_second_interface_has_a_table) {
  const Space pod;
  // An eth0 of another kind, which reaches the host by itself.
  ASSERT_EQ(sh(cat("ip link add c0 type veth peer name eth0 netns ", pod.pid(),
                   " && ip addr add 10.97.0.1/16 dev c0 && ip link set c0 up")),
            0);
  pod.run("ip addr add 10.97.0.5/16 dev eth0");
  pod.run("ip link set eth0 up");
  pod.run("ip route add default via 10.97.0.1");
  auto call = attach(pod, "net1", "172.18.30.131/16", "", R"({"serviceCIDR": ["10.96.0.0/16"]})");
  call.config.mut("prevResult").mut("ips").mut(std::size_t{0}).set("gateway", "172.18.0.1");

  const auto done = run_coordinator(call);
  ASSERT_TRUE(done.ok()) << done.error().message();

  EXPECT_EQ(pod.run("ip link show veth0"), "");
  EXPECT_THAT(pod.run("ip rule"), HasSubstr("from 172.18.30.131 lookup 101"));
  EXPECT_THAT(pod.run("ip route show table 101"), HasSubstr("default via 172.18.0.1 dev net1"));
  EXPECT_THAT(pod.run("ip route"), HasSubstr("10.96.0.0/16 via 10.97.0.1 dev eth0"));
  EXPECT_EQ(reach("", pod.path(), "10.97.0.5"), "10.97.0.1");
  EXPECT_EQ(reach(switch_->path(), pod.path(), "172.18.30.131"), "172.18.0.1");
}

TEST_F(CoordinatorTest, what_it_refused_to_add_it_removes_all_the_same) {
  const Space pod;
  auto call = attach(pod, "eth0", "172.18.30.131/16", "", R"({"what": true})");
  EXPECT_FALSE(run_coordinator(call).ok());
  EXPECT_TRUE(remove(call).ok());
}

TEST_F(CoordinatorTest, must_come_after_another_plugin) {
  const Space pod;
  EXPECT_FALSE(run_coordinator(call_of(pod, "eth0")).ok());
}

TEST_F(CoordinatorTest, ifacer_makes_a_vlan_device_or_says_that_the_kernel_has_none) {
  PluginCall call;
  call.command = "ADD";
  call.container = "x";
  call.interface = "eth0";
  call.config = *json::parse(R"({"cniVersion": "1.0.0", "interfaces": ["eth0"], "vlanID": 100})");
  const bool able = sh("ip link add link eth0 name probe type vlan id 7 2>/dev/null") == 0;
  for (int i = 0; i < 2; ++i) {
    const auto done = run_ifacer(call);
    EXPECT_EQ(done.ok(), able);
    if (!done.ok()) {
      EXPECT_THAT(done.error().message(), HasSubstr("this kernel has no such device"));
    }
  }
  if (!able) GTEST_SKIP() << "this kernel has no VLAN devices";
  EXPECT_THAT(text_of("ip -d link show eth0.100"), HasSubstr("id 100"));
  call.config.set("interfaces", Value::array({"nothing0"}));
  EXPECT_FALSE(run_ifacer(call).ok());
}

TEST_F(CoordinatorTest, ifacer_makes_a_bond_or_says_that_the_kernel_has_none) {
  ASSERT_EQ(sh("ip link add a0 type veth peer name b0"), 0);
  PluginCall call;
  call.command = "ADD";
  call.container = "x";
  call.interface = "eth0";
  call.config = *json::parse(
      R"({"cniVersion": "1.0.0", "interfaces": ["a0", "b0"],
          "bond": {"name": "bond7", "mode": 1, "options": "miimon=100"}})");
  const bool able = sh("ip link add probe type bond 2>/dev/null") == 0;
  for (int i = 0; i < 2; ++i) {
    const auto done = run_ifacer(call);
    EXPECT_EQ(done.ok(), able);
    if (!done.ok()) {
      EXPECT_THAT(done.error().message(), HasSubstr("this kernel has no such device"));
    }
  }
  if (!able) GTEST_SKIP() << "this kernel has no bonds";
  EXPECT_THAT(text_of("ip link show a0"), HasSubstr("master bond7"));
}

}  // namespace
}  // namespace dibs::drivers::net
