#include "drivers/gpu/config.h"

#include <cstdint>
#include <limits>

#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::drivers {
namespace {

using json::Value;

// Also what the largest uint64 is as a double.
constexpr double kTwoTo64 = 18446744073709551616.0;

Error wrong_kind(std::string_view value, std::string_view owner, std::string_view path,
                 std::string_view type) {
  return Error::invalid(cat("json: cannot unmarshal ", value, " into Go struct field ", owner, ".",
                            path, " of type ", type));
}

struct Field {
  const char* owner;
  const char* path;
  const char* type;
};

Result<> expect_string(const Value& value, const Field& field) {
  if (value.is_null() || value.is_string()) return success();
  return wrong_kind(json::go_kind(value), field.owner, field.path, field.type);
}

Result<> expect_object(const Value& value, const Field& field) {
  if (value.is_null() || value.is_object()) return success();
  return wrong_kind(json::go_kind(value), field.owner, field.path, field.type);
}

Result<> expect_integer(const Value& value, const Field& field, bool is_signed) {
  if (value.is_null()) return success();
  if (value.is_integer() && (is_signed || value.as_int() >= 0)) return success();
  // Numbers beyond int64 are kept as doubles, and uint64 goes further.
  if (!is_signed && value.is_number() && value.as_double() >= 0 && value.as_double() <= kTwoTo64 &&
      value.as_double() >= kTwoTo64 / 2) {
    return success();
  }
  const std::string shown =
      value.is_number() ? cat("number ", json::write(value)) : std::string(json::go_kind(value));
  return wrong_kind(shown, field.owner, field.path, field.type);
}

/// apiVersion and kind, as the serializer of Kubernetes looks for them.
Result<> check_type(const Value& parameters, std::string_view group, std::string_view kind) {
  if (!parameters.is_object()) {
    return Error::invalid(
        cat("couldn't get version/kind; json parse error: json: cannot unmarshal ",
            json::go_kind(parameters),
            " into Go value of type struct { APIVersion string "
            "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
            "\"json:\\\"kind,omitempty\\\"\" }"));
  }
  const auto given_kind = parameters["kind"].as_string();
  const auto version = parameters["apiVersion"].as_string();
  if (given_kind.empty()) {
    return Error::invalid(cat("Object 'Kind' is missing in '", json::write(parameters), "'"));
  }
  if (version.empty()) {
    return Error::invalid(cat("Object 'apiVersion' is missing in '", json::write(parameters), "'"));
  }
  if (!group.empty() && version == cat(group, "/v1alpha1") && given_kind == kind) return success();
  return Error::invalid(cat("no kind ", quoted(given_kind), " is registered for version ",
                            quoted(version), " in scheme \"dra-example-driver\""));
}

Result<> check_strategy(std::string_view strategy) {
  if (strategy == "TimeSlicing" || strategy == "SpacePartitioning") return success();
  return Error::invalid(cat("unknown GPU sharing strategy: ", strategy));
}

Result<> check_interval(std::string_view interval) {
  for (const char* known : {"Default", "Short", "Medium", "Long"}) {
    if (interval == known) return success();
  }
  return Error::invalid(cat("unknown time-slice interval: ", interval));
}

std::uint64_t unsigned_of(const Value& value) {
  if (value.is_integer()) return static_cast<std::uint64_t>(value.as_int());
  if (value.as_double() >= kTwoTo64) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(value.as_double());
}

Result<> check_burst(std::uint64_t burst, std::string_view field) {
  if (burst / 8 < std::numeric_limits<std::uint32_t>::max()) return success();
  return Error::invalid(
      cat("error validating Net config: invalid ", field, ": burst cannot be more than 4GB"));
}

}  // namespace

