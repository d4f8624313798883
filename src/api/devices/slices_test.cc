#include "api/devices/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Result<std::vector<SliceDevice>> read(std::string_view text) {
  const auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return devices_of(*parsed);
}

std::string slice(std::string_view version, std::string_view device,
                  std::string_view where = R"("nodeName": "n1")") {
  return cat(R"({"apiVersion": "resource.k8s.io/)", version,
             R"(", "kind": "ResourceSlice", "metadata": {"name": "s1"}, "spec": {)", where,
             R"(, "driver": "d.example.com", "pool": {"name": "p1", "generation": 2}, )",
             R"("devices": [)", device, "]}}");
}

TEST(Slices, are_read_in_every_version) {
  const std::pair<const char*, const char*> cases[] = {
      {"v1",
       R"({"name": "a", "attributes": {"x": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}})"},
      {"v1beta2",
       R"({"name": "a", "attributes": {"x": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}})"},
      {"v1beta1",
       R"({"name": "a", "basic": {"attributes": {"x": {"int": 1}},
                                  "capacity": {"m": {"value": "1Gi"}}}})"},
      {"v1alpha3",
       R"({"name": "a", "basic": {"attributes": {"x": {"int": 1}}, "capacity": {"m": "1Gi"}}})"},
  };
  for (const auto& [version, device] : cases) {
    const auto devices = read(slice(version, device));
    ASSERT_TRUE(devices.ok()) << version << devices.error().message();
    ASSERT_THAT(*devices, SizeIs(1));
    const SliceDevice& made = (*devices)[0];
    EXPECT_EQ(made.slice, "s1");
    EXPECT_EQ(made.node, "n1");
    EXPECT_EQ(made.pool, "p1");
    EXPECT_EQ(made.generation, 2);
    EXPECT_EQ(made.driver, "d.example.com");
    EXPECT_EQ(made.name, "a");
    EXPECT_EQ(made.device["attributes"]["x"]["int"].as_int(), 1) << version;
    EXPECT_EQ(made.device["capacity"]["m"]["value"].as_string(), "1Gi") << version;
  }
}

TEST(Slices, may_be_in_lists) {
  const std::string one = slice("v1", R"({"name": "a"}, {"name": "b"})");
  for (const std::string& text :
       {cat(R"({"kind": "List", "apiVersion": "v1", "items": [)", one, "]}"),
        cat(R"({"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": [)",
            R"({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p"}, )",
            R"("devices": [{"name": "a"}, {"name": "b"}]}}]})")}) {
    const auto devices = read(text);
    ASSERT_TRUE(devices.ok()) << devices.error().message();
    EXPECT_THAT(*devices, SizeIs(2));
  }
}

TEST(Slices, say_where_their_devices_are) {
  EXPECT_EQ((*read(slice("v1", R"({"name": "a"})", R"("allNodes": true)")))[0].node, "<all>");
  EXPECT_EQ((*read(slice("v1", R"({"name": "a"})", R"("nodeSelector": {})")))[0].node,
            "<selected>");
  const auto own =
      read(slice("v1", R"({"name": "a", "nodeName": "n2"}, {"name": "b", "allNodes": true})",
                 R"("perDeviceNodeSelection": true)"));
  EXPECT_EQ((*own)[0].node, "n2");
  EXPECT_EQ((*own)[1].node, "<all>");
}

TEST(Slices, say_what_is_wrong_with_them) {
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {"[]", "must be a ResourceSlice, is no object"},
      {"{}", "must be a ResourceSlice, is an object without a kind"},
      {R"({"kind": "Pod", "apiVersion": "v1"})", "must be a ResourceSlice, is a Pod of v1"},
      {slice("v1alpha2", ""),
       "apiVersion: \"resource.k8s.io/v1alpha2\" has no devices: must be resource.k8s.io/v1, "
       "v1beta2, v1beta1 or v1alpha3"},
      {R"({"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1"})",
       "spec: must be an object"},
      {slice("v1", R"({"name": 1})"), "spec.devices[0].name: must be a string"},
      {slice("v1", R"({"name": "a"}, 7)"), "spec.devices[1]: must be an object"},
      {slice("v1", R"({"name": "a", "attributes": []})"),
       "spec.devices[0].attributes: must be a map of names to values"},
      {slice("v1", R"({"name": "a", "attributes": {"x": "y"}})"),
       "spec.devices[0].attributes[x]: must be a map such as {string: \"a\"}"},
      {slice("v1", R"({"name": "a", "attributes": {"x": {"int": "1"}}})"),
       "spec.devices[0].attributes[x].int: must be a whole number"},
      {slice("v1", R"({"name": "a", "attributes": {"x": {"strings": [1]}}})"),
       "spec.devices[0].attributes[x].strings[0]: must be a string"},
      {slice("v1", R"({"name": "a", "attributes": {"x": {"float": 1}}})"),
       "spec.devices[0].attributes[x]: unknown type \"float\": must be int, bool, string, version "
       "or a list of them"},
      {slice("v1beta1", R"({"name": "a", "basic": {"capacity": {"m": {"value": "many"}}}})"),
       "spec.devices[0].basic.capacity[m]: quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {slice("v1", R"({"name": "a", "allowMultipleAllocations": 1})"),
       "spec.devices[0].allowMultipleAllocations: must be true or false"},
      {R"({"kind": "List", "items": [{"kind": "Pod"}]})",
       "items[0]: must be a ResourceSlice, is a Pod"},
  };
  for (const Case& c : cases) {
    const auto devices = read(c.text);
    ASSERT_FALSE(devices.ok()) << c.text;
    EXPECT_EQ(devices.error().message(), c.message);
  }
}

TEST(Slices, of_older_generations_do_not_count) {
  std::vector<SliceDevice> devices(3);
  devices[0].name = "old";
  devices[0].generation = 1;
  devices[1].name = "new";
  devices[1].generation = 2;
  devices[2].name = "elsewhere";
  devices[2].pool = "other";
  std::vector<std::string> names;
  for (const SliceDevice& device : newest_generation(devices)) names.push_back(device.name);
  EXPECT_THAT(names, ElementsAre("new", "elsewhere"));
}

}  // namespace
}  // namespace dibs::api
