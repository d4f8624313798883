#pragma once
// For tests: a container runtime and claims that are made of memory, and a way to end an agent
// between any two things it does.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "client/transport.h"
#include "node/plugins/pod_claims.h"
#include "node/runtime/container_runtime.h"
#include "node/runtime/image_store.h"
#include "runtime/runtime.h"

namespace dibs::node::test {

/// How many more things an agent does before it is dead: writes to the API, calls that change the
/// runtime, calls to drivers. A dead one does nothing any more, and learns nothing.
struct Budget {
  int left = -1;  // below 0: for ever
  bool dead = false;
  int used = 0;

  /// False when dead. The last one may still be done, or just not be: `after` says which.
  bool spend() {
    if (dead) return false;
    ++used;
    if (left < 0) return true;
    if (left == 0) {
      dead = true;
      return false;
    }
    --left;
    return true;
  }
};

inline Error dead_error() { return Error::unavailable("the agent is dead"); }

/// What a machine has: it outlives agents.
struct FakeMachine {
  explicit FakeMachine(runtime::Runtime& world) : runtime(world) {}

  struct Container {
    ContainerStatus status;
    ContainerConfig config;
    bool ignores_signals = false;
  };

  runtime::Runtime& runtime;
  std::map<std::string, SandboxStatus> sandboxes;
  std::string network_status;  // of new sandboxes
  std::map<std::string, Container> containers;
  std::set<std::string> images = {"busybox:1.36"};
  std::vector<ImageInfo> stored;  // as listed
  std::map<std::string, Error> pull_errors;
  std::set<std::string> stand_ins;            // images that no registry gives
  std::map<std::string, std::string> logins;  // what their registry wants to see, by image
  std::map<std::string, int> pulls;           // how often, by image
  std::map<std::string, Error> start_errors;  // by container name
  std::map<std::string, Error> update_errors = {};
  std::map<std::string, Error> create_errors;  // by container name
  /// What a container does when it is started: ends at once with this code. By name; absent: runs.
  std::map<std::string, std::vector<int>> exits;
  /// Code after a signal, by container name; default 143.
  std::map<std::string, int> signal_codes;
  std::function<ExecResult(const std::string& name, const std::vector<std::string>& command)>
      on_exec;
  std::function<void()> on_remove_image;
  std::vector<std::string> log;  // "run pod", "start c", "stop c", …
  std::vector<std::function<void(const RuntimeEvent&)>> listeners;
  int next_id = 0;

  std::vector<std::string> logins_of(const std::string& image) const {
    const auto found = logins.find(image);
    if (found == logins.end()) return {};
    return {digest_of(found->second)};
  }

  void tell(RuntimeEvent::Kind kind, const Container& container) {
    RuntimeEvent event{kind, container.status.sandbox_id, container.status.id, {}};
    const auto sandbox = sandboxes.find(container.status.sandbox_id);
    if (sandbox != sandboxes.end()) event.pod_uid = sandbox->second.uid;
    for (const auto& listener : listeners) {
      runtime.executor.post([listener, event] { listener(event); });
    }
  }
  void exit(Container& container, int code) {
    if (container.status.state == ContainerState::exited) return;
    container.status.state = ContainerState::exited;
    container.status.exit_code = code;
    container.status.reason = code == 0 ? "Completed" : "Error";
    container.status.finished = runtime.clock.now();
    tell(RuntimeEvent::Kind::stopped, container);
  }
  /// The newest container of that name that runs, or null.
  Container* find(const std::string& name) {
    Container* out = nullptr;
    for (auto& [id, container] : containers) {
      if (container.status.name == name && container.status.state == ContainerState::running) {
        out = &container;
      }
    }
    return out;
  }
  void end(const std::string& name, int code) {
    if (Container* container = find(name)) exit(*container, code);
  }
  /// As after a reboot: nothing runs.
  void reboot() {
    for (auto& [id, container] : containers) {
      if (container.status.state != ContainerState::exited) {
        container.status.state = ContainerState::exited;
        container.status.exit_code = 255;
        container.status.reason = "Unknown";
        container.status.finished = runtime.clock.now();
      }
    }
    for (auto& [id, sandbox] : sandboxes) sandbox.state = SandboxState::not_ready;
  }
};

/// An agent's hand on the machine.
class FakeRuntime : public ContainerRuntime {
 public:
  FakeRuntime(FakeMachine& machine, Budget& budget) : machine_(machine), budget_(budget) {}

