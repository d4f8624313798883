#include "api/devices/slices.h"

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io/";
constexpr std::string_view kVersions[] = {"v1", "v1beta2", "v1beta1", "v1alpha3"};

Error fault(std::string_view where, std::string_view what) {
  return Error::bad_request(cat(where, ": ", what));
}

std::string shown_kind(const json::Value& object) {
  const std::string_view kind = object["kind"].as_string();
  const std::string_view version = object["apiVersion"].as_string();
  if (kind.empty()) return "an object without a kind";
  return version.empty() ? cat("a ", kind) : cat("a ", kind, " of ", version);
}

Result<Nothing> check_scalar(const std::string& where, std::string_view kind,
                             const json::Value& value) {
  if (kind == "int" && !value.is_integer()) return fault(where, "must be a whole number");
  if (kind == "bool" && !value.is_boolean()) return fault(where, "must be true or false");
  if ((kind == "string" || kind == "version") && !value.is_string())
    return fault(where, "must be a string");
  return success();
}

Result<Nothing> check_attributes(const std::string& where, const json::Value& attributes) {
  if (attributes.is_null()) return success();
  if (!attributes.is_object()) return fault(where, "must be a map of names to values");
  for (const auto& [name, value] : attributes.members()) {
    const std::string at = cat(where, "[", name, "]");
    if (!value.is_object()) return fault(at, "must be a map such as {string: \"a\"}");
    for (const auto& [kind, content] : value.members()) {
      const bool list =
          kind == "ints" || kind == "bools" || kind == "strings" || kind == "versions";
      if (content.is_null()) continue;
      if (list) {
        if (!content.is_array()) return fault(cat(at, ".", kind), "must be a list");
        std::size_t i = 0;
        for (const json::Value& item : content.items())
          DIBS_CHECK(check_scalar(cat(at, ".", kind, "[", i++, "]"),
                                  kind.substr(0, kind.size() - 1), item));
      } else if (kind == "int" || kind == "bool" || kind == "string" || kind == "version") {
        DIBS_CHECK(check_scalar(cat(at, ".", kind), kind, content));
      } else {
        return fault(at, cat("unknown type ", quoted(kind),
                             ": must be int, bool, string, version or a list of them"));
      }
    }
  }
  return success();
}

/// In the form of v1: {"value": "1Gi"}.
Result<json::Value> read_capacity(const std::string& where, const json::Value& capacity) {
  if (capacity.is_null()) return json::Value::object();
  if (!capacity.is_object()) return fault(where, "must be a map of names to quantities");
  json::Value made = json::Value::object();
  for (const auto& [name, value] : capacity.members()) {
    const std::string at = cat(where, "[", name, "]");
    json::Value entry = value.is_object() ? value : json::Value::object({{"value", value}});
    json::Value amount = entry["value"];
    if (amount.is_number())
      amount = json::Value(amount.is_integer() ? std::to_string(amount.as_int())
                                               : std::to_string(amount.as_double()));
    if (!amount.is_string()) return fault(at, "must be a quantity such as \"1Gi\"");
    if (const auto parsed = Quantity::parse(amount.as_string()); !parsed.ok())
      return fault(at, parsed.error().message());
    entry.set("value", std::move(amount));
    made.set(name, std::move(entry));
  }
  return made;
}

std::string node_of(const json::Value& spec) {
  if (spec["allNodes"].as_bool()) return "<all>";
  if (spec["nodeSelector"].is_object()) return "<selected>";
  return spec["nodeName"].str();
}

