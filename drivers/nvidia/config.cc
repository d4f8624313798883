#include "drivers/nvidia/config.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::drivers::nvidia {
namespace {

using json::Value;

constexpr std::string_view kVersion = "resource.nvidia.com/v1beta1";
constexpr std::int64_t kMebibyte = 1024 * 1024;

/// Reads the members of an object by name, each at most once, and tells those that nobody asked
/// for.
class Fields {
 public:
  /// `path` is "" for the object as a whole.
  static Result<Fields> open(const Value& object, const std::string& path) {
    if (!object.is_object() && !object.is_null()) {
      return Error::invalid(cat("json: cannot unmarshal ", json::go_kind(object),
                                " into Go struct field ", path, " of type object"));
    }
    return Fields(object, path);
  }

  const Value& get(std::string_view name) {
    known_.emplace(name);
    return object_[name];
  }
  Result<std::string> text(std::string_view name) {
    const Value& value = get(name);
    if (value.is_null()) return std::string();
    if (value.is_string()) return value.str();
    return wrong(value, name, "string");
  }
  Result<std::optional<std::int64_t>> integer(std::string_view name) {
    const Value& value = get(name);
    if (value.is_null()) return std::optional<std::int64_t>();
    if (value.is_integer()) return std::optional<std::int64_t>(value.as_int());
    return wrong(value, name, "int");
  }
  std::string path_of(std::string_view name) const {
    return path_.empty() ? std::string(name) : cat(path_, ".", name);
  }

  /// In the words of a strict decoder.
  Result<> check_unknown() const {
    std::string unknown;
    for (const auto& [name, value] : object_.members()) {
      if (known_.contains(name)) continue;
      append(unknown, unknown.empty() ? "" : ", ", "unknown field ", quoted(path_of(name)));
    }
    if (unknown.empty()) return success();
    return Error::invalid(cat("strict decoding error: ", unknown));
  }

 private:
  Fields(const Value& object, std::string path) : object_(object), path_(std::move(path)) {}

  Error wrong(const Value& value, std::string_view name, std::string_view type) const {
    return Error::invalid(cat("json: cannot unmarshal ", json::go_kind(value),
                              " into Go struct field ", path_of(name), " of type ", type));
  }

