// The statements as nftables itself takes them. Needs root and nft.
#include "proxy/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/testing/own_network.h"
#include "proxy/ruleset.h"
#include "proxy/test_world.h"
#include "runtime/processes.h"

namespace dibs::proxy {
namespace {

std::string in_own_network(const std::function<void()>& what) {
  return net::in_own_network(missing_for_proxy(), what);
}

/// Its lines in an order of their own: that of chains and elements is the kernel's.
std::vector<std::string> listed() {
  auto output = runtime::run({.argv = {"nft", "-s", "list", "table", "inet", "dibs-1"}});
  std::vector<std::string> lines;
  if (!output.ok()) return lines;
  std::string flat;
  for (const auto line : split(output->out, '\n')) append(flat, trim(line), ' ');
  for (const auto word : split(flat, ' ')) lines.emplace_back(word);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(MachineApplier, takes_every_change_and_gets_where_the_whole_does) {
  const std::string skipped = in_own_network([] {
    test::World world(7);
    TableOptions options = test::table();
    options.dns_address = "10.0.0.10";
    options.local_dns = "10.130.0.1:5353";
    Ruleset rules(options);
    const auto applier = make_machine_applier();
    const auto frame = applier->apply(rules.whole());
    ASSERT_TRUE(frame.ok()) << frame.error().message() << "\n" << rules.whole();
    EXPECT_FALSE(applier->apply("create table inet dibs-1\n").ok());
    rules.written();
    for (int step = 0; step < 15; ++step) {
      for (int i = 0; i < 4; ++i) {
        const unsigned index = world.below(6);
        const std::string key = cat("a/s", index);
        ServiceView service = world.service(index);
        if (world.below(5) == 0) service.ports.back().protocol = "sctp";
        rules.put(key, world.below(4) == 0 ? Piece() : make_piece(key, service, options.machine));
      }
      rules.put_pod("node-0", cat("10.130.0.", 100 + step));
      const std::string text = rules.difference();
      const auto done = applier->apply(text);
      ASSERT_TRUE(done.ok()) << done.error().message() << "\n" << text;
      rules.written();
    }
    const auto changed = listed();
    ASSERT_TRUE(applier->apply(rules.whole()).ok());
    EXPECT_EQ(changed, listed());
    EXPECT_GT(changed.size(), 300U);
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

TEST(MachineApplier, takes_the_longest_names_of_nodes_and_services) {
  const std::string skipped = in_own_network([] {
    const std::string first = std::string(252, 'n') + "0";
    const std::string second = std::string(252, 'n') + "1";
    TableOptions options = test::table(0);
    options.machine.nodes = {{first, "a"}, {second, "b"}};
    Ruleset rules(options);
    ServiceView service;
    service.cluster_ip = "10.0.0.9";
    service.internal_local = true;
    service.sticky_seconds = 10;
    service.ports = {{"sctp",
                      65535,
                      0,
                      {test::backend("10.130.100.100", first, 65535),
                       test::backend("10.130.100.101", second, 65535)}}};
    const Piece piece =
        make_piece(std::string(63, 's') + "/" + std::string(63, 's'), service, options.machine);
    EXPECT_TRUE(piece.by_node);
    rules.put("s/s", piece);
    rules.put_pod(first, "10.130.0.100");
    const auto applier = make_machine_applier();
    const auto whole = applier->apply(rules.whole());
    ASSERT_TRUE(whole.ok()) << whole.error().message();
    rules.written();
    rules.put_pod(second, "10.130.0.101");
    const auto changed = applier->apply(rules.difference());
    EXPECT_TRUE(changed.ok()) << changed.error().message();
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

TEST(MachineApplier, keeps_routes_and_takes_away_what_another_left) {
  const std::string skipped = in_own_network([] {
    using net::ip;
    const auto routes = [&] { return parse_routes(ip("-j route show dev dibs-1"), 65537).value(); };
    ip("link add dibs-1 type bridge");
    ip("link set dibs-1 up");
    ip("route add 10.0.0.0/24 dev dibs-1 metric 7");
    using testing::ElementsAre;
    ASSERT_TRUE(make_machine_applier()->keep_routes("dibs-1", {"10.7.0.0/24", "10.8.0.1/32"}).ok());
    EXPECT_THAT(routes(), ElementsAre("10.7.0.0/24", "10.8.0.1/32"));

    const auto next = make_machine_applier();
    ASSERT_TRUE(next->keep_routes("dibs-1", {"10.9.0.0/24"}).ok());
    EXPECT_THAT(routes(), ElementsAre("10.9.0.0/24"));
    // One that is gone already is no fault.
    ip("route del 10.9.0.0/24 dev dibs-1 metric 65537");
    const auto gone = next->keep_routes("dibs-1", {});
    EXPECT_TRUE(gone.ok()) << gone.error().message();
    EXPECT_THAT(ip("route show"), testing::HasSubstr("10.0.0.0/24"));
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

TEST(MachineApplier, a_transaction_is_whole_or_nothing) {
  const std::string skipped = in_own_network([] {
    Ruleset rules(test::table());
    const auto applier = make_machine_applier();
    ASSERT_TRUE(applier->apply(rules.whole()).ok());
    const auto before = listed();
    const auto done = applier->apply(
        "add chain inet dibs-1 x\nadd element inet dibs-1 services { 10.0.0.9 . tcp . 80 : goto y "
        "}\n");
    ASSERT_FALSE(done.ok());
    EXPECT_THAT(done.error().message(), testing::HasSubstr("nft: "));
    EXPECT_EQ(listed(), before);
    EXPECT_TRUE(applier->forget_udp({{"10.130.0.1", 53, 53}}).ok());
  });
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

}  // namespace
}  // namespace dibs::proxy
