#include "cli/top.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "base/strings.h"
#include "cli/columns.h"
#include "cli/process.h"
#include "cli/top_devices.h"
#include "client/https_transport.h"
#include "json/parse.h"
#include "json/yaml.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

using json::Value;

using Rows = std::vector<std::vector<std::string>>;

std::string or_none(const std::string& text) { return text.empty() ? "<none>" : text; }

std::string listed(const std::vector<std::string>& all, bool wide) {
  constexpr std::size_t kMost = 3;
  if (wide || all.size() <= kMost) return or_none(join(all, ","));
  const std::vector<std::string> some(all.begin(), all.begin() + kMost);
  return cat(join(some, ","), " + ", all.size() - kMost, " more...");
}

Value texts(const std::vector<std::string>& all) {
  Value made = Value::array();
  for (const std::string& text : all) made.push(text);
  return made;
}

/// "memory 40Gi/80Gi".
std::string use_text(const std::vector<TopCapacity>& all) {
  std::vector<std::string> made;
  for (const TopCapacity& one : all) {
    made.push_back(cat(one.name, " ", one.used.canonical(), "/", one.all.canonical()));
  }
  return or_none(join(made, ","));
}

Value use_document(const std::vector<TopCapacity>& all) {
  Value made = Value::array();
  for (const TopCapacity& one : all) {
    made.push(Value::object(
        {{"name", one.name}, {"used", one.used.canonical()}, {"total", one.all.canonical()}}));
  }
  return made;
}

/// "12Gi", "1.5Gi": rounded, since it is measured.
std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1023.5 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  const long tenths = std::lround(amount * 10);
  if (tenths < 100 && tenths % 10 != 0) return cat(tenths / 10, ".", tenths % 10, kUnits[unit]);
  return cat(std::lround(amount), kUnits[unit]);
}

/// "memory 12Gi/140Gi, 37%"; after what claims have of it, where it is shared.
std::string used_text(const TopDevice& device) {
  const TopUsage& usage = device.usage;
  if (!usage.told()) return use_text(device.shares);
  std::vector<std::string> made;
  if (usage.memory > 0) {
    made.push_back(cat("memory ", bytes_text(usage.memory_used), "/", bytes_text(usage.memory)));
  }
  if (usage.percent) made.push_back(cat(*usage.percent, "%"));
  const std::string text = join(made, ", ");
  return device.shares.empty() ? text : cat(use_text(device.shares), "; now ", text);
}

Value usage_document(const TopUsage& usage) {
  Value made = Value::object();
  if (usage.memory > 0) {
    made.set("memoryUsed", usage.memory_used);
    made.set("memory", usage.memory);
  }
  if (usage.percent) made.set("percent", *usage.percent);
  return made;
}

std::vector<std::string> claims_of(const TopDevice& device) {
  std::vector<std::string> made;
  for (const Value* claim : device.claims) made.push_back(key_of_claim(*claim));
  return made;
}

std::vector<std::string> pods_of(const TopDevice& device) {
  std::set<std::string> made;
  for (const Value* claim : device.claims) {
    for (const std::string& pod : pods_of_claim(*claim)) made.insert(pod);
  }
  return {made.begin(), made.end()};
}

struct Page {
  Rows rows;
  Value items = Value::array();
};

class Show {
 public:
  Show(const WhyObjects& objects, const TopFlags& flags, const std::string& name_space, Time now)
      : objects_(objects),
        flags_(flags),
        name_space_(name_space),
        now_(now),
        wide_(flags.output == "wide") {
    for (const Value& node : objects.nodes) {
      nodes_.emplace(node["metadata"]["name"].as_string(), &node);
    }
  }

  Page page() {
    if (flags_.what == "claims") {
      claims();
    } else if (flags_.what == "nodes") {
      nodes();
    } else {
      devices();
    }
    return std::move(page_);
  }

 private:
  bool chosen(const TopDevice& device) const {
    if (!flags_.driver.empty() && device.driver != flags_.driver) return false;
    return flags_.selector.empty() || nodes_.contains(device.node);
  }

