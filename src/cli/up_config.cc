#include "cli/up_config.h"

#include <algorithm>
#include <map>

#include "base/flags.h"
#include "base/names.h"
#include "base/plug_points.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "cli/config_file.h"
#include "cli/driver_options.h"
#include "drivers/drivers.h"
#include "json/parse.h"

namespace dibs::cli {
namespace {

using cluster::NodeGroup;
using json::Kind;
using json::Value;

constexpr std::size_t kMostGroups = 1000;
constexpr std::int64_t kMostPods = 100'000;

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : cat(path, ".", key);
}

/// Text or number, as somebody may write a quantity or an option.
std::string scalar_text(const Value& value) {
  switch (value.kind()) {
    case Kind::string:
      return value.str();
    case Kind::boolean:
    case Kind::integer:
    case Kind::number:
      return json::write(value);
    default:
      return "";
  }
}

/// Of one driver: {num-devices: 4, gpu-pcie-roots: [a, b]}.
Result<NamedDriver> read_options(const ConfigFile& file, const std::string& name,
                                 const Value& options, const std::string& path) {
  NamedDriver out{name};
  if (options.is_null()) return out;
  if (!options.is_object()) {
    return file.wrong(path, "must be options with values, such as {num-devices: 4}, or nothing");
  }
  for (const auto& [key, value] : options.members()) {
    const Value list = value.is_array() ? value : Value::array({value});
    for (const Value& item : list.items()) {
      const std::string text = scalar_text(item);
      if (text.empty()) {
        return file.wrong(below(path, key), "must be text, a number, true or false, or a list");
      }
      out.options.push_back(cat(key, "=", text));
    }
  }
  return out;
}

/// `gpu,net`, [gpu, "net:enable-ipv6=false"] or {gpu: {num-devices: 4}, net: {}}.
Result<std::vector<NamedDriver>> read_drivers(const ConfigFile& file, const Value& value,
                                              const std::string& path) {
  std::vector<NamedDriver> out;
  if (value.is_object()) {
    for (const auto& [name, options] : value.members()) {
      DIBS_TRY(auto driver, read_options(file, std::string(name), options, below(path, name)));
      out.push_back(std::move(driver));
    }
    return out;
  }
  std::vector<std::string> words;
  const Flag as_flag{"--drivers", &words, "", {.commas = true}};
  if (const auto set = set_flag(as_flag, value); !set.ok()) {
    return file.wrong(path, "must be names of drivers, or drivers with their options");
  }
  auto named = name_drivers(words);
  if (!named.ok()) return named.error().within(file.place(path));
  return named;
}

Result<> choose(const ConfigFile& file, const std::string& path,
                const std::vector<NamedDriver>& named, NodeGroup& group) {
  auto chosen = choose_drivers(named);
  if (!chosen.ok()) return chosen.error().within(file.place(path));
  for (ChosenDriver& driver : *chosen) {
    group.drivers.push_back(driver.name);
    group.tuning[driver.name] = std::move(driver.tuning);
  }
  return success();
}

Result<> read_labels(const ConfigFile& file, const Value& labels, const std::string& path,
                     NodeGroup& group) {
  if (!labels.is_object()) return file.wrong(path, "must be keys with values");
  for (const auto& [key, value] : labels.members()) {
    const std::string place = below(path, key);
    if (const auto wrong = is_qualified_name(key); !wrong.empty()) {
      return file.wrong(place, cat("is no key of a label: ", wrong.front()));
    }
    if (!value.is_string()) return file.wrong(place, "must be text: put it in quotes");
    if (const auto wrong = is_label_value(value.as_string()); !wrong.empty()) {
      return file.wrong(place, cat("is no value of a label: ", wrong.front()));
    }
    for (const char* own : {"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"}) {
      if (key == own) return file.wrong(place, "every node says this of itself");
    }
    group.labels[std::string(key)] = value.str();
  }
  return success();
}

Result<> read_taints(const ConfigFile& file, const Value& taints, const std::string& path,
                     NodeGroup& group) {
  if (!taints.is_array()) return file.wrong(path, "must be a list of taints");
  group.taints = Value::array();
  for (const Value& taint : taints.items()) {
    const std::string place = cat(path, "[", group.taints.size(), "]");
    if (!taint.is_object()) {
      return file.wrong(place, "must be as {key: dedicated, value: gpu, effect: NoSchedule}");
    }
    DIBS_CHECK(check_keys(file, taint, place, {"key", "value", "effect"}));
    if (const auto wrong = is_qualified_name(taint["key"].as_string()); !wrong.empty()) {
      return file.wrong(below(place, "key"), wrong.front());
    }
    const std::string_view effect = taint["effect"].as_string();
    if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
      return file.wrong(below(place, "effect"),
                        "must be NoSchedule, PreferNoSchedule or NoExecute");
    }
    Value made = Value::object({{"key", taint["key"]}, {"effect", effect}});
    if (const Value& value = taint["value"]; !value.is_null()) {
      if (!value.is_string()) {
        return file.wrong(below(place, "value"), "must be text: put it in quotes");
      }
      if (const auto wrong = is_label_value(value.as_string()); !wrong.empty()) {
        return file.wrong(below(place, "value"), wrong.front());
      }
      if (!value.as_string().empty()) made.set("value", value);
    }
    for (const Value& before : group.taints.items()) {
      if (before["key"] == made["key"] && before["effect"] == made["effect"]) {
        return file.wrong(place, "there is one of the same key and effect before it");
      }
    }
    group.taints.push(std::move(made));
  }
  return success();
}

