#include "drivers/nvidia/driver_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "drivers/nvidia/cdi_edits.h"
#include "drivers/nvidia/elf_for_test.h"

namespace dibs::drivers::nvidia {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kVersion = "580.95.05";
#if defined(__aarch64__)
const std::string kDebianFolder = "/usr/lib/aarch64-linux-gnu";
#else
const std::string kDebianFolder = "/usr/lib/x86_64-linux-gnu";
#endif

/// As glibc writes it: entries, then the texts that they point to.
std::string loader_cache(const std::vector<std::pair<std::uint32_t, std::string>>& entries) {
  const auto word = [](std::string& out, std::uint32_t value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string texts;
  std::string table;
  const std::size_t begin = 48 + entries.size() * 24;
  for (const auto& [flags, path] : entries) {
    word(table, flags);
    word(table, static_cast<std::uint32_t>(begin + texts.size()));
    word(table, static_cast<std::uint32_t>(begin + texts.size()));
    word(table, 0);
    word(table, 0);
    word(table, 0);
    texts += path + '\0';
  }
  std::string out = "glibc-ld.so.cache1.1";
  word(out, static_cast<std::uint32_t>(entries.size()));
  word(out, static_cast<std::uint32_t>(texts.size()));
  out.append(48 - out.size(), '\0');
  return out + table + texts;
}

class DriverFilesTest : public testing::Test {
 protected:
  DriverFilesTest() : root_(fs::temp_directory_path() / cat("dibs-driver-files-", ::getpid())) {
    fs::remove_all(root_);
    roots_.driver = roots_.dev = roots_.proc = root_.string();
  }
  ~DriverFilesTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text = "x") {
    fs::create_directories((root_ / path.substr(1)).parent_path());
    std::ofstream(root_ / path.substr(1), std::ios::binary) << text;
  }
  void link(const std::string& target, const std::string& path) {
    fs::create_symlink(target, root_ / path.substr(1));
  }
  std::vector<DriverFile> libraries() {
    const auto found = find_libraries(files_, roots_, kVersion);
    EXPECT_TRUE(found.ok()) << found.error().message();
    return found ? *found : std::vector<DriverFile>();
  }
  /// "container path <- host file" of those that containers have below `folder`, the host's without
  /// the root.
  std::vector<std::string> libraries_in(const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& file : libraries()) {
      if (!file.container.starts_with(folder + "/")) continue;
      out.push_back(
          cat(file.container, " <- ", file.host.substr(fs::canonical(root_).string().size())));
    }
    return out;
  }
  std::vector<std::string> names_in_containers() {
    std::vector<std::string> out;
    for (const auto& file : libraries()) out.push_back(file.container);
    return out;
  }

  const fs::path root_;
  Roots roots_;
  runtime::Files& files_ = runtime::system_files();
};

TEST_F(DriverFilesTest, are_found_by_version_under_all_their_names) {
  put("/usr/lib64/libcuda.so.580.95.05");
  link("libcuda.so.580.95.05", "/usr/lib64/libcuda.so.1");
  link("libcuda.so.1", "/usr/lib64/libcuda.so");
  put("/usr/lib64/libcuda.so.570.1");
  put("/usr/lib64/libcudadebugger.so.580.95.05");
  put("/usr/lib64/libm.so.6");
  put("/usr/lib64/vdpau/libvdpau_nvidia.so.580.95.05");
  EXPECT_THAT(libraries_in("/usr/lib64"),
              ElementsAre("/usr/lib64/libcuda.so.580.95.05 <- /usr/lib64/libcuda.so.580.95.05",
                          "/usr/lib64/libcuda.so <- /usr/lib64/libcuda.so.580.95.05",
                          "/usr/lib64/libcuda.so.1 <- /usr/lib64/libcuda.so.580.95.05",
                          "/usr/lib64/libcudadebugger.so.580.95.05 <- "
                          "/usr/lib64/libcudadebugger.so.580.95.05",
                          "/usr/lib64/vdpau/libvdpau_nvidia.so.580.95.05 <- "
                          "/usr/lib64/vdpau/libvdpau_nvidia.so.580.95.05"));
}

