#include "server/usage/recorder.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"
#include "server/usage/test_folder.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::make_request;
using test::TestServer;
using test::UsageFolder;

constexpr const char* kGroup = "/apis/resource.k8s.io/v1";

class UsageTest : public testing::Test {
 protected:
  static Options with(const UsageFolder& folder) {
    Options options;
    options.usage_folder = folder.path();
    return options;
  }

  std::string claims(std::string_view name_space = "default") const {
    return cat(kGroup, "/namespaces/", name_space, "/resourceclaims");
  }

  void make_claim(const std::string& name, std::string_view name_space = "default") {
    Value claim = from_text(
        "{'metadata':{},'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':"
        "'gpu'}}]}}}");
    claim.mut("metadata").set("name", name);
    const auto made = api_.post(claims(name_space), claim);
    ASSERT_EQ(made.status, 201) << made.message();
  }

  /// `pods`: of reservedFor, as JSON; `device` "": it is given back.
  void set_status(const std::string& name, std::string_view device, std::string_view pods,
                  std::string_view more = "", std::string_view name_space = "default") {
    const std::string allocation =
        device.empty() ? "null"
                       : cat("{'devices':{'results':[{'request':'r','driver':'d.example','pool':"
                             "'n','device':'",
                             device, "'}]}", more, "}");
    std::string body = cat("{'status':{'allocation':", allocation, ",'reservedFor':", pods, "}}");
    std::replace(body.begin(), body.end(), '\'', '"');
    const auto done = api_.patch(cat(claims(name_space), "/", name, "/status"), "merge", body);
    ASSERT_EQ(done.status, 200) << done.message();
  }

  void pass(Duration time) { api_.sim.advance(time); }
  void pass(int seconds) { pass(Duration(std::chrono::seconds(seconds))); }

  /// "from to NAMES… held used" of each row, without the times where there is no step.
  std::vector<std::string> usage(const std::string& query) {
    const auto reply = api_.get(cat("/dibs/usage?format=csv&", query));
    EXPECT_EQ(reply.status, 200) << reply.text;
    std::vector<std::string> rows;
    for (const std::string_view line : split(reply.text, '\n')) {
      if (line.empty() || line.starts_with("from,")) continue;
      const auto second = line.find(',', line.find(',') + 1);
      rows.emplace_back(line.substr(query.find("step") == std::string::npos ? second + 1 : 0));
    }
    return rows;
  }
  using Rows = std::vector<std::string>;

  static constexpr const char* kOnePod = "[{'resource':'pods','name':'p','uid':'u'}]";
  static constexpr const char* kTwoPods =
      "[{'resource':'pods','name':'p','uid':'u'},{'resource':'pods','name':'q','uid':'v'}]";

  UsageFolder folder_;
  TestServer api_{with(folder_)};
};

TEST_F(UsageTest, counts_from_allocation_to_the_end_and_what_was_used_of_it) {
  make_claim("a");
  pass(60);
  set_status("a", "g0", "[]");
  pass(60);
  set_status("a", "g0", kOnePod);
  pass(60);
  set_status("a", "g0", kTwoPods);
  pass(60);
  EXPECT_EQ(usage("by=namespace"), Rows{"default,180.000,120.000"});
  set_status("a", "", "null");
  pass(60);

  EXPECT_EQ(usage("by=namespace"), Rows{"default,180.000,120.000"});
  EXPECT_EQ(usage("by=class,device"), Rows{"gpu,d.example/n/g0,180.000,120.000"});
  EXPECT_EQ(usage("by=pod"), (Rows{",60.000,0.000", "p,90.000,90.000", "q,30.000,30.000"}));
  EXPECT_EQ(usage("by=class&since=90s"), Rows{"gpu,30.000,30.000"});
}

TEST_F(UsageTest, has_a_row_for_every_step) {
  make_claim("a");
  set_status("a", "g0", kOnePod);
  pass(90);

  EXPECT_EQ(usage("by=class&since=2m&step=1m"),
            (Rows{"2023-11-14T22:12:50Z,2023-11-14T22:13:50Z,gpu,30.000,30.000",
                  "2023-11-14T22:13:50Z,2023-11-14T22:14:50Z,gpu,60.000,60.000"}));
}

