#include "server/trust.h"

#include <gtest/gtest.h>

#include "net/x509.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

constexpr const char* kTrust =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

std::string authority(const char* name, Time from, Duration life) {
  return net::make_ca(name, {from, from + life})->certificate_pem;
}

TEST(Trust, is_told_by_a_config_map_and_grows) {
  test::TestServer api;
  const Time now = api.sim.runtime().clock.now();
  const std::string first = authority("first", now, std::chrono::hours(1));
  const std::string second = authority("second", now, std::chrono::hours(1000));
  api.options.ca_pem = first;
  api.options.front_proxies.ca_pem = first;
  api.options.front_proxies.allowed_names = {"front-proxy-client"};
  api.restart();

  auto data = api.get(kTrust).body["data"];
  EXPECT_EQ(data["client-ca-file"].str(), first);
  EXPECT_EQ(data["requestheader-client-ca-file"].str(), first);
  EXPECT_EQ(data["requestheader-allowed-names"].str(), "[\"front-proxy-client\"]");
  EXPECT_EQ(data["requestheader-username-headers"].str(), "[\"X-Remote-User\"]");
  EXPECT_EQ(data["requestheader-uid-headers"].str(), "[\"X-Remote-Uid\"]");
  EXPECT_EQ(data["requestheader-group-headers"].str(), "[\"X-Remote-Group\"]");
  EXPECT_EQ(data["requestheader-extra-headers-prefix"].str(), "[\"X-Remote-Extra-\"]");

  // Another authority comes: both count until the first has expired.
  ASSERT_TRUE(api.server->set_trust(second, second).ok());
  data = api.get(kTrust).body["data"];
  EXPECT_EQ(data["client-ca-file"].str(), first + second);
  EXPECT_EQ(data["requestheader-client-ca-file"].str(), first + second);
  api.sim.advance(std::chrono::hours(2));
  ASSERT_TRUE(api.server->set_trust(second, second).ok());
  EXPECT_EQ(api.get(kTrust).body["data"]["client-ca-file"].str(), second);
}

}  // namespace
}  // namespace dibs::server
