// Nodes, namespaces, components.
#include <set>

#include "api/print/printer.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

std::string node_status(const json::Value& node) {
  const json::Value& ready = find_condition(node["status"], "Ready");
  std::string status = "Unknown";
  if (!ready.is_null()) status = ready["status"].as_string() == "True" ? "Ready" : "NotReady";
  if (node["spec"]["unschedulable"].as_bool()) status += ",SchedulingDisabled";
  return status;
}

std::string node_roles(const json::Value& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const auto& [key, value] : node["metadata"]["labels"].members()) {
    if (key.starts_with(kPrefix)) {
      std::string_view role = key.substr(kPrefix.size());
      if (!role.empty()) roles.emplace(role);
    } else if (key == "kubernetes.io/role" && !value.as_string().empty()) {
      roles.insert(value.str());
    }
  }
  if (roles.empty()) return "<none>";
  return join({roles.begin(), roles.end()}, ",");
}

std::string node_address(const json::Value& node, std::string_view type) {
  for (const json::Value& address : node["status"]["addresses"].items()) {
    if (address["type"].as_string() == type) return address["address"].str();
  }
  return "<none>";
}

std::string kernel(const json::Value& info) {
  std::string version = text_or(info["kernelVersion"], "<unknown>");
  std::string_view architecture = info["architecture"].as_string();
  return architecture.empty() ? version : cat(version, " (", architecture, ")");
}

void print_node(Row& row) {
  const json::Value& node = row.object;
  const json::Value& info = node["status"]["nodeInfo"];
  row.name();
  row.add(node_status(node));
  row.add(node_roles(node));
  row.age();
  row.add(info["kubeletVersion"].as_string());
  row.add(node_address(node, "InternalIP"));
  row.add(node_address(node, "ExternalIP"));
  row.add(text_or(info["osImage"], "<unknown>"));
  row.add(kernel(info));
  row.add(text_or(info["containerRuntimeVersion"], "<unknown>"));
}

void print_namespace(Row& row) {
  row.name();
  row.add(row.object["status"]["phase"].as_string());
  row.age();
}

void print_component_status(Row& row) {
  std::string status = "Unknown";
  json::Value message = "";
  json::Value error = "";
  for (const json::Value& condition : row.object["conditions"].items()) {
    if (condition["type"].as_string() != "Healthy") continue;
    status = condition["status"].as_string() == "True" ? "Healthy" : "Unhealthy";
    message = condition["message"].as_string();
    error = condition["error"].as_string();
    break;
  }
  row.name();
  row.add(status);
  row.add(message);
  row.add(error);
}

/// What pods use is the sum over their containers.
void print_usage(Row& row) {
  Quantity cpu;
  Quantity memory;
  const auto add = [&](const json::Value& usage) {
    const auto one = [&](const char* name, Quantity& sum) {
      if (auto amount = Quantity::parse(usage[name].as_string()); amount.ok()) sum.add(*amount);
    };
    one("cpu", cpu);
    one("memory", memory);
  };
  add(row.object["usage"]);
  for (const json::Value& container : row.object["containers"].items()) add(container["usage"]);
  row.name();
  row.add(cpu.canonical());
  row.add(memory.canonical());
  row.add(row.object["window"].as_string());
}

}  // namespace

void add_nodes(Printers& printers) {
  printers.add("", "Node",
               {name_column(), text_column("Status", "Whether it is ready, and takes pods"),
                text_column("Roles", "Roles from its labels"), age_column(),
                text_column("Version", "Version of its kubelet"),
                wide(text_column("Internal-IP", "Its address inside the cluster")),
                wide(text_column("External-IP", "Its address from outside")),
                wide(text_column("OS-Image", "Operating system")),
                wide(text_column("Kernel-Version", "Kernel and processor architecture")),
                wide(text_column("Container-Runtime", "Container runtime and its version"))},
               print_node);
  printers.add("", "Namespace",
               {name_column(), text_column("Status", "Active or Terminating"), age_column()},
               print_namespace);
  printers.add("", "ComponentStatus",
               {name_column(), text_column("Status", "Whether the component is healthy"),
                text_column("Message", "What it says"), text_column("Error", "What went wrong")},
               print_component_status);
  for (const char* kind : {"NodeMetrics", "PodMetrics"}) {
    printers.add("metrics.k8s.io", kind,
                 {name_column(), text_column("Cpu", "Processors in use"),
                  text_column("Memory", "Memory in use"),
                  text_column("Window", "Over how long that was measured")},
                 print_usage);
  }
}

}  // namespace dibs::api::print
