#include "api/kinds/resource/versions/device_forms.h"

namespace dibs::api {
namespace {

Value mapped(const Value& list, Value (*one)(const Value&)) {
  Value out = Value::array();
  for (const Value& item : list.items()) out.push(one(item));
  return out;
}

bool outside_exactly(std::string_view key) { return key == "name" || key == "firstAvailable"; }

Value request_from_flat(const Value& request) {
  Value out = Value::object();
  Value exactly = Value::object({{"deviceClassName", ""}});
  bool any = false;
  for (const auto& [key, value] : request.members()) {
    if (outside_exactly(key)) {
      out.set(key, value);
      continue;
    }
    exactly.set(key, value);
    any = any || key != "deviceClassName" || !value.as_string().empty();
  }
  if (any) out.set("exactly", std::move(exactly));
  return out;
}

Value request_to_flat(const Value& request) {
  Value out = Value::object({{"name", request["name"].as_string()}, {"deviceClassName", ""}});
  for (const auto& [key, value] : request["exactly"].members()) out.set(key, value);
  if (const Value* alternatives = request.find("firstAvailable"))
    out.set("firstAvailable", *alternatives);
  return out;
}

Value device_from_flat(const Value& device) {
  Value out = Value::object({{"name", device["name"].as_string()}});
  for (const auto& [key, value] : device["basic"].members()) out.set(key, value);
  return out;
}

Value device_to_flat(const Value& device) {
  Value basic = Value::object();
  for (const auto& [key, value] : device.members()) {
    if (key != "name") basic.set(key, value);
  }
  return Value::object({{"name", device["name"].as_string()}, {"basic", std::move(basic)}});
}

/// Capacities of v1alpha3 to those of v1beta1, or back.
Value device_with_quantities(const Value& device, bool plain) {
  const Value& capacity = device["basic"]["capacity"];
  if (capacity.empty()) return device;
  Value changed = Value::object();
  for (const auto& [name, value] : capacity.members())
    changed.set(name, plain ? value["value"] : Value::object({{"value", value}}));
  Value out = device;
  out.mut("basic").set("capacity", std::move(changed));
  return out;
}

Value device_from_quantities(const Value& device) {
  return device_from_flat(device_with_quantities(device, false));
}

Value device_to_quantities(const Value& device) {
  return device_with_quantities(device_to_flat(device), true);
}

}  // namespace

Value claim_from_flat(const Value& devices) {
  if (!devices["requests"].is_array()) return devices;
  Value out = devices;
  out.set("requests", mapped(devices["requests"], request_from_flat));
  return out;
}

Value claim_to_flat(const Value& devices) {
  if (!devices["requests"].is_array()) return devices;
  Value out = devices;
  out.set("requests", mapped(devices["requests"], request_to_flat));
  return out;
}

Value slice_from_flat(const Value& spec, bool plain_quantities) {
  Value out = spec;
  if (spec["devices"].is_array()) {
    out.set("devices",
            mapped(spec["devices"], plain_quantities ? device_from_quantities : device_from_flat));
  }
  return out;
}

Value slice_to_flat(const Value& spec, bool plain_quantities) {
  Value out = spec;
  // Pointers in v1, plain values here: these two are unset.
  if (spec["nodeName"].is_string() && spec["nodeName"].as_string().empty()) out.erase("nodeName");
  if (spec["allNodes"].is_boolean() && !spec["allNodes"].as_bool()) out.erase("allNodes");
  if (spec["devices"].is_array()) {
    out.set("devices",
            mapped(spec["devices"], plain_quantities ? device_to_quantities : device_to_flat));
  }
  return out;
}

}  // namespace dibs::api
