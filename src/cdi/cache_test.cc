#include "cdi/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "cdi/annotations.h"
#include "json/parse.h"

namespace dibs::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CdiCache : public testing::Test {
 protected:
  ~CdiCache() override { std::filesystem::remove_all(root_); }

  static std::string make_root() {
    std::string pattern = testing::TempDir() + "cdi.XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  std::string low() const { return root_ + "/low"; }
  std::string high() const { return root_ + "/high"; }

  static void put(const std::string& directory, const std::string& name, std::string_view text) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/" + name) << text;
  }
  static std::string device(std::string_view name, std::string_view env) {
    return cat("cdiVersion: 0.5.0\nkind: v.com/gpu\ncontainerEdits: {env: [\"FILE=", env,
               "\"]}\ndevices: [{name: ", name, ", containerEdits: {env: [\"DEVICE=", env,
               "\"]}}]\n");
  }
  std::string injected(const std::vector<std::string>& names) {
    json::Value config;
    const auto result = cache_.inject(names, config);
    return result.ok() ? json::write(config["process"]["env"]) : result.error().message();
  }

  const std::string root_ = make_root();
  // Neither directory exists at first.
  Cache cache_{{low(), high()}};
};

TEST_F(CdiCache, leaves_out_versions_that_are_too_new_for_it) {
  put(low(), "x.yaml", device("a", "low"));
  Cache old({low()}, host_node, "0.4.0");
  const auto refused = old.edits({"v.com/gpu=a"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(),
              testing::StartsWith("unresolvable CDI devices v.com/gpu=a; "));
  EXPECT_THAT(refused.error().message(), HasSubstr("invalid version \"0.5.0\""));
  Cache same({low()}, host_node, "0.5.0");
  EXPECT_TRUE(same.edits({"v.com/gpu=a"}).ok());
}

TEST_F(CdiCache, the_later_directory_wins_at_once) {
  EXPECT_EQ(injected({"v.com/gpu=a"}), "unresolvable CDI devices v.com/gpu=a");
  put(low(), "x.yaml", device("a", "low"));
  EXPECT_EQ(injected({"v.com/gpu=a"}), R"(["FILE=low","DEVICE=low"])");
  put(high(), "y.json",
      R"({"cdiVersion":"0.5.0","kind":"v.com/gpu","devices":[{"name":"a",)"
      R"("containerEdits":{"env":["DEVICE=high"]}}]})");
  EXPECT_EQ(injected({"v.com/gpu=a"}), R"(["DEVICE=high"])");
  std::filesystem::remove(high() + "/y.json");
  EXPECT_EQ(injected({"v.com/gpu=a"}), R"(["FILE=low","DEVICE=low"])");
}

TEST_F(CdiCache, names_count_once_and_files_too) {
  put(low(), "x.yaml",
      "cdiVersion: 0.5.0\nkind: v.com/gpu\n"
      "containerEdits: {hooks: [{hookName: prestart, path: /file}]}\n"
      "devices:\n- {name: a, containerEdits: {hooks: [{hookName: prestart, path: /a}]}}\n"
      "- {name: b, containerEdits: {hooks: [{hookName: prestart, path: /b}]}}\n");
  const auto edits = cache_.edits({"v.com/gpu=b", "v.com/gpu=a", "v.com/gpu=b"});
  ASSERT_TRUE(edits.ok());
  std::vector<std::string> paths;
  for (const auto& hook : edits->hooks) paths.push_back(hook.path);
  EXPECT_THAT(paths, ElementsAre("/file", "/b", "/a"));
}

TEST_F(CdiCache, a_device_defined_twice_in_a_directory_is_unusable) {
  put(low(), "x.yaml", device("a", "x"));
  put(low(), "y.yaml", device("a", "y"));
  put(low(), "z.yaml", device("b", "z"));
  put(high(), "h.yaml", device("a", "h"));
  EXPECT_EQ(injected({"v.com/gpu=b"}), R"(["FILE=z","DEVICE=z"])");
  EXPECT_THAT(injected({"v.com/gpu=a"}), HasSubstr("conflicting device \"v.com/gpu=a\" (specs \"" +
                                                   low() + "/y.yaml\", \"" + low() + "/x.yaml\")"));
}

TEST_F(CdiCache, a_broken_file_harms_no_other_and_is_named) {
  put(low(), "broken.yaml", "cdiVersion: [\n");
  put(low(), "old.yaml", "cdiVersion: 0.3.0\nkind: v.com/gpu\ndevices: []\n");
  put(low(), "good.yaml", device("a", "1"));
  put(low(), "ignored.yml", "not read");
  std::filesystem::create_directories(low() + "/folder.yaml");
  EXPECT_EQ(injected({"v.com/gpu=a"}), R"(["FILE=1","DEVICE=1"])");
  const auto message = injected({"v.com/gpu=gone", "v.com/gpu=a", "v.com/gpu=lost"});
  EXPECT_THAT(message, HasSubstr("unresolvable CDI devices v.com/gpu=gone, v.com/gpu=lost; "));
  EXPECT_THAT(message, HasSubstr(low() + "/broken.yaml"));
  EXPECT_THAT(message, HasSubstr("invalid spec, no devices"));
}

TEST(CdiAnnotations, name_devices) {
  const auto all = with_annotated_devices(
      {"v.com/gpu=b"}, {{"cdi.k8s.io/x_1", "v.com/gpu=a,v.com/gpu=b"}, {"other", "x"}});
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(*all, ElementsAre("v.com/gpu=b", "v.com/gpu=a"));
  EXPECT_FALSE(annotated_devices({{"cdi.k8s.io/x_1", "nonsense"}}).ok());
}

}  // namespace
}  // namespace dibs::cdi