TEST_F(DriverFilesTest, are_given_where_loaders_look_by_themselves) {
  put("/usr/local/nvidia/lib64/libcuda.so.580.95.05");
  link("libcuda.so.580.95.05", "/usr/local/nvidia/lib64/libcuda.so.1");
  EXPECT_THAT(
      names_in_containers(),
      UnorderedElementsAre("/usr/local/nvidia/lib64/libcuda.so.580.95.05",
                           "/usr/local/nvidia/lib64/libcuda.so.1",
                           kDebianFolder + "/libcuda.so.580.95.05", kDebianFolder + "/libcuda.so.1",
                           "/usr/lib64/libcuda.so.580.95.05", "/usr/lib64/libcuda.so.1"));
}

TEST_F(DriverFilesTest, are_found_where_distributions_put_them_aside) {
  put("/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.580.95.05");
  EXPECT_THAT(names_in_containers(), Contains(kDebianFolder + "/libcuda.so.580.95.05"));
}

TEST_F(DriverFilesTest, are_found_where_the_loader_finds_them) {
  put("/opt/nvidia/lib/libnvidia-ml.so.580.95.05");
  put("/opt/other/libnvidia-ml.so.570.1");
  EXPECT_THAT(find_libraries(files_, roots_, kVersion).error().message(),
              HasSubstr("--driver-root"));
  put("/etc/ld.so.cache", loader_cache({{0x0303, "/opt/nvidia/lib/libnvidia-ml.so.1"},
                                        {0x0303, "/opt/other/libnvidia-ml.so.1"}}));
  EXPECT_THAT(libraries_in("/opt/nvidia/lib"),
              ElementsAre("/opt/nvidia/lib/libnvidia-ml.so.580.95.05 <- "
                          "/opt/nvidia/lib/libnvidia-ml.so.580.95.05"));
  EXPECT_THAT(names_in_containers(), Not(Contains(HasSubstr("570"))));
}

TEST_F(DriverFilesTest, are_given_under_the_name_that_programs_ask_for) {
  put("/usr/lib64/libcuda.so.580.95.05", test::elf_library("libcuda.so.1"));
  put("/usr/lib64/libnvidia-ml.so.580.95.05", test::elf_library("libother.so.1"));
  EXPECT_THAT(
      libraries_in("/usr/lib64"),
      ElementsAre("/usr/lib64/libcuda.so.580.95.05 <- /usr/lib64/libcuda.so.580.95.05",
                  "/usr/lib64/libcuda.so.1 <- /usr/lib64/libcuda.so.580.95.05",
                  "/usr/lib64/libnvidia-ml.so.580.95.05 <- /usr/lib64/libnvidia-ml.so.580.95.05"));
}

TEST_F(DriverFilesTest, have_the_management_library_with_or_without_its_link) {
  EXPECT_EQ(find_nvml(files_, roots_), "");
  put("/usr/local/nvidia/lib64/libnvidia-ml.so.580.95.05");
  EXPECT_EQ(find_nvml(files_, roots_),
            cat(root_.string(), "/usr/local/nvidia/lib64/libnvidia-ml.so.580.95.05"));
  put("/opt/nvidia/lib/libnvidia-ml.so.1");
  put("/etc/ld.so.cache", loader_cache({{0x0303, "/opt/nvidia/lib/libnvidia-ml.so.1"}}));
  EXPECT_EQ(find_nvml(files_, roots_), cat(root_.string(), "/opt/nvidia/lib/libnvidia-ml.so.1"));
}

TEST_F(DriverFilesTest, are_not_found_twice_behind_a_link) {
  put("/lib64/libcuda.so.580.95.05");
  put("/usr/lib/other");
  link("../lib64", "/usr/lib64");
  EXPECT_THAT(names_in_containers(), UnorderedElementsAre("/usr/lib64/libcuda.so.580.95.05",
                                                          kDebianFolder + "/libcuda.so.580.95.05"));
}

TEST(LoaderCache, is_read_in_both_formats_and_never_beyond_its_end) {
  const std::string cache =
      loader_cache({{0x0303, "/a/libx.so.1"}, {0x0003, "/b/lib32.so.1"}, {0x0a03, "/c/liby.so.1"}});
  EXPECT_THAT(paths_in_loader_cache(cache), ElementsAre("/a/libx.so.1", "/c/liby.so.1"));
  std::string old = "ld.so-1.7.0";
  old.append(1, '\0');
  const std::uint32_t one = 1;
  old.append(reinterpret_cast<const char*>(&one), sizeof one);
  old.append(12 + 4, '\0');
  EXPECT_THAT(paths_in_loader_cache(old + cache), ElementsAre("/a/libx.so.1", "/c/liby.so.1"));
  for (std::size_t size = 0; size < cache.size(); ++size) {
    EXPECT_LE(paths_in_loader_cache(std::string_view(cache).substr(0, size)).size(), 2u);
  }
  std::string lying = cache;
  std::memset(lying.data() + 20, 0xff, 4);
  paths_in_loader_cache(lying);
  EXPECT_THAT(paths_in_loader_cache("nonsense"), IsEmpty());
}

