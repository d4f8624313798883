// Deletion through a whole server: preconditions, finalizers, propagation, grace periods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/time.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::kPods;
using test::Reply;
using test::simple_pod;
using test::strings_of;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kOne = cat(kConfigMaps, "/a");

class Deletion : public testing::Test {
 protected:
  TestServer api;
};

TEST_F(Deletion, delete_says_what_it_removed) {
  Value object = api.add_config_map("a");

  Reply removed = api.remove(kOne);

  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body["kind"].as_string(), "Status");
  EXPECT_EQ(removed.body["status"].as_string(), "Success");
  EXPECT_EQ(removed.body["details"]["uid"], object["metadata"]["uid"]);
  EXPECT_EQ(api.get(kOne).status, 404);
  EXPECT_EQ(api.remove(kOne).status, 404);
}

TEST_F(Deletion, delete_keeps_to_its_preconditions) {
  Value object = api.add_config_map("a");

  Reply uid = api.remove(kOne, "{'preconditions':{'uid':'other'}}");
  Reply version = api.remove(kOne, "{'preconditions':{'resourceVersion':'1'}}");
  Reply right =
      api.remove(kOne, cat("{'preconditions':{'uid':'", object["metadata"]["uid"].str(), "'}}"));

  EXPECT_EQ(uid.status, 409);
  EXPECT_THAT(uid.message(),
              HasSubstr("the UID in the precondition (other) does not match the UID in record ("));
  EXPECT_EQ(version.status, 409);
  EXPECT_THAT(version.message(),
              HasSubstr("the ResourceVersion in the precondition (1) does not match"));
  EXPECT_EQ(right.status, 200);
}

TEST_F(Deletion, a_grace_longer_than_time_is_a_long_one) {
  api.add_account("default");
  api.run_pod("p");
  for (const char* grace : {"9223372036854775807", "9223372037", "18446744075"}) {
    Reply marked = api.remove(cat(kPods, "/p"), cat("{'gracePeriodSeconds':", grace, "}"));
    EXPECT_EQ(marked.status, 200);
    auto end = parse_rfc3339(marked.body["metadata"]["deletionTimestamp"].as_string());
    ASSERT_TRUE(end.ok());
    EXPECT_GT(*end, api.sim.now() + std::chrono::hours(24 * 365));
  }
}

TEST_F(Deletion, counts_no_generation_beyond_the_last) {
  const Value made = api.post(kConfigMaps, from_text("{'metadata':{'name':'last','generation':"
                                                     "9223372036854775807,'finalizers':['a/b']}}"))
                         .body;
  ASSERT_EQ(made["metadata"]["generation"].as_int(), INT64_MAX);
  EXPECT_EQ(api.remove(cat(kConfigMaps, "/last")).status, 200);
  const Value held = api.get(cat(kConfigMaps, "/last")).body;
  EXPECT_TRUE(held["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(held["metadata"]["generation"].as_int(), INT64_MAX);
}

TEST_F(Deletion, finalizers_hold_an_object_until_the_last_is_gone) {
  Value object = config_map("a");
  object.mut("metadata").set("finalizers", from_text("['e.com/one','e.com/two']"));
  api.post(kConfigMaps, object);

  Reply removed = api.remove(kOne);
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body["kind"].as_string(), "ConfigMap");
  EXPECT_EQ(removed.body["metadata"]["deletionTimestamp"].as_string(),
            format_rfc3339(api.sim.now()));
  EXPECT_EQ(removed.body["metadata"]["deletionGracePeriodSeconds"].as_int(-1), 0);
  EXPECT_EQ(api.get(kOne).status, 200);

  EXPECT_EQ(api.patch(kOne, "merge", "{'metadata':{'finalizers':['e.com/two']}}").status, 200);
  EXPECT_EQ(api.get(kOne).status, 200);
  EXPECT_EQ(api.patch(kOne, "merge", "{'metadata':{'finalizers':null}}").status, 200);
  EXPECT_EQ(api.get(kOne).status, 404);
}

TEST_F(Deletion, an_object_that_goes_away_takes_no_new_finalizers) {
  Value object = config_map("a");
  object.mut("metadata").set("finalizers", from_text("['e.com/one']"));
  api.post(kConfigMaps, object);
  api.remove(kOne);

  Reply patched = api.patch(kOne, "merge", "{'metadata':{'finalizers':['e.com/one','e.com/new']}}");

  EXPECT_EQ(patched.status, 422);
  EXPECT_THAT(patched.message(),
              HasSubstr("no new finalizers can be added if the object is being deleted"));
}

TEST_F(Deletion, a_second_delete_of_a_held_object_changes_nothing) {
  Value object = config_map("a");
  object.mut("metadata").set("finalizers", from_text("['e.com/one']"));
  api.post(kConfigMaps, object);
  Reply first = api.remove(kOne);
  api.sim.advance(std::chrono::seconds(5));

  Reply second = api.remove(kOne);

  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, first.body);
}

