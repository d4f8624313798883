#include "scheduler/extended.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler {
namespace {

using test::from_text;

json::Value device_class(const std::string& name, const std::string& created,
                         const std::string& resource) {
  return from_text(cat("{'metadata':{'name':'", name, "','creationTimestamp':'", created,
                       "'},'spec':{'extendedResourceName':'", resource, "'}}"));
}

TEST(ExtendedClasses, the_newer_class_counts_until_it_goes) {
  ExtendedClasses classes;
  classes.put(device_class("old", "2026-01-01T00:00:00Z", "x.io/gpu"));
  classes.put(device_class("new", "2026-02-01T00:00:00Z", "x.io/gpu"));
  EXPECT_EQ(classes.class_of("x.io/gpu"), "new");
  EXPECT_EQ(classes.class_of("deviceclass.resource.kubernetes.io/old"), "old");
  classes.remove(device_class("new", "2026-02-01T00:00:00Z", "x.io/gpu"));
  EXPECT_EQ(classes.class_of("x.io/gpu"), "old");
  EXPECT_EQ(classes.class_of("x.io/other"), "");
}

TEST(ExtendedDemand, init_containers_reuse_what_comes_later) {
  ExtendedClasses classes;
  classes.put(device_class("gpu", "2026-01-01T00:00:00Z", "x.io/gpu"));
  const auto pod = Pod::read(from_text(
      "{'metadata':{'name':'p','namespace':'n','uid':'u'},'spec':{'initContainers':[{'name':'i',"
      "'resources':{'requests':{'x.io/gpu':'3'}}}],'containers':[{'name':'c','resources':{"
      "'requests':{'cpu':'1','x.io/gpu':'2'}}}]}}"));
  const ExtendedDemand made = make_extended_demand(*pod, {"x.io/gpu"}, classes);
  ASSERT_EQ(made.requests.size(), 2U);
  EXPECT_EQ(made.requests[0]["name"].as_string(), "container-0-request-0");
  EXPECT_EQ(made.requests[0]["exactly"]["count"].as_int(), 1);
  EXPECT_EQ(made.requests[1]["name"].as_string(), "container-1-request-1");
  EXPECT_EQ(made.requests[1]["exactly"]["count"].as_int(), 2);
  EXPECT_EQ(made.mappings.size(), 3U);
}

}  // namespace
}  // namespace dibs::scheduler
