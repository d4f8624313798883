#pragma once
// A runtime for tests of the streams: one pod's containers, whose processes are processes of this
// machine, without any isolation.

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/fd_stream.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

class FakeRuntime : public ContainerRuntime {
 public:
  ~FakeRuntime() override;

  /// A running container `name` of the pod's sandbox, made when it is the pod's first. Returns its
  /// id.
  std::string add(const std::string& pod_uid, const std::string& name, const std::string& log_path);
  /// Tells the listeners too.
  void stop(const std::string& container);
  /// Processes of exec and connections that have not ended.
  int running() const { return running_; }
  bool wait_for_none_running(Duration timeout);

  RuntimeVersion version() override { return {"fake", "1"}; }
  Result<> ready() override { return success(); }
  Result<std::string> run_sandbox(const SandboxConfig&) override { return unsupported(); }
  Result<> stop_sandbox(const std::string&) override { return unsupported(); }
  Result<> remove_sandbox(const std::string&) override { return unsupported(); }
  Result<SandboxStatus> sandbox_status(const std::string& id) override;
  Result<std::vector<SandboxStatus>> list_sandboxes() override;
  Result<std::string> create_container(const std::string&, const SandboxConfig&,
                                       const ContainerConfig&) override {
    return unsupported();
  }
  Result<> start_container(const std::string&) override { return unsupported(); }
  void stop_container(const std::string&, Duration, std::function<void(Result<>)> done) override {
    done(unsupported());
  }
  Result<> remove_container(const std::string&) override { return unsupported(); }
  Result<ContainerStatus> container_status(const std::string& id) override;
  Result<std::vector<ContainerStatus>> list_containers() override;
  Result<ExecResult> exec_sync(const std::string&, const std::vector<std::string>&,
                               Duration) override {
    return unsupported();
  }
  Result<std::unique_ptr<ProcessInput>> exec(const std::string& id, const ExecConfig& config,
                                             ProcessOutput output) override;
  /// A shell that says "got LINE" for each line, and "over" at the end.
  Result<std::unique_ptr<ProcessInput>> attach(const std::string& id,
                                               ProcessOutput output) override;
  /// To the port of this machine.
  Result<std::unique_ptr<StreamInput>> connect_port(const std::string& sandbox_id, int port,
                                                    PortOutput output) override;
  Result<std::optional<ImageInfo>> image_status(const std::string&) override {
    return std::optional<ImageInfo>();
  }
  Result<ImageInfo> pull_image(const std::string&, const PullLogin&) override {
    return unsupported();
  }
  Result<std::vector<ImageInfo>> list_images() override { return std::vector<ImageInfo>(); }
  Result<> remove_image(const std::string&) override { return unsupported(); }
  void listen(std::function<void(const RuntimeEvent& event)> listener) override;

 private:
  static Error unsupported() { return Error::internal("not in the fake"); }
  Result<std::unique_ptr<ProcessInput>> spawn(const ExecConfig& config, ProcessOutput output);

  Mutex mutex_;
  std::vector<SandboxStatus> sandboxes_ DIBS_GUARDED_BY(mutex_);
  std::vector<ContainerStatus> containers_ DIBS_GUARDED_BY(mutex_);
  std::vector<std::function<void(const RuntimeEvent&)>> listeners_ DIBS_GUARDED_BY(mutex_);
  CondVar changed_;
  std::atomic<int> running_ = 0;
  net::LoopThread loop_;
};

}  // namespace dibs::node
