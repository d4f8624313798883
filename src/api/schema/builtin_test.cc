#include "api/schema/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "api/schema/schema_text.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

TEST(Builtin, reads_the_texts_in_a_few_milliseconds) {
  auto begin = std::chrono::steady_clock::now();
  auto book = read_schemas(schema_texts());
  auto spent = std::chrono::steady_clock::now() - begin;

  ASSERT_TRUE(book.ok()) << book.error().message();
  std::printf(
      "schemas read in %lld us: %zu types, %zu schemas\n",
      static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(spent).count()),
      (*book)->types.size(), (*book)->schemas.size());
}

TEST(Builtin, knows_resources_by_path_and_kind) {
  const ResourceInfo* pods = builtin_catalog().find("", "v1", "pods");
  ASSERT_NE(pods, nullptr);
  EXPECT_EQ(pods->kind, "Pod");
  EXPECT_EQ(pods->singular, "pod");
  EXPECT_EQ(pods->list_kind, "PodList");
  EXPECT_TRUE(pods->namespaced);
  EXPECT_THAT(pods->short_names, testing::ElementsAre("po"));
  EXPECT_THAT(pods->categories, testing::ElementsAre("all"));
  EXPECT_EQ(pods->storage_prefix, "/registry/pods/");
  ASSERT_NE(pods->subresource("eviction"), nullptr);
  EXPECT_EQ(pods->subresource("eviction")->kind, (GroupVersionKind{"policy", "v1", "Eviction"}));
  EXPECT_EQ(builtin_catalog().find_kind("", "v1", "Pod"), pods);
  EXPECT_EQ(builtin_catalog().find("", "v1", "nodes")->storage_prefix, "/registry/minions/");
  EXPECT_EQ(builtin_catalog().find("events.k8s.io", "v1", "events")->hub_group, "");
  EXPECT_EQ(builtin_catalog().find("", "v1", "nothings"), nullptr);
}

TEST(Builtin, keys_are_those_of_kubernetes) {
  // What a kube-apiserver does not keep under the plural alone.
  const std::map<std::string, std::string> special = {
      {"nodes", "minions"},
      {"services", "services/specs"},
      {"endpoints", "services/endpoints"},
      {"replicationcontrollers", "controllers"},
      {"ingresses", "ingress"},
      {"customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions"},
      {"apiservices", "apiregistration.k8s.io/apiservices"}};
  for (const GroupInfo& group : builtin_catalog().groups) {
    for (const VersionInfo& version : group.versions) {
      for (const ResourceInfo& one : version.resources) {
        if (one.storage_prefix.empty()) continue;
        const auto found = special.find(one.plural);
        EXPECT_EQ(one.storage_prefix,
                  cat("/registry/", found == special.end() ? one.plural : found->second, "/"));
      }
    }
  }
}

TEST(Builtin, every_resource_has_a_schema) {
  for (const GroupInfo& group : builtin_catalog().groups) {
    for (const VersionInfo& version : group.versions) {
      for (const ResourceInfo& resource : version.resources) {
        EXPECT_NE(resource.schema, nullptr) << group.name << " " << resource.plural;
        for (const SubresourceInfo& sub : resource.subresources) {
          bool options = sub.kind.kind.ends_with("Options");
          EXPECT_TRUE(options ||
                      builtin_schema(sub.kind.group, sub.kind.version, sub.kind.kind) != nullptr)
              << resource.plural << "/" << sub.name;
        }
      }
    }
  }
}

TEST(Builtin, knows_kinds_that_are_bodies_only) {
  EXPECT_NE(builtin_schema("", "v1", "DeleteOptions"), nullptr);
  EXPECT_EQ(builtin_schema("resource.k8s.io", "v1", "DeleteOptions"),
            builtin_schema("", "v1", "DeleteOptions"));
  EXPECT_NE(builtin_schema("autoscaling", "v1", "Scale"), nullptr);
  EXPECT_NE(builtin_schema("authentication.k8s.io", "v1", "TokenRequest"), nullptr);
  EXPECT_NE(builtin_schema("", "v1", "List"), nullptr);
  EXPECT_EQ(builtin_schema("nothing.example.com", "v1", "DeleteOptions"), nullptr);
  EXPECT_EQ(builtin_schema("apps", "v1", "Pod"), nullptr);
}