TEST_F(Deletion, propagation_is_a_finalizer_of_its_own) {
  struct {
    const char* options;
    const char* finalizer;
  } cases[] = {{"{'propagationPolicy':'Foreground'}", "foregroundDeletion"},
               {"{'propagationPolicy':'Orphan'}", "orphan"},
               {"{'orphanDependents':true}", "orphan"}};
  for (const auto& one : cases) {
    api.add_config_map("a");
    Reply removed = api.remove(kOne, one.options);
    EXPECT_THAT(strings_of(removed.body["metadata"]["finalizers"]), ElementsAre(one.finalizer))
        << one.options;
    EXPECT_EQ(api.patch(kOne, "merge", "{'metadata':{'finalizers':null}}").status, 200);
    EXPECT_EQ(api.get(kOne).status, 404);
  }
}

TEST_F(Deletion, preconditions_may_stand_in_the_query) {
  api.add_config_map("a");

  EXPECT_EQ(api.remove(kOne + "?uid=other").status, 409);
  EXPECT_EQ(api.remove(kOne + "?resourceVersion=1").status, 409);
  EXPECT_EQ(api.get(kOne).status, 200);
}

TEST_F(Deletion, options_say_what_they_are) {
  api.add_config_map("a");
  const auto message = [&](std::string_view options) {
    return api.remove(kOne, options).message();
  };

  EXPECT_EQ(message("{'kind':1}"),
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go "
            "struct field .kind of type string");
  EXPECT_EQ(message("{'kind':'DeleteOptions','apiVersion':'a/b/c'}"),
            "unexpected GroupVersion string: a/b/c");
  EXPECT_THAT(message("{'kind':'Pod'}"),
              HasSubstr("no kind \"Pod\" is registered for version \"meta.k8s.io/v1\""));
  EXPECT_EQ(api.get(kOne).status, 200);
}

TEST_F(Deletion, of_a_collection_reads_the_options_of_lists) {
  api.add_config_map("a");

  EXPECT_EQ(api.remove(cat(kConfigMaps, "?limit=x")).status, 400);
  Reply dry = api.remove(cat(kConfigMaps, "?dryRun=All"));
  EXPECT_EQ(dry.status, 200);
  EXPECT_FALSE(dry.body["metadata"]["resourceVersion"].as_string().empty());
  EXPECT_EQ(api.get(kOne).status, 200);
}

TEST_F(Deletion, delete_options_that_make_no_sense_are_refused) {
  api.add_config_map("a");

  EXPECT_EQ(api.remove(kOne, "{'propagationPolicy':'Odd'}").status, 422);
  EXPECT_EQ(api.remove(kOne, "{'propagationPolicy':'Orphan','orphanDependents':true}").status, 422);
  EXPECT_EQ(api.remove(kOne, "{'dryRun':['Some']}").status, 422);
  EXPECT_EQ(api.get(kOne).status, 200);
}

class PodDeletion : public testing::Test {
 protected:
  PodDeletion() { api.add_account("default"); }
  const std::string target = cat(kPods, "/p");
  TestServer api;
};

TEST_F(PodDeletion, gives_a_running_pod_its_grace_period) {
  api.run_pod("p");

  Reply removed = api.remove(target);

  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  EXPECT_EQ(removed.body["metadata"]["deletionTimestamp"].as_string(),
            format_rfc3339(api.sim.now() + std::chrono::seconds(30)));
  EXPECT_EQ(api.get(target).status, 200);
}

TEST_F(PodDeletion, removes_a_pod_that_is_on_no_node_at_once) {
  api.post(kPods, simple_pod("p"));

  Reply removed = api.remove(target);

  EXPECT_EQ(removed.body["kind"].as_string(), "Pod");
  EXPECT_EQ(api.get(target).status, 404);
}

TEST_F(PodDeletion, removes_a_pod_that_has_ended_at_once) {
  api.run_pod("p");
  api.patch(target + "/status", "merge", "{'status':{'phase':'Succeeded'}}");

  api.remove(target);

  EXPECT_EQ(api.get(target).status, 404);
}

TEST_F(PodDeletion, removes_at_once_when_told_so) {
  api.run_pod("p");

  api.remove(target, "{'gracePeriodSeconds':0}");

  EXPECT_EQ(api.get(target).status, 404);
}

TEST_F(PodDeletion, may_be_hurried_but_not_delayed) {
  api.run_pod("p");
  api.remove(target);

  Reply longer = api.remove(target, "{'gracePeriodSeconds':60}");
  Reply again = api.remove(target);
  Reply shorter = api.remove(target, "{'gracePeriodSeconds':5}");

  EXPECT_EQ(longer.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  EXPECT_EQ(again.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  EXPECT_EQ(shorter.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 5);
  EXPECT_EQ(shorter.body["metadata"]["deletionTimestamp"].as_string(),
            format_rfc3339(api.sim.now() + std::chrono::seconds(5)));
  EXPECT_EQ(api.get(target).status, 200);
  api.remove(target, "{'gracePeriodSeconds':0}");
  EXPECT_EQ(api.get(target).status, 404);
}

}  // namespace
}  // namespace dibs::server
