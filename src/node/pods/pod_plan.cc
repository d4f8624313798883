#include "node/pods/pod_plan.h"

#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_resize.h"

namespace dibs::node {
namespace {

class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input), containers_(containers_of(input.pod)) {}

  PodPlan plan() {
    if (!input_.view.sandbox_ready()) {
      plan_sandbox();
      return std::move(plan_);
    }
    for (const auto& container : containers_) {
      // What helps to look into a pod never restarts and never holds up the rest.
      if (container.kind == ContainerKind::ephemeral && current(container) == nullptr) {
        plan_.start.push_back(container);
      }
    }
    if (plan_init_containers()) plan_regular_containers();
    return std::move(plan_);
  }

 private:
  const ContainerStatus* current(const SpecContainer& container) const {
    return input_.view.current(container.name());
  }

  /// A regular container exists in this sandbox: init containers are done with.
  bool initialized() const {
    for (const auto& container : containers_) {
      if (container.kind == ContainerKind::regular && current(container) != nullptr) return true;
    }
    return false;
  }

  void plan_sandbox() {
    const SandboxStatus* before = input_.view.sandbox();
    plan_.sandbox_changed = before != nullptr;
    plan_.sandbox_attempt = before == nullptr ? 0 : before->attempt + 1;
    bool has_init = false;
    bool any = false;
    for (const auto& container : containers_) {
      if (container.kind == ContainerKind::init || container.kind == ContainerKind::sidecar) {
        has_init = true;
      }
      if (container.kind != ContainerKind::regular) continue;
      const ContainerStatus* old = input_.view.newest(container.name());
      // Lost with its sandbox, a container did not end by itself: its code is not its own.
      any = any || old == nullptr || restarts_after(input_.pod, container, code_of(*old));
    }
    if (before != nullptr && !any) {
      plan_.finished = true;
      return;
    }
    plan_.new_sandbox = true;
    if (has_init) {
      for (const auto& container : containers_) {
        if (container.kind == ContainerKind::init || container.kind == ContainerKind::sidecar) {
          plan_.start.push_back(container);
          return;
        }
      }
    }
    for (const auto& container : containers_) {
      if (container.kind != ContainerKind::regular) continue;
      const ContainerStatus* old = input_.view.newest(container.name());
      if (old == nullptr || restarts_after(input_.pod, container, code_of(*old))) {
        plan_.start.push_back(container);
      }
    }
  }

  static int code_of(const ContainerStatus& container) {
    return container.state == ContainerState::exited ? container.exit_code : 137;
  }

  /// True when all are through, so that regular containers may run.
  bool plan_init_containers() {
    const bool through = initialized();
    for (const auto& container : containers_) {
      if (container.kind == ContainerKind::sidecar) {
        if (!plan_sidecar(container) && !through) return false;
      } else if (container.kind == ContainerKind::init && !through) {
        if (!plan_init(container)) return false;
      }
    }
    return true;
  }

  bool plan_init(const SpecContainer& container) {
    const ContainerStatus* status = current(container);
    if (status == nullptr || status->state == ContainerState::created) {
      plan_.start.push_back(container);
      return false;
    }
    if (status->state != ContainerState::exited) return false;
    if (status->exit_code == 0) return true;
    if (restarts_after(input_.pod, container, status->exit_code)) {
      plan_.start.push_back(container);
    } else {
      plan_.finished = true;
    }
    return false;
  }

  /// True when it has started.
  bool plan_sidecar(const SpecContainer& container) {
    const ContainerStatus* status = current(container);
    if (status == nullptr || status->state != ContainerState::running) {
      plan_.start.push_back(container);
      return false;
    }
    if (kill_when_unfit(container, *status)) return false;
    return !input_.hooks_running.contains(status->id) &&
           input_.started(container.name(), status->id);
  }

  bool kill_when_unfit(const SpecContainer& container, const ContainerStatus& status) {
    PlannedKill kill{std::string(container.name()), status.id};
    bool restart = restarts_after(input_.pod, container, 137);
    if (const auto failed = input_.failed_probes.find(status.id);
        failed != input_.failed_probes.end()) {
      const bool liveness = failed->second == ProbeKind::liveness;
      kill.message = cat("Container ", container.name(), " failed ",
                         liveness ? "liveness" : "startup", " probe");
      kill.probe = liveness ? "livenessProbe" : "startupProbe";
    } else if (const auto hash = status.annotations.find(kContainerHashAnnotation);
               hash != status.annotations.end() && hash->second != container_hash(container.spec)) {
      kill.message = cat("Container ", container.name(), " definition changed");
      restart = true;
    } else if (const auto had = status.annotations.find(kResourcesAnnotation);
               had != status.annotations.end() && must_restart(container, had->second)) {
      kill.message = cat("Container ", container.name(), " resize requires restart");
      plan_.kill.push_back(std::move(kill));
      return true;
    } else {
      return false;
    }
    if (restart) kill.message += ", will be restarted";
    plan_.kill.push_back(std::move(kill));
    return true;
  }

  static bool must_restart(const SpecContainer& container, const std::string& had) {
    const auto parsed = json::parse(had);
    return parsed && restarts_for(container.spec, *parsed, container.spec["resources"]);
  }

  void plan_regular_containers() {
    bool running = false;
    // A hook that runs holds up the containers after its own.
    bool held_up = false;
    for (const auto& container : containers_) {
      if (container.kind != ContainerKind::regular) continue;
      const ContainerStatus* status = current(container);
      if (status == nullptr || status->state == ContainerState::created) {
        running = true;
        if (!held_up) plan_.start.push_back(container);
      } else if (status->state == ContainerState::exited) {
        if (!restarts_after(input_.pod, container, status->exit_code)) continue;
        running = true;
        if (!held_up) plan_.start.push_back(container);
      } else {
        running = true;
        if (!kill_when_unfit(container, *status) && input_.hooks_running.contains(status->id)) {
          held_up = true;
        }
      }
    }
    plan_.finished = !running;
  }

  const PlanInput& input_;
  const std::vector<SpecContainer> containers_;
  PodPlan plan_;
};

}  // namespace

PodPlan plan_pod(const PlanInput& input) { return Planner(input).plan(); }

}  // namespace dibs::node
