#include "cdi/inject.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/strings.h"

namespace dibs::cdi {
namespace {

using json::Value;

Value texts(const std::vector<std::string>& items) {
  Value list = Value::array();
  for (const auto& item : items) list.push(item);
  return list;
}

std::string_view key_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

void add_env(Value& config, const std::vector<std::string>& entries) {
  Value& env = config.mut("process").mut("env");
  for (const auto& entry : entries) {
    bool replaced = false;
    for (std::size_t i = 0; i < env.size() && !replaced; ++i) {
      if (key_of(env[i].as_string()) == key_of(entry)) {
        env.mut(i) = entry;
        replaced = true;
      }
    }
    if (!replaced) env.push(entry);
  }
}

// What the spec leaves open comes from the host's node. A node with type and number needs none.
Result<DeviceNode> complete(DeviceNode node, const HostNodes& nodes) {
  const bool specified = !node.type.empty() && (node.major != 0 || node.type == "p");
  if (node.host_path.empty()) node.host_path = node.path;
  auto host = nodes(node.host_path);
  if (!host.ok()) {
    if (specified) return node;
    return host.error().within(cat("failed to stat CDI host device ", quoted(node.host_path)));
  }
  if (!node.file_mode) node.file_mode = host->file_mode;
  if (specified) return node;
  const std::string type(1, host->type);
  if (node.type.empty()) node.type = type;
  if (node.type != type) {
    return Error::invalid(cat("CDI device (", quoted(node.path), ", ", quoted(node.host_path),
                              "), host type mismatch (", node.type, ", ", type, ")"));
  }
  if (node.type != "p" && node.major == 0) {
    node.major = host->major;
    node.minor = host->minor;
  }
  return node;
}

void remove_where(Value& list, std::string_view key, std::string_view text) {
  for (std::size_t i = list.size(); i-- > 0;) {
    if (list[i][key].as_string() == text) list.erase_at(i);
  }
}

Result<> add_node(Value& config, const DeviceNode& given, const HostNodes& nodes) {
  DIBS_TRY(const DeviceNode node, complete(given, nodes));
  Value device = Value::object({{"path", node.path}, {"type", node.type}});
  device.set("major", node.major);
  device.set("minor", node.minor);
  if (node.file_mode) device.set("fileMode", *node.file_mode);
  const Value& user = config["process"]["user"];
  const auto owner = [](const std::optional<std::uint32_t>& chosen, const Value& process) {
    return chosen ? static_cast<std::int64_t>(*chosen) : process.as_int();
  };
  const std::int64_t uid = owner(node.uid, user["uid"]);
  const std::int64_t gid = owner(node.gid, user["gid"]);
  if (node.uid || uid > 0) device.set("uid", uid);
  if (node.gid || gid > 0) device.set("gid", gid);

  Value& linux_part = config.mut("linux");
  Value& devices = linux_part.mut("devices");
  remove_where(devices, "path", node.path);
  devices.push(std::move(device));
  if (node.type == "b" || node.type == "c") {
    const std::string access = node.permissions == "none" ? ""
                               : node.permissions.empty() ? "rwm"
                                                          : node.permissions;
    linux_part.mut("resources")
        .mut("devices")
        .push(Value::object({{"allow", true},
                             {"type", node.type},
                             {"major", node.major},
                             {"minor", node.minor},
                             {"access", access}}));
  }
  return success();
}

// Separators in the cleaned path.
std::size_t depth(std::string_view path) {
  std::size_t parts = 0;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (parts > 0) --parts;
    } else {
      ++parts;
    }
  }
  return std::max<std::size_t>(parts, 1);
}

bool has_user_namespace(const Value& config) {
  for (const auto& space : config["linux"]["namespaces"].items()) {
    if (space["type"].as_string() == "user") return true;
  }
  return false;
}

