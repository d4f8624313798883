#include "node/runtime/sim_containers.h"

#include <atomic>
#include <fstream>

#include "base/image_reference.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "cdi/annotations.h"
#include "cdi/cache.h"
#include "node/runtime/image_store.h"
#include "node/runtime/sim_script.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

using runtime::TimerId;

struct SimContainer {
  ContainerStatus status;
  SimScript script;
  SimEnv env;
  std::string pod_uid;
  std::string start_error;
  TimerId timer = 0;
  TimerId grace = 0;  // until it is killed
  Time ends;          // then
  std::vector<std::function<void(Result<>)>> stopping;
  std::vector<std::function<void(Result<int>)>> attached;
};

struct SimSandbox {
  SandboxStatus status;
  Labels annotations;  // of the pod
  std::string log_directory;
};

// Shared with timers and posted tasks, which may outlive the object.
struct SimState {
  explicit SimState(runtime::Runtime& given) : machine(given) {}

  runtime::Runtime& machine;
  Mutex mutex;
  std::map<std::string, SimSandbox> sandboxes DIBS_GUARDED_BY(mutex);
  std::map<std::string, SimContainer> containers DIBS_GUARDED_BY(mutex);
  std::map<std::string, std::string> images DIBS_GUARDED_BY(mutex);  // names by id
  std::vector<std::function<void(const RuntimeEvent&)>> listeners DIBS_GUARDED_BY(mutex);

  void tell(RuntimeEvent event) {
    std::vector<std::function<void(const RuntimeEvent&)>> all;
    {
      const MutexLock lock(mutex);
      all = listeners;
    }
    if (all.empty()) return;
    machine.executor.post([all = std::move(all), event = std::move(event)] {
      for (const auto& listener : all) listener(event);
    });
  }

  void end(const std::string& id, int code) {
    RuntimeEvent event{RuntimeEvent::Kind::stopped, "", id, ""};
    std::vector<std::function<void(Result<int>)>> attached;
    std::vector<std::function<void(Result<>)>> stopping;
    {
      const MutexLock lock(mutex);
      const auto found = containers.find(id);
      if (found == containers.end()) return;
      SimContainer& container = found->second;
      if (container.status.state == ContainerState::exited) return;
      if (container.timer != 0) machine.timers.cancel(container.timer);
      if (container.grace != 0) machine.timers.cancel(container.grace);
      container.timer = container.grace = 0;
      container.status.state = ContainerState::exited;
      container.status.finished = machine.clock.now();
      container.status.exit_code = code;
      container.status.reason = code == 0 ? "Completed" : "Error";
      event.sandbox_id = container.status.sandbox_id;
      event.pod_uid = container.pod_uid;
      attached.swap(container.attached);
      stopping.swap(container.stopping);
    }
    for (auto& done : stopping) machine.executor.post([done] { done(success()); });
    for (auto& ended : attached) machine.executor.post([ended, code] { ended(code); });
    tell(std::move(event));
  }
};

std::string annotation(const Labels& annotations, std::string_view name,
                       const std::string& container) {
  for (const std::string& key : {cat("dibs.dev/", name, ".", container), cat("dibs.dev/", name)}) {
    if (const auto found = annotations.find(key); found != annotations.end()) return found->second;
  }
  return "";
}

// Ends with the script's time, which begins when this is made.
class SimInput : public ProcessInput {
 public:
  SimInput(std::shared_ptr<SimState> state, TimerId timer)
      : state_(std::move(state)), timer_(timer) {}
  ~SimInput() override {
    if (timer_ != 0) state_->machine.timers.cancel(timer_);
  }
  void write(std::string_view) override {}
  std::size_t queued() const override { return 0; }
  void close() override {}
  void hold(bool) override {}
  void abandon() override {}
  void resize(TerminalSize) override {}

 private:
  std::shared_ptr<SimState> state_;
  TimerId timer_;
};

Error no_container(const std::string& id) {
  return Error::not_found(
      cat("an error occurred when try to find container ", quoted(id), ": not found"));
}

class SimContainers : public ContainerRuntime {
 public:
  SimContainers(const SimContainersOptions& options, runtime::Runtime& machine)
      : state_(std::make_shared<SimState>(machine)),
        write_logs_(options.write_logs),
        addresses_(options.addresses != nullptr ? *options.addresses : own_addresses_),
        cdi_(options.cdi_directories.empty()
                 ? std::vector<std::string>{cdi::kStaticDirectory, cdi::kDynamicDirectory}
                 : options.cdi_directories,
             cdi::host_node, options.cdi_newest) {}

