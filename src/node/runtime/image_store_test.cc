#include "node/runtime/image_store.h"

#include <sys/mount.h>
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
    std::ofstream(folder + "/config.json")
        << R"({"os":"linux","config":{"User":"1234:55","Cmd":["/bin/app"]},"rootfs":)"
        << R"({"type":"layers","diff_ids":[")" << *digest_of_file(folder + "/one.tar") << R"(",")"
        << *digest_of_file(folder + "/two.tar") << R"("]}})";
    std::ofstream(folder + "/manifest.json")
        << R"([{"Config":"config.json","RepoTags":)" << (named ? R"(["team/app:2.0"])" : "null")
        << R"(,"Layers":["one.tar","two.tar"]}])";
    const std::string tar = root_ + "/docker.tar";
    EXPECT_TRUE(runtime::run_checked({.argv = {"tar", "-cf", tar, "-C", folder, "."}}).ok());
    return tar;
  }

  // A docker archive of one layer under a diff_id of the caller's choice.
  std::string archive_of(const std::string& layer_file, const std::string& diff_id) {
    const std::string folder = root_ + "/one-layer";
    fs::remove_all(folder);
    fs::create_directories(folder);
    fs::copy_file(layer_file, folder + "/layer.tar");
    std::ofstream(folder + "/config.json")
        << R"({"os":"linux","rootfs":{"type":"layers","diff_ids":[")" << diff_id << R"("]}})";
    std::ofstream(folder + "/manifest.json")
        << R"([{"Config":"config.json","RepoTags":["a:1"],"Layers":["layer.tar"]}])";
    const std::string tar = root_ + "/one-layer.tar";
    EXPECT_TRUE(runtime::run_checked({.argv = {"tar", "-cf", tar, "-C", folder, "."}}).ok());
    return tar;
  }

  std::string root_;
  std::unique_ptr<ImageStore> store_;
};

TEST_F(ImageStoreTest, a_layer_that_is_not_its_diff_id_is_refused) {
  const std::string honest = packed("honest", {{"etc/secret", "of the honest image"}});
  const std::string diff_id = *digest_of_file(honest);
  const std::string other = packed("other", {{"bin/sh", "evil"}});

  const auto forged = store_->import(archive_of(other, diff_id));
  ASSERT_FALSE(forged.ok());
  EXPECT_THAT(forged.error().message(), HasSubstr("is not what the image says"));
  EXPECT_FALSE(fs::exists(root_ + "/store/layers/" + diff_id.substr(7)));

  // Nor does a claim alone open what another image brought.
  ASSERT_TRUE(store_->import(archive_of(honest, diff_id)).ok());
  EXPECT_FALSE(store_->import(archive_of(other, diff_id), "thief").ok());
  EXPECT_FALSE((*store_->find("thief")).has_value());
}

TEST_F(ImageStoreTest, an_image_whose_name_another_took_can_be_removed) {
  const std::string first = packed("first", {{"a", "1"}});
  const std::string second = packed("second", {{"a", "2"}});
  const auto old = store_->import(archive_of(first, *digest_of_file(first)));
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(store_->import(archive_of(second, *digest_of_file(second))).ok());
  ASSERT_EQ(store_->list()->size(), 2u);
  ASSERT_TRUE(store_->remove(old->front().info.id).ok());
  EXPECT_EQ(store_->list()->size(), 1u);
  EXPECT_FALSE(fs::exists(old->front().layers.at(0)));
  EXPECT_TRUE((*store_->find("a:1")).has_value());
}

TEST_F(ImageStoreTest, a_packed_layer_is_checked_by_what_is_in_it) {
  const std::string tar = packed("zipped", {{"a", "1"}});
  const std::string diff_id = *digest_of_file(tar);
  ASSERT_TRUE(runtime::run_checked({.argv = {"gzip", "-k", tar}}).ok());
  const auto images = store_->import(archive_of(tar + ".gz", diff_id));
  ASSERT_TRUE(images.ok()) << images.error().message();
  EXPECT_TRUE(fs::exists(images->front().layers.at(0) + "/a"));
}