  RuntimeVersion version() override { return {"fake", "1"}; }
  Result<> ready() override { return success(); }

  Result<std::string> run_sandbox(const SandboxConfig& config) override {
    if (!budget_.spend()) return dead_error();
    SandboxStatus status;
    status.id = cat("sandbox-", machine_.next_id++);
    status.state = SandboxState::ready;
    status.name = config.name;
    status.name_space = config.name_space;
    status.uid = config.uid;
    status.attempt = config.attempt;
    status.created = machine_.runtime.clock.now();
    status.ips = {cat("10.88.0.", machine_.next_id)};
    status.network_status = machine_.network_status;
    status.labels = config.labels;
    status.annotations = config.annotations;
    machine_.log.push_back(cat("run ", config.name));
    machine_.sandboxes[status.id] = status;
    return status.id;
  }
  Result<> stop_sandbox(const std::string& id) override {
    if (!budget_.spend()) return dead_error();
    const auto found = machine_.sandboxes.find(id);
    if (found == machine_.sandboxes.end()) return success();
    machine_.log.push_back(cat("stop sandbox ", found->second.name));
    for (auto& [key, container] : machine_.containers) {
      if (container.status.sandbox_id == id) machine_.exit(container, 137);
    }
    found->second.state = SandboxState::not_ready;
    return success();
  }
  Result<> remove_sandbox(const std::string& id) override {
    if (!budget_.spend()) return dead_error();
    std::erase_if(machine_.containers,
                  [&](const auto& item) { return item.second.status.sandbox_id == id; });
    machine_.sandboxes.erase(id);
    return success();
  }
  Result<SandboxStatus> sandbox_status(const std::string& id) override {
    if (budget_.dead) return dead_error();
    const auto found = machine_.sandboxes.find(id);
    if (found == machine_.sandboxes.end()) return Error::not_found("no such sandbox");
    return found->second;
  }
  Result<std::vector<SandboxStatus>> list_sandboxes() override {
    std::vector<SandboxStatus> out;
    for (const auto& [id, sandbox] : machine_.sandboxes) out.push_back(sandbox);
    return out;
  }

