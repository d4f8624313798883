#include "drivers/net/control/today.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "client/client.h"
#include "driver/claim.h"
#include "drivers/net/host/slice_devices.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

/// The class that a result was allocated by; of "request/alternative" that of the alternative.
std::string class_of(const Value& claim, std::string_view request) {
  const std::size_t slash = request.find('/');
  const auto name = request.substr(0, slash);
  for (const Value& one : claim["spec"]["devices"]["requests"].items()) {
    if (one["name"].as_string() != name) continue;
    if (slash == std::string_view::npos) return one["exactly"]["deviceClassName"].str();
    for (const Value& alternative : one["firstAvailable"].items()) {
      if (alternative["name"].as_string() == request.substr(slash + 1)) {
        return alternative["deviceClassName"].str();
      }
    }
  }
  return {};
}

Result<std::string> text_in(const Value& object, const char* field) {
  const Value& value = object[field];
  if (value.is_null() || value.is_string()) return value.str();
  return Error::invalid(cat("opaque configuration: ", field, ": must be a string"));
}

/// What the node says that the device is; empty where it does not.
OfferedDevice offered(const NicDevice& device, const NodeState* state) {
  if (state == nullptr) return {};
  return find_device(*state, device.device).value_or(OfferedDevice());
}

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

/// What the claims of one pod ask for, put together step by step.
class Collecting {
 public:
  Collecting(const Value& pod, const NodeState* state, const Networks& networks,
             const SelectionOptions& options)
      : state_(state), networks_(networks), options_(options) {
    const auto wanted = pod["metadata"]["annotations"][std::string(kDefaultNetwork)].as_string();
    default_of_pod_ = wanted.substr(0, wanted.find('@'));
    if (!default_of_pod_.empty() && default_of_pod_.find('/') == std::string::npos) {
      default_of_pod_ = cat(options.install_namespace, "/", default_of_pod_);
    }
  }

  Result<> add(const Value& claim) {
    asked.emplace_back();
    default_devices.emplace_back();
    secondary_devices.emplace_back();
    devices_ = nic_devices(claim);
    if (devices_.empty()) return success();
    DIBS_TRY(auto read, driver::read_claim(claim, kDriver));
    DIBS_TRY(const auto configs, driver::configs_of(read, kDriver));
    const Value* whole = nullptr;
    for (const auto& config : configs) {
      if (!config.parameters.is_object()) {
        return Error::invalid("opaque configuration: must be an object");
      }
      DIBS_TRY(const std::string route, text_in(config.parameters, "podDefaultRouteNic"));
      if (!route.empty()) default_route_nic = route;
      const bool rich =
          config.parameters.contains("defaultNic") || config.parameters.contains("secondaryNics");
      if (rich && whole == nullptr) whole = &config.parameters;
    }
    if (whole != nullptr) return add_whole(claim, *whole);
    return add_by_request(claim, configs);
  }

  std::vector<AskedNics> asked;
  /// Beside `asked`: the device of each.
  std::vector<NicDevice> default_devices;
  std::vector<std::vector<NicDevice>> secondary_devices;
  std::string default_route_nic;

 private:
  Result<std::string> name_space_in(const Value& config) const {
    DIBS_TRY(std::string out, text_in(config, "multusNamespace"));
    return out.empty() ? options_.install_namespace : out;
  }

  Result<AskedNic> named(const Value& nic, const std::string& name_space) const {
    DIBS_TRY(const std::string name, text_in(nic, "multusName"));
    if (name.empty()) {
      return Error::invalid("opaque configuration: multusName: must name a SpiderMultusConfig");
    }
    return AskedNic{cat(name_space, "/", name), nic["defaultRoute"].as_bool()};
  }

  /// Whether the network is that of eth0 by the pod's own word.
  bool is_default_of_pod(const std::string& key) const {
    const auto config = networks_.config(key);
    return config && cat(config->name_space, "/", config->definition) == default_of_pod_;
  }

  void put(AskedNic nic, const NicDevice& device) {
    const bool first = !has_default_ && (default_of_pod_.empty() || is_default_of_pod(nic.multus));
    if (first) {
      has_default_ = true;
      asked.back().default_nic = std::move(nic);
      default_devices.back() = device;
    } else {
      put_further(std::move(nic), device);
    }
  }

  void put_further(AskedNic nic, const NicDevice& device) {
    asked.back().secondary.push_back(std::move(nic));
    secondary_devices.back().push_back(device);
  }

  Result<> add_whole(const Value& claim, const Value& config) {
    DIBS_TRY(const std::string name_space, name_space_in(config));
    // The devices stand for the interfaces in their order, and the last for all that are left.
    std::size_t next = 0;
    const auto device = [&] { return devices_[std::min(next++, devices_.size() - 1)]; };
    if (config["defaultNic"].is_object()) {
      DIBS_TRY(AskedNic nic, named(config["defaultNic"], name_space));
      has_default_ = true;
      asked.back().default_nic = std::move(nic);
      default_devices.back() = device();
    }
    for (const Value& one : config["secondaryNics"]["staticNics"].items()) {
      DIBS_TRY(AskedNic nic, named(one, name_space));
      put_further(std::move(nic), device());
    }
    if (!config["secondaryNics"]["dynamicNics"].is_object()) return success();
    std::vector<std::string> potential;
    for (const Value& one :
         config["secondaryNics"]["dynamicNics"]["potentialMultusConfigs"].items()) {
      potential.push_back(one.str());
    }
    return add_dynamic(claim, name_space, potential, std::min(next, devices_.size()));
  }