  ~SimContainers() override {
    const MutexLock lock(state_->mutex);
    for (const auto& [id, container] : state_->containers) {
      if (container.timer != 0) state_->machine.timers.cancel(container.timer);
      if (container.grace != 0) state_->machine.timers.cancel(container.grace);
    }
  }

  RuntimeVersion version() override { return {"dibs-sim", "0.1.0"}; }
  Result<> ready() override { return success(); }
  bool outlives_agent() const override { return false; }

  Result<std::string> run_sandbox(const SandboxConfig& config) override {
    SimSandbox sandbox;
    SandboxStatus& status = sandbox.status;
    status.id = new_id();
    status.state = SandboxState::ready;
    status.name = config.name;
    status.name_space = config.name_space;
    status.uid = config.uid;
    status.attempt = config.attempt;
    status.created = state_->machine.clock.now();
    if (!config.host_network) status.ips = {next_address()};
    status.labels = config.labels;
    status.annotations = config.annotations;
    sandbox.annotations = config.annotations;
    sandbox.log_directory = config.log_directory;
    const std::string id = status.id;
    {
      const MutexLock lock(state_->mutex);
      state_->sandboxes.emplace(id, std::move(sandbox));
    }
    state_->tell({RuntimeEvent::Kind::started, id, "", config.uid});
    return id;
  }

  Result<> stop_sandbox(const std::string& id) override {
    std::string uid;
    std::vector<std::string> running;
    {
      const MutexLock lock(state_->mutex);
      const auto found = state_->sandboxes.find(id);
      if (found == state_->sandboxes.end()) return success();
      for (const auto& [container_id, container] : state_->containers) {
        if (container.status.sandbox_id == id) running.push_back(container_id);
      }
      SandboxStatus& status = found->second.status;
      if (status.state == SandboxState::ready) uid = status.uid;
      status.state = SandboxState::not_ready;
      status.ips.clear();
    }
    for (const auto& container : running) state_->end(container, 137);
    if (!uid.empty()) state_->tell({RuntimeEvent::Kind::stopped, id, "", uid});
    return success();
  }

  Result<> remove_sandbox(const std::string& id) override {
    DIBS_CHECK(stop_sandbox(id));
    std::string uid;
    {
      const MutexLock lock(state_->mutex);
      const auto found = state_->sandboxes.find(id);
      if (found == state_->sandboxes.end()) return success();
      uid = found->second.status.uid;
      state_->sandboxes.erase(found);
      std::erase_if(state_->containers,
                    [&](const auto& entry) { return entry.second.status.sandbox_id == id; });
    }
    state_->tell({RuntimeEvent::Kind::removed, id, "", uid});
    return success();
  }

  Result<SandboxStatus> sandbox_status(const std::string& id) override {
    const MutexLock lock(state_->mutex);
    const auto found = state_->sandboxes.find(id);
    if (found == state_->sandboxes.end()) {
      return Error::not_found(cat("sandbox ", quoted(id), " is not found"));
    }
    return found->second.status;
  }

  Result<std::vector<SandboxStatus>> list_sandboxes() override {
    const MutexLock lock(state_->mutex);
    std::vector<SandboxStatus> list;
    for (const auto& [id, sandbox] : state_->sandboxes) list.push_back(sandbox.status);
    return list;
  }

