#include "driver/device_status.h"

namespace dibs::driver {
namespace {

using json::Value;

const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
constexpr std::size_t kLongestMessage = 32768;
constexpr int kTries = 10;

}  // namespace

Value& device_status(Value& claim, std::string_view driver, std::string_view pool,
                     std::string_view device, std::string_view share_id) {
  Value& devices = claim.mut("status").mut("devices");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Value& one = devices[i];
    if (one["driver"].as_string() == driver && one["pool"].as_string() == pool &&
        one["device"].as_string() == device && one["shareID"].as_string() == share_id) {
      return devices.mut(i);
    }
  }
  Value entry = Value::object({{"driver", driver}, {"pool", pool}, {"device", device}});
  if (!share_id.empty()) entry.set("shareID", share_id);
  devices.push(std::move(entry));
  return devices.mut(devices.size() - 1);
}

bool has_condition(const Value& device, std::string_view type) {
  for (const Value& condition : device["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition["status"].as_string() == "True";
  }
  return false;
}

void set_condition(Value& device, const Condition& condition, Time now) {
  const std::string_view status = condition.holds ? "True" : "False";
  Value made = Value::object({{"type", condition.type},
                              {"status", status},
                              {"lastTransitionTime", format_rfc3339(now)},
                              {"reason", condition.reason},
                              {"message", condition.message.substr(0, kLongestMessage)}});
  const Value& conditions = device["conditions"];
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i]["type"].as_string() != condition.type) continue;
    if (conditions[i]["status"].as_string() == status) {
      made.set("lastTransitionTime", conditions[i]["lastTransitionTime"]);
    }
    device.mut("conditions").mut(i) = std::move(made);
    return;
  }
  device.mut("conditions").push(std::move(made));
}

Result<> update_claim_status(client::Client& api, const ClaimName& claim,
                             const std::function<void(Value& claim)>& change) {
  for (int i = 0;; ++i) {
    auto object = api.get(kClaims, claim.name_space, claim.name);
    if (!object && object.error().code() == Code::not_found) return success();
    if (!object) return object.error();
    if (client::uid_of(*object) != claim.uid) return success();
    Value wanted = *object;
    change(wanted);
    if (wanted == *object) return success();
    const auto written = api.update_status(kClaims, claim.name_space, wanted);
    if (written || written.error().code() == Code::not_found) return success();
    if (written.error().code() != Code::conflict || i == kTries) return written.error();
  }
}

}  // namespace dibs::driver