TEST(Builtin, schemas_tell_list_types_and_merge_keys) {
  const Schema* spec = builtin_type("core/v1.PodSpec");
  ASSERT_NE(spec, nullptr);
  const Field* containers = spec->field("containers");
  EXPECT_EQ(containers->merge_key, "name");
  EXPECT_TRUE(containers->merge);
  EXPECT_EQ(containers->schema->list_type, ListType::map);
  EXPECT_THAT(containers->schema->map_keys, testing::ElementsAre("name"));
  EXPECT_TRUE(spec->field("nodeSelector")->schema->atomic);
  EXPECT_EQ(containers->schema->go_type, "[]v1.Container");
  const Schema* probe = builtin_type("core/v1.Probe");
  EXPECT_EQ(probe->field("httpGet")->embedded, "ProbeHandler");
  const Schema* named = builtin_type("admissionregistration/v1.NamedRuleWithOperations");
  EXPECT_EQ(named->field("apiGroups")->embedded, "RuleWithOperations.Rule");
  // Granular where the type itself is atomic.
  const Schema* volume = builtin_type("core/v1.PersistentVolumeSpec");
  EXPECT_FALSE(volume->field("claimRef")->schema->atomic);
  EXPECT_TRUE(builtin_type("core/v1.ObjectReference")->atomic);
}

TEST(Builtin, describes_fields_in_words) {
  EXPECT_EQ(description("io.k8s.api.core.v1.ConfigMap", "data"), "The values.");
  EXPECT_EQ(description("io.k8s.api.core.v1.ConfigMap", "kind"), "The kind of this object.");
  EXPECT_EQ(description("io.k8s.api.resource.v1beta1.DeviceClass", ""),
            description("io.k8s.api.resource.v1.DeviceClass", ""));
  EXPECT_EQ(description("io.k8s.api.core.v1.ConfigMap", "nothing"), "");
}

TEST(Builtin, descriptions_name_types_and_fields_that_exist) {
  for (std::string_view line : split(descriptions_text(), '\n')) {
    if (line.empty() || line[0] == '#' || line.starts_with("*.")) continue;
    std::string key(line.substr(0, line.find(' ')));
    if (key.starts_with("api/") || key.starts_with("util/") || key.starts_with("pkg/")) continue;
    std::size_t dot = key.find('.');
    std::string package = key.substr(0, dot);
    std::string rest = key.substr(dot + 1);
    std::string type = rest.substr(0, rest.find('.'));
    std::string field = rest.find('.') == std::string::npos ? "" : rest.substr(rest.find('.') + 1);
    if (type == "Time" || type == "MicroTime" || type == "FieldsV1") continue;
    bool found = false;
    for (std::string_view version : {"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}) {
      std::string name =
          package.ends_with("/*") ? cat(package.substr(0, package.size() - 1), version) : package;
      const Schema* schema = builtin_type(cat(name, '.', type));
      found = found || (schema != nullptr && (field.empty() || schema->field(field) != nullptr));
    }
    EXPECT_TRUE(found) << key;
  }
}

TEST(Catalog, orders_versions_as_the_api_does) {
  EXPECT_TRUE(version_before("v2", "v1"));
  EXPECT_TRUE(version_before("v1", "v2beta1"));
  EXPECT_TRUE(version_before("v11beta2", "v3beta1"));
  EXPECT_TRUE(version_before("v1beta1", "v12alpha1"));
  EXPECT_TRUE(version_before("v1alpha2", "v1alpha1"));
  EXPECT_TRUE(version_before("v1alpha1", "foo10"));
  EXPECT_FALSE(version_before("foo1", "v1"));
}

TEST(Catalog, hashes_the_storage_version) {
  EXPECT_EQ(storage_version_hash(*builtin_catalog().find("resource.k8s.io", "v1", "deviceclasses")),
            "Yk2PTc1Ybxk=");
  EXPECT_EQ(storage_version_hash(
                *builtin_catalog().find("resource.k8s.io", "v1alpha3", "devicetaintrules")),
            "i+85+TcIKpA=");
}

}  // namespace
}  // namespace dibs::api