  Result<std::string> create_container(const std::string& sandbox_id, const SandboxConfig& sandbox,
                                       const ContainerConfig& config) override {
    SimContainer container;
    DIBS_TRY(const auto devices,
             cdi::with_annotated_devices(config.cdi_devices, config.annotations));
    auto edits = cdi_.edits(devices);
    if (!edits.ok()) return edits.error().within("CDI device injection failed");
    container.env = config.env;
    if (!sandbox.hostname.empty()) container.env.emplace_back("HOSTNAME", sandbox.hostname);
    for (const auto& entry : edits->env) {
      const auto equals = entry.find('=');
      set_env(container.env, entry.substr(0, equals), entry.substr(equals + 1));
    }
    std::vector<std::string> words = config.command;
    words.insert(words.end(), config.args.begin(), config.args.end());
    container.script = read_script(words, container.env, false);

    const MutexLock lock(state_->mutex);
    const auto found = state_->sandboxes.find(sandbox_id);
    if (found == state_->sandboxes.end()) {
      return Error::not_found(cat("failed to find sandbox id ", quoted(sandbox_id), ": not found"));
    }
    if (found->second.status.state != SandboxState::ready) {
      return Error::conflict(cat("sandbox ", quoted(sandbox_id), " is not running"));
    }
    DIBS_CHECK(obey(found->second.annotations, config.name, container));
    ContainerStatus& status = container.status;
    status.id = new_id();
    status.sandbox_id = sandbox_id;
    status.name = config.name;
    status.attempt = config.attempt;
    status.state = ContainerState::created;
    status.created = state_->machine.clock.now();
    const auto image = state_->images.find(config.image);
    status.image = image != state_->images.end() ? image->second : config.image;
    status.image_id = config.image;
    if (!config.log_path.empty() && !found->second.log_directory.empty()) {
      status.log_path = cat(found->second.log_directory, '/', config.log_path);
    }
    status.labels = config.labels;
    status.annotations = config.annotations;
    container.pod_uid = found->second.status.uid;
    const std::string id = status.id;
    state_->containers.emplace(id, std::move(container));
    return id;
  }

  Result<> update_container(const std::string& id, const ContainerLimits& /*limits*/,
                            const Labels& annotations) override {
    const MutexLock lock(state_->mutex);
    const auto found = state_->containers.find(id);
    if (found == state_->containers.end()) return no_container(id);
    ContainerStatus& status = found->second.status;
    if (status.state != ContainerState::running) {
      return Error::conflict(cat("container ", quoted(id), " is not running"));
    }
    for (const auto& [key, value] : annotations) status.annotations[key] = value;
    return success();
  }

  Result<> update_sandbox(const std::string& id, const ContainerLimits& /*limits*/,
                          const Labels& annotations) override {
    const MutexLock lock(state_->mutex);
    const auto found = state_->sandboxes.find(id);
    if (found == state_->sandboxes.end()) {
      return Error::not_found(cat("sandbox ", quoted(id), " is not found"));
    }
    for (const auto& [key, value] : annotations) found->second.status.annotations[key] = value;
    return success();
  }

  Result<> start_container(const std::string& id) override {
    RuntimeEvent event{RuntimeEvent::Kind::started, "", id, ""};
    std::optional<Error> failed;
    std::string log_path, out, err;
    {
      const MutexLock lock(state_->mutex);
      const auto found = state_->containers.find(id);
      if (found == state_->containers.end()) return no_container(id);
      SimContainer& container = found->second;
      ContainerStatus& status = container.status;
      if (status.state == ContainerState::running) return success();
      if (status.state != ContainerState::created) {
        return Error::conflict(cat("container ", quoted(id), " is not in created state"));
      }
      event.sandbox_id = status.sandbox_id;
      event.pod_uid = container.pod_uid;
      if (!container.start_error.empty()) {
        status.state = ContainerState::exited;
        status.exit_code = 128;
        status.reason = "StartError";
        status.message = container.start_error;
        status.finished = state_->machine.clock.now();
        failed = Error::internal(container.start_error);
        event.kind = RuntimeEvent::Kind::stopped;
      } else {
        status.state = ContainerState::running;
        status.started = state_->machine.clock.now();
        log_path = status.log_path;
        out = std::move(container.script.out);
        err = std::move(container.script.err);
        if (!container.script.endless) {
          const int code = container.script.exit_code;
          container.timer = state_->machine.timers.after(container.script.run,
                                                         [weak = std::weak_ptr(state_), id, code] {
                                                           if (const auto state = weak.lock())
                                                             state->end(id, code);
                                                         });
        }
      }
    }
    if (!failed && write_logs_ && !log_path.empty()) write_log(log_path, out, err);
    state_->tell(std::move(event));
    if (failed) return *failed;
    return success();
  }

  void stop_container(const std::string& id, Duration grace,
                      std::function<void(Result<>)> done) override {
    int code = grace > Duration::zero() ? 143 : 137;
    {
      const MutexLock lock(state_->mutex);
      const auto found = state_->containers.find(id);
      const bool known = found != state_->containers.end();
      if (known && found->second.script.graceful && grace > Duration::zero()) code = 0;
      if (known && found->second.script.deaf && grace > Duration::zero() &&
          found->second.status.state == ContainerState::running) {
        return await_end(id, found->second, grace, std::move(done));
      }
    }
    state_->end(id, code);
    done(success());
  }

