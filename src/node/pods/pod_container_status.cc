#include "node/pods/pod_container_status.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

class Statuses {
 public:
  explicit Statuses(const StatusInput& input)
      : input_(input), containers_(containers_of(input.pod)) {
    for (const auto& container : containers_) {
      has_init_ = has_init_ || container.kind == ContainerKind::init ||
                  container.kind == ContainerKind::sidecar;
      if (container.kind == ContainerKind::regular &&
          input_.view.newest(container.name()) != nullptr) {
        initialized_ = true;
      }
    }
  }

  ContainerStatuses make() {
    ContainerStatuses out;
    std::vector<Value> regular;
    std::vector<Value> ephemeral;
    for (const auto& container : containers_) {
      Value status = one(container);
      if (container.kind == ContainerKind::regular) {
        regular.push_back(std::move(status));
      } else if (container.kind == ContainerKind::ephemeral) {
        ephemeral.push_back(std::move(status));
      } else {
        out.init.push(std::move(status));
      }
    }
    out.regular = sorted(std::move(regular));
    out.ephemeral = sorted(std::move(ephemeral));
    return out;
  }

 private:
  static Value sorted(std::vector<Value> statuses) {
    std::stable_sort(statuses.begin(), statuses.end(), [](const Value& a, const Value& b) {
      return a["name"].as_string() < b["name"].as_string();
    });
    Value out;
    for (auto& status : statuses) out.push(std::move(status));
    return out;
  }

  /// As the server has it: what is not in the runtime any more is still known there.
  const Value& told(const SpecContainer& container) const {
    const char* list = container.kind == ContainerKind::regular     ? "containerStatuses"
                       : container.kind == ContainerKind::ephemeral ? "ephemeralContainerStatuses"
                                                                    : "initContainerStatuses";
    for (const Value& status : input_.pod["status"][list].items()) {
      if (status["name"].as_string() == container.name()) return status;
    }
    return json::null_value();
  }

  Value one(const SpecContainer& container) {
    const ContainerStatus* newest = input_.view.newest(container.name());
    const Value& before = told(container);
    Value state;
    Value last = Value::object();
    std::int64_t restarts = before["restartCount"].as_int();
    std::string image = container.spec["image"].str();
    std::string image_id;
    std::string id;
    bool running = false;
    if (newest != nullptr && newest->state == ContainerState::created) {
      // Not started yet: it does not show, but what was before it does.
      restarts = newest->attempt;
      if (const auto* previous = input_.view.previous(container.name())) last = ended(*previous);
      state = default_waiting();
    } else if (newest != nullptr) {
      restarts = newest->attempt;
      if (!newest->image.empty()) image = newest->image;
      image_id = newest->image_id;
      id = cat(input_.runtime_name, "://", newest->id);
      running = newest->state == ContainerState::running;
      state =
          running
              ? Value::object(
                    {{"running", Value::object({{"startedAt", format_rfc3339(newest->started)}})}})
              : ended(*newest);
      if (const auto* previous = input_.view.previous(container.name())) {
        last = ended(*previous);
      } else if (before["lastState"].is_object() && before["restartCount"].as_int() == restarts) {
        last = before["lastState"];
      }
    } else if (before["state"]["terminated"].is_object()) {
      return before;
    } else {
      state = default_waiting();
      if (before["lastState"].is_object()) last = before["lastState"];
    }
    // One that ended for good shows how it ended.
    const bool over = state["terminated"].is_object() &&
                      !restarts_after(input_.pod, container, newest->exit_code);
    if (!running && !over) {
      if (const auto why = input_.waiting.find(container.name()); why != input_.waiting.end()) {
        if (state["terminated"].is_object()) last = state;
        state = waiting(why->second);
      }
    }
    if (input_.stopped && state["waiting"].is_object()) state = lost(container, state, last);

    Value out = Value::object({{"name", container.name()},
                               {"state", std::move(state)},
                               {"lastState", std::move(last)},
                               {"ready", false},
                               {"restartCount", restarts},
                               {"image", image},
                               {"imageID", image_id}});
    if (!id.empty()) out.set("containerID", id);
    set_readiness(container, newest, running, out);
    if (newest != nullptr && newest->state != ContainerState::created) {
      set_details(container, *newest, out);
    }
    set_volume_mounts(container, out);
    return out;
  }

  Value default_waiting() const {
    return waiting({has_init_ && !initialized_ ? "PodInitializing" : "ContainerCreating", ""});
  }

