// What concerns a server as a whole: whom it turns away, and what it keeps.
#include "server/api_server.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::config_map;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;

const std::string kOne = cat(kConfigMaps, "/a");

TEST(Senders, without_rights_are_refused) {
  TestServer api;
  net::Request request = test::make_request("GET", kConfigMaps);
  request.peer.common_name = "nobody";
  request.peer.organizations.clear();

  Reply refused = api.send(request);

  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API "
            "group \"\" in the namespace "
            "\"default\"");
}

TEST(Senders, are_turned_away_by_a_closed_server) {
  TestServer api;
  api.server->close();

  EXPECT_EQ(api.get(kConfigMaps).status, 503);
}

TEST(Restart, keeps_objects_and_versions) {
  TestServer api;
  Reply made = api.post(kConfigMaps, config_map("a"));
  const std::int64_t before = api.store->revision();

  api.restart();

  EXPECT_EQ(api.get(kOne).body, made.body);
  EXPECT_EQ(api.store->revision(), before) << "what is there is not written again";
}

}  // namespace
}  // namespace dibs::server
