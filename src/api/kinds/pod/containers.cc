#include "api/kinds/pod/containers.h"

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/probes.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/security.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

void validate_ports(const Value& ports, const Path& path, FieldErrors& errors) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports[i];
    Path at = path.index(i);
    std::string name = port["name"].str();
    if (!name.empty()) {
      Faults faults = is_port_name(name);
      add_invalid(faults, port["name"], at.child("name"), errors);
      if (faults.empty() && !names.insert(name).second) {
        errors.duplicate(at.child("name"), port["name"]);
      }
    }
    if (port["containerPort"].as_int() == 0) {
      errors.required(at.child("containerPort"));
    } else {
      add_invalid(is_port_number(port["containerPort"].as_int()), port["containerPort"],
                  at.child("containerPort"), errors);
    }
    if (port["hostPort"].as_int() != 0) {
      add_invalid(is_port_number(port["hostPort"].as_int()), port["hostPort"], at.child("hostPort"),
                  errors);
    }
    std::string_view protocol = port["protocol"].as_string();
    if (protocol.empty()) {
      errors.required(at.child("protocol"));
    } else if (!is_one_of(protocol, {"SCTP", "TCP", "UDP"})) {
      errors.not_supported(at.child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
    }
  }
}

void validate_key_ref(const Value& ref, const Path& path, FieldErrors& errors) {
  if (ref["name"].as_string().empty()) errors.required(path.child("name"));
  std::string_view key = ref["key"].as_string();
  if (key.empty()) {
    errors.required(path.child("key"));
  } else {
    add_invalid(is_config_map_key(key), ref["key"], path.child("key"), errors);
  }
}

void validate_file_key_ref(const Value& ref, const Path& path, FieldErrors& errors) {
  std::string_view key = ref["key"].as_string();
  if (key.empty()) {
    errors.required(path.child("key"));
  } else {
    add_invalid(is_env_var_name(key), ref["key"], path.child("key"), errors);
  }
  if (ref["volumeName"].as_string().empty()) errors.required(path.child("volumeName"));
  if (ref["path"].as_string().empty()) {
    errors.required(path.child("path"));
  } else {
    validate_descending_path(ref["path"], path.child("path"), errors);
  }
}

void validate_value_from(const Value& variable, const Path& path, FieldErrors& errors) {
  const Value& from = variable["valueFrom"];
  if (from.is_null()) return;
  int sources = 0;
  if (is_set(from, "fieldRef")) {
    ++sources;
    validate_field_ref(from["fieldRef"], false, path.child("fieldRef"), errors);
  }
  if (is_set(from, "resourceFieldRef")) {
    ++sources;
    validate_resource_field_ref(from["resourceFieldRef"], false, path.child("resourceFieldRef"),
                                errors);
  }
  for (const char* key : {"configMapKeyRef", "secretKeyRef"}) {
    if (!is_set(from, key)) continue;
    ++sources;
    validate_key_ref(from[key], path.child(key), errors);
  }
  if (is_set(from, "fileKeyRef")) {
    ++sources;
    validate_file_key_ref(from["fileKeyRef"], path.child("fileKeyRef"), errors);
  }
  if (sources == 0) {
    errors.invalid(path, "",
                   "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                   "`secretKeyRef` or `fileKeyRef`");
  } else if (!variable["value"].as_string().empty()) {
    errors.invalid(path, "", "may not be specified when `value` is not empty");
  } else if (sources > 1) {
    errors.invalid(path, "", "may not have more than one field specified at a time");
  }
}

void validate_env(const Value& variables, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Path at = path.index(i);
    std::string_view name = variables[i]["name"].as_string();
    if (name.empty()) {
      errors.required(at.child("name"));
    } else {
      add_invalid(is_relaxed_env_var_name(name), variables[i]["name"], at.child("name"), errors);
    }
    validate_value_from(variables[i], at.child("valueFrom"), errors);
  }
}