Result<> read_capacity(const ConfigFile& file, const Value& capacity, const std::string& path,
                       NodeGroup& group) {
  if (!capacity.is_object()) return file.wrong(path, "must be as {cpu: 4, memory: 8Gi, pods: 110}");
  DIBS_CHECK(check_keys(file, capacity, path, {"cpu", "memory", "pods"}));
  for (const auto& [name, value] : capacity.members()) {
    const std::string place = below(path, name);
    if (name == "pods") {
      if (value.kind() != Kind::integer || value.as_int() < 0 || value.as_int() > kMostPods) {
        return file.wrong(place, cat("must be a whole number from 0 to ", kMostPods));
      }
      group.capacity["pods"] = std::to_string(value.as_int());
      continue;
    }
    const auto amount = Quantity::parse(scalar_text(value));
    // As much as its numbers hold, in billionths.
    if (!amount.ok() || amount->sign() <= 0 || amount->approximate() > 9e18) {
      return file.wrong(place, name == "cpu" ? "must be an amount above 0, such as 4 or 500m"
                                             : "must be an amount above 0, such as 8Gi");
    }
    group.capacity[std::string(name)] = amount->str();
  }
  return success();
}

Result<> read_count(const ConfigFile& file, const Value& value, const std::string& path,
                    const Flag& nodes, NodeGroup& group) {
  Flag as_flag = nodes;
  as_flag.target = &group.count;
  if (const auto set = set_flag(as_flag, value); !set.ok()) {
    return file.wrong(path, set.error().message());
  }
  return success();
}

const Flag& flag_named(const Flags& table, std::string_view name) {
  return *std::find_if(table.begin(), table.end(),
                       [&](const Flag& flag) { return name_of(flag) == name; });
}

/// The groups of the file, and what each of them has for drivers: their own, or those of all.
struct Groups {
  std::vector<NodeGroup> all;
  std::vector<std::vector<NamedDriver>> drivers;
  std::vector<std::string> driver_paths;
};