  Result<> add_dynamic(const Value& claim, const std::string& name_space,
                       const std::vector<std::string>& potential, std::size_t from) {
    std::vector<NicDevice> chosen;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const bool dynamic = class_of(claim, devices_[i].request) == kDynamicClass;
      if (dynamic || i >= from) chosen.push_back(devices_[i]);
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const auto& a, const auto& b) { return a.device < b.device; });
    for (const NicDevice& device : chosen) {
      DIBS_TRY(AskedNic nic, config_of_device(device, name_space, potential));
      put_further(std::move(nic), device);
    }
    return success();
  }

  Result<AskedNic> config_of_device(const NicDevice& device, const std::string& name_space,
                                    const std::vector<std::string>& potential) const {
    auto configs = networks_.all();
    std::sort(configs.begin(), configs.end(),
              [](const auto& a, const auto& b) { return a.key() < b.key(); });
    const OfferedDevice what = offered(device, state_);
    for (const MultusConfig& config : configs) {
      if (config.name_space != name_space) continue;
      if (!potential.empty() && !contains(potential, config.name)) continue;
      const bool uses = what.vf.empty() ? contains(config.masters, what.interface)
                                        : config.resource_name == what.resource_name;
      if (uses) return AskedNic{config.key(), false};
    }
    return Error::not_found(cat("no SpiderMultusConfig in namespace ", name_space, " uses device ",
                                device.device, " of node ", device.pool));
  }

  Result<> add_by_request(const Value& claim, const std::vector<driver::Config>& configs) {
    std::set<std::string> seen;
    std::vector<NicDevice> dynamic;
    for (const NicDevice& device : devices_) {
      const driver::Config* config = driver::config_for(configs, device.request);
      const Value& given = config == nullptr ? json::null_value() : config->parameters;
      DIBS_TRY(const std::string name_space, name_space_in(given));
      const std::string class_name = class_of(claim, device.request);
      if (class_name == kStaticClass) {
        const std::string name = device.request.substr(0, device.request.find('/'));
        if (seen.insert(name).second) put({cat(name_space, "/", name), false}, device);
      } else if (given.contains("multusName")) {
        DIBS_TRY(AskedNic nic, named(given, name_space));
        put(std::move(nic), device);
      } else if (class_name == kDynamicClass) {
        dynamic.push_back(device);
      }
    }
    if (dynamic.empty()) return success();
    devices_ = std::move(dynamic);
    return add_dynamic(claim, options_.install_namespace, {}, 0);
  }

  const NodeState* state_;
  const Networks& networks_;
  const SelectionOptions& options_;
  std::string default_of_pod_;  // "ns/name" of a NetworkAttachmentDefinition
  bool has_default_ = false;
  std::vector<NicDevice> devices_;  // of the claim that is being added
};

}  // namespace

std::vector<NicDevice> nic_devices(const Value& claim) {
  std::vector<NicDevice> out;
  for (const Value& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    if (result["driver"].as_string() != kDriver || result["adminAccess"].as_bool()) continue;
    out.push_back({result["request"].str(), result["pool"].str(), result["device"].str(),
                   result["shareID"].str()});
  }
  return out;
}

std::vector<std::string> claims_of_pod(const Value& pod) {
  std::vector<std::string> out;
  for (const Value& entry : pod["spec"]["resourceClaims"].items()) {
    std::string name = entry["resourceClaimName"].str();
    if (name.empty()) name = entry["source"]["resourceClaimName"].str();
    for (const Value& status : pod["status"]["resourceClaimStatuses"].items()) {
      if (status["name"] == entry["name"]) name = status["resourceClaimName"].str();
    }
    out.push_back(std::move(name));
  }
  return out;
}

Result<TodayPlan> plan_today(const Value& pod, const std::vector<Value>& claims,
                             const NodeState* state, const Networks& networks,
                             const SelectionOptions& options) {
  if (claims.empty()) return TodayPlan();
  Collecting found(pod, state, networks, options);
  for (const Value& claim : claims) DIBS_CHECK(found.add(claim));
  TodayPlan out;
  std::size_t rest = 0;
  for (std::size_t i = claims.size(); i-- > 0;) {
    const auto devices = nic_devices(claims[i]);
    if (devices.empty()) continue;
    rest = i;
    out.node = devices.front().pool;
  }
  DIBS_TRY(PodPlan plan, plan_pod(pod, found.asked, rest, networks, options));
  std::vector<std::size_t> next(claims.size());
  for (PlannedNic& planned : plan.nics) {
    TodayNic nic;
    nic.claim = planned.claim;
    const auto devices = nic_devices(claims[nic.claim]);
    auto& further = found.secondary_devices[nic.claim];
    if (planned.need.interface == kDefaultInterface && found.asked[nic.claim].default_nic) {
      nic.device = found.default_devices[nic.claim];
    } else if (next[nic.claim] < further.size()) {
      nic.device = further[next[nic.claim]++];
    } else if (!devices.empty()) {
      nic.device = devices.front();
    }
    nic.vf = offered(nic.device, state).vf;
    nic.need = std::move(planned.need);
    out.nics.push_back(std::move(nic));
  }
  out.annotations = std::move(plan.annotations);
  const auto& there = pod["metadata"]["annotations"];
  if (!found.default_route_nic.empty() && !there.contains(std::string(kDefaultRouteNic))) {
    if (out.annotations.is_null()) out.annotations = Value::object();
    out.annotations.set(kDefaultRouteNic, found.default_route_nic);
  }
  return out;
}

}  // namespace dibs::drivers::net