TEST_F(UsageTest, ends_with_the_claim_and_begins_again_with_another_of_its_name) {
  for (int i = 0; i < 2; ++i) {
    make_claim("a");
    set_status("a", "g0", "[]");
    pass(10);
    ASSERT_EQ(api_.remove(cat(claims(), "/a")).status, 200);
    pass(10);
  }
  EXPECT_EQ(usage("by=device"), Rows{"d.example/n/g0,20.000,0.000"});
}

TEST_F(UsageTest, goes_on_over_a_restart) {
  make_claim("a");
  set_status("a", "g0", kOnePod);
  pass(100);
  api_.restart();
  pass(100);

  EXPECT_EQ(usage("by=pod"), Rows{"p,200.000,200.000"});
}

TEST_F(UsageTest, a_kill_loses_seconds_at_most) {
  make_claim("a");
  make_claim("b");
  set_status("a", "g0", kOnePod);
  set_status("b", "g1", kOnePod);
  pass(100);
  // What a killed server leaves: the records as they are now. A claim goes that nobody sees going.
  const UsageFolder left;
  std::filesystem::copy(folder_.path(), left.path());
  ASSERT_EQ(api_.remove(cat(claims(), "/b")).status, 200);
  api_.options.usage_folder = left.path();
  api_.restart();
  pass(100);

  const auto rows = usage("by=device");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], "d.example/n/g0,200.000,200.000");
  const double seconds = std::stod(rows[1].substr(rows[1].find(',') + 1));
  EXPECT_GT(seconds, 89);
  EXPECT_LE(seconds, 100);
}

TEST_F(UsageTest, a_clock_that_is_set_neither_gives_nor_takes_time) {
  const auto set_clock = [&](int hours) {
    api_.sim.set_wall_clock(api_.sim.now() + Duration(std::chrono::hours(hours)));
    // Else it is found within ten seconds.
    usage("by=pod");
  };
  make_claim("a");
  set_status("a", "g0", kOnePod);
  pass(100);
  set_clock(10);
  pass(100);
  EXPECT_EQ(usage("by=pod&since=30d"), Rows{"p,200.000,200.000"});
  set_clock(-7);
  pass(100);
  EXPECT_EQ(usage("by=pod&since=30d"), Rows{"p,200.000,200.000"}) << "the rest is to come";
  make_claim("b");
  set_status("b", "g1", "[]");
  pass(100);
  EXPECT_EQ(usage("by=device&since=1h"),
            (Rows{"d.example/n/g0,200.000,200.000", "d.example/n/g1,100.000,0.000"}));

  // It was set after the server had been killed.
  pass(100);
  const UsageFolder left;
  std::filesystem::copy(folder_.path(), left.path());
  api_.options.usage_folder = left.path();
  api_.sim.set_wall_clock(api_.sim.now() - Duration(std::chrono::hours(1)));
  api_.restart();
  pass(100);
  ASSERT_EQ(api_.remove(cat(claims(), "/a")).status, 200);
  pass(1);
  set_clock(20);
  pass(100);
  const auto all = usage("by=device&since=30d");
  ASSERT_EQ(all.size(), 2U);
  const auto seconds = [](const std::string& row) {
    return std::stod(row.substr(row.find(',') + 1));
  };
  EXPECT_GT(seconds(all[0]), 589);
  EXPECT_LE(seconds(all[0]), 600);
  EXPECT_GT(seconds(all[1]), 390);
  EXPECT_LE(seconds(all[1]), 401);
  api_.restart();
  EXPECT_EQ(usage("by=device&since=30d"), all);
}

