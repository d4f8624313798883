#include "net/lookups.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace dibs::net {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kWait{20};

/// Nobody answers for "hangs" before the end of the test.
struct Resolver {
  std::atomic<int> calls = 0;
  std::promise<void> ends;
  std::shared_future<void> end = ends.get_future().share();

  Lookups lookups() {
    return Lookups([this, waits = end](const Url& url, Reach) {
      ++calls;
      if (url.host == "hangs") waits.wait();
      return resolve(Url::parse("http://127.0.0.1:1").value(), Reach::anywhere);
    });
  }
};

Url named(const std::string& host) { return Url::parse("http://" + host).value(); }

TEST(Lookups, end_at_the_deadline_of_who_waits) {
  Resolver resolver;
  const Lookups lookups = resolver.lookups();

  const auto found = lookups.find_by(named("hangs"), Reach::anywhere, steady_clock::now());

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Code::timeout);
  EXPECT_EQ(found.error().message(), "dial tcp: lookup hangs: i/o timeout");
  resolver.ends.set_value();
  EXPECT_TRUE(lookups.find_by(named("hangs"), Reach::anywhere, steady_clock::now() + kWait).ok());
}

TEST(Lookups, of_one_name_hold_up_no_other_and_are_shared) {
  Resolver resolver;
  const Lookups lookups = resolver.lookups();
  std::promise<void> first;
  std::promise<void> second;
  lookups.find(named("hangs"), Reach::anywhere, [&](const auto&) { first.set_value(); });
  lookups.find(named("hangs"), Reach::anywhere, [&](const auto&) { second.set_value(); });

  EXPECT_TRUE(lookups.find_by(named("other"), Reach::anywhere, steady_clock::now() + kWait).ok());

  resolver.ends.set_value();
  EXPECT_EQ(first.get_future().wait_for(kWait), std::future_status::ready);
  EXPECT_EQ(second.get_future().wait_for(kWait), std::future_status::ready);
  EXPECT_EQ(resolver.calls, 2);
}

TEST(Lookups, of_addresses_need_none) {
  const Lookups lookups;

  EXPECT_TRUE(lookups.find_by(named("127.0.0.1:1"), Reach::anywhere, {}).ok());
}

}  // namespace
}  // namespace dibs::net
