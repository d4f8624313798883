#include "api/openapi/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/schema/builtin.h"
#include "api/schema/recordings_for_test.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

/// What the recorded server served: the classic version and those off by default are left out.
Catalog recorded_catalog() {
  Catalog catalog = builtin_catalog();
  for (GroupInfo& group : catalog.groups) {
    std::erase_if(group.versions, [](const VersionInfo& v) {
      return (v.last_release != 0 && v.last_release < 37) || v.version == "v1beta1" ||
             v.version.starts_with("v1alpha");
    });
  }
  for (const GroupInfo& group : builtin_catalog().groups) {
    if (group.name != "resource.k8s.io") continue;
    for (GroupInfo& mine : catalog.groups) {
      if (mine.name != group.name) continue;
      mine.versions = group.versions;
      std::erase_if(mine.versions, [](const VersionInfo& v) { return v.version == "v1alpha2"; });
    }
  }
  return catalog;
}

void add_gadgets(Catalog& catalog, std::string_view group) {
  for (std::string_view version : {"v1alpha1", "v1", "v2"}) {
    ResourceInfo gadgets;
    gadgets.group = group;
    gadgets.version = version;
    gadgets.plural = "gadgets";
    gadgets.singular = "gadget";
    gadgets.kind = "Gadget";
    gadgets.list_kind = "GadgetList";
    gadgets.short_names = {"gg", "gdg"};
    gadgets.categories = {"all", "things"};
    gadgets.verbs = {"delete", "deletecollection", "get",    "list",
                     "patch",  "create",           "update", "watch"};
    gadgets.custom = true;
    gadgets.storage_version = "v1";
    if (version == "v1") {
      gadgets.subresources = {
          {"status", {std::string(group), "v1", "Gadget"}, {"get", "patch", "update"}},
          {"scale", {"autoscaling", "v1", "Scale"}, {"get", "patch", "update"}}};
    }
    catalog.add(std::move(gadgets));
  }
}

/// What `expected` names is there: members of objects; in lists of objects with a name, the objects
/// of that name.
bool covers(const Value& got, const Value& expected, std::string& where) {
  if (expected.is_object()) {
    for (const auto& [key, value] : expected.members()) {
      std::string here = where;
      append(where, '/', key);
      if (!got.contains(key) || !covers(got[key], value, where)) return false;
      where = here;
    }
    return true;
  }
  if (expected.is_array()) {
    auto name_of = [](const Value& item) {
      for (const char* key : {"name", "resource", "subresource"}) {
        if (item[key].is_string()) return item[key].str();
      }
      return item["metadata"]["name"].str();
    };
    bool named = !expected.empty() && !name_of(expected[0]).empty();
    if (!named && got.size() != expected.size()) return false;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Value* match = named ? nullptr : &got[i];
      for (const Value& item : got.items()) {
        if (named && name_of(item) == name_of(expected[i])) match = &item;
      }
      append(where, '[', named ? name_of(expected[i]) : std::to_string(i), ']');
      if (match == nullptr || !covers(*match, expected[i], where)) return false;
      where.resize(where.rfind('['));
    }
    return true;
  }
  return got == expected;
}

void drop_hashes(Value& document) {
  for (std::size_t i = 0; i < document["resources"].size(); ++i) {
    document.mut("resources").mut(i).erase("storageVersionHash");
  }
}

TEST(Discovery, documents_are_those_of_a_real_server) {
  Catalog catalog = recorded_catalog();
  add_gadgets(catalog, "discovery-custom.example.com");
  std::size_t compared = 0;
  auto check = [&](const std::string& session, std::size_t index, const Value& step) {
    if (!session.starts_with("discovery-") || step["method"].as_string() != "GET") return;
    if (step["expect"]["code"].as_int() != 200) return;
    std::string path = step["path"].str();
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (std::size_t at = path.find("${ns}"); at != std::string::npos) path.replace(at, 5, session);
    auto parts = split(path, '/');
    bool aggregated = step["headers"]["Accept"].as_string().find("v=v2;") != std::string_view::npos;
    Value got;
    if (parts.size() == 2) {
      if (aggregated)
        got = aggregated_discovery(catalog, parts[1] == "api", "v2");
      else
        got = parts[1] == "api" ? api_versions("127.0.0.1:6443") : api_group_list(catalog);
    } else {
      bool core = parts[1] == "api";
      const GroupInfo* group = catalog.group(core ? "" : parts[2]);
      ASSERT_NE(group, nullptr) << path;
      std::size_t version_at = core ? 2 : 3;
      if (parts.size() > version_at + 1) return;  // the objects themselves
      if (parts.size() == version_at) {
        got = api_group(*group);
      } else {
        const VersionInfo* version = group->version(parts[version_at]);
        ASSERT_NE(version, nullptr) << path;
        got = api_resource_list(*group, *version);
      }
    }
    Value wanted = step["expect"]["body"];
    ++compared;
    for (const Value& ignored : step["ignore"].items()) {
      if (ignored.as_string() == "/resources/*/storageVersionHash") drop_hashes(got);
      if (ignored.as_string() == "/serverAddressByClientCIDRs")
        got.erase("serverAddressByClientCIDRs");
    }
    if (step["subset"].as_bool()) {
      std::string where;
      EXPECT_TRUE(covers(got, wanted, where)) << session << " " << index << " " << where;
    } else {
      EXPECT_EQ(got, wanted) << session << " " << index << "\n"
                             << json::write(got) << "\n"
                             << json::write(wanted);
    }
  };
  if (!for_each_step("reading", check)) GTEST_SKIP() << "no conformance data";
  EXPECT_GT(compared, 20u);
}

TEST(Discovery, custom_groups_prefer_stable_versions) {
  Catalog catalog;
  add_gadgets(catalog, "g.example.com");
  Value group = api_group(*catalog.group("g.example.com"));
  EXPECT_EQ(group["preferredVersion"]["version"], Value("v2"));
  Value aggregated = aggregated_discovery(catalog, false, "v2beta1");
  EXPECT_EQ(aggregated["apiVersion"], Value("apidiscovery.k8s.io/v2beta1"));
  const Value& resource = aggregated["items"][0]["versions"][1]["resources"][0];
  EXPECT_EQ(resource["responseKind"]["group"], Value("g.example.com"));
  EXPECT_EQ(resource["subresources"][1]["responseKind"]["kind"], Value("Scale"));
}

}  // namespace
}  // namespace dibs::api
