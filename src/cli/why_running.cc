// Pods that have a node: what the agent there, the drivers and the containers have to say.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "base/time.h"
#include "cli/why_story.h"
#include "driver/faults.h"

namespace dibs::cli {
namespace {

using json::Value;

constexpr const char* kContainerLists[][2] = {
    {"initContainers", "initContainerStatuses"},
    {"containers", "containerStatuses"},
    {"ephemeralContainers", "ephemeralContainerStatuses"},
};

bool mentions(std::string_view text, std::initializer_list<std::string_view> words) {
  const std::string lower = to_lower(text);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

std::string one_line(std::string_view text) {
  std::string made(trim(text));
  std::replace(made.begin(), made.end(), '\n', ' ');
  return made;
}

/// "exit code 1 (Error) at TIME: message".
std::string how(const Value& ended) {
  std::string made = cat("exit code ", ended["exitCode"].as_int());
  const auto reason = ended["reason"].as_string();
  if (!reason.empty()) append(made, " (", reason, ")");
  if (ended["finishedAt"].is_string()) append(made, " at ", ended["finishedAt"].as_string());
  const std::string message = one_line(ended["message"].as_string());
  if (!message.empty()) append(made, ": ", message);
  return made;
}

class Running {
 public:
  Running(const WhyWorld& world, const Value& pod)
      : world_(world),
        pod_(pod),
        name_(pod["metadata"]["name"].str()),
        name_space_(pod["metadata"]["namespace"].str()),
        node_(pod["spec"]["nodeName"].str()) {}

  std::vector<Trouble> find() {
    look_at_node();
    if (pod_["metadata"]["deletionTimestamp"].is_string()) {
      look_at_end();
      return std::move(made_);
    }
    look_at_claims();
    for (const auto& [list, statuses] : kContainerLists) look_at_containers(list, statuses);
    look_at_start();
    look_at_readiness();
    return std::move(made_);
  }

 private:
  void add(std::string reason, std::string text, std::vector<std::string> remedies) {
    made_.push_back({std::move(reason), std::move(text), std::move(remedies)});
  }

  std::string logs(std::string_view container, bool previous) const {
    return cat("kubectl logs -n ", name_space_, " ", name_, " -c ", container,
               previous ? " --previous" : "");
  }

  const Value* node() const { return find_object(world_.objects.nodes, "", node_); }

  void look_at_node() {
    if (world_.objects.nodes.empty()) return;  // or they may not be seen
    const Value* found = node();
    if (found == nullptr) {
      add("NodeGone", cat("node ", node_, " does not exist any more"),
          {cat("delete the pod, and whatever made it makes another: kubectl delete pod -n ",
               name_space_, " ", name_, " --force")});
      return;
    }
    const Value& ready = condition_of(*found, "Ready");
    if (!ready.is_object() || ready["status"].as_string() == "True") return;
    add("NodeNotReady",
        cat("node ", node_, " is not ready since ", ready["lastTransitionTime"].as_string(),
            ready["message"].as_string().empty() ? "" : ": ", ready["message"].as_string()),
        {cat("bring the node back (dibs why node/", node_,
             "); one that stays away may get the taint "
             "node.kubernetes.io/out-of-service:NoExecute, which frees its pods")});
  }

  /// Drivers of the pod's devices that have published nothing for its node.
  std::vector<std::string> silent_drivers() const {
    std::set<std::string> silent;
    if (world_.objects.slices.empty() && world_.objects.blind) return {};
    for (const std::string& name : claim_names(pod_, world_.release)) {
      const Value* claim = find_object(world_.objects.claims, name_space_, name);
      if (claim == nullptr) continue;
      for (const Value& result : (*claim)["status"]["allocation"]["devices"]["results"].items()) {
        const auto has = [&](const Value& slice) {
          return slice["spec"]["driver"] == result["driver"] &&
                 (slice["spec"]["pool"]["name"] == result["pool"] ||
                  slice["spec"]["nodeName"].as_string() == node_);
        };
        if (std::none_of(world_.objects.slices.begin(), world_.objects.slices.end(), has)) {
          silent.insert(result["driver"].str());
        }
      }
    }
    return {silent.begin(), silent.end()};
  }

  std::vector<std::string> about_drivers(std::string_view message) const {
    std::vector<std::string> made;
    for (const std::string& driver : silent_drivers()) {
      made.push_back(cat("start driver ", driver, " on ", node_,
                         ", where it has published no devices: dibs why driver/", driver));
    }
    if (made.empty() &&
        mentions(message, {"not registered", "not found in the list", "no plugin"})) {
      made.push_back(
          cat("start the driver on ", node_, ": its registration with the node's agent is gone"));
    }
    if (made.empty() && mentions(message, {"connection error", "connection refused"})) {
      made.push_back(cat("start the driver on ", node_, ": the node's agent does not reach it"));
    }
    if (made.empty()) {
      made.push_back(
          cat("read the log of the driver on ", node_, "; the agent tries again by itself"));
    }
    return made;
  }

  /// Of its devices those that somebody has made slow: `dibs device slow`.
  void look_at_slow(Duration driver::SlowFault::*which, const char* call) {
    const Value* on = node();
    if (on == nullptr) return;
    std::vector<std::string> slow;
    std::vector<std::string> heal;
    for (const std::string& name : claim_names(pod_, world_.release)) {
      const Value* claim = find_object(world_.objects.claims, name_space_, name);
      if (claim == nullptr) continue;
      for (const Value& result : (*claim)["status"]["allocation"]["devices"]["results"].items()) {
        const std::string by = result["driver"].str();
        const std::string device = result["device"].str();
        const auto faults = driver::parse_faults(
            (*on)["metadata"]["annotations"][driver::faults_annotation(by)].as_string());
        if (!faults) continue;
        const auto found = faults->find(driver::fault_key(result["pool"].as_string(), device));
        if (found == faults->end() || !found->second.slow) continue;
        const Duration takes = (*found->second.slow).*which;
        if (takes == Duration(0)) continue;
        slow.push_back(cat(device, " (", by, ") takes ", format_duration(takes), " to ", call));
        heal.push_back(cat("dibs device heal ", node_, "/", by, "/", device));
      }
    }
    if (slow.empty()) return;
    add("SlowDevice", cat("somebody has made devices of it slow: ", join(slow, ", ")), heal);
  }

  void look_at_end() {
    const std::string since = pod_["metadata"]["deletionTimestamp"].str();
    if (const Value* event = last_warning(world_, pod_, {"FailedUnprepareDynamicResources"})) {
      const std::string message = one_line((*event)["message"].as_string());
      add("Unprepare", cat("its devices cannot be given back: ", message), about_drivers(message));
    }
    if (const Value* event = last_warning(world_, pod_, {"FailedKillPod", "FailedUnmount"})) {
      add("EndFailed", one_line((*event)["message"].as_string()),
          {cat("see what the agent of ", node_, " says; it tries again by itself")});
    }
    look_at_slow(&driver::SlowFault::unprepare, "unprepare");
    std::vector<std::string> held;
    for (const Value& finalizer : pod_["metadata"]["finalizers"].items()) {
      held.push_back(finalizer.str());
    }
    if (!held.empty() && api_ended()) {
      add("Finalizers",
          cat("its containers have ended; it is kept by the finalizer ", join(held, ", ")),
          {"whoever set the finalizer takes it away: does that controller run?"});
    }
    const auto ends = parse_rfc3339(since);
    if (made_.empty() && ends && *ends < world_.now) {
      std::string text =
          cat("it should have ended by ", since, ", and ", node_, " has not said that it has");
      const std::vector<std::string> silent = silent_drivers();
      if (!silent.empty()) {
        append(text, "; driver ", join(silent, ", "), " of its devices is gone from there");
      }
      add("EndLate", text, about_drivers(""));
    }
  }

  bool api_ended() const {
    const auto phase = pod_["status"]["phase"].as_string();
    return phase == "Succeeded" || phase == "Failed";
  }

  void look_at_claims() {
    for (const std::string& name : claim_names(pod_, world_.release)) {
      const Value* claim = find_object(world_.objects.claims, name_space_, name);
      if (claim == nullptr) {
        if (world_.objects.blind) continue;
        add("ClaimMissing", cat("ResourceClaim ", name, ", which it uses, does not exist"),
            {"make the claim again, or delete the pod"});
        continue;
      }
      for (const Value& device : (*claim)["status"]["devices"].items()) {
        for (const Value& condition : device["conditions"].items()) {
          if (!condition["type"].as_string().ends_with("Ready") ||
              condition["status"].as_string() != "False") {
            continue;
          }
          add("DeviceNotReady",
              cat("device ", device["device"].as_string(), " of claim ", name, ": ",
                  condition["type"].as_string(), " is False (", condition["reason"].as_string(),
                  ") ", one_line(condition["message"].as_string())),
              {cat("driver ", device["driver"].as_string(),
                   " says so in the claim's status: see its log on ", node_)});
        }
      }
    }
  }

  void look_at_containers(const char* list, const char* statuses) {
    for (const Value& status : pod_["status"][statuses].items()) {
      const std::string name = status["name"].str();
      const Value* spec = nullptr;
      for (const Value& one : pod_["spec"][list].items()) {
        if (one["name"].as_string() == name) spec = &one;
      }
      const Value& waiting = status["state"]["waiting"];
      if (waiting.is_object()) look_at_waiting(name, status, waiting, spec);
      look_at_health(name, status);
      const Value& ended = status["state"]["terminated"];
      if (ended.is_object() && ended["exitCode"].as_int() != 0 &&
          pod_["status"]["phase"].as_string() != "Failed") {
        add("ContainerEnded", cat("container ", name, " has ended with ", how(ended)),
            about_crash(name, ended, spec, false));
      }
    }
  }

  void look_at_waiting(const std::string& name, const Value& status, const Value& waiting,
                       const Value* spec) {
    const std::string reason = waiting["reason"].str();
    const std::string said = one_line(waiting["message"].as_string());
    const std::string who = cat("container ", name);
    if (reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "ErrImageNeverPull" ||
        reason == "InvalidImageName" || reason == "ImageInspectError" ||
        reason == "RegistryUnavailable" || reason == "SignatureValidationFailed") {
      std::string text = said;
      // A back-off tells only that it waits; the event has the registry's answer.
      if (const Value* event = last_warning(world_, pod_, {"Failed"}, name);
          event != nullptr && reason == "ImagePullBackOff" &&
          (*event)["message"].as_string().starts_with("Failed to pull")) {
        text = one_line((*event)["message"].as_string());
      }
      const std::string image = spec != nullptr ? (*spec)["image"].str() : status["image"].str();
      add(reason == "InvalidImageName" ? reason : "ImagePull",
          cat(who, ": image ", quoted(image),
              reason == "InvalidImageName" ? " is no valid name: " : " cannot be pulled: ",
              text.empty() ? reason : text),
          about_image(reason, text));
    } else if (reason == "CrashLoopBackOff") {
      const Value& last = status["lastState"]["terminated"];
      add("CrashLoop",
          cat(who, " ends again and again: ", status["restartCount"].as_int(),
              status["restartCount"].as_int() == 1 ? " restart" : " restarts",
              last.is_object() ? cat(", the last time with ", how(last)) : ""),
          about_crash(name, last, spec, true));
    } else if (reason == "CreateContainerConfigError") {
      add("ContainerConfig", cat(who, " cannot be made: ", said),
          {mentions(said, {"not found"})
               ? "make what is missing, or mark the reference as optional; it is tried again"
               : "correct the pod's spec, which means a new pod"});
    } else if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
      add(reason, cat(who, " cannot be started: ", said.empty() ? reason : said),
          {cat("see the events of the pod (kubectl describe pod -n ", name_space_, " ", name_,
               ") and the log of the agent on ", node_)});
    }
  }

  static std::vector<std::string> about_image(std::string_view reason, std::string_view text) {
    if (reason == "InvalidImageName") return {"correct the name: [HOST/]PATH[:TAG][@DIGEST]"};
    if (reason == "ErrImageNeverPull") {
      return {"bring the image to the node, or allow pulling: imagePullPolicy IfNotPresent"};
    }
    if (mentions(text, {"unauthorized", "denied", "forbidden", "authentication"})) {
      return {
          "name a secret with the registry's credentials in spec.imagePullSecrets, or check the "
          "image's name"};
    }
    if (mentions(text, {"no such host", "refused", "timeout", "timed out", "unreachable",
                        "certificate", "resolve"})) {
      return {"the node does not reach the registry: check its network, proxy and certificates"};
    }
    if (mentions(text, {"not found", "unknown", "no such"})) {
      return {"check name and tag of the image"};
    }
    return {
        "check the image's name, its registry's credentials (spec.imagePullSecrets), and "
        "whether the node reaches it"};
  }

  std::vector<std::string> about_crash(const std::string& name, const Value& ended,
                                       const Value* spec, bool previous) const {
    std::vector<std::string> made;
    if (ended["reason"].as_string() == "OOMKilled") {
      const std::string limit =
          spec != nullptr ? (*spec)["resources"]["limits"]["memory"].str() : std::string();
      made.push_back(cat("give container ", name, " more memory than ",
                         limit.empty() ? "the node has left" : limit, ", or let it use less"));
    }
    if (const Value* event = last_warning(world_, pod_, {"Unhealthy"}, name);
        event != nullptr && mentions((*event)["message"].as_string(), {"liveness", "startup"})) {
      made.push_back(cat("it is ended for its probe: ", one_line((*event)["message"].as_string())));
    }
    const auto code = ended["exitCode"].as_int();
    const bool never_ran = ended["reason"].as_string() == "StartError";
    if (code == 126 || code == 127 || never_ran) {
      made.push_back("its command was not found or cannot be run: check command and args");
    }
    if (never_ran) return made;  // and said nothing
    made.push_back(cat("read what it said: ", logs(name, previous)));
    return made;
  }

  void look_at_health(const std::string& name, const Value& status) {
    for (const Value& resource : status["allocatedResourcesStatus"].items()) {
      for (const Value& one : resource["resources"].items()) {
        if (one["health"].as_string() != "Unhealthy") continue;
        const std::string message = one_line(one["message"].as_string());
        add("DeviceUnhealthy",
            cat("container ", name,
                " has a device that is unhealthy: ", one["resourceID"].as_string(), " of ",
                resource["name"].as_string(), message.empty() ? "" : ": ", message),
            {"delete the pod so that it gets another device; a DeviceTaintRule keeps the ill one "
             "from being given again"});
      }
    }
  }

  bool some_wait_to_start() const {
    const Value& statuses = pod_["status"]["containerStatuses"];
    if (statuses.empty()) return true;
    return std::any_of(statuses.items().begin(), statuses.items().end(), [](const Value& status) {
      const auto reason = status["state"]["waiting"]["reason"].as_string();
      return reason == "ContainerCreating" || reason == "PodInitializing";
    });
  }

  /// What the agent failed at before there were containers. An event may be old: it counts while
  /// nothing has started.
  void look_at_start() {
    if (!made_.empty() || !some_wait_to_start()) return;
    const Value* event = last_warning(
        world_, pod_,
        {"FailedPrepareDynamicResources", "FailedMount", "FailedAttachVolume",
         "FailedCreatePodSandBox", "NetworkNotReady", "FailedToRetrieveImagePullSecret"});
    if (event == nullptr) return look_at_slow(&driver::SlowFault::prepare, "prepare");
    const std::string reason = (*event)["reason"].str();
    const std::string message = one_line((*event)["message"].as_string());
    const std::string when = time_of_event(*event);
    if (reason == "FailedPrepareDynamicResources") {
      add("Prepare", cat("its devices cannot be prepared: ", message, " (", when, ")"),
          about_drivers(message));
      look_at_slow(&driver::SlowFault::prepare, "prepare");
    } else if (reason == "FailedMount" || reason == "FailedAttachVolume") {
      add("Volumes", cat("its volumes cannot be had: ", message, " (", when, ")"),
          {mentions(message, {"not found"})
               ? "make what is missing; it is tried again"
               : cat("see the log of the volume's driver and of the agent on ", node_)});
    } else {
      add(reason, cat(message, " (", when, ")"),
          {cat("see the log of the agent on ", node_, "; it tries again by itself")});
    }
  }

  void look_at_readiness() {
    if (!made_.empty() || pod_["status"]["phase"].as_string() != "Running") return;
    for (const Value& status : pod_["status"]["containerStatuses"].items()) {
      if (status["ready"].as_bool() || !status["state"]["running"].is_object()) continue;
      const std::string name = status["name"].str();
      const bool started = status["started"].as_bool(true);
      std::string text = cat("container ", name, started ? " is not ready" : " has not started up");
      if (const Value* event = last_warning(world_, pod_, {"Unhealthy"}, name)) {
        append(text, ": ", one_line((*event)["message"].as_string()), " (", time_of_event(*event),
               ")");
      }
      add(started ? "ReadinessProbe" : "StartupProbe", text,
          {cat("see what answers its ", probe_of(name, started ? "readinessProbe" : "startupProbe"),
               ": ", logs(name, false))});
    }
    for (const Value& gate : pod_["spec"]["readinessGates"].items()) {
      const auto type = gate["conditionType"].as_string();
      const Value& condition = condition_of(pod_, type);
      if (condition["status"].as_string() == "True") continue;
      add("ReadinessGate",
          cat("its readiness gate ", type, " is not True",
              condition["message"].as_string().empty() ? "" : ": ",
              condition["message"].as_string()),
          {"whoever answers for that condition sets it in the pod's status: does it run?"});
    }
  }

  /// "readinessProbe, GET /healthz at port 8080".
  std::string probe_of(std::string_view container, const char* field) const {
    for (const Value& one : pod_["spec"]["containers"].items()) {
      if (one["name"].as_string() != container) continue;
      const Value& probe = one[field];
      const auto port = [](const Value& at) {
        return at["port"].is_string() ? at["port"].str() : std::to_string(at["port"].as_int());
      };
      if (probe["httpGet"].is_object()) {
        return cat(field, ", GET ", probe["httpGet"]["path"].as_string(), " at port ",
                   port(probe["httpGet"]));
      }
      if (probe["tcpSocket"].is_object()) {
        return cat(field, ", a connection to port ", port(probe["tcpSocket"]));
      }
      if (probe["grpc"].is_object()) return cat(field, ", gRPC at port ", port(probe["grpc"]));
      if (probe["exec"].is_object()) {
        std::vector<std::string> words;
        for (const Value& word : probe["exec"]["command"].items()) words.push_back(word.str());
        return cat(field, ", the command ", join(words, " "));
      }
    }
    return field;
  }

  const WhyWorld& world_;
  const Value& pod_;
  std::string name_;
  std::string name_space_;
  std::string node_;
  std::vector<Trouble> made_;
};

}  // namespace

std::vector<Trouble> troubles_of(const WhyWorld& world, const Value& pod) {
  return Running(world, pod).find();
}

std::vector<std::string> restarts_of(const WhyWorld& world, const Value& pod) {
  std::vector<std::string> made;
  for (const auto& [list, statuses] : kContainerLists) {
    for (const Value& one : pod["status"][statuses].items()) {
      const auto count = one["restartCount"].as_int();
      const Value& last = one["lastState"]["terminated"];
      if (count == 0 || !last.is_object() || !one["state"]["running"].is_object()) continue;
      const std::string name = one["name"].str();
      std::string text = cat("container ", name, " was started again ", count,
                             count == 1 ? " time" : " times", "; it had ended with ", how(last));
      const Value* event = last_warning(world, pod, {"Unhealthy"}, name);
      if (event != nullptr && mentions((*event)["message"].as_string(), {"liveness", "startup"})) {
        append(text, "; its probe: ", one_line((*event)["message"].as_string()));
      }
      made.push_back(std::move(text));
    }
  }
  return made;
}

std::vector<std::string> last_words(const Value& pod) {
  std::vector<std::string> made;
  const Value& status = pod["status"];
  if (status["phase"].as_string() != "Failed") return made;
  if (!status["reason"].as_string().empty() || !status["message"].as_string().empty()) {
    made.push_back(
        cat(status["reason"].as_string(), ": ", one_line(status["message"].as_string())));
  }
  for (const auto& [list, statuses] : kContainerLists) {
    for (const Value& one : status[statuses].items()) {
      const Value& ended = one["state"]["terminated"];
      if (!ended.is_object() || ended["exitCode"].as_int() == 0) continue;
      made.push_back(cat(
          "container ", one["name"].as_string(), " ended with exit code ",
          ended["exitCode"].as_int(),
          ended["reason"].as_string().empty() ? "" : cat(" (", ended["reason"].as_string(), ")"),
          ended["message"].as_string().empty()
              ? ""
              : cat(": ", one_line(ended["message"].as_string()))));
    }
  }
  return made;
}

void tell_remedies(const std::vector<Trouble>& troubles, WhyPage& page) {
  std::set<std::string> told;
  for (const Trouble& trouble : troubles) {
    for (const std::string& remedy : trouble.remedies) {
      if (told.empty()) {
        page.gap();
        page.line(0, "what would help");
      }
      if (told.insert(remedy).second) page.line(2, cat("- ", remedy));
    }
  }
}

Value troubles_document(const std::vector<Trouble>& troubles) {
  Value made = Value::array();
  for (const Trouble& trouble : troubles) {
    Value remedies = Value::array();
    for (const std::string& remedy : trouble.remedies) remedies.push(remedy);
    made.push(Value::object({{"reason", trouble.reason},
                             {"message", trouble.text},
                             {"remedies", std::move(remedies)}}));
  }
  return made;
}

}  // namespace dibs::cli