void validate_env_from(const Value& sources, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Path at = path.index(i);
    const Value& source = sources[i];
    std::string_view prefix = source["prefix"].as_string();
    if (!prefix.empty()) {
      add_invalid(is_relaxed_env_var_name(prefix), source["prefix"], at.child("prefix"), errors);
    }
    int found = 0;
    for (const char* key : {"configMapRef", "secretRef"}) {
      if (!is_set(source, key)) continue;
      ++found;
      Path ref = at.child(key);
      if (source[key]["name"].as_string().empty()) errors.required(ref.child("name"));
    }
    if (found == 0) {
      errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
    } else if (found > 1) {
      errors.invalid(path, "", "may not have more than one field specified at a time");
    }
  }
}

bool any_has(const Value& list, std::string_view key, const Value& value) {
  for (const Value& item : list.items()) {
    if (item[key].as_string() == value.as_string()) return true;
  }
  return false;
}

void validate_propagation(const Value& mount, const Value& container, const Path& path,
                          FieldErrors& errors) {
  const Value& propagation = mount["mountPropagation"];
  if (propagation.is_null()) return;
  std::string_view mode = propagation.as_string();
  if (!is_one_of(mode, {"Bidirectional", "HostToContainer", "None"})) {
    errors.not_supported(path, propagation, {"Bidirectional", "HostToContainer", "None"});
  }
  if (mode == "Bidirectional" && !container["securityContext"]["privileged"].as_bool()) {
    errors.forbidden(path,
                     "Bidirectional mount propagation is available only to privileged containers");
  }
}

void validate_recursive_read_only(const Value& mount, const Path& path, FieldErrors& errors) {
  const Value& value = mount["recursiveReadOnly"];
  if (value.is_null()) return;
  std::string_view mode = value.as_string();
  Path at = path.child("recursiveReadOnly");
  if (mode == "Enabled" || mode == "IfPossible") {
    if (!mount["readOnly"].as_bool()) {
      errors.forbidden(at, "may only be specified when readOnly is true");
    }
    const Value& propagation = mount["mountPropagation"];
    if (!propagation.is_null() && propagation.as_string() != "None") {
      errors.forbidden(at, "may only be specified when mountPropagation is None or not specified");
    }
  } else if (mode != "Disabled") {
    errors.not_supported(at, value, {"Disabled", "Enabled", "IfPossible"});
  }
}

void validate_mounts(const Value& container, const Volumes& volumes, const Path& path,
                     FieldErrors& errors) {
  std::set<std::string> points;
  const Value& mounts = container["volumeMounts"];
  const Value& devices = container["volumeDevices"];
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const Value& mount = mounts[i];
    Path at = path.index(i);
    Value name(mount["name"].as_string());
    Value point(mount["mountPath"].as_string());
    if (name.as_string().empty()) errors.required(at.child("name"));
    if (volumes.find(name.as_string()) == volumes.end()) {
      errors.not_found(at.child("name"), name);
    }
    if (point.as_string().empty()) errors.required(at.child("mountPath"));
    if (!points.insert(point.str()).second) {
      errors.invalid(at.child("mountPath"), point, "must be unique");
    }
    if (any_has(devices, "name", name)) {
      errors.invalid(at.child("name"), name, "must not already exist in volumeDevices");
    }
    if (any_has(devices, "devicePath", point)) {
      errors.invalid(at.child("mountPath"), point,
                     "must not already exist as a path in volumeDevices");
    }
    // These three the API reports at the list, without the index.
    if (!mount["subPath"].as_string().empty()) {
      validate_descending_path(mount["subPath"], path.child("subPath"), errors);
    }
    if (!mount["subPathExpr"].as_string().empty()) {
      if (!mount["subPath"].as_string().empty()) {
        errors.invalid(at.child("subPathExpr"), mount["subPathExpr"],
                       "subPathExpr and subPath are mutually exclusive");
      }
      validate_descending_path(mount["subPathExpr"], path.child("subPathExpr"), errors);
    }
    validate_propagation(mount, container, path.child("mountPropagation"), errors);
    validate_recursive_read_only(mount, at, errors);
  }
}

