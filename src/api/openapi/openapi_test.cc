#include "api/openapi/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "api/schema/builtin.h"
#include "api/schema/protobuf_wire.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

Catalog with_widgets() {
  Catalog catalog = builtin_catalog();
  ResourceInfo widgets;
  widgets.group = "stable.example.com";
  widgets.version = "v1";
  widgets.plural = "widgets";
  widgets.singular = "widget";
  widgets.kind = "Widget";
  widgets.list_kind = "WidgetList";
  widgets.namespaced = true;
  widgets.custom = true;
  widgets.verbs = {"delete", "deletecollection", "get",    "list",
                   "patch",  "create",           "update", "watch"};
  widgets.openapi = *json::parse(
      R"({"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","nullable":true}}}}})");
  catalog.add(std::move(widgets));
  return catalog;
}

void collect_refs(const Value& value, std::set<std::string>& refs) {
  for (const auto& [key, member] : value.members()) {
    if (key == "$ref" && member.is_string()) refs.insert(member.str());
    collect_refs(member, refs);
  }
  for (const Value& item : value.items()) collect_refs(item, refs);
}

TEST(OpenApi, every_reference_of_a_document_is_in_it) {
  Catalog catalog = with_widgets();
  auto begin = std::chrono::steady_clock::now();
  for (const std::string& path : openapi_v3_paths(catalog)) {
    auto document = openapi_v3(catalog, path, "v1.37.0");
    ASSERT_TRUE(document.has_value()) << path;
    std::set<std::string> refs;
    collect_refs(*document, refs);
    for (const std::string& ref : refs) {
      EXPECT_TRUE((*document)["components"]["schemas"].contains(
          ref.substr(strlen("#/components/schemas/"))))
          << path << " " << ref;
    }
  }
  auto spent = std::chrono::steady_clock::now() - begin;
  std::printf(
      "all v3 documents in %lld ms\n",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()));
  EXPECT_FALSE(openapi_v3(catalog, "apis/nothing.example.com/v1", "v1.37.0").has_value());

  Value v2 = openapi_v2(catalog, "v1.37.0");
  std::set<std::string> refs;
  collect_refs(v2, refs);
  for (const std::string& ref : refs) {
    EXPECT_TRUE(v2["definitions"].contains(ref.substr(strlen("#/definitions/")))) << ref;
  }
}

/// As kubectl looks for it: a patch of the kind that takes fieldValidation.
bool supports_field_validation(const Value& document, const GroupVersionKind& kind) {
  for (const auto& [path, item] : document["paths"].members()) {
    const Value& patch = item["patch"];
    const Value& gvk = patch["x-kubernetes-group-version-kind"];
    if (gvk["group"] != Value(kind.group) || gvk["version"] != Value(kind.version) ||
        gvk["kind"] != Value(kind.kind))
      continue;
    for (const Value& parameter : patch["parameters"].items()) {
      if (parameter["name"] == Value("fieldValidation") && parameter["in"] == Value("query"))
        return true;
    }
  }
  return false;
}

TEST(OpenApi, kubectl_finds_what_it_needs_for_every_kind_it_can_patch) {
  for (const GroupInfo& group : builtin_catalog().groups) {
    for (const VersionInfo& version : group.versions) {
      std::string path =
          group.name.empty() ? "api/v1" : cat("apis/", group.name, '/', version.version);
      Value document = *openapi_v3(builtin_catalog(), path, "v1.37.0");
      for (const ResourceInfo& resource : version.resources) {
        if (std::ranges::count(resource.verbs, "patch") == 0) continue;
        EXPECT_TRUE(
            supports_field_validation(document, {resource.group, resource.version, resource.kind}))
            << resource.kind;
      }
    }
  }
}