  Result<std::string> create_container(const std::string& sandbox_id, const SandboxConfig&,
                                       const ContainerConfig& config) override {
    if (!budget_.spend()) return dead_error();
    if (const auto found = machine_.create_errors.find(config.name);
        found != machine_.create_errors.end()) {
      return found->second;
    }
    FakeMachine::Container container;
    container.config = config;
    ContainerStatus& status = container.status;
    status.id = cat("container-", machine_.next_id++);
    status.sandbox_id = sandbox_id;
    status.name = config.name;
    status.attempt = config.attempt;
    status.state = ContainerState::created;
    status.created = machine_.runtime.clock.now();
    status.image = config.image;
    status.image_id = cat("sha256:", config.image);
    status.labels = config.labels;
    status.annotations = config.annotations;
    machine_.containers[status.id] = container;
    return status.id;
  }
  Result<> start_container(const std::string& id) override {
    if (!budget_.spend()) return dead_error();
    auto& container = machine_.containers.at(id);
    const std::string name = container.status.name;
    machine_.log.push_back(cat("start ", name, " ", container.status.attempt));
    if (const auto found = machine_.start_errors.find(name); found != machine_.start_errors.end()) {
      container.status.state = ContainerState::exited;
      container.status.exit_code = 128;
      container.status.reason = "StartError";
      container.status.message = found->second.message();
      container.status.finished = machine_.runtime.clock.now();
      return found->second;
    }
    container.status.state = ContainerState::running;
    container.status.started = machine_.runtime.clock.now();
    auto& exits = machine_.exits[name];
    if (!exits.empty()) {
      const int code = exits.front();
      if (exits.size() > 1) exits.erase(exits.begin());
      machine_.exit(container, code);
    }
    return success();
  }
  void stop_container(const std::string& id, Duration grace,
                      std::function<void(Result<>)> done) override {
    done(stop(id, grace));
  }
  Result<> stop(const std::string& id, Duration grace) {
    if (!budget_.spend()) return dead_error();
    const auto found = machine_.containers.find(id);
    if (found == machine_.containers.end()) return success();
    auto& container = found->second;
    if (container.status.state == ContainerState::exited) return success();
    machine_.log.push_back(cat("stop ", container.status.name, " ", grace.count() / 1'000'000'000));
    const auto code = machine_.signal_codes.find(container.status.name);
    machine_.exit(container, code == machine_.signal_codes.end() ? 143 : code->second);
    return success();
  }
  Result<> remove_container(const std::string& id) override {
    if (!budget_.spend()) return dead_error();
    machine_.containers.erase(id);
    return success();
  }
  Result<ContainerStatus> container_status(const std::string& id) override {
    if (budget_.dead) return dead_error();
    const auto found = machine_.containers.find(id);
    if (found == machine_.containers.end()) return Error::not_found("no such container");
    return found->second.status;
  }
  Result<std::vector<ContainerStatus>> list_containers() override {
    std::vector<ContainerStatus> out;
    for (const auto& [id, container] : machine_.containers) out.push_back(container.status);
    return out;
  }

  Result<> update_container(const std::string& id, const ContainerLimits& limits,
                            const Labels& annotations) override {
    if (!budget_.spend()) return dead_error();
    auto& container = machine_.containers.at(id);
    const std::string name = container.status.name;
    if (const auto found = machine_.update_errors.find(name);
        found != machine_.update_errors.end()) {
      return found->second;
    }
    machine_.log.push_back(cat("update ", name, " ", limits.cpu_shares, " ", limits.memory_bytes));
    for (const auto& [key, value] : annotations) container.status.annotations[key] = value;
    return success();
  }
  Result<> update_sandbox(const std::string& id, const ContainerLimits& limits,
                          const Labels& annotations) override {
    if (!budget_.spend()) return dead_error();
    auto& sandbox = machine_.sandboxes.at(id);
    machine_.log.push_back(
        cat("update pod ", sandbox.name, " ", limits.cpu_shares, " ", limits.memory_bytes));
    for (const auto& [key, value] : annotations) sandbox.annotations[key] = value;
    return success();
  }

  Result<ExecResult> exec_sync(const std::string& id, const std::vector<std::string>& command,
                               Duration) override {
    if (budget_.dead) return dead_error();
    const auto found = machine_.containers.find(id);
    if (found == machine_.containers.end()) return Error::not_found("no such container");
    machine_.log.push_back(cat("exec ", found->second.status.name, " ", join(command, " ")));
    if (machine_.on_exec) return machine_.on_exec(found->second.status.name, command);
    return ExecResult{};
  }
  Result<std::unique_ptr<ProcessInput>> exec(const std::string&, const ExecConfig&,
                                             ProcessOutput) override {
    return Error::internal("not here");
  }
  Result<std::unique_ptr<ProcessInput>> attach(const std::string&, ProcessOutput) override {
    return Error::internal("not here");
  }
  Result<std::unique_ptr<StreamInput>> connect_port(const std::string&, int, PortOutput) override {
    return Error::internal("not here");
  }

  Result<std::optional<ImageInfo>> image_status(const std::string& image) override {
    if (!machine_.images.contains(image)) return std::optional<ImageInfo>();
    ImageInfo info;
    info.id = image;
    info.logins = machine_.logins_of(image);
    return std::optional<ImageInfo>(info);
  }
  Result<ImageInfo> pull_image(const std::string& image, const PullLogin& login) override {
    if (const auto found = machine_.pull_errors.find(image); found != machine_.pull_errors.end()) {
      return found->second;
    }
    ++machine_.pulls[image];
    if (const auto wanted = machine_.logins.find(image);
        wanted != machine_.logins.end() && wanted->second != login.auth) {
      return Error::invalid("unauthorized");
    }
    machine_.images.insert(image);
    ImageInfo info;
    info.id = image;
    info.size = 7;
    info.logins = machine_.logins_of(image);
    if (machine_.stand_ins.contains(image)) info.stands_in_because = "nobody answers";
    return info;
  }
  Result<std::vector<ImageInfo>> list_images() override { return machine_.stored; }
  Result<> remove_image(const std::string& image) override {
    machine_.images.erase(image);
    if (machine_.on_remove_image) machine_.on_remove_image();
    std::erase_if(machine_.stored, [&](const ImageInfo& stored) { return stored.id == image; });
    return success();
  }
  void listen(std::function<void(const RuntimeEvent& event)> listener) override {
    machine_.listeners.push_back(std::move(listener));
  }

 private:
  FakeMachine& machine_;
  Budget& budget_;
};

/// What drivers have prepared: it outlives agents, as the checkpoint does.
struct FakeDrivers {
  std::map<std::string, int> prepared;  // by pod uid: how often without an unprepare
  int most = 0;                         // prepares of one pod at once
  std::vector<std::string> log;
  std::optional<Error> prepare_error;
  std::optional<Error> unprepare_error;
  int unprepare_tries = 0;
  ContainerDevices devices;  // of every container
};

class FakeClaims : public PodClaims {
 public:
  FakeClaims(FakeDrivers& drivers, Budget& budget, FakeMachine& machine)
      : drivers_(drivers), budget_(budget), machine_(machine) {}

  Result<> prepare(const json::Value& pod) override {
    if (pod["spec"]["resourceClaims"].empty()) return success();
    if (!budget_.spend()) return dead_error();
    if (drivers_.prepare_error) return *drivers_.prepare_error;
    const std::string uid = pod["metadata"]["uid"].str();
    // As the claim cache does: a claim that is prepared is not sent again.
    if (drivers_.prepared[uid] > 0) return success();
    ++drivers_.prepared[uid];
    drivers_.log.push_back(cat("prepare ", pod["metadata"]["name"].as_string()));
    machine_.log.push_back(drivers_.log.back());
    return success();
  }
  Result<> unprepare(const json::Value& pod) override {
    const std::string uid = pod["metadata"]["uid"].str();
    if (!drivers_.prepared.contains(uid)) return success();
    if (!budget_.spend()) return dead_error();
    ++drivers_.unprepare_tries;
    if (drivers_.unprepare_error) return *drivers_.unprepare_error;
    drivers_.prepared.erase(uid);
    drivers_.log.push_back(cat("unprepare ", pod["metadata"]["name"].as_string()));
    machine_.log.push_back(drivers_.log.back());
    return success();
  }
  Result<ContainerDevices> devices_of(const json::Value&, std::string_view) override {
    return drivers_.devices;
  }
  bool holds(std::string_view pod_uid) override {
    return drivers_.prepared.contains(std::string(pod_uid));
  }
  json::Value health_of(const json::Value&, std::string_view) override { return {}; }
  void on_health_change(std::function<void(const std::string&)>) override {}

 private:
  FakeDrivers& drivers_;
  Budget& budget_;
  FakeMachine& machine_;
};

/// A way to the API that ends with the agent: writes count, and a dead agent hears nothing.
class MortalTransport : public client::Transport {
 public:
  MortalTransport(client::Transport& inner, Budget& budget) : inner_(inner), budget_(budget) {}

  Result<client::Response> send(client::Request request) override {
    if (!may(request)) return dead_error();
    return inner_.send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (!may(request)) return;  // nobody waits for the answer any more
    inner_.send_async(std::move(request),
                      [this, done = std::move(done)](Result<client::Response> answer) {
                        if (!budget_.dead) done(std::move(answer));
                      });
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

 private:
  bool may(const client::Request& request) {
    if (request.method == "GET") return !budget_.dead;
    // Events change nothing that the agent comes back to.
    if (request.target.find("/events") != std::string::npos) return !budget_.dead;
    return budget_.spend();
  }

  client::Transport& inner_;
  Budget& budget_;
};

}  // namespace dibs::node::test