  void devices() {
    page_.rows.push_back({"NODE", "DRIVER", "POOL", "DEVICE", "STATE", "CLAIM", "POD", "USED"});
    if (wide_) page_.rows[0].insert(page_.rows[0].end(), {"COUNTERS", "TAINTS", "HEALTH", "ADMIN"});
    for (const TopDevice& device : devices_in(objects_)) {
      if (!chosen(device)) continue;
      // A namespace has devices by its claims.
      if (!name_space_.empty() &&
          std::none_of(device.claims.begin(), device.claims.end(), [&](const Value* claim) {
            return (*claim)["metadata"]["namespace"].as_string() == name_space_;
          })) {
        continue;
      }
      std::vector<std::string> admins;
      for (const Value* claim : device.admins) admins.push_back(key_of_claim(*claim));
      page_.rows.push_back({device.node, device.driver, device.pool, device.name, device.state(),
                            listed(claims_of(device), wide_), listed(pods_of(device), wide_),
                            used_text(device)});
      if (wide_) {
        page_.rows.back().insert(page_.rows.back().end(),
                                 {use_text(device.counters), or_none(join(device.taints, ",")),
                                  or_none(join(device.ills, ",")), or_none(join(admins, ","))});
      }
      page_.items.push(Value::object({{"node", device.node},
                                      {"driver", device.driver},
                                      {"pool", device.pool},
                                      {"device", device.name},
                                      {"state", device.state()},
                                      {"free", device.free()},
                                      {"claims", texts(claims_of(device))},
                                      {"adminClaims", texts(admins)},
                                      {"pods", texts(pods_of(device))},
                                      {"capacity", use_document(device.shares)},
                                      {"counters", use_document(device.counters)},
                                      {"taints", texts(device.taints)},
                                      {"health", texts(device.ills)}}));
      if (device.usage.told()) {
        page_.items.mut(page_.items.size() - 1).set("usage", usage_document(device.usage));
      }
    }
  }

  void claims() {
    const bool all = name_space_.empty();
    page_.rows.push_back({"NAME", "STATE", "DEVICES", "NODE", "POD", "AGE"});
    if (all) page_.rows[0].insert(page_.rows[0].begin(), "NAMESPACE");
    if (wide_) page_.rows[0].emplace_back("NAMES");
    std::map<const Value*, std::vector<std::string>> ills;
    std::map<const Value*, std::set<std::string>> places;
    for (const TopDevice& device : devices_in(objects_)) {
      for (const Value* claim : device.claims) {
        places[claim].insert(device.node);
        if (!device.ills.empty()) ills[claim].push_back(device.name);
      }
    }
    std::vector<const Value*> sorted;
    for (const Value& claim : objects_.claims) {
      if (all || claim["metadata"]["namespace"].as_string() == name_space_) {
        sorted.push_back(&claim);
      }
    }
    std::sort(sorted.begin(), sorted.end(), [](const Value* a, const Value* b) {
      return comes_before(key_of_claim(*a), key_of_claim(*b));
    });
    for (const Value* claim : sorted) {
      std::map<std::string, std::size_t> by_driver;
      std::vector<std::string> names;
      for (const Value& result : (*claim)["status"]["allocation"]["devices"]["results"].items()) {
        ++by_driver[result["driver"].str()];
        names.push_back(cat(result["pool"].as_string(), "/", result["device"].as_string()));
      }
      if (!flags_.driver.empty() && !by_driver.contains(flags_.driver)) continue;
      std::vector<std::string> counts;
      for (const auto& [driver, count] : by_driver) counts.push_back(cat(count, " ", driver));
      const Value& metadata = (*claim)["metadata"];
      const std::set<std::string>& on = places[claim];
      std::string state = state_of(*claim);
      if (!ills[claim].empty()) state += ",unhealthy";
      const std::string node = or_none(join({on.begin(), on.end()}, ","));
      std::vector<std::string> row = {metadata["name"].str(),          state,
                                      or_none(join(counts, ",")),      node,
                                      listed(users_of(*claim), wide_), age_of(metadata)};
      if (all) row.insert(row.begin(), metadata["namespace"].str());
      if (wide_) row.push_back(listed(names, true));
      page_.rows.push_back(std::move(row));
      page_.items.push(Value::object({{"namespace", metadata["namespace"]},
                                      {"name", metadata["name"]},
                                      {"state", state},
                                      {"devices", texts(names)},
                                      {"node", node},
                                      {"users", texts(users_of(*claim))},
                                      {"creationTimestamp", metadata["creationTimestamp"]}}));
    }
  }

