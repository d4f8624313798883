#include "cdi/spec.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"

namespace dibs::cdi {
namespace {

constexpr std::array<std::string_view, 10> kVersions = {
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
constexpr std::array<std::string_view, 6> kHooks = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};

bool any_edits(const Spec& spec, bool (*uses)(const ContainerEdits&)) {
  return uses(spec.edits) || std::any_of(spec.devices.begin(), spec.devices.end(),
                                         [&](const Device& device) { return uses(device.edits); });
}

bool uses_1_1_0(const ContainerEdits& edits) {
  return !edits.net_devices.empty() ||
         (edits.intel_rdt && (edits.intel_rdt->schemata || edits.intel_rdt->enable_monitoring));
}

bool uses_0_7_0(const ContainerEdits& edits) {
  return edits.intel_rdt || !edits.additional_gids.empty();
}

bool uses_0_5_0(const ContainerEdits& edits) {
  return std::any_of(edits.device_nodes.begin(), edits.device_nodes.end(),
                     [](const DeviceNode& node) { return !node.host_path.empty(); });
}

bool uses_0_4_0(const ContainerEdits& edits) {
  return std::any_of(edits.mounts.begin(), edits.mounts.end(),
                     [](const Mount& mount) { return !mount.type.empty(); });
}

Result<> check_version(const Spec& spec, std::string_view newest) {
  std::string_view version = spec.version;
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto declared = std::find(kVersions.begin(), kVersions.end(), version);
  const auto last = std::find(kVersions.begin(), kVersions.end(), newest);
  if (declared == kVersions.end() || (last != kVersions.end() && declared > last)) {
    return Error::invalid(cat("invalid version ", quoted(spec.version)));
  }
  const std::string minimum = minimum_version(spec);
  if (declared < std::find(kVersions.begin(), kVersions.end(), minimum)) {
    return Error::invalid(cat("the spec version must be at least v", minimum));
  }
  return success();
}

Result<> check_env(const std::vector<std::string>& env) {
  for (const auto& entry : env) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error::invalid(cat("invalid environment variable ", quoted(entry)));
    }
  }
  return success();
}

Result<> check_node(const DeviceNode& node) {
  if (node.path.empty()) return Error::invalid("invalid (empty) device path");
  constexpr std::string_view kTypes = "bcup";
  if (!node.type.empty() &&
      (node.type.size() != 1 || kTypes.find(node.type[0]) == std::string_view::npos)) {
    return Error::invalid(cat("device ", quoted(node.path), ": invalid type ", quoted(node.type)));
  }
  if (node.permissions != "none" &&
      node.permissions.find_first_not_of("rwm") != std::string::npos) {
    return Error::invalid(
        cat("device ", quoted(node.path), ": invalid permissions ", quoted(node.permissions)));
  }
  return success();
}

Result<> check_hook(const Hook& hook) {
  if (std::find(kHooks.begin(), kHooks.end(), hook.hook_name) == kHooks.end()) {
    return Error::invalid(cat("invalid hook name ", quoted(hook.hook_name)));
  }
  if (hook.path.empty()) {
    return Error::invalid(cat("invalid hook ", quoted(hook.hook_name), " with empty path"));
  }
  if (auto env = check_env(hook.env); !env.ok()) {
    return env.error().within(cat("invalid hook ", quoted(hook.hook_name)));
  }
  return success();
}

// The class of service is a folder's name; "/" is the root class.
Result<> check_rdt(const IntelRdt& rdt) {
  const std::string& id = rdt.clos_id;
  if (id == "/") return success();
  if (id.size() >= 4096 || id == "." || id == ".." || id.find_first_of("/\n") != id.npos) {
    return Error::invalid("invalid ClosID");
  }
  return success();
}

Result<> check_net_devices(const std::vector<NetDevice>& devices) {
  std::map<std::string, std::string> by_host, by_name;
  for (const auto& device : devices) {
    if (device.host_interface_name.empty()) {
      return Error::invalid("invalid linux net device, empty HostInterfaceName");
    }
    if (device.name.empty()) return Error::invalid("invalid linux net device, empty Name");
    if (const auto other = by_host.find(device.host_interface_name); other != by_host.end()) {
      return Error::invalid(cat("invalid linux net device, duplicate HostInterfaceName ",
                                quoted(device.host_interface_name), " with names ",
                                quoted(device.name), " and ", quoted(other->second)));
    }
    by_host[device.host_interface_name] = device.name;
    if (const auto other = by_name.find(device.name); other != by_name.end()) {
      return Error::invalid(cat("invalid linux net device, duplicate Name ", quoted(device.name),
                                " with HostInterfaceName ", quoted(device.host_interface_name),
                                " and ", quoted(other->second)));
    }
    by_name[device.name] = device.host_interface_name;
  }
  return success();
}