TEST_F(ImageStoreTest, a_small_layer_cannot_fill_the_disk) {
  const std::string disk = root_ + "/disk";
  fs::create_directories(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64m") != 0) GTEST_SKIP() << "cannot mount";
  const std::string tar = packed("large", {{"zeros", std::string(100 << 20, '\0')}});
  const std::string diff_id = *digest_of_file(tar);
  ASSERT_TRUE(runtime::run_checked({.argv = {"gzip", "-1", tar}}).ok());
  ImageStore store(disk + "/store");
  const auto refused = store.import(archive_of(tar + ".gz", diff_id));
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("no room on the disk"));
  EXPECT_GT(fs::space(disk).available, 60u << 20);
  ::umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(ImageStoreTest, deletion_marks_that_climb_are_refused) {
  for (const char* mark : {"a/.wh...", "a/.wh..", "a/.wh.", ".wh..."}) {
    const std::string tar = packed("climb", {{mark, ""}, {"b", "1"}});
    fs::remove_all(root_ + "/files-climb");
    const auto refused = store_->import(archive_of(tar, *digest_of_file(tar)));
    ASSERT_FALSE(refused.ok()) << mark;
    EXPECT_THAT(refused.error().message(), HasSubstr("would delete outside of its folder")) << mark;
    EXPECT_TRUE(fs::exists(root_ + "/store")) << mark;
  }
}

TEST_F(ImageStoreTest, links_out_of_an_archive_are_not_followed) {
  const std::string tar = packed("plain-layer", {{"a", "1"}});
  archive_of(tar, *digest_of_file(tar));
  fs::copy_file(root_ + "/one-layer/config.json", root_ + "/outside.json");
  fs::remove(root_ + "/one-layer/config.json");
  fs::create_symlink(root_ + "/outside.json", root_ + "/one-layer/config.json");
  EXPECT_THAT(store_->import(root_ + "/one-layer").error().message(), HasSubstr("holds no file"));
}

// A pipe never ends, and would be read for ever.
TEST_F(ImageStoreTest, what_is_not_a_file_is_not_read) {
  const std::string layout = root_ + "/layout";
  fs::create_directories(layout + "/blobs/sha256");
  const std::string digest(64, 'a');
  ASSERT_EQ(::mkfifo((layout + "/blobs/sha256/" + digest).c_str(), 0600), 0);
  std::ofstream(layout + "/index.json")
      << R"({"manifests":[{"digest":"sha256:)" << digest << "\"}]}";
  EXPECT_THAT(store_->import(layout, "x").error().message(), HasSubstr("holds no file"));
  fs::remove(layout + "/index.json");
  ASSERT_EQ(::mkfifo((layout + "/index.json").c_str(), 0600), 0);
  EXPECT_THAT(store_->import(layout, "x").error().message(), HasSubstr("holds no file"));
}

TEST_F(ImageStoreTest, indexes_that_multiply_are_refused) {
  const std::string layout = root_ + "/layout";
  fs::create_directories(layout + "/blobs/sha256");
  std::string index = R"({"manifests":[]})";
  for (int level = 0; level < 4; ++level) {
    const std::string digest = digest_of(index);
    std::ofstream(layout + "/blobs/sha256/" + digest.substr(7)) << index;
    const std::string one = cat(R"({"digest":")", digest, "\"}");
    index = R"({"manifests":[)" + one;
    for (int i = 1; i < 50; ++i) index += "," + one;
    index += "]}";
  }
  std::ofstream(layout + "/index.json") << index;
  EXPECT_THAT(store_->import(layout, "x").error().message(), HasSubstr("too many manifests"));
}

TEST_F(ImageStoreTest, a_description_has_a_bound) {
  const std::string layout = root_ + "/layout";
  fs::create_directories(layout);
  std::ofstream(layout + "/index.json") << "{}";
  fs::resize_file(layout + "/index.json", 9 << 20);
  EXPECT_EQ(store_->import(layout, "x").error().code(), Code::too_large);
}

