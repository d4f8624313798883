#include "node/runtime/image_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/builtin_image.h"
#include "node/runtime/oci_rootfs.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageStoreTest : public testing::Test {
 protected:
  ImageStoreTest() {
    std::string pattern = testing::TempDir() + "images.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    store_ = std::make_unique<ImageStore>(root_ + "/store");
  }
  ~ImageStoreTest() override { fs::remove_all(root_); }

  std::string packed(const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string folder = root_ + "/files-" + name;
    for (const auto& [path, text] : files) {
      fs::create_directories(fs::path(folder + "/" + path).parent_path());
      std::ofstream(folder + "/" + path) << text;
    }
    const std::string tar = root_ + "/" + name + ".tar";
    const auto made = runtime::run_checked({.argv = {"tar", "-cf", tar, "-C", folder, "."}});
    EXPECT_TRUE(made.ok()) << made.error().message();
    return tar;
  }

  // A docker archive with two layers; the second one deletes and hides.
  std::string docker_archive(bool named) {
    const std::string folder = root_ + "/docker";
    fs::create_directories(folder);
    fs::rename(packed("one", {{"keep/a", "1"}, {"keep/b", "1"}, {"gone/x", "1"}, {"deep/y", "1"}}),
               folder + "/one.tar");
    fs::rename(
        packed("two",
               {{"keep/.wh.a", ""}, {".wh.gone", ""}, {"deep/.wh..wh..opq", ""}, {"deep/z", "2"}}),
        folder + "/two.tar");
    std::ofstream(folder + "/config.json") << R"({"os":"linux","config":{"User":"1234:55",
        "Cmd":["/bin/app"]},"rootfs":{"type":"layers","diff_ids":[]}})";
    std::ofstream(folder + "/manifest.json")
        << R"([{"Config":"config.json","RepoTags":)" << (named ? R"(["team/app:2.0"])" : "null")
        << R"(,"Layers":["one.tar","two.tar"]}])";
    const std::string tar = root_ + "/docker.tar";
    EXPECT_TRUE(runtime::run_checked({.argv = {"tar", "-cf", tar, "-C", folder, "."}}).ok());
    return tar;
  }

  std::string root_;
  std::unique_ptr<ImageStore> store_;
};

TEST_F(ImageStoreTest, imports_a_docker_archive_and_removes_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "device nodes need root";
  const auto images = store_->import(docker_archive(true));
  ASSERT_TRUE(images.ok()) << images.error().message();
  ASSERT_EQ(images->size(), 1u);
  const StoredImage& image = images->front();
  EXPECT_EQ(image.name, "docker.io/team/app:2.0");
  EXPECT_EQ(image.info.user_id, 1234);
  EXPECT_EQ(image.config["config"]["Cmd"][0].str(), "/bin/app");
  ASSERT_EQ(image.layers.size(), 2u);

  const std::string merged = root_ + "/merged";
  fs::create_directories(merged);
  ASSERT_TRUE(copy_layers(image.layers, merged).ok());
  EXPECT_FALSE(fs::exists(merged + "/gone"));
  EXPECT_FALSE(fs::exists(merged + "/keep/a"));
  EXPECT_TRUE(fs::exists(merged + "/keep/b"));
  EXPECT_FALSE(fs::exists(merged + "/deep/y"));
  EXPECT_TRUE(fs::exists(merged + "/deep/z"));

  EXPECT_TRUE((*store_->find("team/app:2.0")).has_value());
  EXPECT_EQ((*store_->find(image.info.id))->name, "docker.io/team/app:2.0");
  ASSERT_TRUE(store_->import(root_ + "/docker.tar", "second").ok());
  EXPECT_THAT((*store_->find(image.info.id))->info.tags,
              ElementsAre("docker.io/library/second:latest", "docker.io/team/app:2.0"));
  ASSERT_TRUE(store_->remove("team/app:2.0").ok());
  EXPECT_TRUE(fs::exists(image.layers[0]));
  ASSERT_TRUE(store_->remove("second").ok());
  EXPECT_FALSE(fs::exists(image.layers[0]));
  EXPECT_FALSE((*store_->find("second")).has_value());
  EXPECT_EQ(store_->remove("second").error().code(), Code::not_found);
}

