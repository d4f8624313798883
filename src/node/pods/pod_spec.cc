#include "node/pods/pod_spec.h"

#include "base/span.h"
#include "base/strings.h"

namespace dibs::node {

using json::Value;

std::vector<SpecContainer> containers_of(const Value& pod) {
  std::vector<SpecContainer> out;
  const Value& spec = pod["spec"];
  for (const Value& container : spec["initContainers"].items()) {
    const bool stays = container["restartPolicy"].as_string() == "Always";
    out.push_back({stays ? ContainerKind::sidecar : ContainerKind::init, container});
  }
  for (const Value& container : spec["containers"].items()) {
    out.push_back({ContainerKind::regular, container});
  }
  for (const Value& container : spec["ephemeralContainers"].items()) {
    out.push_back({ContainerKind::ephemeral, container});
  }
  return out;
}

std::string field_path(const Value& pod, std::string_view container) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& item : pod["spec"][list].items()) {
      if (item["name"].as_string() == container) return cat("spec.", list, "{", container, "}");
    }
  }
  return {};
}

bool is_deleting(const Value& pod) { return pod["metadata"]["deletionTimestamp"].is_string(); }

bool is_terminal(const Value& pod) {
  const std::string_view phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed";
}

namespace {

bool rule_applies(const Value& rule, int exit_code) {
  const Value& codes = rule["exitCodes"];
  bool named = false;
  for (const Value& code : codes["values"].items()) named = named || code.as_int() == exit_code;
  return codes["operator"].as_string() == "NotIn" ? !named : named;
}

}  // namespace

bool restarts_after(const Value& pod, const SpecContainer& container, int exit_code) {
  if (container.kind == ContainerKind::ephemeral) return false;
  if (container.kind == ContainerKind::sidecar) return true;
  for (const Value& rule : container.spec["restartPolicyRules"].items()) {
    if (rule_applies(rule, exit_code)) return rule["action"].as_string() == "Restart";
  }
  std::string_view policy = container.spec["restartPolicy"].as_string();
  if (policy.empty()) {
    policy = pod["spec"]["restartPolicy"].as_string("Always");
    // One that has done its work is done, whatever the pod's policy.
    if (container.kind == ContainerKind::init && policy == "Always") policy = "OnFailure";
  }
  if (policy == "Always") return true;
  return policy == "OnFailure" && exit_code != 0;
}

Duration grace_period(const Value& pod) {
  const Value& deletion = pod["metadata"]["deletionGracePeriodSeconds"];
  const Value& given = deletion.is_null() ? pod["spec"]["terminationGracePeriodSeconds"] : deletion;
  return seconds_of(given.as_int(30));
}

const Value& find_condition(const Value& status, std::string_view type) {
  for (const Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

Time time_of(const Value& text, Time fallback) {
  if (!text.is_string()) return fallback;
  const auto parsed = parse_rfc3339(text.as_string());
  return parsed ? *parsed : fallback;
}

}  // namespace dibs::node