TEST(ProcFiles, tell_numbers) {
  EXPECT_EQ(minor_in_access_file("DeviceFileMinor: 66\nDeviceFileMode: 292\n"), 66u);
  EXPECT_EQ(minor_in_access_file("DeviceFileMode: 292\n"), std::nullopt);
  EXPECT_EQ(minor_in_access_file("DeviceFileMinor: many\n"), std::nullopt);
  const char* devices = "Character devices:\n  1 mem\n195 nvidia\n235 nvidia-caps\n";
  EXPECT_EQ(major_of(devices, "nvidia-caps"), 235u);
  EXPECT_EQ(major_of(devices, "nvidia-caps-imex-channels"), std::nullopt);
}

class CdiEditsTest : public DriverFilesTest {
 protected:
  CdiEditsTest() {
    put("/usr/lib64/libcuda.so.580.95.05");
    put("/dev/nvidia0");
    put("/dev/nvidiactl");
    put("/dev/nvidia-uvm");
  }
  CdiEdits edits() { return {files_, {roots_, {"MORE=1"}, {"/opt/more"}}}; }

  static std::vector<std::string> paths(const cdi::ContainerEdits& edits) {
    std::vector<std::string> out;
    for (const auto& node : edits.device_nodes) out.push_back(node.path);
    return out;
  }
};

TEST_F(CdiEditsTest, give_what_every_container_needs) {
  put("/usr/bin/nvidia-smi");
  put("/run/nvidia-persistenced/socket");
  put("/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin");
  const auto common = edits().common(kVersion);
  ASSERT_TRUE(common.ok()) << common.error().message();
  EXPECT_THAT(common->env, ElementsAre("NVIDIA_VISIBLE_DEVICES=void", "MORE=1"));
  EXPECT_THAT(paths(*common), ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm"));
  EXPECT_EQ(common->device_nodes[0].host_path, cat(root_.string(), "/dev/nvidiactl"));
  std::vector<std::string> mounts;
  for (const auto& mount : common->mounts) {
    mounts.push_back(mount.container_path);
    EXPECT_EQ(mount.options.front(), "ro");
  }
  EXPECT_THAT(mounts, ElementsAre("/usr/lib64/libcuda.so.580.95.05",
                                  kDebianFolder + "/libcuda.so.580.95.05", "/usr/bin/nvidia-smi",
                                  "/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin",
                                  "/run/nvidia-persistenced/socket", "/opt/more"));
  EXPECT_TRUE(common->hooks.empty());
  EXPECT_FALSE(edits().common("1.2.3").ok());
}

TEST_F(CdiEditsTest, give_a_gpu_by_its_device_file) {
  EXPECT_THAT(paths(*edits().gpu(0)), ElementsAre("/dev/nvidia0"));
  EXPECT_THAT(edits().gpu(1).error().message(), HasSubstr("nvidia-modprobe -c 1 -u"));
}

TEST_F(CdiEditsTest, give_an_instance_by_its_capabilities) {
  EXPECT_FALSE(edits().mig(0, {1, 0}).ok());
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
  put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n");
  EXPECT_THAT(edits().mig(0, {1, 0}).error().message(), HasSubstr("nvidia-caps"));

  put("/proc/devices", "235 nvidia-caps\n");
  put("/dev/nvidia-caps/nvidia-cap13");
  const auto given = edits().mig(0, {1, 0});
  ASSERT_TRUE(given.ok()) << given.error().message();
  EXPECT_THAT(paths(*given), ElementsAre("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12",
                                         "/dev/nvidia-caps/nvidia-cap13"));
  // The machine has no file for the first: the runtime makes one by its numbers.
  EXPECT_EQ(given->device_nodes[1].type, "c");
  EXPECT_EQ(given->device_nodes[1].major, 235);
  EXPECT_EQ(given->device_nodes[1].minor, 12);
  EXPECT_EQ(given->device_nodes[1].host_path, "");
  EXPECT_THAT(given->device_nodes[2].host_path, HasSubstr("nvidia-cap13"));
}

}  // namespace
}  // namespace dibs::drivers::nvidia