  static std::string state_of(const Value& claim) {
    const Value& status = claim["status"];
    std::string made = !status["allocation"].is_object()   ? "pending"
                       : status["reservedFor"].size() == 0 ? "allocated"
                                                           : "held";
    if (claim["metadata"]["deletionTimestamp"].is_string()) made += ",deleting";
    return made;
  }

  /// Pods by their name alone, since they are of the claim's namespace.
  static std::vector<std::string> users_of(const Value& claim) {
    std::vector<std::string> made;
    for (const Value& user : claim["status"]["reservedFor"].items()) {
      const auto resource = user["resource"].as_string();
      made.push_back(resource == "pods" ? user["name"].str()
                                        : cat(resource, "/", user["name"].as_string()));
    }
    std::sort(made.begin(), made.end());
    return made;
  }

  std::string age_of(const Value& metadata) const {
    const auto since = parse_rfc3339(metadata["creationTimestamp"].as_string());
    return since ? human_duration(now_ - *since) : "<unknown>";
  }

  struct Count {
    std::size_t total = 0;
    std::size_t held = 0;
    std::size_t free = 0;
    std::size_t ill = 0;
  };

  void nodes() {
    page_.rows.push_back({"NODE", "STATUS", "PODS", "DRIVER", "DEVICES", "HELD", "FREE", "UNFIT"});
    std::map<std::string, std::map<std::string, Count>> counts;  // by node and driver
    for (const TopDevice& device : devices_in(objects_)) {
      if (!chosen(device)) continue;
      Count& count = counts[device.node][device.driver];
      if (!device.gone) ++count.total;
      if (device.held()) ++count.held;
      if (device.free()) ++count.free;
      if (device.gone || device.incomplete || !device.taints.empty() || !device.ills.empty()) {
        ++count.ill;
      }
    }
    std::map<std::string, std::size_t> pods;
    for (const Value& pod : objects_.pods) {
      const auto phase = pod["status"]["phase"].as_string();
      if (phase != "Succeeded" && phase != "Failed") ++pods[pod["spec"]["nodeName"].str()];
    }
    std::vector<std::string> names;
    for (const auto& [name, node] : nodes_) names.emplace_back(name);
    for (const auto& [name, drivers] : counts) {
      if (!nodes_.contains(name)) names.push_back(name);
    }
    std::sort(names.begin(), names.end(), comes_before);
    for (const std::string& name : names) {
      const auto known = nodes_.find(name);
      const std::string status = known == nodes_.end() ? "<none>" : status_of(*known->second);
      auto& drivers = counts[name];
      if (drivers.empty()) {
        if (!flags_.driver.empty()) continue;
        drivers["<none>"];
      }
      Value per_driver = Value::array();
      for (const auto& [driver, count] : drivers) {
        page_.rows.push_back({name, status, std::to_string(pods[name]), driver,
                              std::to_string(count.total), std::to_string(count.held),
                              std::to_string(count.free), std::to_string(count.ill)});
        if (driver == "<none>") continue;
        per_driver.push(Value::object({{"driver", driver},
                                       {"devices", count.total},
                                       {"held", count.held},
                                       {"free", count.free},
                                       {"unfit", count.ill}}));
      }
      page_.items.push(Value::object({{"node", name},
                                      {"status", status},
                                      {"pods", pods[name]},
                                      {"drivers", std::move(per_driver)}}));
    }
  }

  /// As kubectl has it.
  static std::string status_of(const Value& node) {
    std::string made = "Unknown";
    for (const Value& condition : node["status"]["conditions"].items()) {
      if (condition["type"].as_string() != "Ready") continue;
      made = condition["status"].as_string() == "True" ? "Ready" : "NotReady";
    }
    if (node["spec"]["unschedulable"].as_bool()) made += ",SchedulingDisabled";
    return made;
  }

  const WhyObjects& objects_;
  const TopFlags& flags_;
  const std::string& name_space_;
  Time now_;
  bool wide_;
  std::map<std::string, const Value*, std::less<>> nodes_;
  Page page_;
};

