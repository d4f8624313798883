// The text forms of a spec.
#include <functional>
#include <limits>

#include "base/strings.h"
#include "cdi/spec.h"
#include "cdi/yaml_text.h"
#include "json/go_print.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace dibs::cdi {
namespace {

using json::Value;

struct Place {
  std::string_view type;  // of the object, as the library names it
  std::string path;       // from the root
};

Error wrong(const Value& value, const Place& place, std::string_view type) {
  return Error::invalid(cat("json: cannot unmarshal ", json::go_kind(value),
                            " into Go struct field ", place.type, ".", place.path, " of type ",
                            type));
}

// A field of an object: null leaves it alone, as everywhere in Go's decoder.
struct Field {
  std::string_view name;
  std::function<Result<>(const Value&, const Place&)> take;
};

Result<> take_object(const Value& value, const Place& place, std::string_view type,
                     const std::vector<Field>& fields) {
  if (!value.is_object()) return wrong(value, place, cat("specs.", type));
  for (const auto& [key, member] : value.members()) {
    const Field* found = nullptr;
    for (const auto& field : fields) {
      if (equals_ignoring_case(field.name, key)) found = &field;
    }
    if (found == nullptr) return Error::invalid(cat("json: unknown field ", quoted(key)));
    if (member.is_null()) continue;
    const Place inner{
        type, place.path.empty() ? std::string(found->name) : cat(place.path, ".", found->name)};
    DIBS_CHECK(found->take(member, inner));
  }
  return success();
}

Result<> take_text(const Value& value, const Place& place, std::string& out) {
  if (value.is_null()) return success();
  if (!value.is_string()) return wrong(value, place, "string");
  out = value.str();
  return success();
}

template <typename Number>
Result<> take_number(const Value& value, const Place& place, std::string_view type, Number& out) {
  const std::int64_t number = value.as_int();
  const bool fits =
      value.is_integer() &&
      (sizeof(Number) == 8 || (number >= 0 && number <= std::numeric_limits<std::uint32_t>::max()));
  if (!fits) {
    if (!value.is_number()) return wrong(value, place, type);
    return Error::invalid(cat("json: cannot unmarshal number ", json::write(value),
                              " into Go struct field ", place.type, ".", place.path, " of type ",
                              type));
  }
  out = static_cast<Number>(number);
  return success();
}

template <typename Item>
Result<> take_list(const Value& value, const Place& place, std::string_view type,
                   std::vector<Item>& out, Result<> (*take)(const Value&, const Place&, Item&)) {
  if (!value.is_array()) return wrong(value, place, type);
  out.clear();
  for (const auto& item : value.items()) DIBS_CHECK(take(item, place, out.emplace_back()));
  return success();
}

Field text(std::string_view name, std::string& out) {
  return {name,
          [&out](const Value& value, const Place& place) { return take_text(value, place, out); }};
}

Field texts(std::string_view name, std::vector<std::string>& out) {
  return {name, [&out](const Value& value, const Place& place) {
            return take_list<std::string>(value, place, "[]string", out, take_text);
          }};
}

Field flag(std::string_view name, bool& out) {
  return {name, [&out](const Value& value, const Place& place) -> Result<> {
            if (!value.is_boolean()) return wrong(value, place, "bool");
            out = value.as_bool();
            return success();
          }};
}

Field integer(std::string_view name, std::int64_t& out) {
  return {name, [&out](const Value& value, const Place& place) {
            return take_number(value, place, "int64", out);
          }};
}

template <typename Number>
Field optional_number(std::string_view name, std::string_view type, std::optional<Number>& out) {
  return {name, [&out, type](const Value& value, const Place& place) {
            return take_number(value, place, type, out.emplace());
          }};
}

Field annotations(std::map<std::string, std::string>& out) {
  return {"annotations", [&out](const Value& value, const Place& place) -> Result<> {
            if (!value.is_object()) return wrong(value, place, "map[string]string");
            for (const auto& [key, member] : value.members()) {
              DIBS_CHECK(take_text(member, place, out[std::string(key)]));
            }
            return success();
          }};
}

Result<> take_gid(const Value& value, const Place& place, std::uint32_t& out) {
  return take_number(value, place, "uint32", out);
}

Result<> take_node(const Value& value, const Place& place, DeviceNode& node) {
  return take_object(
      value, place, "DeviceNode",
      {text("path", node.path), text("hostPath", node.host_path), text("type", node.type),
       integer("major", node.major), integer("minor", node.minor),
       optional_number("fileMode", "fs.FileMode", node.file_mode),
       text("permissions", node.permissions), optional_number("uid", "uint32", node.uid),
       optional_number("gid", "uint32", node.gid)});
}

Result<> take_net_device(const Value& value, const Place& place, NetDevice& device) {
  return take_object(
      value, place, "LinuxNetDevice",
      {text("hostInterfaceName", device.host_interface_name), text("name", device.name)});
}

Result<> take_mount(const Value& value, const Place& place, Mount& mount) {
  return take_object(
      value, place, "Mount",
      {text("hostPath", mount.host_path), text("containerPath", mount.container_path),
       texts("options", mount.options), text("type", mount.type)});
}

Result<> take_hook(const Value& value, const Place& place, Hook& hook) {
  return take_object(
      value, place, "Hook",
      {text("hookName", hook.hook_name), text("path", hook.path), texts("args", hook.args),
       texts("env", hook.env), optional_number("timeout", "int", hook.timeout)});
}

Result<> take_rdt(const Value& value, const Place& place, IntelRdt& rdt) {
  std::vector<std::string> schemata;
  DIBS_CHECK(take_object(value, place, "IntelRdt",
                         {text("closID", rdt.clos_id),
                          text("l3CacheSchema", rdt.l3_cache_schema),
                          text("memBwSchema", rdt.mem_bw_schema),
                          {"schemata",
                           [&rdt](const Value& list, const Place& inner) {
                             return take_list<std::string>(list, inner, "[]string",
                                                           rdt.schemata.emplace(), take_text);
                           }},
                          flag("enableMonitoring", rdt.enable_monitoring),
                          flag("enableCMT", rdt.enable_cmt),
                          flag("enableMBM", rdt.enable_mbm)}));
  return success();
}

Result<> take_edits(const Value& value, const Place& place, ContainerEdits& edits) {
  return take_object(value, place, "ContainerEdits",
                     {texts("env", edits.env),
                      {"deviceNodes",
                       [&](const Value& list, const Place& inner) {
                         return take_list(list, inner, "[]*specs.DeviceNode", edits.device_nodes,
                                          take_node);
                       }},
                      {"netDevices",
                       [&](const Value& list, const Place& inner) {
                         return take_list(list, inner, "[]*specs.LinuxNetDevice", edits.net_devices,
                                          take_net_device);
                       }},
                      {"hooks",
                       [&](const Value& list, const Place& inner) {
                         return take_list(list, inner, "[]*specs.Hook", edits.hooks, take_hook);
                       }},
                      {"mounts",
                       [&](const Value& list, const Place& inner) {
                         return take_list(list, inner, "[]*specs.Mount", edits.mounts, take_mount);
                       }},
                      {"intelRdt",
                       [&](const Value& object, const Place& inner) {
                         return take_rdt(object, inner, edits.intel_rdt.emplace());
                       }},
                      {"additionalGids", [&](const Value& list, const Place& inner) {
                         return take_list(list, inner, "[]uint32", edits.additional_gids, take_gid);
                       }}});
}

Result<> take_device(const Value& value, const Place& place, Device& device) {
  return take_object(value, place, "Device",
                     {text("name", device.name),
                      annotations(device.annotations),
                      {"containerEdits", [&](const Value& object, const Place& inner) {
                         return take_edits(object, inner, device.edits);
                       }}});
}

void set_text(Value& object, std::string_view key, const std::string& text) {
  if (!text.empty()) object.set(key, text);
}

void set_texts(Value& object, std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Value list = Value::array();
  for (const auto& text : texts) list.push(text);
  object.set(key, std::move(list));
}

template <typename Item>
void set_list(Value& object, std::string_view key, const std::vector<Item>& items,
              Value (*write)(const Item&)) {
  if (items.empty()) return;
  Value list = Value::array();
  for (const auto& item : items) list.push(write(item));
  object.set(key, std::move(list));
}

Value node_value(const DeviceNode& node) {
  Value out = Value::object({{"path", node.path}});
  set_text(out, "hostPath", node.host_path);
  set_text(out, "type", node.type);
  if (node.major != 0) out.set("major", node.major);
  if (node.minor != 0) out.set("minor", node.minor);
  if (node.file_mode) out.set("fileMode", *node.file_mode);
  set_text(out, "permissions", node.permissions);
  if (node.uid) out.set("uid", *node.uid);
  if (node.gid) out.set("gid", *node.gid);
  return out;
}

Value net_device_value(const NetDevice& device) {
  return Value::object({{"hostInterfaceName", device.host_interface_name}, {"name", device.name}});
}

Value mount_value(const Mount& mount) {
  Value out =
      Value::object({{"hostPath", mount.host_path}, {"containerPath", mount.container_path}});
  set_texts(out, "options", mount.options);
  set_text(out, "type", mount.type);
  return out;
}

Value hook_value(const Hook& hook) {
  Value out = Value::object({{"hookName", hook.hook_name}, {"path", hook.path}});
  set_texts(out, "args", hook.args);
  set_texts(out, "env", hook.env);
  if (hook.timeout) out.set("timeout", *hook.timeout);
  return out;
}

Value rdt_value(const IntelRdt& rdt) {
  Value out = Value::object();
  set_text(out, "closID", rdt.clos_id);
  set_text(out, "l3CacheSchema", rdt.l3_cache_schema);
  set_text(out, "memBwSchema", rdt.mem_bw_schema);
  if (rdt.enable_cmt) out.set("enableCMT", true);
  if (rdt.enable_mbm) out.set("enableMBM", true);
  if (rdt.schemata) set_texts(out, "schemata", *rdt.schemata);
  if (rdt.enable_monitoring) out.set("enableMonitoring", true);
  return out;
}

Value gid_value(const std::uint32_t& gid) { return gid; }

void set_annotations(Value& object, const std::map<std::string, std::string>& annotations) {
  if (annotations.empty()) return;
  Value out = Value::object();
  for (const auto& [key, value] : annotations) out.set(key, value);
  object.set("annotations", std::move(out));
}

Value spec_value(const Spec& spec, bool with_empty_edits) {
  Value out = Value::object({{"cdiVersion", spec.version}, {"kind", spec.kind}});
  set_annotations(out, spec.annotations);
  Value devices = Value::array();
  for (const auto& device : spec.devices) {
    Value entry = Value::object({{"name", device.name}});
    set_annotations(entry, device.annotations);
    entry.set("containerEdits", to_value(device.edits));
    devices.push(std::move(entry));
  }
  out.set("devices", std::move(devices));
  if (with_empty_edits || !spec.edits.empty()) out.set("containerEdits", to_value(spec.edits));
  return out;
}

}  // namespace

