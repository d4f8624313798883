#include "drivers/gpu/claims_handler.h"

#include <cctype>

#include "base/log.h"
#include "base/strings.h"

namespace dibs::drivers {
namespace {

using json::Value;

constexpr int kStatusTries = 5;
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

/// "GPU_0" of "gpu-0": letters and digits stay, every run of others is one '_'.
std::string variable_part(std::string_view device) {
  std::string out;
  bool in_run = false;
  for (const char c : device) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (keep) {
      out.push_back(c);
    } else if (!in_run) {
      out.push_back('_');
    }
    in_run = !keep;
  }
  return to_upper(out);
}

}  // namespace

ClaimsHandler::ClaimsHandler(std::unique_ptr<Profile> profile, std::string profile_name,
                             std::string driver_name, client::Client& api)
    : profile_(std::move(profile)),
      class_(to_upper(profile_name)),
      driver_name_(std::move(driver_name)),
      api_(api),
      pool_(profile_->pool()) {
  for (const auto& slice : pool_.slices) {
    for (const auto& device : slice.devices) {
      devices_[device.object()["name"].str()] = device.object();
    }
  }
}

Result<std::vector<driver::Pool>> ClaimsHandler::devices() {
  return std::vector<driver::Pool>{pool_};
}

Result<std::vector<driver::PreparedDevice>> ClaimsHandler::prepare(const driver::Claim& claim) {
  auto configs = driver::configs_of(claim, driver_name_);
  if (!configs) return configs.error().within("error getting opaque device configs");
  for (auto& config : *configs) {
    auto decoded = profile_->decode(config.parameters);
    if (!decoded) {
      return decoded.error().within(
          "error getting opaque device configs: error decoding config parameters");
    }
    config.parameters = std::move(decoded).value();
  }
  for (const auto& device : claim.devices) {
    if (devices_.contains(device.device)) continue;
    return Error::invalid(cat("requested device is not allocatable: ", device.device));
  }
  std::vector<driver::PreparedDevice> out;
  for (const auto& device : claim.devices) {
    const driver::Config* config = driver::config_for(*configs, device.request);
    auto shown = profile_->environment(config != nullptr ? config->parameters : Value(), device);
    if (!shown) return shown.error().within("error applying config");
    std::vector<std::string> env = {
        cat(class_, "_DEVICE_", variable_part(device.device), "_RESOURCE_CLAIM=", claim.id.uid),
        cat("DRA_ADMIN_ACCESS=", claim.admin_access)};
    env.insert(env.end(), shown->begin(), shown->end());
    out.push_back(driver::prepared(device, driver::env_edits(std::move(env))));
    if (const Value& known = devices_[device.device]["attributes"]; known.is_object()) {
      out.back().metadata = Value::object({{"attributes", known}});
    }
  }
  // The classic model has no status of devices.
  if (!claim.prepared && claim.handles.empty()) write_status(claim);
  return out;
}

Result<> ClaimsHandler::unprepare(const driver::ClaimName&) { return success(); }

/// A claim without its status is still good: failures are only logged.
void ClaimsHandler::write_status(const driver::Claim& claim) {
  Value devices = Value::array();
  for (const auto& device : claim.devices) {
    const Value data = profile_->status_data(devices_[device.device]);
    if (data.is_null()) continue;
    Value entry = Value::object({{"driver", driver_name_},
                                 {"pool", device.pool},
                                 {"device", device.device},
                                 {"data", data}});
    if (!device.share_id.empty()) entry.set("shareID", device.share_id);
    devices.push(std::move(entry));
  }
  if (devices.empty()) return;
  auto written = try_write_status(claim, devices);
  if (!written) {
    log::warn("device status not written", {{"claim", cat(claim.id.name_space, "/", claim.id.name)},
                                            {"error", written.error()}});
  }
}

Result<> ClaimsHandler::try_write_status(const driver::Claim& claim, const Value& devices) {
  Value object = claim.object;
  for (int tries = 1;; ++tries) {
    object.mut("status").set("devices", devices);
    auto written = api_.update_status(kClaims, claim.id.name_space, object);
    if (written) return success();
    if (written.error().code() != Code::conflict || tries == kStatusTries) return written.error();
    DIBS_TRY(object, api_.get(kClaims, claim.id.name_space, claim.id.name));
    if (object["metadata"]["uid"].as_string() != claim.id.uid) {
      return Error::conflict("the claim was replaced");
    }
  }
}

}  // namespace dibs::drivers
