#include "driver/resource_api.h"

#include "base/strings.h"

namespace dibs::driver {
namespace {

using json::Value;

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr const char* kVersions[] = {"v1", "v1beta2", "v1beta1"};

std::string api_version(std::string_view version) { return cat(kGroup, "/", version); }

}  // namespace

Value slice_to_v1(const Value& slice) {
  Value out = slice;
  out.set("apiVersion", api_version("v1"));
  if (!slice["spec"].contains("devices")) return out;
  Value devices = Value::array();
  for (const auto& device : slice["spec"]["devices"].items()) {
    if (!device.contains("basic")) {
      devices.push(device);
      continue;
    }
    Value flat = Value::object({{"name", device["name"]}});
    for (const auto& [key, value] : device["basic"].members()) flat.set(key, value);
    devices.push(std::move(flat));
  }
  out.mut("spec").set("devices", std::move(devices));
  return out;
}

Value slice_from_v1(const Value& slice, std::string_view version) {
  Value out = slice;
  out.set("apiVersion", api_version(version));
  if (version != "v1beta1" || !slice["spec"].contains("devices")) return out;
  Value devices = Value::array();
  for (const auto& device : slice["spec"]["devices"].items()) {
    Value basic = device;
    basic.erase("name");
    devices.push(Value::object({{"name", device["name"]}, {"basic", std::move(basic)}}));
  }
  out.mut("spec").set("devices", std::move(devices));
  return out;
}

Result<std::string> ResourceApi::version() {
  {
    std::lock_guard lock(mutex_);
    if (!version_.empty()) return version_;
  }
  client::ListOptions one;
  one.limit = 1;
  for (const char* version : kVersions) {
    auto listed = client_.list_page({std::string(kGroup), version, "resourceslices"}, "", one);
    if (listed) {
      std::lock_guard lock(mutex_);
      version_ = version;
      return version_;
    }
    if (listed.error().code() != Code::not_found) return listed.error();
  }
  return Error::not_found("the server serves no version of resource.k8s.io with ResourceSlices");
}

Result<client::Gvr> ResourceApi::resource(std::string_view plural) {
  DIBS_TRY(const std::string found, version());
  return client::Gvr{std::string(kGroup), found, std::string(plural)};
}

Result<Value> ResourceApi::get_claim(std::string_view name_space, std::string_view name) {
  DIBS_TRY(const auto gvr, resource("resourceclaims"));
  return client_.get(gvr, name_space, name);
}

Result<Value> ResourceApi::update_claim_status(const Value& claim) {
  DIBS_TRY(const auto gvr, resource("resourceclaims"));
  return client_.update_status(gvr, claim["metadata"]["namespace"].as_string(), claim);
}

Result<Value> ResourceApi::create_slice(const Value& slice) {
  DIBS_TRY(const auto gvr, slices());
  DIBS_TRY(const auto created, client_.create(gvr, "", slice_from_v1(slice, gvr.version)));
  return slice_to_v1(created);
}

Result<Value> ResourceApi::update_slice(const Value& slice) {
  DIBS_TRY(const auto gvr, slices());
  DIBS_TRY(const auto updated, client_.update(gvr, "", slice_from_v1(slice, gvr.version)));
  return slice_to_v1(updated);
}

Result<> ResourceApi::remove_slice(const Value& slice) {
  DIBS_TRY(const auto gvr, slices());
  client::DeleteOptions options;
  options.uid = slice["metadata"]["uid"].str();
  options.resource_version = slice["metadata"]["resourceVersion"].str();
  auto removed = client_.remove(gvr, "", slice["metadata"]["name"].as_string(), options);
  if (!removed && removed.error().code() != Code::not_found) return removed.error();
  return success();
}

Result<> ResourceApi::ensure_class(std::string_view name, const Value& spec) {
  DIBS_TRY(const auto gvr, resource("deviceclasses"));
  const Value object = Value::object({{"apiVersion", api_version(gvr.version)},
                                      {"kind", "DeviceClass"},
                                      {"metadata", Value::object({{"name", name}})},
                                      {"spec", spec}});
  auto created = client_.create(gvr, "", object);
  if (!created && created.error().code() != Code::already_exists) return created.error();
  return success();
}

}  // namespace dibs::driver