Result<Spec> spec_from_value(const Value& value) {
  Spec spec;
  DIBS_CHECK(take_object(value, {"Spec", ""}, "Spec",
                         {text("cdiVersion", spec.version),
                          text("kind", spec.kind),
                          annotations(spec.annotations),
                          {"devices",
                           [&](const Value& list, const Place& inner) {
                             return take_list(list, inner, "[]specs.Device", spec.devices,
                                              take_device);
                           }},
                          {"containerEdits", [&](const Value& object, const Place& inner) {
                             return take_edits(object, inner, spec.edits);
                           }}}));
  return spec;
}

Result<Spec> parse_spec(std::string_view text) {
  constexpr std::string_view kContext = "failed to unmarshal CDI Spec";
  auto value = json::parse_yaml(text);
  if (!value.ok()) return value.error().within("error converting YAML to JSON").within(kContext);
  if (value->is_null()) return Error::invalid("no Spec data");
  auto spec = spec_from_value(*value);
  if (!spec.ok()) {
    return spec.error().within("error unmarshaling JSON: while decoding JSON").within(kContext);
  }
  return spec;
}

Value to_value(const ContainerEdits& edits) {
  Value out = Value::object();
  set_texts(out, "env", edits.env);
  set_list(out, "deviceNodes", edits.device_nodes, node_value);
  set_list(out, "netDevices", edits.net_devices, net_device_value);
  set_list(out, "hooks", edits.hooks, hook_value);
  set_list(out, "mounts", edits.mounts, mount_value);
  if (edits.intel_rdt) out.set("intelRdt", rdt_value(*edits.intel_rdt));
  set_list(out, "additionalGids", edits.additional_gids, gid_value);
  return out;
}

std::string write_yaml(const Spec& spec) { return "---\n" + ordered_yaml(spec_value(spec, false)); }

std::string write_sorted_yaml(const Spec& spec) {
  return "---\n" + json::write_yaml(spec_value(spec, true));
}

std::string write_json(const Spec& spec) { return json::write(spec_value(spec, true), true); }

}  // namespace dibs::cdi
