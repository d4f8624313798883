// Pods and pod templates.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

/// What the statuses of a pod's containers add up to.
struct Summary {
  std::string reason;
  std::int64_t ready = 0;
  std::int64_t total = 0;
  std::int64_t restarts = 0;
  std::string last_restart;  // RFC 3339, so that text order is time order
};

/// Restarts of some containers, with the time the last of them ended before.
struct Restarts {
  std::int64_t count = 0;
  std::string last;

  void add(const json::Value& status) {
    count += status["restartCount"].as_int();
    std::string finished = status["lastState"]["terminated"]["finishedAt"].str();
    if (finished > last) last = finished;
  }
};

std::string ended_reason(const json::Value& terminated) {
  if (!terminated["reason"].as_string().empty()) return terminated["reason"].str();
  if (terminated["signal"].as_int() != 0) return cat("Signal:", terminated["signal"].as_int());
  return cat("ExitCode:", terminated["exitCode"].as_int());
}

bool is_sidecar(const json::Value& pod, std::string_view name) {
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    if (container["name"].as_string() == name) {
      return container["restartPolicy"].as_string() == "Always";
    }
  }
  return false;
}

/// "" when the init container at `index` does not hold the pod back.
std::string init_reason(const json::Value& pod, const json::Value& status, std::size_t index,
                        bool sidecar) {
  const json::Value& terminated = status["state"]["terminated"];
  std::string_view waiting = status["state"]["waiting"]["reason"].as_string();
  if (terminated.is_object()) {
    if (terminated["exitCode"].as_int() == 0) return "";
    return cat("Init:", ended_reason(terminated));
  }
  if (sidecar && status["started"].as_bool()) return "";
  if (!waiting.empty() && waiting != "PodInitializing") return cat("Init:", waiting);
  return cat("Init:", index, '/', pod["spec"]["initContainers"].size());
}

/// Adds the main containers; from the last to the first, so that the first one with a reason wins.
void summarize_containers(const json::Value& pod, Summary& summary, Restarts& restarts) {
  const json::Value& statuses = pod["status"]["containerStatuses"];
  bool running = false;
  std::string failure;
  for (std::size_t i = statuses.size(); i-- > 0;) {
    const json::Value& status = statuses[i];
    const json::Value& state = status["state"];
    restarts.add(status);
    if (!state["waiting"]["reason"].as_string().empty()) {
      summary.reason = state["waiting"]["reason"].str();
    } else if (state["terminated"].is_object()) {
      summary.reason = ended_reason(state["terminated"]);
      if (state["terminated"]["exitCode"].as_int() != 0) failure = summary.reason;
    } else if (status["ready"].as_bool() && state["running"].is_object()) {
      running = true;
      ++summary.ready;
    }
  }
  if (summary.reason == "Completed" && running) {
    bool ready = has_condition(pod["status"], "Ready");
    summary.reason = ready ? "Running" : failure.empty() ? "NotReady" : failure;
  }
}

Summary summarize(const json::Value& pod) {
  const json::Value& status = pod["status"];
  std::string_view phase = status["phase"].as_string();
  Summary summary;
  summary.reason = text_or(status["reason"], phase);
  if (find_condition(status, "PodScheduled")["reason"].as_string() == "SchedulingGated") {
    summary.reason = "SchedulingGated";
  }
  summary.total = static_cast<std::int64_t>(pod["spec"]["containers"].size());
  for (const json::Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].as_string() == "Always") ++summary.total;
  }

  Restarts all_init;
  Restarts sidecars;
  bool initializing = false;
  std::size_t index = 0;
  for (const json::Value& init : status["initContainerStatuses"].items()) {
    bool sidecar = is_sidecar(pod, init["name"].as_string());
    all_init.add(init);
    if (sidecar) sidecars.add(init);
    std::string reason = init_reason(pod, init, index++, sidecar);
    if (!reason.empty()) {
      summary.reason = reason;
      initializing = true;
      break;
    }
    bool ended = init["state"]["terminated"].is_object();
    if (sidecar && !ended && init["ready"].as_bool()) ++summary.ready;
  }
  Restarts restarts = all_init;
  if (!initializing || has_condition(status, "Initialized")) {
    // Restarts of init containers that are done say nothing about how the pod fares now.
    restarts = sidecars;
    summarize_containers(pod, summary, restarts);
  }
  summary.restarts = restarts.count;
  summary.last_restart = restarts.last;

  if (!pod["metadata"]["deletionTimestamp"].is_null()) {
    if (status["reason"].as_string() == "NodeLost") {
      summary.reason = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      summary.reason = "Terminating";
    }
  }
  return summary;
}

std::string readiness_gates(const json::Value& pod) {
  const json::Value& gates = pod["spec"]["readinessGates"];
  if (gates.empty()) return "<none>";
  std::size_t open = 0;
  for (const json::Value& gate : gates.items()) {
    const json::Value& condition = find_condition(pod["status"], gate["conditionType"].as_string());
    if (condition["status"].as_string() == "True") ++open;
  }
  return cat(open, '/', gates.size());
}

void print_pod(Row& row) {
  const json::Value& pod = row.object;
  Summary summary = summarize(pod);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty()) {
    append(restarts, " (", since(summary.last_restart, row.now), " ago)");
  }
  const json::Value& ips = pod["status"]["podIPs"];
  row.name();
  row.add(cat(summary.ready, '/', summary.total));
  row.add(summary.reason);
  row.add(restarts);
  row.age();
  row.add(text_or(ips.empty() ? pod["status"]["podIP"] : ips[0]["ip"], "<none>"));
  row.add(text_or(pod["spec"]["nodeName"], "<none>"));
  row.add(text_or(pod["status"]["nominatedNodeName"], "<none>"));
  row.add(readiness_gates(pod));
}

void print_pod_template(Row& row) {
  const json::Value& pod = row.object["template"];
  row.name();
  row.add(containers_text(pod["spec"]["containers"], "name"));
  row.add(containers_text(pod["spec"]["containers"], "image"));
  row.add(labels_text(pod["metadata"]["labels"]));
}

}  // namespace

json::Value pod_conditions(const json::Value& pod) {
  std::string_view phase = pod["status"]["phase"].as_string();
  if (phase != "Succeeded" && phase != "Failed") return nullptr;
  std::string_view message =
      phase == "Succeeded" ? "The pod has completed successfully." : "The pod failed.";
  return json::Value::array({json::Value::object(
      {{"type", "Completed"}, {"status", "True"}, {"reason", phase}, {"message", message}})});
}

void add_pods(Printers& printers) {
  printers.add("", "Pod",
               {name_column(), text_column("Ready", "Containers that are ready, of all"),
                text_column("Status", "What the pod does, summed up over its containers"),
                text_column("Restarts", "How often containers were restarted, and when last"),
                age_column(), wide(text_column("IP", "The pod's first address")),
                wide(text_column("Node", "The node it is bound to")),
                wide(text_column("Nominated Node", "The node that is being cleared for it")),
                wide(text_column("Readiness Gates", "Gates that are open, of all"))},
               print_pod);
  printers.add("", "PodTemplate",
               {name_column(), text_column("Containers", "Names of the containers"),
                text_column("Images", "Images of the containers"),
                text_column("Pod Labels", "Labels of pods made from it")},
               print_pod_template);
}

}  // namespace dibs::api::print
