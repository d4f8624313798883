#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "scheduler/explain.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// "node(s) were unschedulable" reads badly where the nodes are named.
std::string without_nodes(std::string_view reason) {
  constexpr std::string_view kNodes = "node(s) ";
  if (reason.starts_with(kNodes)) reason.remove_prefix(kNodes.size());
  return std::string(reason);
}

std::string describe(const Obstacle& obstacle) {
  switch (obstacle.plugin) {
    case Plugin::node_unschedulable:
      return "cordoned (spec.unschedulable)";
    case Plugin::taint_toleration:
      return cat("untolerated taint ", obstacle.subject);
    case Plugin::node_affinity:
      if (obstacle.subject.empty()) return "not among the nodes of the pod's node affinity";
      return cat("lacks the label ", obstacle.subject, " of the pod's node selector");
    case Plugin::node_declared_features:
      return cat("its agent does not have ", obstacle.subject);
    case Plugin::node_ports:
      return cat("host port ", obstacle.subject, " is taken");
    case Plugin::resources_fit:
      if (obstacle.subject == "pods") return cat("full: ", obstacle.there, " pods");
      return cat(obstacle.subject, ": ", show_amount(obstacle.subject, obstacle.wanted),
                 " wanted, at most ",
                 show_amount(obstacle.subject, std::max<std::int64_t>(obstacle.left, 0)), " of ",
                 show_amount(obstacle.subject, obstacle.there), " left");
    case Plugin::dynamic_resources:
      if (!obstacle.subject.empty()) {
        return cat("claim ", obstacle.subject, " ", obstacle.detail);
      }
      return obstacle.reason;
    default:
      break;
  }
  const std::string reason = without_nodes(obstacle.reason);
  return obstacle.subject.empty() ? reason : cat(reason, " (", obstacle.subject, ")");
}

void add_devices(const alloc::NodeFailure& failure, const alloc::Demand& demand,
                 std::vector<std::string>& lines) {
  if (!failure.error.empty()) lines.push_back(failure.error);
  bool short_of = false;
  for (const alloc::RequestFindings& found : failure.requests) {
    if (!alloc::falls_short(found)) continue;
    short_of = true;
    lines.push_back(alloc::describe(found, demand));
    for (const alloc::Loss& loss : found.losses) {
      lines.push_back(cat("  ", alloc::describe(loss, found, demand)));
    }
  }
  // One alone that falls short has been told already.
  if (failure.conflict.size() > 1 || (failure.conflict.size() == 1 && !short_of)) {
    std::vector<std::string> items;
    for (const alloc::ConflictItem& item : failure.conflict) {
      items.push_back(alloc::describe(item, demand));
    }
    lines.push_back(cat(failure.conflict_is_minimal ? "cannot be served together: "
                                                    : "cannot be served together, or fewer: ",
                        join(items, ", ")));
  }
  for (const alloc::ConstraintFindings& found : failure.constraints) {
    lines.push_back(cat("  ", alloc::describe(found, demand)));
  }
  if (failure.incomplete_pools > 0) {
    lines.push_back(cat("pools not complete yet, and left out: ", failure.incomplete_pools));
  }
  if (failure.invalid_pools > 0) {
    lines.push_back(cat("pools in disorder, and left out: ", failure.invalid_pools));
  }
  if (failure.answer == alloc::Answer::undecided) {
    lines.push_back("the search was given up: too many combinations");
  }
}

Value to_array(const std::vector<std::string>& texts) {
  Value made = Value::array();
  for (const std::string& text : texts) made.push(text);
  return made;
}

Value to_json(const Obstacle& obstacle) {
  Value made = Value::object({{"plugin", plugin_name(obstacle.plugin)},
                              {"reason", obstacle.reason},
                              {"text", describe(obstacle)}});
  if (!obstacle.subject.empty()) made.set("subject", obstacle.subject);
  if (obstacle.plugin == Plugin::resources_fit) {
    made.set("wanted", show_amount(obstacle.subject, obstacle.wanted));
    made.set("left", show_amount(obstacle.subject, std::max<std::int64_t>(obstacle.left, 0)));
    made.set("allocatable", show_amount(obstacle.subject, obstacle.there));
  }
  return made;
}

}  // namespace

std::string show_amount(std::string_view resource, std::int64_t amount) {
  if (resource == "cpu") return Quantity(amount, -3).canonical();
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return Quantity(amount, 0, bytes ? Quantity::Format::binary_si : Quantity::Format::decimal_si)
      .canonical();
}