  /// The shortest grace that was given holds.
  void await_end(const std::string& id, SimContainer& container, Duration grace,
                 std::function<void(Result<>)> done) DIBS_REQUIRES(state_->mutex) {
    const Time ends = state_->machine.clock.now() + grace;
    container.stopping.push_back(std::move(done));
    if (container.grace != 0 && container.ends <= ends) return;
    if (container.grace != 0) state_->machine.timers.cancel(container.grace);
    container.ends = ends;
    container.grace = state_->machine.timers.after(grace, [weak = std::weak_ptr(state_), id] {
      if (const auto state = weak.lock()) state->end(id, 137);
    });
  }

  Result<> remove_container(const std::string& id) override {
    state_->end(id, 137);
    RuntimeEvent event{RuntimeEvent::Kind::removed, "", id, ""};
    {
      const MutexLock lock(state_->mutex);
      const auto found = state_->containers.find(id);
      if (found == state_->containers.end()) return success();
      event.sandbox_id = found->second.status.sandbox_id;
      event.pod_uid = found->second.pod_uid;
      state_->containers.erase(found);
    }
    state_->tell(std::move(event));
    return success();
  }

  Result<ContainerStatus> container_status(const std::string& id) override {
    const MutexLock lock(state_->mutex);
    const auto found = state_->containers.find(id);
    if (found == state_->containers.end()) return no_container(id);
    return found->second.status;
  }

  Result<std::vector<ContainerStatus>> list_containers() override {
    const MutexLock lock(state_->mutex);
    std::vector<ContainerStatus> list;
    for (const auto& [id, container] : state_->containers) list.push_back(container.status);
    return list;
  }

  Result<ExecResult> exec_sync(const std::string& id, const std::vector<std::string>& command,
                               Duration timeout) override {
    DIBS_TRY(const SimScript script, script_in(id, command));
    // Time cannot pass in here: a command that takes longer than it may has timed out.
    if (timeout > Duration::zero() && script.run >= timeout) {
      return Error::timeout(cat("command ", quoted(join(command, " ")), " timed out"));
    }
    return ExecResult{script.out, script.err, script.exit_code};
  }

  Result<std::unique_ptr<ProcessInput>> exec(const std::string& id, const ExecConfig& config,
                                             ProcessOutput output) override {
    DIBS_TRY(const SimScript script, script_in(id, config.command));
    const TimerId timer = state_->machine.timers.after(
        script.run, [output = std::move(output), script, tty = config.tty] {
          if (!script.out.empty() && output.out) output.out(script.out);
          if (!script.err.empty()) {
            if (tty && output.out) output.out(script.err);
            if (!tty && output.err) output.err(script.err);
          }
          if (output.ended) output.ended(script.exit_code);
        });
    return std::unique_ptr<ProcessInput>(std::make_unique<SimInput>(state_, timer));
  }

  Result<std::unique_ptr<ProcessInput>> attach(const std::string& id,
                                               ProcessOutput output) override {
    const MutexLock lock(state_->mutex);
    const auto found = state_->containers.find(id);
    if (found == state_->containers.end()) return no_container(id);
    if (found->second.status.state != ContainerState::running) {
      return Error::conflict("container is not in CONTAINER_RUNNING state");
    }
    if (output.ended) found->second.attached.push_back(std::move(output.ended));
    return std::unique_ptr<ProcessInput>(std::make_unique<SimInput>(state_, 0));
  }

  Result<std::unique_ptr<StreamInput>> connect_port(const std::string& sandbox_id, int port,
                                                    PortOutput) override {
    DIBS_CHECK(sandbox_status(sandbox_id));
    return Error::unavailable(cat("failed to connect to localhost:", port,
                                  ": connect: connection refused (simulated containers do not "
                                  "listen)"));
  }

  Result<std::optional<ImageInfo>> image_status(const std::string& image) override {
    if (is_digest(image)) {
      const MutexLock lock(state_->mutex);
      const auto found = state_->images.find(image);
      if (found == state_->images.end()) return std::optional<ImageInfo>();
      return std::optional(info_of(found->second, image));
    }
    DIBS_TRY(const ImageReference reference, parse_image_reference(image));
    const std::string registry = reference.repository.substr(0, reference.repository.find('/'));
    if (registry.ends_with(".invalid")) return std::optional<ImageInfo>();
    const std::string name = reference.text();
    const std::string id = digest_of(name);
    const MutexLock lock(state_->mutex);
    state_->images.emplace(id, name);
    return std::optional(info_of(name, id));
  }