TEST_F(ImageStoreTest, a_record_counts_only_where_it_lies) {
  const std::string tar = packed("plain-layer", {{"a", "1"}});
  const auto images = store_->import(archive_of(tar, *digest_of_file(tar)));
  ASSERT_TRUE(images.ok()) << images.error().message();
  const std::string id = images->front().info.id;
  const std::string file = cat(root_, "/store/images/", id.substr(7), ".json");
  for (const std::string& text :
       {std::string("{}"), std::string("1"), cat(R"({"id":")", id, R"(","layers":["../.."]})"),
        cat(R"({"id":")", id, R"(","layers":[""]})")}) {
    std::ofstream(file) << text;
    const auto found = store_->find("a:1");
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->has_value()) << text;
    EXPECT_TRUE(store_->remove(id).ok()) << text;
    EXPECT_TRUE(fs::exists(root_ + "/store/layers")) << text;
    ASSERT_TRUE(store_->import(root_ + "/one-layer.tar").ok()) << text;
    EXPECT_TRUE((*store_->find("a:1")).has_value()) << text;
  }
}

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

  EXPECT_EQ(fs::status(root_ + "/store/layers").permissions(), fs::perms::owner_all);
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
  const std::string config = put(
      cat(R"({"os":"linux","config":{"User":"app"},"rootfs":{"diff_ids":[")", layer, R"("]}})"));
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
  ImageStore aliased(root_ + "/store", {.aliases = *builtin_aliases({"ubuntu", "team/app:2"})});
  const auto found = aliased.find("ubuntu:22.04");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->image_id, "dibs.dev/built-in@" + (*found)->info.id);
  EXPECT_EQ((*found)->origin, ImageOrigin::builtin);
  EXPECT_TRUE((*aliased.find("team/app:2")).has_value());
  EXPECT_FALSE((*aliased.find("team/app:3")).has_value());
  EXPECT_FALSE((*aliased.find("busybox:1.36")).has_value());
  EXPECT_TRUE((*aliased.find("dibs.dev/built-in")).has_value());
  const std::string bin = (*found)->layers.at(0) + "/bin/";
  for (const char* name : {"sh", "bash", "printenv", "sleep", "env", "wc"}) {
    EXPECT_TRUE(fs::exists(bin + name)) << name;
  }
  EXPECT_THAT(store_->remove("ubuntu:22.04").error().message(), HasSubstr("comes with dibs"));
  EXPECT_EQ(aliased.list()->size(), 5u);
  EXPECT_FALSE(builtin_aliases({"Not A Name"}).ok());
}

TEST_F(ImageStoreTest, the_built_in_image_stands_in_for_known_names_only) {
  const auto layer = make_builtin_layer(root_ + "/store/layers");
  if (!layer.ok() || !*layer) GTEST_SKIP() << "no static busybox on this machine";
  EXPECT_FALSE((*store_->find("busybox:1.36")).has_value());
  EXPECT_TRUE(store_->list()->empty());
  const auto found = store_->stand_in("busybox:1.36");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*store_->find((*found)->info.id))->name, "docker.io/library/busybox:1.36");
  EXPECT_FALSE((*store_->stand_in("team/app:2")).has_value());

  const std::string tar = packed("real", {{"a", "1"}});
  ASSERT_TRUE(store_->import(archive_of(tar, *digest_of_file(tar)), "busybox:1.36").ok());
  EXPECT_FALSE((*store_->stand_in("busybox:1.36")).has_value());
}

TEST_F(ImageStoreTest, without_a_registry_the_error_tells_what_to_do) {
  const auto pulled = store_->pull("registry.invalid/team/app:1.0");
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code(), Code::unavailable);
  EXPECT_THAT(
      pulled.error().message(),
      testing::StartsWith("failed to pull and unpack image \"registry.invalid/team/app:1.0\": "
                          "failed to resolve image: failed to do request: "));
  EXPECT_THAT(pulled.error().message(),
              HasSubstr("dibs image import FILE registry.invalid/team/app:1.0"));
}

}  // namespace
}  // namespace dibs::node