TEST_F(ImageStoreTest, imports_an_oci_layout) {
  const std::string layout = root_ + "/layout";
  fs::create_directories(layout + "/blobs/sha256");
  const auto put = [&](const std::string& bytes) {
    const std::string digest = digest_of(bytes);
    std::ofstream(layout + "/blobs/sha256/" + digest.substr(7), std::ios::binary) << bytes;
    return digest;
  };
  std::ifstream tar(packed("layer", {{"bin/app", "x"}}), std::ios::binary);
  const std::string layer = put(std::string(std::istreambuf_iterator<char>(tar), {}));
  const std::string config = put(R"({"os":"linux","config":{"User":"app"}})");
  const std::string manifest = put(json::write(Value::object(
      {{"config", Value::object({{"mediaType", "application/vnd.oci.image.config.v1+json"},
                                 {"digest", config}})},
       {"layers", Value::array({Value::object({{"digest", layer}})})}})));
  const auto index = [&](const std::string& digest) {
    std::ofstream(layout + "/index.json") << json::write(Value::object(
        {{"manifests",
          Value::array({Value::object({{"digest", digest}}),
                        Value::object({{"digest", "sha256:of another platform"},
                                       {"platform", Value::object({{"os", "plan9"}})}})})}}));
  };
  index(manifest);
  EXPECT_THAT(store_->import(layout).error().message(), HasSubstr("does not name its image"));
  const auto images = store_->import(layout, "reg.example.com/app:1");
  ASSERT_TRUE(images.ok()) << images.error().message();
  EXPECT_EQ(images->front().image_id, "reg.example.com/app@" + manifest);
  EXPECT_EQ(images->front().info.user_name, "app");
  EXPECT_TRUE((*store_->find("reg.example.com/app@" + manifest)).has_value());

  std::ofstream(layout + "/blobs/sha256/" + layer.substr(7)) << "damaged";
  EXPECT_THAT(store_->import(layout, "x").error().message(), HasSubstr("is damaged"));
}

TEST_F(ImageStoreTest, what_is_no_image_is_refused) {
  std::ofstream(root_ + "/text") << "hello";
  EXPECT_FALSE(store_->import(root_ + "/text").ok());
  EXPECT_EQ(store_->import(root_ + "/nothing").error().code(), Code::not_found);
  EXPECT_THAT(store_->import(packed("plain", {{"a", "b"}})).error().message(),
              HasSubstr("neither a docker archive"));
}

TEST_F(ImageStoreTest, comes_with_images) {
  const auto layer = make_builtin_layer(root_ + "/store/layers");
  ASSERT_TRUE(layer.ok());
  if (!*layer) GTEST_SKIP() << "no static busybox on this machine";
  const auto found = store_->find("ubuntu:22.04");
  ASSERT_TRUE(found.ok() && found->has_value());
  const std::string bin = (*found)->layers.at(0) + "/bin/";
  for (const char* name : {"sh", "bash", "printenv", "sleep", "env", "wc"}) {
    EXPECT_TRUE(fs::exists(bin + name)) << name;
  }
  EXPECT_THAT(store_->remove("ubuntu:22.04").error().message(), HasSubstr("comes with dibs"));
  const auto all = store_->list();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), builtin_names().size());
}

TEST_F(ImageStoreTest, without_a_registry_the_error_tells_what_to_do) {
  const auto pulled = store_->pull("registry.invalid/team/app:1.0");
  ASSERT_FALSE(pulled.ok());
  EXPECT_THAT(
      pulled.error().message(),
      testing::StartsWith("failed to pull and unpack image \"registry.invalid/team/app:1.0\": "
                          "failed to resolve image: failed to do request: "));
  EXPECT_THAT(pulled.error().message(),
              HasSubstr("dibs image import FILE registry.invalid/team/app:1.0"));
}

}  // namespace
}  // namespace dibs::node