std::string name_nodes(const std::vector<std::string>& nodes) {
  constexpr std::size_t kMost = 4;
  std::string made = cat(nodes.size(), nodes.size() == 1 ? " node: " : " nodes: ");
  const std::size_t named = nodes.size() <= kMost + 1 ? nodes.size() : kMost;
  for (std::size_t i = 0; i < named; ++i) append(made, i > 0 ? ", " : "", nodes[i]);
  if (named < nodes.size()) append(made, " and ", nodes.size() - named, " more");
  return made;
}

std::string Explanation::in_plain_words(const NodeGroup& group, std::string text) const {
  if (group.extended < 0) return text;
  const DeviceRun::Extended& extended = run.extended[static_cast<std::size_t>(group.extended)];
  const std::string& claim = extended.demand.claims.back().claim->id;
  for (const Value& mapping : extended.wanted.mappings.items()) {
    const std::string request =
        cat("request ", mapping["requestName"].as_string(), " of claim ", claim);
    const std::size_t at = text.find(request);
    if (at == std::string::npos) continue;
    text.replace(at, request.size(),
                 cat("extended resource ", mapping["resourceName"].as_string()));
  }
  return text;
}

std::vector<std::string> describe(const NodeGroup& group, const Explanation& explanation) {
  std::vector<std::string> lines;
  for (const Obstacle& obstacle : group.obstacles) {
    const bool devices = obstacle.plugin == Plugin::dynamic_resources;
    if (devices && group.devices.has_value()) {
      const std::size_t before = lines.size();
      add_devices(*group.devices, explanation.demand(group), lines);
      for (std::size_t i = before; i < lines.size(); ++i) {
        lines[i] = explanation.in_plain_words(group, std::move(lines[i]));
      }
      if (lines.size() > before) continue;
    }
    lines.push_back(describe(obstacle));
  }
  return lines;
}

std::string summary(const Explanation& explanation) {
  // Events are cut at 1024 bytes, and what would help should not be.
  constexpr std::size_t kEnough = 700;
  if (!explanation.obstacle().empty()) return explanation.obstacle();
  std::string made;
  std::size_t told = 0;
  for (const NodeGroup& group : explanation.groups) {
    if (made.size() > kEnough) {
      append(made, "; ", explanation.groups.size() - told, " more kinds of nodes");
      break;
    }
    ++told;
    append(made, made.empty() ? "" : "; ", name_nodes(group.nodes), ": ");
    bool first = true;
    bool nested = false;
    for (const std::string& line : describe(group, explanation)) {
      const bool deeper = line.starts_with("  ");
      append(made, first ? "" : deeper && !nested ? ": " : ", ", trim(line));
      nested = deeper;
      first = false;
    }
  }
  for (const std::string& name : explanation.empty_classes) {
    append(made, ". No device is of class ", name);
  }
  if (!explanation.fixes.empty()) {
    const Fix& fix = explanation.fixes.front();
    append(made, ". Would help: ", fix.text(), " (", name_nodes(fix.nodes), ")");
  }
  if (explanation.nodes_looked_at < explanation.nodes) {
    append(made, ". Looked at ", explanation.nodes_looked_at, " of ", explanation.nodes, " nodes");
  }
  return made;
}

Value to_json(const Explanation& explanation) {
  Value able = Value::array();
  for (const AbleNode& node : explanation.able) {
    able.push(Value::object({{"node", node.name}, {"score", node.score}}));
  }
  Value groups = Value::array();
  for (const NodeGroup& group : explanation.groups) {
    Value obstacles = Value::array();
    for (const Obstacle& obstacle : group.obstacles) obstacles.push(to_json(obstacle));
    Value entry =
        Value::object({{"nodes", to_array(group.nodes)}, {"obstacles", std::move(obstacles)}});
    if (group.devices.has_value()) {
      entry.set("devices", alloc::to_json(*group.devices, explanation.demand(group)));
    }
    groups.push(std::move(entry));
  }
  Value fixes = Value::array();
  for (const Fix& fix : explanation.fixes) {
    fixes.push(Value::object({{"changes", to_array(fix.changes)}, {"nodes", to_array(fix.nodes)}}));
  }
  return Value::object({{"nodes", explanation.nodes},
                        {"feasible", std::move(able)},
                        {"groups", std::move(groups)},
                        {"emptyClasses", to_array(explanation.empty_classes)},
                        {"fixes", std::move(fixes)}});
}

}  // namespace dibs::scheduler