Result<SliceDevice> read_device(const std::string& where, const json::Value& spec) {
  if (!spec.is_object()) return fault(where, "must be an object");
  SliceDevice made;
  if (!spec["name"].is_string()) return fault(cat(where, ".name"), "must be a string");
  made.name = spec["name"].str();
  const bool basic = !spec["basic"].is_null();
  if (basic && !spec["basic"].is_object()) return fault(cat(where, ".basic"), "must be an object");
  const json::Value& content = basic ? spec["basic"] : spec;
  const std::string at = basic ? cat(where, ".basic") : where;
  DIBS_CHECK(check_attributes(cat(at, ".attributes"), content["attributes"]));
  DIBS_TRY(json::Value capacity, read_capacity(cat(at, ".capacity"), content["capacity"]));
  const json::Value& multiple = content["allowMultipleAllocations"];
  if (!multiple.is_null() && !multiple.is_boolean())
    return fault(cat(at, ".allowMultipleAllocations"), "must be true or false");
  made.node = node_of(content);
  made.device = content;
  made.device.set("name", spec["name"]);
  made.device.set("capacity", std::move(capacity));
  return made;
}

Result<Nothing> read_slice(const json::Value& slice, std::vector<SliceDevice>& out) {
  const std::string_view version = slice["apiVersion"].as_string();
  const bool known = version.starts_with(kGroup) &&
                     std::find(std::begin(kVersions), std::end(kVersions),
                               version.substr(kGroup.size())) != std::end(kVersions);
  if (!known)
    return fault("apiVersion", cat(quoted(version), " has no devices: must be ", kGroup,
                                   "v1, v1beta2, v1beta1 or v1alpha3"));
  const json::Value& spec = slice["spec"];
  if (!spec.is_object()) return fault("spec", "must be an object");
  if (!spec["driver"].is_string()) return fault("spec.driver", "must be a string");
  if (!spec["pool"]["name"].is_string()) return fault("spec.pool.name", "must be a string");
  if (!spec["devices"].is_null() && !spec["devices"].is_array())
    return fault("spec.devices", "must be a list");
  std::size_t index = 0;
  for (const json::Value& device : spec["devices"].items()) {
    DIBS_TRY(SliceDevice made, read_device(cat("spec.devices[", index++, "]"), device));
    if (!spec["perDeviceNodeSelection"].as_bool()) made.node = node_of(spec);
    made.slice = slice["metadata"]["name"].str();
    made.pool = spec["pool"]["name"].str();
    made.generation = spec["pool"]["generation"].as_int();
    made.driver = spec["driver"].str();
    out.push_back(std::move(made));
  }
  return success();
}

bool is_list(const json::Value& object) {
  const std::string_view kind = object["kind"].as_string();
  return (kind == "List" || kind == "ResourceSliceList") && object["items"].is_array();
}

}  // namespace

bool is_slice_or_list(const json::Value& object) {
  return object["kind"].as_string() == "ResourceSlice" || is_list(object);
}

Result<std::vector<SliceDevice>> devices_of(const json::Value& object) {
  std::vector<SliceDevice> made;
  if (!object.is_object()) return Error::bad_request("must be a ResourceSlice, is no object");
  if (!is_list(object)) {
    if (object["kind"].as_string() != "ResourceSlice")
      return Error::bad_request(cat("must be a ResourceSlice, is ", shown_kind(object)));
    DIBS_CHECK(read_slice(object, made));
    return made;
  }
  std::size_t index = 0;
  for (json::Value item : object["items"].items()) {
    const std::string where = cat("items[", index++, "]");
    // Items of a ResourceSliceList do not say what they are.
    if (object["kind"].as_string() == "ResourceSliceList") {
      if (!item["kind"].is_string()) item.set("kind", "ResourceSlice");
      if (!item["apiVersion"].is_string()) item.set("apiVersion", object["apiVersion"]);
    }
    if (item["kind"].as_string() != "ResourceSlice")
      return fault(where, cat("must be a ResourceSlice, is ", shown_kind(item)));
    if (const auto read = read_slice(item, made); !read.ok()) return read.error().within(where);
  }
  return made;
}

std::vector<SliceDevice> newest_generation(std::vector<SliceDevice> devices) {
  std::map<std::pair<std::string, std::string>, std::int64_t> newest;
  for (const SliceDevice& device : devices) {
    std::int64_t& generation = newest[{device.driver, device.pool}];
    generation = std::max(generation, device.generation);
  }
  std::erase_if(devices, [&](const SliceDevice& device) {
    return device.generation < newest[{device.driver, device.pool}];
  });
  return devices;
}

}  // namespace dibs::api
