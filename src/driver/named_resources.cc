#include "driver/named_resources.h"

#include <algorithm>

#include "base/strings.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::driver {
namespace {

using json::Value;
namespace old = v1alpha3;

std::string plain_name(std::string_view name) {
  if (const auto slash = name.find('/'); slash != name.npos) name.remove_prefix(slash + 1);
  std::string out = to_lower(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

/// False for a kind of value that the release does not know.
bool set_value(const Value& value, old::NamedResourcesAttributeValue& out) {
  if (value["bool"].is_boolean()) {
    out.set_bool_(value["bool"].as_bool());
  } else if (value["int"].is_integer()) {
    out.set_int_(value["int"].as_int());
  } else if (value["string"].is_string()) {
    out.set_string(value["string"].str());
  } else if (value["version"].is_string()) {
    out.set_version(value["version"].str());
  } else {
    return false;
  }
  return true;
}

void add_instance(const Value& device, old::NamedResourcesResources& out) {
  auto* instance = out.add_instances();
  instance->set_name(device["name"].str());
  for (const auto& [name, value] : device["attributes"].members()) {
    old::NamedResourcesAttribute attribute;
    attribute.set_name(plain_name(name));
    if (set_value(value, *attribute.mutable_attribute_value())) {
      *instance->add_attributes() = std::move(attribute);
    }
  }
  for (const auto& [name, value] : device["capacity"].members()) {
    auto* attribute = instance->add_attributes();
    attribute->set_name(plain_name(name));
    attribute->mutable_attribute_value()->mutable_quantity()->set_string(value["value"].str());
  }
}

/// The release would give such a device to whoever asks first.
bool can_be_named(const Value& device) {
  return device["consumesCounters"].empty() && device["taints"].empty();
}

}  // namespace

std::string named_resources(const std::vector<Pool>& pools) {
  old::NodeListAndWatchResourcesResponse response;
  for (const auto& pool : pools) {
    auto* model = response.add_resources()->mutable_named_resources();
    for (const auto& slice : pool.slices) {
      for (const auto& device : slice.devices) {
        if (can_be_named(device.object())) add_instance(device.object(), *model);
      }
    }
  }
  return response.SerializeAsString();
}

}  // namespace dibs::driver
