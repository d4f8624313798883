#include "driver/faults.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::driver {
namespace {

using json::Value;

Result<> only(const Value& object, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return Error::invalid("must be an object");
  for (const auto& [name, value] : object.members()) {
    if (std::find(known.begin(), known.end(), std::string_view(name)) != known.end()) continue;
    return Error::invalid(cat("unknown field ", quoted(name)));
  }
  return success();
}

Result<Time> since_of(const Value& fault) {
  auto since = parse_rfc3339(fault["since"].as_string());
  if (!since) return Error::invalid("since: must be a time, such as 2026-01-01T00:00:00Z");
  return since;
}

Result<FailFault> parse_fail(const Value& fault) {
  DIBS_CHECK(only(fault, {"reason", "effect", "since"}));
  FailFault out;
  out.reason = fault["reason"].str();
  if (out.reason.size() > kLongestReason) {
    return Error::invalid(cat("reason: must have at most ", kLongestReason, " bytes"));
  }
  if (fault.contains("effect")) out.effect = fault["effect"].str();
  if (out.effect != "NoExecute" && out.effect != "NoSchedule" && out.effect != "None") {
    return Error::invalid("effect: must be NoExecute, NoSchedule or None");
  }
  DIBS_TRY(out.since, since_of(fault));
  return out;
}

Result<VanishFault> parse_vanish(const Value& fault) {
  DIBS_CHECK(only(fault, {"since"}));
  VanishFault out;
  DIBS_TRY(out.since, since_of(fault));
  return out;
}

Result<Duration> duration_of(const Value& fault, const char* name) {
  if (!fault.contains(name)) return Duration(0);
  const auto parsed = parse_duration(fault[name].as_string());
  if (!parsed || *parsed < Duration(0) || *parsed > kSlowest) {
    return Error::invalid(cat(name, ": must be a duration from 0s to ", format_duration(kSlowest)));
  }
  return *parsed;
}

Result<SlowFault> parse_slow(const Value& fault) {
  DIBS_CHECK(only(fault, {"prepare", "unprepare", "since"}));
  SlowFault out;
  DIBS_TRY(out.prepare, duration_of(fault, "prepare"));
  DIBS_TRY(out.unprepare, duration_of(fault, "unprepare"));
  DIBS_TRY(out.since, since_of(fault));
  return out;
}

template <typename Fault>
Result<> read(const Value& device, const char* name, Result<Fault> (*parse)(const Value&),
              std::optional<Fault>& into) {
  if (!device.contains(name)) return success();
  auto parsed = parse(device[name]);
  if (!parsed) return parsed.error().within(name);
  into = std::move(parsed).value();
  return success();
}

Result<DeviceFaults> parse_device(const Value& device) {
  DIBS_CHECK(only(device, {"fail", "vanish", "slow"}));
  DeviceFaults out;
  DIBS_CHECK(read(device, "fail", parse_fail, out.fail));
  DIBS_CHECK(read(device, "vanish", parse_vanish, out.vanish));
  DIBS_CHECK(read(device, "slow", parse_slow, out.slow));
  return out;
}

Value object_of(const DeviceFaults& faults) {
  Value out = Value::object();
  if (faults.fail) {
    out.set("fail", Value::object({{"reason", faults.fail->reason},
                                   {"effect", faults.fail->effect},
                                   {"since", format_rfc3339(faults.fail->since)}}));
  }
  if (faults.vanish) {
    out.set("vanish", Value::object({{"since", format_rfc3339(faults.vanish->since)}}));
  }
  if (faults.slow) {
    out.set("slow", Value::object({{"prepare", format_duration(faults.slow->prepare)},
                                   {"unprepare", format_duration(faults.slow->unprepare)},
                                   {"since", format_rfc3339(faults.slow->since)}}));
  }
  return out;
}

Device tainted(const Device& device, const FailFault& fault, std::string_view driver) {
  Value taints = device.object()["taints"];
  if (!taints.is_array()) taints = Value::array();
  taints.push(Value::object({{"key", fault_taint_key(driver)},
                             {"value", "true"},
                             {"effect", fault.effect},
                             {"timeAdded", format_rfc3339(fault.since)}}));
  Device out = device;
  out.set("taints", std::move(taints));
  return out;
}

}  // namespace

std::string faults_annotation(std::string_view driver) { return cat("faults.dibs.dev/", driver); }

std::string fault_key(std::string_view pool, std::string_view device) {
  return cat(pool, "/", device);
}

std::string fault_taint_key(std::string_view driver) { return cat(driver, "/unhealthy"); }

Result<Faults> parse_faults(std::string_view text) {
  Faults out;
  if (text.empty()) return out;
  auto parsed = json::parse(text);
  if (!parsed) return Error::invalid(cat("no JSON: ", parsed.error().message()));
  if (!parsed->is_object()) return Error::invalid("must be an object");
  for (const auto& [key, value] : parsed->members()) {
    if (key.find('/') == std::string_view::npos) {
      return Error::invalid(cat(quoted(key), ": must be POOL/DEVICE"));
    }
    auto device = parse_device(value);
    if (!device) return device.error().within(key);
    if (!device->none()) out.emplace(key, std::move(device).value());
  }
  return out;
}

std::string write_faults(const Faults& faults) {
  Value out = Value::object();
  for (const auto& [key, device] : faults) {
    if (!device.none()) out.set(key, object_of(device));
  }
  return out.empty() ? std::string() : json::write(out);
}

Pool with_faults(const Pool& pool, const Faults& faults, std::string_view driver) {
  if (faults.empty()) return pool;
  Pool out = pool;
  for (auto& slice : out.slices) {
    std::vector<Device> devices;
    for (const auto& device : slice.devices) {
      const auto found = faults.find(fault_key(pool.name, device.object()["name"].as_string()));
      if (found == faults.end()) {
        devices.push_back(device);
      } else if (!found->second.vanish) {
        const auto& fail = found->second.fail;
        devices.push_back(fail && fail->effect != "None" ? tainted(device, *fail, driver) : device);
      }
    }
    slice.devices = std::move(devices);
  }
  return out;
}

}  // namespace dibs::driver
