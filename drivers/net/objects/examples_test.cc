// The manifests of examples/network are what a server takes, word for word.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "drivers/net/objects/test_objects.h"
#include "json/yaml.h"

namespace dibs::drivers::net::test {
namespace {

std::filesystem::path examples_folder() {
  for (auto at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    if (std::filesystem::exists(at / "examples/network")) return at / "examples/network";
  }
  return {};
}

client::Gvr resource_of(const Value& object) {
  const std::string version = object["apiVersion"].str();
  const std::size_t slash = version.find('/');
  client::Gvr gvr;
  if (slash != std::string::npos) gvr.group = version.substr(0, slash);
  gvr.version = slash == std::string::npos ? version : version.substr(slash + 1);
  gvr.resource = cat(to_lower(object["kind"].as_string()), "s");
  return gvr;
}

bool is_cluster_wide(const Value& object) { return object["kind"].as_string() == "SpiderIPPool"; }

/// How many objects were made.
int apply_examples(const std::string& release, bool classic) {
  ObjectsWorld world(release);
  world.install_all();
  (void)world.api->create({"", "v1", "serviceaccounts"}, "default",
                          from_text("{'metadata': {'name': 'default'}}"));
  int made = 0;
  for (const auto& file : std::filesystem::directory_iterator(examples_folder())) {
    const std::string name = file.path().filename().string();
    if (file.path().extension() != ".yaml") continue;
    const bool of_both =
        name == "multus-config.yaml" || name == "ip-pool.yaml" || name == "claim-parameter.yaml";
    if (!of_both && (name.find("-classic.yaml") != std::string::npos) != classic) continue;
    SCOPED_TRACE(cat(name, " as ", release));
    std::ifstream text(file.path());
    const auto objects =
        json::parse_yaml_stream(std::string((std::istreambuf_iterator<char>(text)), {}));
    EXPECT_TRUE(objects.ok()) << objects.error().message();
    for (const auto& object : objects ? *objects : std::vector<Value>()) {
      const std::string_view given = client::namespace_of(object);
      const std::string_view place = is_cluster_wide(object) ? ""
                                     : given.empty()         ? "default"
                                                             : given;
      client::WriteOptions strict;
      strict.field_validation = "Strict";
      const auto created = world.api->create(resource_of(object), place, object, strict);
      EXPECT_TRUE(created.ok()) << created.error().message();
      ++made;
    }
  }
  return made;
}

TEST(NetworkExamples, are_taken_by_todays_api) { EXPECT_GT(apply_examples("", false), 10); }

TEST(NetworkExamples, are_taken_by_the_releases_of_the_classic_model) {
  EXPECT_GT(apply_examples("1.27", true), 10);
  EXPECT_GT(apply_examples("1.30", true), 10);
}

}  // namespace
}  // namespace dibs::drivers::net::test
