#include "api/schema/defaults.h"

#include <gtest/gtest.h>

#include "api/schema/builtin.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

std::string defaulted(std::string_view type, std::string_view text) {
  json::Value object = *json::parse(text);
  apply_defaults(object, *builtin_type(type));
  return json::write(object);
}

TEST(Defaults, are_set_in_every_object_there_is) {
  EXPECT_EQ(
      defaulted(
          "core/v1.PodSpec",
          R"({"containers":[{"ports":[{"containerPort":80},{"containerPort":81,"protocol":"UDP"}]}]})"),
      R"({"containers":[{"ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":81,"protocol":"UDP"}]}]})");
  EXPECT_EQ(
      defaulted("core/v1.PodSpec", R"({"volumes":[{"rbd":{"image":"i"}}]})"),
      R"({"volumes":[{"rbd":{"image":"i","keyring":"/etc/ceph/keyring","pool":"rbd","user":"admin"}}]})");
}

TEST(Defaults, leave_pointers_that_are_set) {
  EXPECT_EQ(defaulted("core/v1.ReplicationControllerSpec", R"({"replicas":0})"),
            R"({"replicas":0})");
  EXPECT_EQ(defaulted("core/v1.ReplicationControllerSpec", "{}"), R"({"replicas":1})");
  EXPECT_EQ(defaulted("resource/v1.DeviceToleration", R"({"operator":""})"),
            R"({"operator":"Equal"})");
}

}  // namespace
}  // namespace dibs::api