void validate_devices(const Value& container, const Volumes& volumes, const Path& path,
                      FieldErrors& errors) {
  std::set<std::string> names;
  std::set<std::string> paths;
  const Value& devices = container["volumeDevices"];
  const Value& mounts = container["volumeMounts"];
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Path at = path.index(i);
    Value name(devices[i]["name"].as_string());
    Value device(devices[i]["devicePath"].as_string());
    auto volume = volumes.find(name.as_string());
    if (name.as_string().empty()) errors.required(at.child("name"));
    if (names.count(name.str()) != 0) errors.invalid(at.child("name"), name, "must be unique");
    if (volume == volumes.end()) {
      errors.not_found(at.child("name"), name);
    } else if (!is_set(volume->second, "persistentVolumeClaim") &&
               !is_set(volume->second, "ephemeral")) {
      errors.invalid(
          at.child("name"), name,
          "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
          "mode");
    }
    if (device.as_string().empty()) errors.required(at.child("devicePath"));
    if (paths.count(device.str()) != 0) {
      errors.invalid(at.child("devicePath"), device, "must be unique");
    }
    FieldErrors backsteps;
    validate_no_backsteps(device, at, backsteps);
    if (!backsteps.empty()) {
      errors.invalid(at.child("devicePath"), device, "can not contain backsteps ('..')");
    } else {
      paths.insert(device.str());
    }
    if (any_has(mounts, "name", name)) {
      errors.invalid(at.child("name"), name, "must not already exist in volumeMounts");
    }
    if (any_has(mounts, "mountPath", device)) {
      errors.invalid(at.child("devicePath"), device,
                     "must not already exist as a path in volumeMounts");
    }
    if (!name.as_string().empty()) names.insert(name.str());
  }
}

void validate_resize_policy(const Value& policies, std::string_view restart_policy,
                            const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    std::string_view resource = policies[i]["resourceName"].as_string();
    std::string_view restart = policies[i]["restartPolicy"].as_string();
    if (!seen.insert(std::string(resource)).second) {
      errors.duplicate(path.index(i), Value(resource));
    }
    if (resource.empty()) {
      errors.required(path);
    } else if (!is_one_of(resource, {"cpu", "memory"})) {
      errors.not_supported(path, Value(resource), {"cpu", "memory"});
    }
    if (restart.empty()) {
      errors.required(path);
    } else if (!is_one_of(restart, {"NotRequired", "RestartContainer"})) {
      errors.not_supported(path, Value(restart), {"NotRequired", "RestartContainer"});
    }
    if (restart_policy == "Never" && restart != "NotRequired") {
      errors.invalid(path, Value(restart), "must be 'NotRequired' when `restartPolicy` is 'Never'");
    }
  }
}

void validate_common(const Value& container, const ContainerScope& scope, const Path& path,
                     FieldErrors& errors) {
  std::string_view name = container["name"].as_string();
  if (name.empty()) {
    errors.required(path.child("name"));
  } else {
    add_invalid(is_dns1123_label(name), container["name"], path.child("name"), errors);
  }
  if (container["image"].as_string().empty()) errors.required(path.child("image"));
  std::string_view policy = container["terminationMessagePolicy"].as_string();
  if (policy.empty()) {
    errors.required(path.child("terminationMessagePolicy"));
  } else if (!is_one_of(policy, {"File", "FallbackToLogsOnError"})) {
    errors.not_supported(path.child("terminationMessagePolicy"), Value(policy),
                         {"File", "FallbackToLogsOnError"});
  }
  validate_ports(container["ports"], path.child("ports"), errors);
  validate_env(container["env"], path.child("env"), errors);
  validate_env_from(container["envFrom"], path.child("envFrom"), errors);
  validate_mounts(container, scope.volumes, path.child("volumeMounts"), errors);
  validate_devices(container, scope.volumes, path.child("volumeDevices"), errors);
  std::string_view pull = container["imagePullPolicy"].as_string();
  if (pull.empty()) {
    errors.required(path.child("imagePullPolicy"));
  } else if (!is_one_of(pull, {"Always", "IfNotPresent", "Never"})) {
    errors.not_supported(path.child("imagePullPolicy"), Value(pull),
                         {"Always", "IfNotPresent", "Never"});
  }
  validate_container_resources(container["resources"], scope.claim_names, path.child("resources"),
                               errors);
  validate_resize_policy(container["resizePolicy"], scope.spec["restartPolicy"].as_string(),
                         path.child("resizePolicy"), errors);
  validate_security_context(container["securityContext"], scope.host_users,
                            path.child("securityContext"), errors);
}

