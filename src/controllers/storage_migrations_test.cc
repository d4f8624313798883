// StorageVersionMigrations of custom resources: what is stored in which version in the end.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::TestCluster;

const Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const Gvr kThings = {"example.com", "v2", "things"};
const Gvr kMigrations = {"storagemigration.k8s.io", "v1", "storageversionmigrations"};

struct MigrationTest : testing::Test {
  TestCluster cluster;

  void define() {
    cluster.create(kDefinitions, "",
                   cat("{'metadata':{'name':'things.example.com'},'spec':{'group':'example.com',"
                       "'scope':'Namespaced','names':{'plural':'things','kind':'Thing'},",
                       versions("v1"), "}}"));
    cluster.settle();
  }
  static std::string versions(const std::string& stored) {
    std::string out = "'versions':[";
    for (const std::string name : {"v1", "v2"}) {
      append(out, name == "v1" ? "" : ",", "{'name':'", name,
             "','served':true,'storage':", name == stored ? "true" : "false",
             ",'schema':{'openAPIV3Schema':{'type':'object'}}}");
    }
    return out + "]";
  }
  void migrate() {
    cluster.create(kMigrations, "",
                   "{'metadata':{'name':'m'},'spec':{'resource':{'group':'example.com','resource':"
                   "'things'}}}");
  }
  void store_in(const std::string& version) {
    cluster.patch(kDefinitions, "", "things.example.com",
                  cat("{'spec':{", versions(version), "}}"));
  }
  void add(const std::string& name) {
    cluster.create(
        kThings, "default",
        cat("{'apiVersion':'example.com/v2','kind':'Thing','metadata':{'name':'", name, "'}}"));
  }
  std::string stored_versions() {
    std::string out;
    for (const Value& version :
         cluster.get(kDefinitions, "", "things.example.com")["status"]["storedVersions"].items())
      append(out, version.as_string(), " ");
    return out;
  }
  std::string version_of(const std::string& name) {
    return cluster.get(kThings, "default", name)["metadata"]["resourceVersion"].str();
  }
  bool succeeded() {
    return find_condition(cluster.get(kMigrations, "", "m"), "Succeeded")["status"].as_string() ==
           "True";
  }
};

TEST_F(MigrationTest, writes_anew_what_was_written_before_the_definition_changed_once_more) {
  // It waits for the definition, and so can be given a beginning.
  migrate();
  define();
  add("early");
  add("late");
  const std::string late = version_of("late");
  store_in("v2");
  EXPECT_EQ(stored_versions(), "v1 v2 ");
  cluster.patch(kMigrations, "", "m",
                cat("{'status':{'resourceVersion':'", version_of("early"), "'}}"), "status");

  cluster.settle(std::chrono::seconds(30));

  EXPECT_TRUE(succeeded());
  EXPECT_EQ(stored_versions(), "v2 ");
  EXPECT_NE(version_of("late"), late) << "it is still stored in v1";
}

TEST_F(MigrationTest, leaves_alone_what_was_written_since_it_began) {
  define();
  add("early");
  store_in("v2");
  cluster.settle();
  migrate();
  cluster.settle(std::chrono::seconds(30));

  EXPECT_TRUE(succeeded());
  EXPECT_EQ(stored_versions(), "v2 ");
}

}  // namespace
}  // namespace dibs::controllers