Result<NodeGroup> read_group(const ConfigFile& file, const Value& value, const std::string& path,
                             const Flag& nodes) {
  if (!value.is_object()) {
    return file.wrong(path, "must be a group of nodes, such as {prefix: big-, count: 2}");
  }
  DIBS_CHECK(check_keys(file, value, path,
                        {"prefix", "count", "labels", "taints", "capacity", "drivers"}));
  NodeGroup group;
  group.prefix.clear();
  if (value.contains("count")) {
    DIBS_CHECK(read_count(file, value["count"], below(path, "count"), nodes, group));
  }
  if (value.contains("prefix")) {
    if (value["prefix"].as_string().empty()) {
      return file.wrong(below(path, "prefix"), "must be text, such as \"big-\"");
    }
    group.prefix = value["prefix"].str();
    if (const auto wrong = is_dns1123_subdomain(cat(group.prefix, group.count)); !wrong.empty()) {
      return file.wrong(below(path, "prefix"), cat(quoted(cat(group.prefix, group.count)),
                                                   " is no name for a node: ", wrong.front()));
    }
  }
  for (const auto& [key, read] : {std::pair("labels", &read_labels),
                                  {"taints", &read_taints},
                                  {"capacity", &read_capacity}}) {
    if (value.contains(key)) DIBS_CHECK(read(file, value[key], below(path, key), group));
  }
  return group;
}

Result<> check_names(const ConfigFile& file, const std::vector<NodeGroup>& groups) {
  std::map<std::string, std::size_t, std::less<>> owners;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (unsigned i = 0; i < groups[g].count; ++i) {
      std::string name = cat(groups[g].prefix, i);
      const auto [known, is_new] = owners.emplace(std::move(name), g);
      if (is_new) continue;
      return file.wrong(cat("nodes[", g, "]"),
                        cat("its node ", quoted(known->first), " has the name of one of nodes[",
                            known->second, "]: give it another prefix"));
    }
  }
  return success();
}

/// What a driver does for the whole cluster it can be told once.
Result<> check_agreement(const ConfigFile& file, const Groups& groups) {
  std::map<std::string, const NamedDriver*> first;
  for (std::size_t g = 0; g < groups.drivers.size(); ++g) {
    for (const NamedDriver& driver : groups.drivers[g]) {
      const auto* kind = find_named(drivers::driver_kinds(), driver.name);
      if (kind == nullptr || kind->cluster == nullptr) continue;
      const auto [known, is_new] = first.emplace(driver.name, &driver);
      if (is_new || known->second->options == driver.options) continue;
      return file.wrong(groups.driver_paths[g],
                        cat(driver.name,
                            " has a half for the whole cluster, so that all groups "
                            "that have it must give it the same options"));
    }
  }
  return success();
}

Result<Groups> read_groups(const ConfigFile& file, const Value& nodes, const Flag& flag,
                           const std::string& prefix, const std::vector<NamedDriver>& drivers,
                           const std::string& drivers_path) {
  Groups out;
  if (nodes.size() > kMostGroups) {
    return file.wrong("nodes", cat("at most ", kMostGroups, " groups"));
  }
  double count = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string path = cat("nodes[", i, "]");
    DIBS_TRY(NodeGroup group, read_group(file, nodes[i], path, flag));
    if (group.prefix.empty()) group.prefix = prefix;
    count += group.count;
    const bool own = nodes[i].contains("drivers");
    out.driver_paths.push_back(own ? below(path, "drivers") : drivers_path);
    out.drivers.push_back(drivers);
    if (own) {
      DIBS_TRY(out.drivers.back(),
               read_drivers(file, nodes[i]["drivers"], out.driver_paths.back()));
    }
    DIBS_CHECK(choose(file, out.driver_paths.back(), out.drivers.back(), group));
    out.all.push_back(std::move(group));
  }
  if (count > *flag.form.most) {
    return file.wrong("nodes", cat("must be ", static_cast<std::int64_t>(*flag.form.most),
                                   " nodes at most, and are ", static_cast<std::int64_t>(count)));
  }
  DIBS_CHECK(check_names(file, out.all));
  DIBS_CHECK(check_agreement(file, out));
  return out;
}

