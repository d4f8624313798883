// What watches begin with, shared by those that ask at the same time.
#include "server/initial_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "server/builtin_resources.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using testing::HasSubstr;
using testing::Not;

class InitialStateTest : public testing::Test {
 protected:
  std::shared_ptr<InitialState> state(std::string query) {
    auto context = std::make_shared<Context>();
    context->target = *net::Target::parse(cat("/api/v1/namespaces/default/configmaps?", query));
    context->info = parse_request_info("GET", context->target);
    const auto all = *builtin_resources({});
    const auto found = std::find_if(all.begin(), all.end(), [](const ResourcePtr& one) {
      return one->plural == "configmaps" && one->version == "v1";
    });
    context->resource = *found;
    const auto selection = Selection::parse(context->target, *context->resource);
    return *InitialState::read(*server.store, context, *selection);
  }
  static std::string text(InitialState& state) {
    std::string out;
    for (std::size_t i = 0; i < state.pieces(); ++i) out += **state.piece(i, Time());
    return out;
  }
  test::TestServer server;
};

TEST_F(InitialStateTest, is_made_once_for_all_who_still_have_it) {
  for (int i = 0; i < 8; ++i) {
    server.add_config_map(cat("m", i), cat("{'k':'", std::string(30'000, 'x'), "'}"));
  }
  const auto all = state("");
  ASSERT_GT(all->pieces(), 2U);
  EXPECT_EQ(all->revision(), server.store->revision());
  const SharedBytes one = *all->piece(1, Time());
  EXPECT_EQ(*all->piece(1, Time()), one);
  std::weak_ptr<const std::string> gone = *all->piece(0, Time());
  EXPECT_TRUE(gone.expired()) << "what nobody waits for takes no memory";
  const std::string lines = text(*all);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 8);
}

TEST_F(InitialStateTest, has_what_is_selected) {
  server.add_config_map("map-1");
  server.add_config_map("map-10");
  server.add_config_map("map-2");
  EXPECT_THAT(text(*state("fieldSelector=metadata.name%3Dmap-1")),
              testing::AllOf(HasSubstr("\"map-1\""), Not(HasSubstr("map-10"))));
  EXPECT_EQ(state("fieldSelector=metadata.name%3Dmap-3")->pieces(), 0U);
  EXPECT_EQ(state("fieldSelector=metadata.name%3Dmap")->pieces(), 0U);
  EXPECT_EQ(state("labelSelector=a%3Db")->pieces(), 0U);
  EXPECT_THAT(text(*state("fieldSelector=metadata.name!%3Dmap-1")),
              testing::AllOf(Not(HasSubstr("\"map-1\"")), HasSubstr("map-10")));
}

}  // namespace
}  // namespace dibs::server
