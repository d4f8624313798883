#include "server/health.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

class HealthTest : public testing::Test {
 protected:
  HealthTest() {
    health.add_done({"ping"});
    health.add("etcd", [this](bool ready) -> Result<> {
      if (ready && full) return Error::unavailable("no room");
      return success();
    });
    health.add_readiness(
        "shutdown",
        [this](bool) -> Result<> {
          if (leaving) return Error::unavailable("ends");
          return success();
        },
        Health::Reason::told);
    health.add_done({"poststarthook/a"});
  }
  std::string all(const char* path) {
    const auto target = net::Target::parse(path);
    const auto response = health.all(std::string_view(target->path).substr(1), *target);
    return cat(response.status, ' ', response.body);
  }
  std::string one(const char* which, const char* name) {
    const auto response = health.one(which, name);
    return cat(response.status, ' ', response.body);
  }

  Health health;
  bool full = false;
  bool leaving = false;
};

TEST_F(HealthTest, lists_checks_where_that_is_asked_for) {
  EXPECT_EQ(all("/livez"), "200 ok");
  EXPECT_EQ(all("/livez?verbose"),
            "200 [+]ping ok\n[+]etcd ok\n[+]poststarthook/a ok\nlivez check passed\n");
  EXPECT_EQ(all("/readyz?verbose=1"),
            "200 [+]ping ok\n[+]etcd ok\n[+]shutdown ok\n[+]poststarthook/a ok\n"
            "readyz check passed\n");
}

TEST_F(HealthTest, leaves_checks_out_and_says_which_are_none) {
  EXPECT_EQ(all("/livez?verbose&exclude=ping&exclude=b&exclude=a"),
            "200 [+]ping excluded: ok\n[+]etcd ok\n[+]poststarthook/a ok\n"
            "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\n"
            "livez check passed\n");
  EXPECT_EQ(all("/livez?exclude=b"), "200 ok");
}

TEST_F(HealthTest, tells_reasons_to_who_asks_for_the_check) {
  full = leaving = true;
  EXPECT_EQ(all("/healthz"), "200 ok");
  EXPECT_EQ(all("/readyz"),
            "500 [+]ping ok\n[-]etcd failed: reason withheld\n[-]shutdown failed: ends\n"
            "[+]poststarthook/a ok\nreadyz check failed\n");
  EXPECT_EQ(all("/readyz?exclude=etcd&exclude=shutdown"), "200 ok");
  EXPECT_EQ(one("readyz", "etcd"), "500 internal server error: no room\n");
  EXPECT_EQ(one("livez", "etcd"), "200 ok");
  EXPECT_EQ(one("livez", "poststarthook/a"), "200 ok");
  EXPECT_EQ(one("livez", "shutdown"), "404 404 page not found\n");
}

}  // namespace
}  // namespace dibs::server
