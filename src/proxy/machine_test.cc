// The statements as nftables itself takes them. Needs root and nft.
#include "proxy/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

#include "proxy/ruleset.h"
#include "proxy/test_world.h"
#include "runtime/processes.h"

namespace dibs::proxy {
namespace {

/// Runs it in a network of its own. "": it ran; else why not.
std::string in_own_network(const std::function<void()>& what) {
  if (::geteuid() != 0) return "not root";
  if (const std::string missing = missing_for_proxy(); !missing.empty()) return missing;
  std::string skipped;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      skipped = "no network namespaces";
    } else {
      what();
    }
  }).join();
  return skipped;
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