Result<> check_device_entry(const Kind& kind, const Device& device) {
  DIBS_CHECK(check_device(device.name));
  DIBS_CHECK(check_annotations(qualified_name(kind.vendor, kind.class_name, device.name),
                               device.annotations));
  if (device.edits.empty()) return Error::invalid("invalid device, empty device edits");
  if (auto edits = validate(device.edits); !edits.ok()) {
    return edits.error().within(cat("invalid device ", quoted(device.name)));
  }
  return success();
}

Result<> check_spec(const Spec& spec, std::string_view newest) {
  DIBS_CHECK(check_version(spec, newest));
  const Kind kind = split_kind(spec.kind);
  DIBS_CHECK(check_vendor(kind.vendor));
  DIBS_CHECK(check_class(kind.class_name));
  DIBS_CHECK(check_annotations(spec.kind, spec.annotations));
  DIBS_CHECK(validate(spec.edits));
  std::set<std::string_view> names;
  for (const auto& device : spec.devices) {
    if (auto entry = check_device_entry(kind, device); !entry.ok()) {
      return entry.error().within(cat("failed add device ", quoted(device.name)));
    }
    if (!names.insert(device.name).second) {
      return Error::invalid(cat("invalid spec, multiple device ", quoted(device.name)));
    }
  }
  if (names.empty()) return Error::invalid("invalid spec, no devices");
  return success();
}

}  // namespace

bool ContainerEdits::empty() const {
  return env.empty() && device_nodes.empty() && net_devices.empty() && hooks.empty() &&
         mounts.empty() && !intel_rdt && additional_gids.empty();
}

void ContainerEdits::append(const ContainerEdits& more) {
  env.insert(env.end(), more.env.begin(), more.env.end());
  device_nodes.insert(device_nodes.end(), more.device_nodes.begin(), more.device_nodes.end());
  net_devices.insert(net_devices.end(), more.net_devices.begin(), more.net_devices.end());
  hooks.insert(hooks.end(), more.hooks.begin(), more.hooks.end());
  mounts.insert(mounts.end(), more.mounts.begin(), more.mounts.end());
  if (more.intel_rdt) intel_rdt = more.intel_rdt;
  additional_gids.insert(additional_gids.end(), more.additional_gids.begin(),
                         more.additional_gids.end());
}

std::string minimum_version(const Spec& spec) {
  if (any_edits(spec, uses_1_1_0)) return "1.1.0";
  if (any_edits(spec, uses_0_7_0)) return "0.7.0";
  const auto slash = spec.kind.find('/');
  if (!spec.annotations.empty() ||
      std::any_of(spec.devices.begin(), spec.devices.end(),
                  [](const Device& device) { return !device.annotations.empty(); }) ||
      (slash != std::string::npos && spec.kind.find('.', slash) != std::string::npos)) {
    return "0.6.0";
  }
  if (any_edits(spec, uses_0_5_0) ||
      std::any_of(spec.devices.begin(), spec.devices.end(), [](const Device& device) {
        return !device.name.empty() && device.name[0] >= '0' && device.name[0] <= '9';
      })) {
    return "0.5.0";
  }
  if (any_edits(spec, uses_0_4_0)) return "0.4.0";
  return "0.3.0";
}

Result<> validate(const ContainerEdits& edits) {
  if (auto env = check_env(edits.env); !env.ok()) {
    return env.error().within("invalid container edits");
  }
  for (const auto& node : edits.device_nodes) DIBS_CHECK(check_node(node));
  for (const auto& hook : edits.hooks) DIBS_CHECK(check_hook(hook));
  for (const auto& mount : edits.mounts) {
    if (mount.host_path.empty()) return Error::invalid("invalid mount, empty host path");
    if (mount.container_path.empty()) return Error::invalid("invalid mount, empty container path");
  }
  if (edits.intel_rdt) DIBS_CHECK(check_rdt(*edits.intel_rdt));
  return check_net_devices(edits.net_devices);
}

std::vector<std::string> versions() { return {kVersions.begin(), kVersions.end()}; }

Result<> validate(const Spec& spec, std::string_view newest) {
  if (auto outcome = check_spec(spec, newest); !outcome.ok()) {
    return outcome.error().within("invalid CDI Spec");
  }
  return success();
}

std::string spec_file_name(std::string_view vendor, std::string_view class_name,
                           std::string_view transient_id) {
  std::string name = cat(vendor, '-', class_name);
  if (!transient_id.empty()) {
    name.push_back('_');
    for (const char c : transient_id) name.push_back(c == '/' ? '_' : c);
  }
  return name + ".yaml";
}

}  // namespace dibs::cdi