TEST_F(UsageTest, a_part_of_a_device_stays_a_part_when_its_driver_is_gone) {
  const std::string slices = cat(kGroup, "/resourceslices");
  ASSERT_EQ(api_.post(slices,
                      from_text("{'metadata':{'name':'s'},'spec':{'driver':'d.example','nodeName':"
                                "'n','pool':{'name':'n','generation':1,'resourceSliceCount':1},"
                                "'devices':[{'name':'g0','allowMultipleAllocations':true,"
                                "'capacity':{'memory':{'value':'80Gi'}}}]}}"))
                .status,
            201);
  make_claim("a");
  const auto done = api_.patch(
      cat(claims(), "/a/status"), "merge",
      R"({"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d.example",)"
      R"("pool":"n","device":"g0","shareID":"9dd0b5a5-2d4b-4a4b-8b6b-5d1b6a3c8a11",)"
      R"("consumedCapacity":{"memory":"20Gi"}}]}}}})");
  ASSERT_EQ(done.status, 200) << done.message();
  pass(100);
  EXPECT_EQ(usage("by=device"), Rows{"d.example/n/g0,25.000,0.000"});

  ASSERT_EQ(api_.remove(cat(slices, "/s")).status, 200);
  const auto reserved =
      api_.patch(cat(claims(), "/a/status"), "merge",
                 R"({"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}})");
  ASSERT_EQ(reserved.status, 200) << reserved.message();
  pass(100);
  EXPECT_EQ(usage("by=device"), Rows{"d.example/n/g0,50.000,25.000"});
  api_.restart();
  pass(100);
  EXPECT_EQ(usage("by=device"), Rows{"d.example/n/g0,75.000,50.000"});
}

TEST_F(UsageTest, begins_where_the_claim_was_allocated_when_nobody_looked) {
  api_.options.usage_folder.clear();
  api_.restart();
  EXPECT_EQ(api_.get("/dibs/usage").status, 404);
  make_claim("a");
  set_status("a", "g0", "[]", cat(",'allocationTimestamp':'", format_rfc3339(api_.sim.now()), "'"));
  pass(100);
  api_.options.usage_folder = folder_.path();
  api_.restart();
  pass(100);

  EXPECT_EQ(usage("by=device"), Rows{"d.example/n/g0,200.000,0.000"});
}

TEST_F(UsageTest, tells_of_claims_to_whom_may_list_them) {
  api_.add_namespace("team");
  make_claim("a");
  make_claim("b", "team");
  set_status("a", "g0", "[]");
  set_status("b", "g1", "[]", "", "team");
  pass(10);
  const std::string roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/team/";
  ASSERT_EQ(api_.post(roles + "roles",
                      from_text("{'metadata':{'name':'r'},'rules':[{'apiGroups':["
                                "'resource.k8s.io'],'resources':['resourceclaims'],'verbs':["
                                "'list']}]}"))
                .status,
            201);
  ASSERT_EQ(api_.post(roles + "rolebindings",
                      from_text("{'metadata':{'name':'r'},'roleRef':{'apiGroup':"
                                "'rbac.authorization.k8s.io','kind':'Role','name':'r'},"
                                "'subjects':[{'kind':'User','name':'eve','apiGroup':"
                                "'rbac.authorization.k8s.io'}]}"))
                .status,
            201);
  const auto as_eve = [&](const std::string& target, const char* method = "GET") {
    auto request = make_request(method, target);
    request.headers.add("Impersonate-User", "eve");
    return api_.send(std::move(request));
  };

  const auto all = as_eve("/dibs/usage");
  EXPECT_EQ(all.status, 403);
  EXPECT_NE(all.message().find("cannot list resource \"resourceclaims\""), std::string::npos)
      << all.text;
  EXPECT_EQ(as_eve("/dibs/usage?namespace=default").status, 403);
  const auto own = as_eve("/dibs/usage?namespace=team");
  EXPECT_EQ(own.status, 200);
  ASSERT_EQ(own.body["items"].size(), 1U);
  EXPECT_EQ(own.body["items"][0]["namespace"].str(), "team");
  EXPECT_EQ(as_eve("/dibs/usage?namespace=team", "POST").status, 405);
}

TEST_F(UsageTest, a_wrong_question_is_answered_in_a_line) {
  const auto reply = api_.get("/dibs/usage?by=colour");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.message(),
            "by: \"colour\" is none of namespace, class, pod, device, or a list of these");
}

TEST_F(UsageTest, a_folder_that_cannot_be_used_keeps_no_server_from_starting) {
  std::ofstream(folder_.path() + "/sums") << "nonsense\n";
  api_.restart();
  const auto reply = api_.get("/dibs/usage");
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.message().find("usage is not recorded"), std::string::npos) << reply.text;
  make_claim("a");
}

}  // namespace
}  // namespace dibs::server