TopOutcome failed(const std::string& message) { return {1, "", cat("dibs top: ", message, "\n")}; }

/// What a picture cannot be drawn without.
std::string missing_for(const TopFlags& flags, const WhyObjects& objects) {
  for (const std::string& text : objects.refused) {
    const bool slices = text.starts_with("resourceslices ") && flags.what != "claims";
    const bool claims = text.starts_with("resourceclaims (") && flags.what == "claims";
    const bool nodes =
        text.starts_with("nodes ") && (flags.what == "nodes" || !flags.selector.empty());
    if (slices || claims || nodes) return text;
  }
  return {};
}

TopOutcome look(const TopFlags& flags, client::Client& client, const std::string& name_space,
                Time now) {
  FetchScope scope;
  scope.inventory = true;
  scope.name_space = name_space;
  scope.node_labels = flags.what == "claims" ? std::string() : flags.selector;
  auto objects = fetch_objects(client, scope);
  if (!objects.ok() && !flags.selector.empty() && objects.error().code() == Code::bad_request) {
    return {2, "",
            cat("dibs top: --selector ", quoted(flags.selector), ": ", objects.error().message(),
                "\n")};
  }
  if (!objects.ok()) return failed(objects.error().message());
  if (const std::string missing = missing_for(flags, *objects); !missing.empty()) {
    return failed(cat("not without ", missing));
  }
  const bool narrow = flags.what == "claims" || !flags.name_space.empty();
  TopOutcome made;
  made.output =
      show_top(*objects, flags, narrow && !flags.all_namespaces ? name_space : std::string(), now);
  if (made.output.empty()) made.errors = cat("No ", flags.what, " found.\n");
  for (const std::string& text : objects->refused) {
    append(made.errors, "dibs top: told without ", text, "\n");
  }
  return made;
}

}  // namespace

std::string show_top(const WhyObjects& objects, const TopFlags& flags,
                     const std::string& name_space, Time now) {
  Page page = Show(objects, flags, name_space, now).page();
  if (flags.output == "table" || flags.output == "wide") {
    return page.rows.size() == 1 ? std::string() : in_columns(page.rows);
  }
  const char* kind = flags.what == "claims"  ? "ClaimList"
                     : flags.what == "nodes" ? "NodeList"
                                             : "DeviceList";
  const Value document = Value::object({{"kind", kind}, {"items", std::move(page.items)}});
  return flags.output == "yaml" ? json::write_yaml(document)
                                : cat(json::write_pretty(document), "\n");
}

TopOutcome top(const TopFlags& flags, const std::function<void(const TopOutcome&)>& show) {
  const auto wrong = [](const char* text) {
    return TopOutcome{2, "", cat("dibs top: ", text, "\n")};
  };
  if (flags.all_namespaces && !flags.name_space.empty()) {
    return wrong("--namespace and --all-namespaces exclude each other");
  }
  if (flags.what == "nodes" && !flags.name_space.empty()) {
    return wrong("--namespace says nothing about nodes: take dibs top devices -n");
  }
  if (flags.what == "claims" && !flags.selector.empty()) {
    return wrong("--selector chooses nodes, and claims are of none: leave it out");
  }
  if (flags.interval < std::chrono::milliseconds(100)) {
    return wrong("--interval: at least 100ms");
  }
  runtime::Files& files = runtime::system_files();
  const auto access = find_access(flags.kubeconfig, flags.context);
  if (!access.ok()) return failed(access.error().message());
  runtime::RealRuntime runtime;
  const auto transport = client::make_https_transport(*access, files, runtime.runtime());
  if (!transport.ok()) return failed(transport.error().message());
  client::Client client(**transport);
  std::string name_space = flags.name_space.empty() ? access->default_namespace : flags.name_space;
  if (flags.all_namespaces) name_space.clear();
  while (true) {
    TopOutcome outcome = look(flags, client, name_space, runtime.runtime().clock.now());
    if (!flags.watch || outcome.status != 0) return outcome;
    show(outcome);
    std::this_thread::sleep_for(flags.interval);
  }
}

}  // namespace dibs::cli