  Result<ImageInfo> pull_image(const std::string& image, const PullLogin&) override {
    DIBS_TRY(auto found, image_status(image));
    if (found) return std::move(*found);
    DIBS_TRY(const ImageReference reference, parse_image_reference(image));
    return Error::unavailable(cat("failed to pull and unpack image ", quoted(reference.text()),
                                  ": failed to resolve image: failed to do request: no such host"));
  }

  Result<std::vector<ImageInfo>> list_images() override {
    const MutexLock lock(state_->mutex);
    std::vector<ImageInfo> list;
    for (const auto& [id, name] : state_->images) list.push_back(info_of(name, id));
    return list;
  }

  Result<> remove_image(const std::string& image) override {
    const MutexLock lock(state_->mutex);
    std::erase_if(state_->images,
                  [&](const auto& entry) { return entry.first == image || entry.second == image; });
    return success();
  }

  void listen(std::function<void(const RuntimeEvent& event)> listener) override {
    const MutexLock lock(state_->mutex);
    state_->listeners.push_back(std::move(listener));
  }

 private:
  std::string new_id() {
    std::uint8_t bytes[32];
    state_->machine.random.fill(bytes);
    return hex_encode({reinterpret_cast<const char*>(bytes), sizeof bytes});
  }

  std::string next_address() {
    const std::uint32_t n = ++addresses_;
    return cat("10.", 128 + ((n >> 16) & 0x7f), ".", (n >> 8) & 0xff, ".", n & 0xff);
  }

  static ImageInfo info_of(const std::string& name, const std::string& id) {
    ImageInfo info;
    info.id = id;
    info.tags = {name};
    info.size = 1'000'000;
    return info;
  }

  static void set_env(SimEnv& env, std::string key, std::string value) {
    for (auto& [known, old] : env) {
      if (known == key) {
        old = std::move(value);
        return;
      }
    }
    env.emplace_back(std::move(key), std::move(value));
  }

  static Result<> obey(const Labels& annotations, const std::string& name,
                       SimContainer& container) {
    if (const auto run = annotation(annotations, "sim-run", name); run == "forever") {
      container.script.endless = true;
    } else if (!run.empty()) {
      auto time = parse_duration(run);
      if (!time.ok()) return time.error().within("annotation dibs.dev/sim-run");
      container.script.run = *time;
      container.script.endless = false;
    }
    if (const auto code = annotation(annotations, "sim-exit", name); !code.empty()) {
      container.script.exit_code = std::atoi(code.c_str()) & 255;
      if (annotation(annotations, "sim-run", name).empty()) container.script.endless = false;
    }
    container.start_error = annotation(annotations, "sim-start-error", name);
    return success();
  }

  Result<SimScript> script_in(const std::string& id, const std::vector<std::string>& command) {
    const MutexLock lock(state_->mutex);
    const auto found = state_->containers.find(id);
    if (found == state_->containers.end()) return no_container(id);
    if (found->second.status.state != ContainerState::running) {
      return Error::conflict("failed to exec in container: container is not running");
    }
    return read_script(command, found->second.env, true);
  }

  void write_log(const std::string& path, std::string_view out, std::string_view err) {
    const std::string folder = path.substr(0, path.rfind('/'));
    if (!runtime::system_files().make_dirs(folder, 0755).ok()) return;
    std::ofstream file(path, std::ios::app);
    const std::string time = format_rfc3339_micro(state_->machine.clock.now());
    const auto lines = [&](std::string_view text, const char* stream) {
      while (!text.empty()) {
        const auto end = text.find('\n');
        const bool whole = end != std::string_view::npos;
        file << time << ' ' << stream << (whole ? " F " : " P ") << text.substr(0, end) << '\n';
        text.remove_prefix(whole ? end + 1 : text.size());
      }
    };
    lines(out, "stdout");
    lines(err, "stderr");
  }

  std::shared_ptr<SimState> state_;
  const bool write_logs_;
  std::atomic<std::uint32_t> own_addresses_{0};
  std::atomic<std::uint32_t>& addresses_;
  cdi::Cache cdi_;
};

}  // namespace

std::unique_ptr<ContainerRuntime> make_sim_containers(const SimContainersOptions& options,
                                                      runtime::Runtime& machine) {
  return std::make_unique<SimContainers>(options, machine);
}

}  // namespace dibs::node