TEST(OpenApi, documents_say_how_lists_merge) {
  Value document = *openapi_v3(builtin_catalog(), "apis/apps/v1", "v1.37.0");
  const Value& schemas = document["components"]["schemas"];
  const Value& containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
  EXPECT_EQ(containers["x-kubernetes-patch-merge-key"], Value("name"));
  EXPECT_EQ(containers["x-kubernetes-patch-strategy"], Value("merge"));
  EXPECT_EQ(containers["x-kubernetes-list-type"], Value("map"));
  const Value& strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
  EXPECT_EQ(strategy["x-kubernetes-patch-strategy"], Value("retainKeys"));
  EXPECT_EQ(strategy["allOf"][0]["$ref"],
            Value("#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"));
  const Value& deployment = schemas["io.k8s.api.apps.v1.Deployment"];
  EXPECT_EQ(deployment["x-kubernetes-group-version-kind"][0]["kind"], Value("Deployment"));
  EXPECT_EQ(schemas["io.k8s.api.apps.v1.DeploymentStrategy"]["properties"]["type"]["enum"],
            Value::array({"Recreate", "RollingUpdate"}));
  const Value& patch =
      document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
  EXPECT_TRUE(patch["requestBody"]["content"].contains("application/strategic-merge-patch+json"));
  EXPECT_EQ(patch["operationId"], Value("patchAppsV1NamespacedDeployment"));
}

TEST(OpenApi, custom_resources_are_published) {
  Catalog catalog = with_widgets();
  Value document = *openapi_v3(catalog, "apis/stable.example.com/v1", "v1.37.0");
  const Value& widget = document["components"]["schemas"]["com.example.stable.v1.Widget"];
  EXPECT_EQ(widget["properties"]["spec"]["properties"]["size"]["type"], Value("integer"));
  EXPECT_EQ(widget["properties"]["metadata"]["allOf"][0]["$ref"],
            Value("#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
  const Value& patch =
      document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}"]
              ["patch"];
  EXPECT_FALSE(patch["requestBody"]["content"].contains("application/strategic-merge-patch+json"));
  EXPECT_TRUE(supports_field_validation(document, {"stable.example.com", "v1", "Widget"}));
  EXPECT_EQ(openapi_v2(catalog, "v1.37.0")["definitions"]["com.example.stable.v1.Widget"]
                                          ["properties"]["spec"]["properties"]["size"],
            Value::object());
}

TEST(OpenApi, hashes_change_with_what_is_served) {
  Catalog catalog = with_widgets();
  std::string before = openapi_v3_hash(catalog, "apis/stable.example.com/v1");
  std::string apps = openapi_v3_hash(catalog, "apis/apps/v1");
  catalog.groups.back().versions[0].resources[0].openapi.set("description", "new");
  EXPECT_NE(openapi_v3_hash(catalog, "apis/stable.example.com/v1"), before);
  EXPECT_EQ(openapi_v3_hash(catalog, "apis/apps/v1"), apps);
  Value index = openapi_v3_index(catalog);
  EXPECT_EQ(index["paths"]["apis/apps/v1"]["serverRelativeURL"],
            Value(cat("/openapi/v3/apis/apps/v1?hash=", apps)));
  for (const char* path :
       {"api", "api/v1", "apis", "version", "apis/apps", "apis/resource.k8s.io/v1alpha3"}) {
    EXPECT_TRUE(index["paths"].contains(path)) << path;
  }
}

TEST(OpenApi, the_protobuf_form_has_definitions_and_extensions) {
  Value document = Value::object({{"swagger", "2.0"},
                                  {"info", Value::object({{"title", "x"}, {"version", "v1"}})},
                                  {"paths", Value::object()},
                                  {"definitions", Value::object()}});
  EXPECT_EQ(hex_encode(openapi_v2_protobuf(document)), "0a03322e3012070a01781202763142004a00");

  std::string all = openapi_v2_protobuf(openapi_v2(builtin_catalog(), "v1.37.0"));
  std::string_view in = all;
  wire::Item item;
  std::size_t paths = 0;
  std::size_t definitions = 0;
  while (!in.empty()) {
    ASSERT_TRUE(wire::take(in, item));
    std::string_view inner = item.bytes;
    wire::Item entry;
    while ((item.number == 8 || item.number == 9) && !inner.empty()) {
      ASSERT_TRUE(wire::take(inner, entry));
      ++(item.number == 8 ? paths : definitions);
    }
  }
  EXPECT_GT(paths, 200u);
  EXPECT_GT(definitions, 400u);
  EXPECT_NE(all.find("x-kubernetes-group-version-kind"), std::string::npos);
}

}  // namespace
}  // namespace dibs::api