/// Nodes and drivers: what flags say, too, and more.
Result<> read_nodes(const ConfigFile& file, ServeFlags& flags, const Flags& table,
                    const std::set<std::string>& given) {
  const Flag& count = flag_named(table, "--nodes");
  const Value& nodes = file.values["nodes"];
  const bool has_drivers = file.values.contains("drivers") && !given.contains("--drivers");
  const bool has_nodes = file.values.contains("nodes") && !given.contains("--nodes");
  std::vector<NamedDriver> drivers;
  if (has_drivers) {
    DIBS_TRY(drivers, read_drivers(file, file.values["drivers"], "drivers"));
  } else {
    DIBS_TRY(drivers, name_drivers(flags.drivers));
  }
  const std::string prefix = flags.node_prefix.empty() ? NodeGroup().prefix : flags.node_prefix;
  if (has_nodes && nodes.is_array()) {
    DIBS_TRY(Groups groups, read_groups(file, nodes, count, prefix, drivers, "drivers"));
    flags.groups = std::move(groups.all);
    flags.nodes = 0;
    for (const NodeGroup& group : flags.groups) flags.nodes += group.count;
    return success();
  }
  if (has_nodes) {
    if (nodes.kind() != Kind::integer && nodes.kind() != Kind::number) {
      return file.wrong("nodes", "must be a whole number, or a list of groups of nodes");
    }
    if (const auto set = set_flag(count, nodes); !set.ok()) {
      return file.wrong("nodes", set.error().message());
    }
  }
  if (!has_drivers) return success();
  NodeGroup group;
  group.count = flags.nodes;
  group.prefix = prefix;
  DIBS_CHECK(choose(file, "drivers", drivers, group));
  flags.groups = {std::move(group)};
  return success();
}

}  // namespace

Result<> read_up_config(ServeFlags& flags, const Flags& table, const std::set<std::string>& given) {
  if (flags.config.empty()) {
    if (!given.contains("--config")) return success();
    return Error::bad_request("--config: needs a file");
  }
  DIBS_TRY(const ConfigFile file, read_config(flags.config));
  std::vector<std::string> keys;
  for (const Flag& flag : table) {
    if (name_of(flag) != "--config") keys.push_back(key_of(flag));
  }
  DIBS_CHECK(check_keys(file, file.values, "", keys));
  for (const Flag& flag : table) {
    const std::string key = key_of(flag);
    if (!file.values.contains(key) || given.contains(name_of(flag))) continue;
    flags.places[name_of(flag)] = file.place(key);
    if (key == "nodes" || key == "drivers") continue;
    if (const auto set = set_flag(flag, file.values[key]); !set.ok()) {
      return file.wrong(key, set.error().message());
    }
  }
  return read_nodes(file, flags, table, given);
}

std::vector<std::string> idle_flags(const ServeFlags& flags, const std::set<std::string>& given) {
  constexpr const char* kOfNodes[] = {"--allowed-unsafe-sysctls",
                                      "--cdi-newest-version",
                                      "--cluster-domain",
                                      "--container-log-max-files",
                                      "--container-log-max-size",
                                      "--eviction-hard",
                                      "--eviction-pressure-transition-period",
                                      "--image-alias",
                                      "--image-gc-high-threshold",
                                      "--image-gc-low-threshold",
                                      "--images",
                                      "--insecure-registries",
                                      "--local-storage-capacity-isolation",
                                      "--network-namespaces",
                                      "--node-address",
                                      "--node-prefix",
                                      "--runtime"};
  std::vector<std::string> idle;
  if (flags.nodes > 0) return idle;
  for (const char* flag : kOfNodes) {
    if (given.contains(flag) || flags.places.contains(flag)) idle.emplace_back(flag);
  }
  return idle;
}

Error with_place(const ServeFlags& flags, const Error& error) {
  const std::string& message = error.message();
  const std::string flag = message.substr(0, message.find_first_of(" :,"));
  const auto place = flags.places.find(flag);
  return place == flags.places.end() ? error : error.within(place->second);
}

}  // namespace dibs::cli
