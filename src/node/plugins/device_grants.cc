#include "node/plugins/device_grants.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {

using json::Value;

Result<DeviceGrants> DeviceGrants::decode(std::string_view text) {
  DIBS_TRY(const Value file, json::parse(text));
  if (!file["grants"].is_array()) return Error::invalid("it has no list of grants");
  DeviceGrants out;
  for (const Value& entry : file["grants"].items()) {
    const std::string pod = entry["podUID"].str();
    const std::string container = entry["container"].str();
    const std::string resource = entry["resource"].str();
    if (pod.empty() || container.empty() || resource.empty()) {
      return Error::invalid("a grant has no podUID, container or resource");
    }
    std::string answer;
    if (!base64_decode(entry["answer"].as_string(), answer)) {
      return Error::invalid(cat("the answer of ", resource, " is not in base64"));
    }
    std::vector<std::string> ids;
    for (const Value& id : entry["devices"].items()) ids.push_back(id.str());
    out.take(pod, container, resource, std::move(ids));
    out.hold(pod, container, resource, std::move(answer));
  }
  for (const Value& resource : file["resources"].items()) out.add_resource(resource.str());
  return out;
}

std::string DeviceGrants::encode() const {
  Value grants = Value::array();
  for (const auto& [pod, containers] : pods_) {
    for (const auto& [container, resources] : containers) {
      for (const auto& [resource, grant] : resources) {
        if (!grant.held) continue;
        Value ids = Value::array();
        for (const auto& id : grant.ids) ids.push(id);
        grants.push(Value::object({{"podUID", pod},
                                   {"container", container},
                                   {"resource", resource},
                                   {"devices", std::move(ids)},
                                   {"answer", base64_encode(grant.answer)}}));
      }
    }
  }
  Value resources = Value::array();
  for (const auto& resource : resources_) resources.push(resource);
  return json::write(
      Value::object({{"grants", std::move(grants)}, {"resources", std::move(resources)}}));
}

void DeviceGrants::take(const std::string& pod, const std::string& container,
                        const std::string& resource, std::vector<std::string> ids) {
  pods_[pod][container][resource] = {std::move(ids), {}, false};
}

void DeviceGrants::hold(const std::string& pod, const std::string& container,
                        const std::string& resource, std::string answer) {
  DeviceGrant& grant = pods_[pod][container][resource];
  grant.answer = std::move(answer);
  grant.held = true;
}

bool DeviceGrants::keep_only(const std::set<std::string>& pods) {
  return std::erase_if(pods_, [&](const auto& pod) { return !pods.contains(pod.first); }) > 0;
}

bool DeviceGrants::release(std::string_view pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return false;
  pods_.erase(found);
  return true;
}

const DeviceGrants::Resources* DeviceGrants::of(std::string_view pod,
                                                std::string_view container) const {
  const auto containers = pods_.find(pod);
  if (containers == pods_.end()) return nullptr;
  const auto resources = containers->second.find(container);
  return resources == containers->second.end() ? nullptr : &resources->second;
}

const DeviceGrant* DeviceGrants::find(std::string_view pod, std::string_view container,
                                      std::string_view resource) const {
  const Resources* resources = of(pod, container);
  if (resources == nullptr) return nullptr;
  const auto grant = resources->find(resource);
  return grant == resources->end() ? nullptr : &grant->second;
}

namespace {

template <typename Visit>
void each_of(const DeviceGrants::Pods& pods, std::string_view resource, const Visit& visit) {
  for (const auto& [pod, containers] : pods) {
    for (const auto& [container, resources] : containers) {
      if (const auto grant = resources.find(resource); grant != resources.end()) {
        for (const auto& id : grant->second.ids) visit(pod, id);
      }
    }
  }
}

}  // namespace

std::set<std::string> DeviceGrants::used(std::string_view resource) const {
  std::set<std::string> out;
  each_of(pods_, resource, [&](const std::string&, const std::string& id) { out.insert(id); });
  return out;
}

std::set<std::string> DeviceGrants::holders(std::string_view resource,
                                            const std::set<std::string>& ids) const {
  std::set<std::string> out;
  each_of(pods_, resource, [&](const std::string& pod, const std::string& id) {
    if (ids.contains(id)) out.insert(pod);
  });
  return out;
}

Result<DeviceChoice> begin_choice(std::string_view resource, const DeviceNeed& need) {
  if (need.healthy.empty()) {
    return Error::invalid(
        cat("no healthy devices present; cannot allocate unhealthy devices ", resource));
  }
  DeviceChoice out;
  for (const auto& id : need.reusable) {
    if (out.chosen.size() < need.count) out.chosen.push_back(id);
  }
  out.missing = need.count - out.chosen.size();
  std::set_difference(need.healthy.begin(), need.healthy.end(), need.used.begin(), need.used.end(),
                      std::back_inserter(out.available));
  if (out.available.size() < out.missing) {
    return Error::invalid(cat("requested number of devices unavailable for ", resource,
                              ". Requested: ", out.missing, ", Available: ", out.available.size()));
  }
  return out;
}

std::vector<std::string> end_choice(DeviceChoice choice,
                                    const std::vector<std::string>& preferred) {
  std::vector<std::string> out = std::move(choice.chosen);
  const std::size_t wanted = out.size() + choice.missing;
  const auto add = [&](const std::string& id) {
    const bool free =
        std::find(choice.available.begin(), choice.available.end(), id) != choice.available.end();
    if (out.size() < wanted && free && std::find(out.begin(), out.end(), id) == out.end()) {
      out.push_back(id);
    }
  };
  for (const auto& id : preferred) add(id);
  for (const auto& id : choice.available) add(id);
  return out;
}

}  // namespace dibs::node