  static Value waiting(const WaitingReason& why) {
    Value out = Value::object({{"reason", why.reason}});
    if (!why.message.empty()) out.set("message", why.message);
    return Value::object({{"waiting", std::move(out)}});
  }

  Value ended(const ContainerStatus& container) const {
    Value out = Value::object({{"exitCode", container.exit_code}});
    if (container.signal != 0) out.set("signal", container.signal);
    std::string reason = container.reason;
    if (reason.empty()) reason = container.exit_code == 0 ? "Completed" : "Error";
    out.set("reason", reason);
    std::string message = container.message;
    if (input_.termination_message) {
      std::string last_words = input_.termination_message(container);
      if (!last_words.empty()) {
        message = message.empty() ? std::move(last_words) : cat(message, ": ", last_words);
      }
    }
    if (!message.empty()) out.set("message", message);
    out.set("startedAt", format_rfc3339(container.started));
    out.set("finishedAt", format_rfc3339(container.finished));
    out.set("containerID", cat(input_.runtime_name, "://", container.id));
    return Value::object({{"terminated", std::move(out)}});
  }

  /// A pod that has ended has no container that waits, unless it never got that far.
  Value lost(const SpecContainer& container, const Value& state, const Value& last) const {
    if (container.kind == ContainerKind::ephemeral) return state;
    if (has_init_ && !initialized_) return state;
    if (last["terminated"].is_object()) return last;
    return Value::object(
        {{"terminated",
          Value::object(
              {{"exitCode", 137},
               {"reason", "ContainerStatusUnknown"},
               {"message", "The container could not be located when the pod was terminated"},
               {"startedAt", Value()},
               {"finishedAt", Value()}})}});
  }

  void set_readiness(const SpecContainer& container, const ContainerStatus* newest, bool running,
                     Value& out) const {
    if (container.kind == ContainerKind::ephemeral) return;
    const bool started = running && input_.started(container.name(), newest->id);
    bool ready = false;
    if (container.kind == ContainerKind::init) {
      const Value& terminated = out["state"]["terminated"];
      ready = terminated.is_object() && terminated["exitCode"].as_int() == 0;
    } else {
      ready = started && input_.ready(container.name(), newest->id);
    }
    out.set("ready", ready);
    out.set("started", started);
  }

  static Value given_resources(const SpecContainer& container, const ContainerStatus& newest) {
    const auto found = newest.annotations.find(kResourcesAnnotation);
    if (found == newest.annotations.end()) return container.spec["resources"];
    auto parsed = json::parse(found->second);
    return parsed ? std::move(parsed).value() : container.spec["resources"];
  }

  void set_details(const SpecContainer& container, const ContainerStatus& newest,
                   Value& out) const {
    const Value resources = newest.state == ContainerState::running
                                ? given_resources(container, newest)
                                : container.spec["resources"];
    if (const Value& granted = container.spec["resources"]["requests"]; !granted.empty()) {
      out.set("allocatedResources", granted);
    }
    Value shown = Value::object();
    for (const char* key : {"limits", "requests", "claims"}) {
      if (!resources[key].empty()) shown.set(key, resources[key]);
    }
    if (container.kind != ContainerKind::ephemeral) out.set("resources", std::move(shown));
    if (const auto user = newest.annotations.find(kUserAnnotation);
        user != newest.annotations.end()) {
      if (auto parsed = json::parse(user->second)) {
        out.set("user", Value::object({{"linux", std::move(parsed).value()}}));
      }
    }
    if (container.kind == ContainerKind::regular && input_.health) {
      if (Value health = input_.health(container.name()); !health.empty()) {
        out.set("allocatedResourcesStatus", std::move(health));
      }
    }
  }

  static void set_volume_mounts(const SpecContainer& container, Value& out) {
    Value mounts;
    for (const Value& mount : container.spec["volumeMounts"].items()) {
      Value item = Value::object({{"name", mount["name"]}, {"mountPath", mount["mountPath"]}});
      if (mount["readOnly"].as_bool()) {
        item.set("readOnly", true);
        item.set("recursiveReadOnly", "Disabled");
      }
      mounts.push(std::move(item));
    }
    if (!mounts.empty()) out.set("volumeMounts", std::move(mounts));
  }

  const StatusInput& input_;
  const std::vector<SpecContainer> containers_;
  bool has_init_ = false;
  bool initialized_ = false;
};

}  // namespace

ContainerStatuses make_container_statuses(const StatusInput& input) {
  return Statuses(input).make();
}

}  // namespace dibs::node