void validate_restart_rules(const Value& container, const Path& path, FieldErrors& errors) {
  const Value& policy = container["restartPolicy"];
  const Value& rules = container["restartPolicyRules"];
  if (policy.is_null()) {
    if (!rules.empty()) {
      errors.required(path.child("restartPolicy"),
                      "must specify restartPolicy when restart rules are used");
    }
  } else if (!is_one_of(policy.as_string(), {"Always", "Never", "OnFailure"})) {
    errors.not_supported(path.child("restartPolicy"), policy, {"Always", "Never", "OnFailure"});
  }
  Path list = path.child("restartPolicyRules");
  if (rules.size() > 20) errors.too_many(list, rules.size(), 20);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    Path at = list.index(i);
    std::string_view action = rules[i]["action"].as_string();
    if (action.empty()) {
      errors.required(at.child("action"));
    } else if (!is_one_of(action, {"Restart", "RestartAllContainers"})) {
      errors.not_supported(at.child("action"), Value(action), {"Restart"});
    }
    if (!is_set(rules[i], "exitCodes")) {
      errors.required(at.child("exitCodes"), "must be specified");
      continue;
    }
    Path codes = at.child("exitCodes");
    std::string_view op = rules[i]["exitCodes"]["operator"].as_string();
    if (!is_one_of(op, {"In", "NotIn"})) {
      errors.not_supported(codes.child("operator"), Value(op), {"In", "NotIn"});
    }
    if (rules[i]["exitCodes"]["values"].size() > 255) {
      errors.too_many(codes.child("values"), rules[i]["exitCodes"]["values"].size(), 255);
    }
  }
}

// `list_path` has the containers from `first` on; ports of one node cannot be taken twice.
void check_host_ports(const Value& container, std::size_t index, const Path& list_path,
                      std::set<std::string>& taken, FieldErrors& errors) {
  Path container_at = list_path.index(index);
  Path ports_at = container_at.child("ports");
  const Value& ports = container["ports"];
  for (std::size_t i = 0; i < ports.size(); ++i) {
    std::int64_t port = ports[i]["hostPort"].as_int();
    if (port == 0) continue;
    std::string key =
        cat(ports[i]["protocol"].as_string(), "/", ports[i]["hostIP"].as_string(), "/", port);
    if (!taken.insert(key).second) {
      Path at = ports_at.index(i);
      errors.duplicate(at.child("hostPort"), Value(key));
    }
  }
}

}  // namespace

void validate_containers(const ContainerScope& scope, const Path& path, FieldErrors& errors) {
  const Value& containers = scope.spec["containers"];
  Path list = path.child("containers");
  if (containers.empty()) {
    errors.required(list);
    return;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Value& container = containers[i];
    Path at = list.index(i);
    validate_common(container, scope, at, errors);
    validate_restart_rules(container, at, errors);
    if (!names.insert(container["name"].str()).second) {
      errors.duplicate(at.child("name"), container["name"]);
    }
    if (is_set(container, "lifecycle")) {
      validate_lifecycle(container["lifecycle"], scope.spec["os"], scope.grace_seconds,
                         at.child("lifecycle"), errors);
    }
    validate_probes(container, scope.grace_seconds, at, errors);
  }
  std::set<std::string> ports;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    check_host_ports(containers[i], i, list, ports, errors);
  }
}

