#include "server/request_info.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

RequestInfo info_of(std::string_view method, std::string_view target) {
  auto parsed = net::Target::parse(target);
  EXPECT_TRUE(parsed.ok());
  return parse_request_info(method, *parsed);
}

struct Case {
  const char* method;
  const char* target;
  /// verb group/version namespace resource name subresource rest, "-" for none.
  const char* expected;
};

std::string shown(const RequestInfo& info) {
  auto or_dash = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  return cat(info.verb, " ", or_dash(info.group), "/", info.version, " ", or_dash(info.name_space),
             " ", info.resource, " ", or_dash(info.name), " ", or_dash(info.subresource), " ",
             or_dash(info.rest));
}

class ResourcePaths : public testing::TestWithParam<Case> {};

TEST_P(ResourcePaths, are_read_as_the_api_reads_them) {
  RequestInfo info = info_of(GetParam().method, GetParam().target);

  EXPECT_TRUE(info.is_resource);
  EXPECT_EQ(shown(info), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, ResourcePaths,
    testing::Values(
        Case{"GET", "/api/v1/pods", "list -/v1 - pods - - -"},
        Case{"HEAD", "/api/v1/pods", "list -/v1 - pods - - -"},
        Case{"GET", "/api/v1/pods/", "list -/v1 - pods - - -"},
        Case{"GET", "/api/v1/pods?watch=true", "watch -/v1 - pods - - -"},
        Case{"GET", "/api/v1/pods?watch=1", "watch -/v1 - pods - - -"},
        Case{"GET", "/api/v1/pods?watch=false", "list -/v1 - pods - - -"},
        Case{"GET", "/api/v1/pods?watch=0", "list -/v1 - pods - - -"},
        Case{"GET", "/api/v1/namespaces/n/pods", "list -/v1 n pods - - -"},
        Case{"GET", "/api/v1/namespaces/n/pods/p", "get -/v1 n pods p - -"},
        Case{"HEAD", "/api/v1/namespaces/n/pods/p", "get -/v1 n pods p - -"},
        Case{"GET", "/api/v1/namespaces/n/pods/p?watch=true", "get -/v1 n pods p - -"},
        Case{"POST", "/api/v1/namespaces/n/pods", "create -/v1 n pods - - -"},
        Case{"PUT", "/api/v1/namespaces/n/pods/p", "update -/v1 n pods p - -"},
        Case{"PATCH", "/api/v1/namespaces/n/pods/p/status", "patch -/v1 n pods p status -"},
        Case{"DELETE", "/api/v1/namespaces/n/pods/p", "delete -/v1 n pods p - -"},
        Case{"DELETE", "/api/v1/namespaces/n/pods", "deletecollection -/v1 n pods - - -"},
        Case{"GET", "/api/v1/namespaces/n/pods/p/log", "get -/v1 n pods p log -"},
        Case{"GET", "/api/v1/namespaces/n/services/s/proxy/a/b", "get -/v1 n services s proxy a/b"},
        Case{"GET", "/api/v1/namespaces/proxy/pods/proxy/proxy/proxy",
             "get -/v1 proxy pods proxy proxy proxy"},
        Case{"GET", "/api/v1/namespaces", "list -/v1 - namespaces - - -"},
        Case{"GET", "/api/v1/namespaces/n", "get -/v1 n namespaces n - -"},
        Case{"PUT", "/api/v1/namespaces/n/status", "update -/v1 n namespaces n status -"},
        Case{"PUT", "/api/v1/namespaces/n/finalize", "update -/v1 n namespaces n finalize -"},
        Case{"GET", "/api/v1/nodes/x", "get -/v1 - nodes x - -"},
        Case{"GET", "/apis/apps/v1/deployments", "list apps/v1 - deployments - - -"},
        Case{"GET", "/apis/apps/v1/namespaces/n/deployments/d/scale",
             "get apps/v1 n deployments d scale -"},
        Case{"GET", "/apis/e.com/v1/namespaces/n/status", "list e.com/v1 n status - - -"},
        Case{"GET", "/api/v1/watch/pods", "watch -/v1 - pods - - -"},
        Case{"GET", "/api/v1/watch/namespaces/n/pods/p", "watch -/v1 n pods p - -"},
        Case{"GET", "/apis/apps/v1/watch/deployments", "watch apps/v1 - deployments - - -"},
        Case{"OPTIONS", "/api/v1/pods", "options -/v1 - pods - - -"},
        Case{"GET", "/api/v1/namespaces/n/pods/a%2Fb", "get -/v1 n pods a b -"}));

class OtherPaths : public testing::TestWithParam<Case> {};

TEST_P(OtherPaths, keep_path_and_method) {
  RequestInfo info = info_of(GetParam().method, GetParam().target);

  EXPECT_FALSE(info.is_resource);
  EXPECT_EQ(cat(info.verb, " ", info.path), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherPaths,
    testing::Values(Case{"GET", "/", "get /"}, Case{"GET", "/api", "get /api"},
                    Case{"GET", "/api/v1", "get /api/v1"}, Case{"GET", "/api/v1/", "get /api/v1/"},
                    Case{"GET", "/apis", "get /apis"},
                    Case{"GET", "/apis/apps/v1", "get /apis/apps/v1"},
                    Case{"POST", "/healthz", "post /healthz"},
                    Case{"GET", "/version?x=1", "get /version"},
                    Case{"GET", "/openapi/v3/apis/apps/v1", "get /openapi/v3/apis/apps/v1"}));

TEST(RequestInfo, tells_the_core_group_and_old_watches_apart) {
  EXPECT_TRUE(info_of("GET", "/api/v1/pods").core);
  EXPECT_FALSE(info_of("GET", "/apis/apps/v1/deployments").core);
  EXPECT_TRUE(info_of("GET", "/api/v1/watch/pods").legacy_watch);
  EXPECT_FALSE(info_of("GET", "/api/v1/pods?watch=1").legacy_watch);
}

TEST(RequestInfo, reads_are_no_writes) {
  for (const char* method : {"GET", "HEAD"})
    EXPECT_FALSE(info_of(method, "/api/v1/pods").is_write());
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"})
    EXPECT_TRUE(info_of(method, "/api/v1/pods").is_write());
}

TEST(QueryFlag, only_absence_0_and_false_are_false) {
  auto target = net::Target::parse("/x?a=true&b=1&c=false&d=0&e=&f=no&h=False");
  ASSERT_TRUE(target.ok());

  std::string set;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    if (query_flag(*target, name)) set += name;
  }

  EXPECT_EQ(set, "abef");
}

}  // namespace
}  // namespace dibs::server
