#pragma once
// Real containers for tests, where the machine has what they take.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "node/runtime/oci_runtime.h"
#include "node/runtime/runtime_contract_test.h"

namespace dibs::node {

// Images are made once for all tests.
inline std::string image_folder() {
  static const std::string folder = testing::TempDir() + "dibs-test-images";
  return folder;
}

class OciWorld : public RuntimeContractWorld {
 public:
  explicit OciWorld(runtime::Runtime& machine) : machine_(machine) {
    std::string pattern = testing::TempDir() + "oci.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~OciWorld() override {
    const auto left = containers_->list_sandboxes();
    for (const auto& sandbox : *left) {
      (void)containers_->remove_sandbox(sandbox.id).ok();
    }
    containers_.reset();
    remove_machine_network(options("").network);
    std::filesystem::remove_all(oci_run_folder(root_ + "/runtime"));
    std::filesystem::remove_all(root_);
  }

  OciOptions options(const std::string& boot_id) {
    OciOptions options;
    options.root = root_ + "/runtime";
    options.images = image_folder();
    options.image_options.aliases = *builtin_aliases({"busybox", "ubuntu", "127.0.0.1:1/team/app"});
    options.cdi_directories = {cdi_directory()};
    options.program = missing_for_oci("crun").empty() ? "crun" : "runc";
    options.network.name = root_;
    options.network.state = root_ + "/net";
    options.network.config_folder = root_ + "/no-cni";
    options.boot_id = boot_id;
    return options;
  }
  Result<> open(const std::string& boot_id = "") {
    containers_.reset();
    DIBS_TRY(containers_, OciRuntime::open(options(boot_id), machine_));
    return containers_->ready();
  }
  void close() { containers_.reset(); }
  ContainerRuntime& containers() override { return *containers_; }
  std::string cdi_directory() override { return root_ + "/cdi"; }
  std::string log_directory() override { return root_ + "/logs"; }
  bool real() override { return true; }
  const std::string& root() const { return root_; }

 private:
  runtime::Runtime& machine_;
  std::string root_;
  std::unique_ptr<OciRuntime> containers_;
};

inline std::unique_ptr<RuntimeContractWorld> make_oci_world(runtime::Runtime& machine,
                                                            std::string& why) {
  why = missing_for_oci("runc");
  if (!why.empty() && missing_for_oci("crun").empty()) why.clear();
  if (!why.empty()) return nullptr;
  auto world = std::make_unique<OciWorld>(machine);
  auto opened = world->open();
  if (opened.ok()) return world;
  why = opened.error().message();
  return nullptr;
}

class OciRuntimeTest : public RuntimeContract {
 protected:
  OciWorld& world() { return static_cast<OciWorld&>(*world_); }
  std::string exec(const std::string& id, const std::string& script) {
    auto result = containers().exec_sync(id, {"sh", "-c", script}, std::chrono::seconds(20));
    EXPECT_TRUE(result.ok()) << result.error().message();
    return result.ok() ? result->out + result->err : "";
  }
};

}  // namespace dibs::node
