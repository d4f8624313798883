#include "driver/claim.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::driver {

using json::Value;

bool is_classic(const Value& claim) {
  return !claim["spec"]["resourceClassName"].as_string().empty();
}

std::vector<Handle> handles_of(const Value& claim, std::string_view driver) {
  const Value& status = claim["status"];
  const Value& given = status["allocation"]["resourceHandles"];
  const auto maker = status["driverName"].as_string();
  std::vector<Handle> handles;
  for (const auto& handle : given.items()) {
    const auto name = handle["driverName"].as_string();
    if ((name.empty() ? maker : name) != driver) continue;
    handles.push_back({handle["data"].str(), handle["structuredData"]});
  }
  if (given.empty() && maker == driver) handles.emplace_back();
  return handles;
}

namespace {

void read_classic(Claim& claim, std::string_view driver) {
  claim.handles = handles_of(claim.object, driver);
  for (const auto& handle : claim.handles) {
    for (const auto& result : handle.structured["results"].items()) {
      AllocatedDevice device;
      device.pool = handle.structured["nodeName"].str();
      device.device = result["namedResources"]["name"].str();
      device.request = device.device;
      claim.devices.push_back(std::move(device));
    }
  }
}

Result<> check_part(std::string_view what, std::string_view text) {
  const bool names_a_file = !text.empty() && text != "." && text != ".." &&
                            text.find('/') == std::string_view::npos &&
                            text.find('\0') == std::string_view::npos;
  if (names_a_file) return success();
  return Error::invalid(cat("invalid ", what, " of a claim: ", quoted(text)));
}

}  // namespace

ClaimName claim_name(const Value& claim) {
  const Value& metadata = claim["metadata"];
  return {metadata["namespace"].str(), metadata["name"].str(), metadata["uid"].str()};
}

Result<> check_name(const ClaimName& claim) {
  DIBS_CHECK(check_part("namespace", claim.name_space));
  DIBS_CHECK(check_part("name", claim.name));
  return check_part("uid", claim.uid);
}

Result<Claim> read_claim(Value object, std::string_view driver) {
  Claim claim;
  const Value& metadata = object["metadata"];
  claim.id = {metadata["namespace"].str(), metadata["name"].str(), metadata["uid"].str()};
  const Value& allocation = object["status"]["allocation"];
  if (!allocation.is_object()) {
    return Error::invalid(cat("claim ", claim.id.name_space, "/", claim.id.name, " not allocated"));
  }
  DIBS_CHECK(check_name(claim.id));
  if (is_classic(object)) {
    claim.object = std::move(object);
    read_classic(claim, driver);
    return claim;
  }
  for (const auto& result : allocation["devices"]["results"].items()) {
    const bool admin_access = result["adminAccess"].as_bool();
    claim.admin_access = claim.admin_access || admin_access;
    if (result["driver"].as_string() != driver) continue;
    AllocatedDevice device;
    device.request = result["request"].str();
    DIBS_CHECK(check_part("request", split(device.request, '/')[0]));
    device.pool = result["pool"].str();
    device.device = result["device"].str();
    device.share_id = result["shareID"].str();
    device.admin_access = admin_access;
    device.consumed = result["consumedCapacity"];
    claim.devices.push_back(std::move(device));
  }
  claim.object = std::move(object);
  return claim;
}

namespace {

/// What the parameters of class, claim and request had for the vendor (release 1.30).
std::vector<Config> vendor_configs(const Claim& claim) {
  std::vector<Config> configs;
  const auto add = [&](const Value& parameters, std::vector<std::string> requests) {
    if (parameters.is_object()) configs.push_back({std::move(requests), parameters});
  };
  for (const auto& handle : claim.handles) {
    add(handle.structured["vendorClassParameters"], {});
    add(handle.structured["vendorClaimParameters"], {});
    for (const auto& result : handle.structured["results"].items()) {
      add(result["vendorRequestParameters"], {result["namedResources"]["name"].str()});
    }
  }
  return configs;
}

}  // namespace

Result<std::vector<Config>> configs_of(const Claim& claim, std::string_view driver) {
  if (!claim.handles.empty()) return vendor_configs(claim);
  const Value& given = claim.object["status"]["allocation"]["devices"]["config"];
  for (const auto& config : given.items()) {
    const auto source = config["source"].as_string();
    if (source != "FromClass" && source != "FromClaim") {
      return Error::invalid(cat("invalid config source: ", source));
    }
  }
  std::vector<Config> configs;
  for (const char* source : {"FromClass", "FromClaim"}) {
    for (const auto& config : given.items()) {
      if (config["source"].as_string() != source) continue;
      if (!config["opaque"].is_object()) {
        return Error::invalid("only opaque parameters are supported by this driver");
      }
      if (config["opaque"]["driver"].as_string() != driver) continue;
      Config kept;
      for (const auto& request : config["requests"].items()) kept.requests.push_back(request.str());
      kept.parameters = config["opaque"]["parameters"];
      configs.push_back(std::move(kept));
    }
  }
  return configs;
}

const Config* config_for(const std::vector<Config>& configs, std::string_view request) {
  for (auto config = configs.rbegin(); config != configs.rend(); ++config) {
    const auto& requests = config->requests;
    if (requests.empty() ||
        std::find(requests.begin(), requests.end(), request) != requests.end()) {
      return &*config;
    }
  }
  return nullptr;
}

}  // namespace dibs::driver