// In a user namespace a bind mount keeps its owners only when it is mapped.
void map_ids(const Mount& mount, std::vector<std::string>& options) {
  std::string option = mount.type == "bind" ? "idmap" : "";
  for (const auto& given : options) {
    if (given == "idmap" || given == "ridmap") return;
    if (given == "bind") option = "idmap";
    if (given == "rbind") option = "ridmap";
  }
  if (!option.empty()) options.push_back(option);
}

void add_mounts(Value& config, const std::vector<Mount>& mounts) {
  const bool mapped = has_user_namespace(config);
  Value& list = config.mut("mounts");
  for (const auto& mount : mounts) {
    remove_where(list, "destination", mount.container_path);
    Value entry = Value::object({{"destination", mount.container_path}});
    if (!mount.type.empty()) entry.set("type", mount.type);
    entry.set("source", mount.host_path);
    std::vector<std::string> options = mount.options;
    if (mapped) map_ids(mount, options);
    if (!options.empty()) entry.set("options", texts(options));
    list.push(std::move(entry));
  }
  std::vector<Value> sorted(list.items().begin(), list.items().end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const Value& a, const Value& b) {
    return depth(a["destination"].as_string()) < depth(b["destination"].as_string());
  });
  Value again = Value::array();
  for (auto& mount : sorted) again.push(std::move(mount));
  list = std::move(again);
}

Result<> add_hook(Value& config, const Hook& hook) {
  if (!validate(ContainerEdits{.hooks = {hook}}).ok()) {
    return Error::invalid(cat("unknown hook name ", quoted(hook.hook_name)));
  }
  Value entry = Value::object({{"path", hook.path}});
  if (!hook.args.empty()) entry.set("args", texts(hook.args));
  if (!hook.env.empty()) entry.set("env", texts(hook.env));
  if (hook.timeout) entry.set("timeout", *hook.timeout);
  config.mut("hooks").mut(hook.hook_name).push(std::move(entry));
  return success();
}

void add_gids(Value& config, const std::vector<std::uint32_t>& gids) {
  Value& list = config.mut("process").mut("user").mut("additionalGids");
  for (const std::uint32_t gid : gids) {
    const auto items = list.items();
    const bool known = std::any_of(items.begin(), items.end(),
                                   [&](const Value& item) { return item.as_int(-1) == gid; });
    if (gid != 0 && !known) list.push(gid);
  }
  if (list.empty()) config.mut("process").mut("user").erase("additionalGids");
}

}  // namespace

Result<HostNode> host_node(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return Error::internal(to_lower(std::strerror(errno)));
  HostNode node;
  if (S_ISBLK(status.st_mode)) {
    node.type = 'b';
  } else if (S_ISCHR(status.st_mode)) {
    node.type = 'c';
  } else if (S_ISFIFO(status.st_mode)) {
    node.type = 'p';
  } else {
    return Error::invalid("not a device node");
  }
  node.major = ::major(status.st_rdev);
  node.minor = ::minor(status.st_rdev);
  node.file_mode = status.st_mode & ~static_cast<unsigned>(S_IFMT);
  return node;
}

Result<> apply(const ContainerEdits& edits, Value& config, const HostNodes& nodes) {
  Value edited = config;
  if (!edits.env.empty()) add_env(edited, edits.env);
  for (const auto& node : edits.device_nodes) DIBS_CHECK(add_node(edited, node, nodes));
  for (const auto& device : edits.net_devices) {
    edited.mut("linux")
        .mut("netDevices")
        .set(device.host_interface_name, Value::object({{"name", device.name}}));
  }
  if (!edits.mounts.empty()) add_mounts(edited, edits.mounts);
  for (const auto& hook : edits.hooks) DIBS_CHECK(add_hook(edited, hook));
  if (edits.intel_rdt) {
    edited.mut("linux").set("intelRdt", to_value(edits)["intelRdt"]);
  }
  if (!edits.additional_gids.empty()) add_gids(edited, edits.additional_gids);
  config = std::move(edited);
  return success();
}

}  // namespace dibs::cdi
