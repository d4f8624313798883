#include "net/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "net/client_connection.h"
#include "net/testing/own_network.h"

namespace dibs::net {
namespace {

using testing::HasSubstr;

std::string asked(const std::string& address) {
  const auto found = is_by_default_route(address);
  if (!found.ok()) return found.error().message();
  return *found ? "default" : "own";
}

template <typename Body>
std::string answer(std::uint16_t type, const Body& body) {
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof body));
  std::string out(head.nlmsg_len, '\0');
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + NLMSG_HDRLEN, &body, sizeof body);
  return out;
}

rtmsg route(unsigned char family, unsigned char bits, unsigned char type = RTN_UNICAST) {
  rtmsg out{};
  out.rtm_family = family;
  out.rtm_dst_len = bits;
  out.rtm_type = type;
  return out;
}

TEST(Route, is_the_default_one_where_it_is_for_everybody) {
  const auto is_default = [](const rtmsg& one) {
    return read_route(answer(RTM_NEWROUTE, one)).value();
  };
  EXPECT_TRUE(is_default(route(AF_INET, 0)));
  EXPECT_TRUE(is_default(route(AF_INET, 1)));
  EXPECT_FALSE(is_default(route(AF_INET, 8)));
  EXPECT_FALSE(is_default(route(AF_INET, 0, RTN_UNREACHABLE)));
  EXPECT_FALSE(is_default(route(AF_INET, 32, RTN_LOCAL)));
  EXPECT_TRUE(is_default(route(AF_INET6, 0)));
  EXPECT_TRUE(is_default(route(AF_INET6, 3)));
  EXPECT_FALSE(is_default(route(AF_INET6, 7)));
}

TEST(Route, tells_no_route_from_no_answer) {
  const auto refused = [](int error) {
    nlmsgerr body{};
    body.error = -error;
    return read_route(answer(NLMSG_ERROR, body));
  };
  EXPECT_FALSE(refused(ENETUNREACH).value());
  EXPECT_FALSE(refused(EHOSTUNREACH).value());
  EXPECT_FALSE(refused(EACCES).value());
  EXPECT_FALSE(refused(EINVAL).value());
  EXPECT_THAT(refused(EPERM).error().message(), HasSubstr("operation not permitted"));
  const std::string whole = answer(RTM_NEWROUTE, route(AF_INET, 0));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_route(whole.substr(0, size)).ok()) << size;
}

TEST(Route, is_asked_from_the_kernel) {
  const std::string skipped = in_own_network(missing_ip(), [] {
    EXPECT_EQ(asked("10.96.0.1"), "own");  // nowhere
    ip("link set lo up");
    ip("link add way type veth peer name far && ip link set way up && ip link set far up");
    ip("addr add 192.0.2.1/24 dev way && ip addr add 2001:db8::1/64 dev way nodad");
    ip("route add default via 192.0.2.254 && ip route add 10.96.0.0/24 dev way");
    ip("route add unreachable 10.97.0.0/24");
    ip("-6 route add default via 2001:db8::2 && ip -6 route add fd00::/48 dev way");
    EXPECT_EQ(asked("10.96.0.1"), "own");
    EXPECT_EQ(asked("10.96.1.1"), "default");
    EXPECT_EQ(asked("::ffff:10.96.1.1"), "default");
    EXPECT_EQ(asked("10.97.0.1"), "own");
    EXPECT_EQ(asked("192.0.2.1"), "own");
    EXPECT_EQ(asked("192.0.2.7"), "own");
    EXPECT_EQ(asked("127.0.0.1"), "own");
    EXPECT_EQ(asked("fd00::7"), "own");
    EXPECT_EQ(asked("fd01::7"), "default");
    ip("route del default && ip route add 0.0.0.0/1 via 192.0.2.254");
    EXPECT_EQ(asked("10.96.1.1"), "default");
    EXPECT_EQ(asked("nobody"), "\"nobody\": no IP address");
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

TEST(Route, of_a_clusters_own_address_is_looked_at_before_it_is_dialled) {
  const std::string skipped = in_own_network(missing_ip(), [] {
    ip("link set lo up");
    ip("link add way type veth peer name far && ip link set way up && ip link set far up");
    ip("addr add 192.0.2.1/24 dev way && ip route add default via 192.0.2.254");
    const auto dial = [](const char* host, Reach reach) {
      const auto url = Url::parse(cat("http://", host, ":9"));
      const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      return ClientConnection::dial(*url, nullptr, soon, reach).error().message();
    };
    EXPECT_EQ(
        dial("10.96.0.1", Reach::cluster),
        "dial tcp 10.96.0.1:9: connect: only the default route leads to 10.96.0.1, out of the "
        "cluster: this machine needs a route to the network of pods and Services that has it");
    EXPECT_EQ(dial("127.0.0.1", Reach::cluster), "address not allowed");
    EXPECT_EQ(dial("192.0.2.1", Reach::cluster),
              "dial tcp 192.0.2.1:9: connect: connection refused");
    EXPECT_THAT(dial("10.96.0.1", Reach::others), HasSubstr("i/o timeout"));
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

}  // namespace
}  // namespace dibs::net