Result<Value> decode_gpu_config(const Value& parameters) {
  DIBS_CHECK(check_type(parameters, kGpuConfigGroup, "GpuConfig"));
  const Value& sharing = parameters["sharing"];
  DIBS_CHECK(expect_object(sharing, {"GpuConfig", "sharing", "v1alpha1.GpuSharing"}));
  DIBS_CHECK(expect_string(sharing["strategy"],
                           {"GpuSharing", "sharing.strategy", "v1alpha1.GpuSharingStrategy"}));
  DIBS_CHECK(expect_object(sharing["timeSlicingConfig"], {"GpuSharing", "sharing.timeSlicingConfig",
                                                          "v1alpha1.TimeSlicingConfig"}));
  DIBS_CHECK(expect_string(
      sharing["timeSlicingConfig"]["interval"],
      {"TimeSlicingConfig", "sharing.timeSlicingConfig.interval", "v1alpha1.TimeSliceInterval"}));
  DIBS_CHECK(expect_object(
      sharing["spacePartitioningConfig"],
      {"GpuSharing", "sharing.spacePartitioningConfig", "v1alpha1.SpacePartitioningConfig"}));
  DIBS_CHECK(expect_integer(
      sharing["spacePartitioningConfig"]["partitionCount"],
      {"SpacePartitioningConfig", "sharing.spacePartitioningConfig.partitionCount", "int"}, true));
  return parameters;
}

Result<Value> decode_net_config(const Value& parameters) {
  DIBS_CHECK(check_type(parameters, kNetConfigGroup, "NetConfig"));
  const Value& burst = parameters["bwBurst"];
  DIBS_CHECK(expect_object(burst, {"NetConfig", "bwBurst", "v1alpha1.BandwidthBurstEntry"}));
  DIBS_CHECK(expect_integer(burst["ingressBurst"],
                            {"BandwidthBurstEntry", "bwBurst.ingressBurst", "uint64"}, false));
  DIBS_CHECK(expect_integer(burst["egressBurst"],
                            {"BandwidthBurstEntry", "bwBurst.egressBurst", "uint64"}, false));
  return parameters;
}

Result<Value> refuse_config(const Value& parameters) {
  DIBS_CHECK(check_type(parameters, "", ""));
  return parameters;
}

Result<GpuSharing> gpu_sharing(const Value& config, std::string_view device) {
  GpuSharing out;
  const Value& sharing = config["sharing"];
  if (!sharing.is_object()) return out;
  out.strategy = sharing["strategy"].str();
  const auto invalid = [](const Error& error) {
    return error.within("error validating GPU config");
  };
  if (auto checked = check_strategy(out.strategy); !checked) return invalid(checked.error());
  const bool slices_time = out.strategy == "TimeSlicing";
  const Value& time = sharing["timeSlicingConfig"];
  const Value& space = sharing["spacePartitioningConfig"];
  if (slices_time && time.is_object()) {
    out.interval = time["interval"].str();
    if (auto checked = check_interval(out.interval); !checked) return invalid(checked.error());
  }
  if (!slices_time && space.is_object()) {
    out.partitions = space["partitionCount"].as_int();
    if (out.partitions < 0) {
      return invalid(Error::invalid(cat("invalid partition count: ", out.partitions)));
    }
  }
  if (slices_time && space.is_object()) {
    return Error::invalid(
        cat("unable to get time slicing config for device ", device,
            ": cannot use SpacePartitioningConfig with the 'TimeSlicing' strategy"));
  }
  if (!slices_time && time.is_object()) {
    return Error::invalid(
        cat("unable to get space partitioning config for device ", device,
            ": cannot use TimeSlicingConfig with the 'SpacePartitioning' strategy"));
  }
  return out;
}

Result<NetBurst> net_burst(const Value& config) {
  const Value& given = config["bwBurst"];
  NetBurst burst{unsigned_of(given["ingressBurst"]), unsigned_of(given["egressBurst"])};
  DIBS_CHECK(check_burst(burst.ingress, "ingressBurst"));
  DIBS_CHECK(check_burst(burst.egress, "egressBurst"));
  return burst;
}

}  // namespace dibs::drivers