  Value object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

Result<std::string> kind_of(const Value& parameters) {
  if (!parameters.is_object()) {
    return Error::invalid(cat("couldn't get version/kind; json parse error: cannot unmarshal ",
                              json::go_kind(parameters), " into an object"));
  }
  const auto kind = parameters["kind"].as_string();
  const auto version = parameters["apiVersion"].as_string();
  if (kind.empty()) {
    return Error::invalid(cat("Object 'Kind' is missing in '", json::write(parameters), "'"));
  }
  if (version.empty()) {
    return Error::invalid(cat("Object 'apiVersion' is missing in '", json::write(parameters), "'"));
  }
  if (version == kVersion) {
    if (kind == "GpuConfig" || kind == "MigDeviceConfig") return std::string(kind);
    if (kind == "VfioDeviceConfig") {
      return Error::invalid(
          "VfioDeviceConfig: this driver passes no GPU through to a virtual machine");
    }
    if (kind == "ComputeDomainChannelConfig" || kind == "ComputeDomainDaemonConfig") {
      return Error::invalid(
          cat(kind, ": compute domains are another driver's, compute-domain.nvidia.com"));
    }
  }
  return Error::invalid(cat("no kind ", quoted(kind), " is registered for version ",
                            quoted(version), "; known are GpuConfig and MigDeviceConfig of ",
                            kVersion));
}

Result<Quantity> quantity_of(const Value& value, const std::string& path) {
  if (!value.is_string() && !value.is_number()) {
    return Error::invalid(cat("json: cannot unmarshal ", json::go_kind(value),
                              " into Go struct field ", path, " of type Quantity"));
  }
  auto parsed = Quantity::parse(value.is_string() ? value.str() : json::write(value));
  if (!parsed) return Error::invalid(parsed.error().message()).within(path);
  return std::move(parsed).value();
}

Result<MpsSettings> decode_mps(const Value& given, const std::string& path) {
  MpsSettings out;
  DIBS_TRY(auto fields, Fields::open(given, path));
  DIBS_TRY(out.active_thread_percentage, fields.integer("defaultActiveThreadPercentage"));
  if (const Value& limit = fields.get("defaultPinnedDeviceMemoryLimit"); !limit.is_null()) {
    DIBS_TRY(out.pinned_memory_limit,
             quantity_of(limit, fields.path_of("defaultPinnedDeviceMemoryLimit")));
  }
  const std::string limits = "defaultPerDevicePinnedMemoryLimit";
  const Value& by_device = fields.get(limits);
  if (!by_device.is_object() && !by_device.is_null()) {
    return Error::invalid(cat("json: cannot unmarshal ", json::go_kind(by_device),
                              " into Go struct field ", fields.path_of(limits), " of type map"));
  }
  for (const auto& [device, limit] : by_device.members()) {
    DIBS_TRY(auto amount, quantity_of(limit, cat(fields.path_of(limits), "[", device, "]")));
    out.pinned_memory_limits.emplace(device, std::move(amount));
  }
  DIBS_CHECK(fields.check_unknown());
  if (const auto percent = out.active_thread_percentage) {
    if (*percent < 0) return Error::invalid("active thread percentage must not be negative");
    if (*percent > 100) {
      return Error::invalid("active thread percentage must not be greater than 100");
    }
  }
  return out;
}

Result<> check_interval(const std::string& interval) {
  for (const char* known : {"Default", "Short", "Medium", "Long"}) {
    if (interval == known) return success();
  }
  return Error::invalid(cat("unknown time-slice interval: ", interval,
                            ", supported time-slice intervals: Default, Short, Medium, Long"));
}

Result<> decode_sharing(const Value& given, DeviceConfig& config) {
  DIBS_TRY(auto fields, Fields::open(given, "sharing"));
  DIBS_TRY(const std::string strategy, fields.text("strategy"));
  const Value time = config.for_mig ? Value() : fields.get("timeSlicingConfig");
  const Value mps = fields.get("mpsConfig");
  DIBS_CHECK(fields.check_unknown());

  DIBS_TRY(auto intervals, Fields::open(time, "sharing.timeSlicingConfig"));
  DIBS_TRY(const std::string interval, intervals.text("interval"));
  DIBS_CHECK(intervals.check_unknown());
  DIBS_TRY(config.mps, decode_mps(mps, "sharing.mpsConfig"));

  if (strategy == "TimeSlicing") {
    config.sharing = Sharing::time_slicing;
    if (!interval.empty()) config.interval = interval;
    DIBS_CHECK(check_interval(config.interval));
    if (!mps.is_null()) {
      return Error::invalid("cannot use MpsConfig with the 'TimeSlicing' strategy");
    }
    return success();
  }
  if (strategy == "MPS") {
    config.sharing = Sharing::mps;
    if (!time.is_null()) {
      return Error::invalid("cannot use TimeSlicingConfig with the 'MPS' strategy");
    }
    return success();
  }
  return Error::invalid(cat("unknown GPU sharing strategy: ", strategy,
                            ", supported GPU sharing strategies: TimeSlicing, MPS"));
}

/// "10240M"; upstream's daemons get whole mebibytes, and what is less than one is refused.
Result<std::string> megabytes(const Quantity& limit, const std::string& whose) {
  const std::int64_t amount = limit.value() / kMebibyte;
  if (amount > 0) return cat(amount, "M");
  return Error::invalid(cat("invalid limit: ", whose, "value set too low: ", limit.str()));
}

Result<std::string> uuid_for(const std::string& key, const std::vector<std::string>& uuids) {
  if (std::find(uuids.begin(), uuids.end(), key) != uuids.end()) return key;
  std::size_t index = 0;
  const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (failed != std::errc() || end != key.data() + key.size()) {
    return Error::invalid(cat("invalid device: unable to parse key as an integer: ", key));
  }
  if (index >= uuids.size()) {
    return Error::invalid(cat("invalid device: invalid device index: ", key));
  }
  return uuids[index];
}

}  // namespace

Result<std::map<std::string, std::string>> limits_of(const MpsSettings& settings,
                                                     const std::vector<std::string>& uuids) {
  std::map<std::string, std::string> out;
  if (settings.pinned_memory_limit) {
    DIBS_TRY(const std::string amount, megabytes(*settings.pinned_memory_limit, "default "));
    for (const auto& uuid : uuids) out[uuid] = amount;
  }
  for (const auto& [key, limit] : settings.pinned_memory_limits) {
    DIBS_TRY(const std::string uuid, uuid_for(key, uuids));
    DIBS_TRY(out[uuid], megabytes(limit, ""));
  }
  return out;
}

int DeviceConfig::interval_number() const {
  return interval == "Short" ? 1 : interval == "Medium" ? 2 : interval == "Long" ? 3 : 0;
}

Result<DeviceConfig> decode_config(const Value& parameters) {
  DIBS_TRY(const std::string kind, kind_of(parameters));
  DeviceConfig config;
  config.for_mig = kind == "MigDeviceConfig";
  DIBS_TRY(auto fields, Fields::open(parameters, ""));
  fields.get("apiVersion");
  fields.get("kind");
  const Value sharing = fields.get("sharing");
  DIBS_CHECK(fields.check_unknown());
  if (sharing.is_null()) return config;
  if (auto decoded = decode_sharing(sharing, config); !decoded) {
    return decoded.error().within(cat("error validating ", kind));
  }
  return config;
}

Result<std::vector<RequestConfig>> decode_configs(const driver::Claim& claim,
                                                  std::string_view driver) {
  auto given = driver::configs_of(claim, driver);
  if (!given) return given.error().within("error getting opaque device configs");
  std::vector<RequestConfig> out;
  for (auto& one : *given) {
    auto config = decode_config(one.parameters);
    if (!config) {
      return config.error().within(
          "error getting opaque device configs: error decoding config parameters");
    }
    out.push_back({std::move(one.requests), std::move(config).value()});
  }
  return out;
}

Result<std::optional<std::size_t>> config_of(const std::vector<RequestConfig>& configs,
                                             const driver::AllocatedDevice& device, bool is_mig) {
  for (std::size_t i = configs.size(); i-- > 0;) {
    const auto& [requests, config] = configs[i];
    // One that names a request is for all of its alternatives ("gpu" for "gpu/large"), too.
    const std::string request = device.request.substr(0, device.request.find('/'));
    const bool names = std::any_of(requests.begin(), requests.end(), [&](const auto& name) {
      return name == device.request || name == request;
    });
    if (!names && !requests.empty()) continue;
    if (config.for_mig == is_mig) return std::optional<std::size_t>(i);
    if (!names) continue;
    return Error::invalid(cat("cannot apply ", config.for_mig ? "MigDeviceConfig" : "GpuConfig",
                              " to device ", quoted(device.device), " of type ",
                              quoted(is_mig ? "mig" : "gpu"), " (request: ", device.request, ")"));
  }
  return std::optional<std::size_t>();
}

}  // namespace dibs::drivers::nvidia
