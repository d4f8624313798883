#pragma once
// What every container runtime does (runtime_contract_test.cc). A runtime's test file makes a
// RuntimeContractWorld and instantiates the suite with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>

#include "base/mutex.h"
#include "cdi/spec.h"
#include "node/runtime/container_runtime.h"
#include "runtime/real_runtime.h"

namespace dibs::node {

/// One runtime with folders of its own.
class RuntimeContractWorld {
 public:
  virtual ~RuntimeContractWorld() = default;
  virtual ContainerRuntime& containers() = 0;
  virtual std::string cdi_directory() = 0;
  virtual std::string log_directory() = 0;
  /// Whether commands are really run.
  virtual bool real() = 0;
};

/// Null: this machine cannot; the reason is in `why`.
using MakeRuntimeWorld = std::unique_ptr<RuntimeContractWorld> (*)(runtime::Runtime&,
                                                                   std::string& why);

class RuntimeContract : public testing::TestWithParam<MakeRuntimeWorld> {
 protected:
  void SetUp() override {
    std::string why;
    world_ = GetParam()(machine_.runtime(), why);
    if (!world_) GTEST_SKIP() << why;
    containers().listen([this](const RuntimeEvent& event) {
      const MutexLock lock(mutex_);
      events_.push_back(event);
      changed_.notify_all();
    });
  }

  ContainerRuntime& containers() { return world_->containers(); }

  Result<> stop(const std::string& id, Duration grace) {
    std::promise<Result<>> done;
    containers().stop_container(id, grace,
                                [&](Result<> outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }

  SandboxConfig sandbox_config() {
    SandboxConfig config;
    config.name = "pod";
    config.name_space = "default";
    config.uid = "11111111-2222-3333-4444-555555555555";
    config.hostname = "pod";
    config.log_directory = world_->log_directory();
    config.labels = {{"io.kubernetes.pod.name", "pod"}};
    config.annotations = {{"note", "kept"}};
    return config;
  }

  ContainerConfig container_config(std::vector<std::string> command) {
    ContainerConfig config;
    config.name = "c";
    auto image = containers().image_status("busybox:1.36");
    EXPECT_TRUE(image.ok() && image->has_value());
    if (image.ok() && *image) config.image = (*image)->id;
    config.command = std::move(command);
    config.env = {{"COLOUR", "blue"}};
    config.log_path = "c/0.log";
    config.labels = {{"io.kubernetes.container.name", "c"}};
    return config;
  }

  std::string run_sandbox() {
    auto id = containers().run_sandbox(sandbox_config());
    EXPECT_TRUE(id.ok()) << id.error().message();
    return id.ok() ? *id : "";
  }

  std::string start(const std::string& sandbox, const ContainerConfig& config) {
    auto id = containers().create_container(sandbox, sandbox_config(), config);
    EXPECT_TRUE(id.ok()) << id.error().message();
    if (!id.ok()) return "";
    auto started = containers().start_container(*id);
    EXPECT_TRUE(started.ok()) << started.error().message();
    return *id;
  }

  bool saw(RuntimeEvent::Kind kind, const std::string& container) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      for (const auto& event : events_) {
        if (event.kind == kind && event.container_id == container) return true;
      }
      return false;
    });
  }

  ContainerStatus ended(const std::string& id) {
    EXPECT_TRUE(saw(RuntimeEvent::Kind::stopped, id));
    auto status = containers().container_status(id);
    EXPECT_TRUE(status.ok());
    return status.ok() ? *status : ContainerStatus{};
  }

  /// Of one process.
  struct Collected {
    std::string out;
    std::optional<int> code;
  };
  /// `to` must live until the process has ended.
  ProcessOutput collect(Collected& to) {
    return {.out =
                [this, &to](std::string_view bytes) {
                  const MutexLock lock(mutex_);
                  to.out += bytes;
                },
            .err = {},
            .ended =
                [this, &to](Result<int> result) {
                  const MutexLock lock(mutex_);
                  to.code = result.ok() ? *result : -1;
                  changed_.notify_all();
                }};
  }
  bool finished(const Collected& process) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return process.code.has_value(); });
  }

  /// As a driver leaves it for the runtime.
  void write_spec(const cdi::Spec& spec) {
    std::filesystem::create_directories(world_->cdi_directory());
    std::ofstream(world_->cdi_directory() + "/vendor.yaml") << cdi::write_yaml(spec);
  }

  /// The texts of a CRI log.
  static std::string log_of(const ContainerStatus& status) {
    std::ifstream file(status.log_path);
    std::string text, line;
    while (std::getline(file, line)) {
      const auto at = line.find(" F ");
      text += at == std::string::npos ? line : line.substr(at + 3);
      text += "\n";
    }
    return text;
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<RuntimeEvent> events_;
  // Ends after all that it was asked to run, which uses the above.
  runtime::RealRuntime machine_;
  std::unique_ptr<RuntimeContractWorld> world_;
};

}  // namespace dibs::node