void validate_init_containers(const ContainerScope& scope, const Path& path, FieldErrors& errors) {
  const Value& containers = scope.spec["initContainers"];
  Path list = path.child("initContainers");
  std::set<std::string> names;
  for (const Value& container : scope.spec["containers"].items()) {
    names.insert(container["name"].str());
  }
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Value& container = containers[i];
    Path at = list.index(i);
    validate_common(container, scope, at, errors);
    validate_restart_rules(container, at, errors);
    bool sidecar = container["restartPolicy"].as_string() == "Always";
    std::string name = container["name"].str();
    if (!name.empty() && !names.insert(name).second) {
      errors.duplicate(at.child("name"), container["name"]);
    }
    // They run one by one, so only ports of the same container can clash.
    std::set<std::string> ports;
    check_host_ports(container, i, list, ports, errors);
    if (sidecar) {
      if (is_set(container, "lifecycle")) {
        validate_lifecycle(container["lifecycle"], scope.spec["os"], scope.grace_seconds,
                           at.child("lifecycle"), errors);
      }
      validate_probes(container, scope.grace_seconds, at, errors);
      continue;
    }
    for (const char* key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (is_set(container, key)) {
        errors.forbidden(at.child(key),
                         "may not be set for init containers without restartPolicy=Always");
      }
    }
  }
}

void validate_ephemeral_containers(const ContainerScope& scope, const Path& path,
                                   FieldErrors& errors) {
  constexpr std::string_view text = "cannot be set for an Ephemeral Container";
  const Value& containers = scope.spec["ephemeralContainers"];
  Path list = path.child("ephemeralContainers");
  std::set<std::string> others;
  for (const char* key : {"containers", "initContainers"}) {
    for (const Value& container : scope.spec[key].items()) others.insert(container["name"].str());
  }
  std::set<std::string> names = others;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Value& container = containers[i];
    Path at = list.index(i);
    // Resources and ports are refused below as a whole, whatever is in them.
    Value judged = container;
    judged.erase("resources");
    judged.erase("ports");
    validate_common(judged, scope, at, errors);
    std::string_view image = container["image"].as_string();
    if (trim(image).size() != image.size()) {
      errors.invalid(at.child("image"), container["image"],
                     "must not have leading or trailing whitespace");
    }
    std::string name = container["name"].str();
    if (!name.empty() && !names.insert(name).second) {
      errors.duplicate(at.child("name"), container["name"]);
    }
    const Value& target = container["targetContainerName"];
    if (!target.as_string().empty() && others.count(target.str()) == 0) {
      errors.not_found(at.child("targetContainerName"), target);
    }
    for (const char* key :
         {"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
          "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      const Value& value = container[key];
      bool given = value.is_string() || !value.empty();
      if (given) errors.forbidden(at.child(key), text);
    }
    Path mounts_at = at.child("volumeMounts");
    const Value& mounts = container["volumeMounts"];
    for (std::size_t m = 0; m < mounts.size(); ++m) {
      Path mount_at = mounts_at.index(m);
      for (const char* key : {"subPath", "subPathExpr"}) {
        if (!mounts[m][key].as_string().empty()) errors.forbidden(mount_at.child(key), text);
      }
    }
  }
}

void validate_image_blanks(const Value& containers, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < containers.size(); ++i) {
    std::string_view image = containers[i]["image"].as_string();
    if (trim(image).size() == image.size()) continue;
    Path at = path.index(i);
    errors.invalid(at.child("image"), containers[i]["image"],
                   "must not have leading or trailing whitespace");
  }
}

}  // namespace dibs::api
