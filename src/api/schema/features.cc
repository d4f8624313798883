#include "api/schema/features.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "base/strings.h"

namespace dibs::api {
namespace {

enum class Stage : char { alpha, beta, stable, gone };

/// What a gate is from a release on, until the next entry.
struct Since {
  int minor = 0;
  Stage stage = Stage::alpha;
  bool on = false;
  bool locked = false;
};

struct History {
  std::string_view name;
  Since stages[4];
};

/// A gate that means something only while others are on.
struct Dependency {
  std::string_view gate;
  std::string_view needs;
};
constexpr Dependency kDependencies[] = {
    {"CompositePodGroup", "GenericWorkload"},
    {"CompositePodGroup", "TopologyAwareWorkloadScheduling"},
    {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"},
    {"DRADeviceCompatibilityGroups", "DRAPartitionableDevices"},
    {"DRADeviceTaintRules", "DRADeviceTaints"},
    {"DRAFractionalCapacityRange", "DRAConsumableCapacity"},
    {"DRAOptionalNodeOperations", "NodeDeclaredFeatures"},
    {"DRAPartitionableDevicesType", "DRAPartitionableDevices"},
    {"DRAPartitionableDevicesType", "DRAResourcePoolStatus"},
    {"DRAResourceClaimGranularStatusAuthorization", "DRAResourceClaimDeviceStatus"},
    {"DRAWorkloadResourceClaims", "DynamicResourceAllocation"},
    {"DRAWorkloadResourceClaims", "GenericWorkload"},
    {"PodGroupPreemptionPolicy", "GenericWorkload"},
    {"TopologyAwareWorkloadScheduling", "GenericWorkload"},
};

constexpr Since alpha(int minor) { return {minor, Stage::alpha, false, false}; }
constexpr Since beta(int minor, bool on = true) { return {minor, Stage::beta, on, false}; }
constexpr Since stable(int minor, bool locked = true) {
  return {minor, Stage::stable, true, locked};
}
constexpr Since gone(int minor) { return {minor, Stage::gone, false, false}; }

// Sorted by name.
constexpr History kGates[] = {
    {"CompositePodGroup", {alpha(37)}},
    // The first release that had the field had no gate for it.
    {"DRAAdminAccess", {{31, Stage::stable, true, true}, alpha(32), beta(34), stable(36)}},
    {"DRAConsumableCapacity", {alpha(34), beta(36)}},
    {"DRADerivedAttributes", {alpha(37)}},
    {"DRADeviceBindingConditions", {alpha(34), beta(36)}},
    {"DRADeviceCompatibilityGroups", {alpha(37)}},
    {"DRADeviceTaintRules", {alpha(35), beta(36, false), stable(37, false)}},
    {"DRADeviceTaints", {alpha(33), beta(36), stable(37, false)}},
    {"DRAExtendedResource", {alpha(34), beta(36), stable(37)}},
    // On only from the release after its first, when no older server can be about.
    {"DRAFractionalCapacityRange", {beta(37, false)}},
    {"DRAListTypeAttributes", {alpha(36)}},
    // The fields that 1.36 had for it are others, and not here.
    {"DRANodeAllocatableResources", {alpha(37)}},
    {"DRAOptionalNodeOperations", {alpha(37)}},
    {"DRAPartitionableDevices", {alpha(33), beta(36)}},
    {"DRAPartitionableDevicesType", {alpha(37)}},
    {"DRAPrioritizedList", {alpha(33), beta(34), stable(36, false), stable(37)}},
    {"DRAResourceClaimDeviceStatus", {alpha(32), beta(33), stable(37)}},
    {"DRAResourceClaimGranularStatusAuthorization", {beta(36)}},
    // Off upstream, where nobody asks for the API: here it is served.
    {"DRAResourcePoolStatus", {{36, Stage::alpha, true, false}}},
    {"DRASchedulerFilterTimeout", {beta(34)}},
    {"DRAWorkloadResourceClaims", {alpha(36), beta(37, false)}},
    // Upstream has it off before it was stable; a server that is all about it does not.
    {"DynamicResourceAllocation",
     {{26, Stage::alpha, true, false}, beta(32), stable(34, false), stable(35)}},
    {"GangScheduling", {alpha(36), gone(37)}},
    {"GenericWorkload", {alpha(36), beta(37, false)}},
    {"HPAConfigurableTolerance", {alpha(33), beta(35), stable(37)}},
    {"HPAGeneration", {beta(37)}},
    {"HPAScaleToZero", {alpha(16), beta(37)}},
    {"KubeletPodResourcesDynamicResources", {alpha(27), beta(34), stable(36)}},
    {"KubeletPodResourcesGet", {alpha(27), beta(34), stable(36)}},
    {"MutatingAdmissionPolicy", {alpha(32), beta(34, false), stable(36, false)}},
    {"NodeDeclaredFeatures", {alpha(35), beta(36), stable(37)}},
    // The requests of 1.34, v1alpha1, are not here.
    {"PodCertificateRequest", {beta(35, false), stable(37, false)}},
    {"PodGroupPreemptionPolicy", {alpha(37)}},
    {"ResourceHealthStatus", {alpha(31), beta(36)}},
    {"ResourceHealthStatusMessage", {beta(36)}},
    {"StorageCapacityScoring", {alpha(33), beta(37)}},
    {"TopologyAwareWorkloadScheduling", {alpha(36)}},
};

/// What a gate is in a release; null when the release does not know it.
const Since* stage_in(const History& gate, int minor) {
  const Since* found = nullptr;
  for (const Since& stage : gate.stages) {
    if (stage.minor != 0 && stage.minor <= minor) found = &stage;
  }
  return found && found->stage != Stage::gone ? found : nullptr;
}

const Since* find_gate(std::string_view name, int minor) {
  for (const History& gate : kGates) {
    if (gate.name == name) return stage_in(gate, minor);
  }
  return nullptr;
}

/// The words for true and false that Kubernetes takes.
Result<bool> parse_bool(std::string_view gate, std::string_view text) {
  for (std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return Error::bad_request(
      cat("invalid value ", quoted(text), " of feature gate ", gate, ": must be true or false"));
}

Error unknown_gate(std::string_view name, std::string_view release, int minor) {
  std::string known = "AllAlpha, AllBeta";
  for (const History& gate : kGates) {
    if (stage_in(gate, minor)) append(known, ", ", gate.name);
  }
  return Error::bad_request(
      cat("unrecognized feature gate: ", name, "; release ", release, " has ", known));
}

}  // namespace

const std::vector<std::string>& known_releases() {
  static const std::vector<std::string> releases = {"1.27", "1.28", "1.29", "1.30", "1.31", "1.32",
                                                    "1.33", "1.34", "1.35", "1.36", "1.37"};
  return releases;
}

Result<int> release_minor(std::string_view release) {
  const auto& known = known_releases();
  if (std::find(known.begin(), known.end(), release) == known.end()) {
    return Error::bad_request(
        cat("release ", quoted(release), " is not known; known are ", join(known, ", ")));
  }
  int minor = 0;
  std::string_view digits = release.substr(2);
  std::from_chars(digits.data(), digits.data() + digits.size(), minor);
  return minor;
}

Result<Features> Features::parse(std::string_view release, std::string_view changes) {
  Features features;
  DIBS_TRY(features.minor_, release_minor(release));
  for (const History& gate : kGates) {
    if (const Since* stage = stage_in(gate, features.minor_))
      features.gates_[std::string(gate.name)] = stage->on;
  }
  std::map<std::string, bool, std::less<>> named;
  for (std::string_view change : split(changes, ',')) {
    change = trim(change);
    if (change.empty()) continue;
    std::size_t equals = change.find('=');
    if (equals == std::string_view::npos) {
      return Error::bad_request(
          cat("missing bool value for ", change, ": must be GATE=true or GATE=false"));
    }
    std::string_view name = trim(change.substr(0, equals));
    const Since* stage = find_gate(name, features.minor_);
    if (!stage && name != "AllAlpha" && name != "AllBeta")
      return unknown_gate(name, release, features.minor_);
    DIBS_TRY(bool on, parse_bool(name, trim(change.substr(equals + 1))));
    if (stage && stage->locked && on != stage->on) {
      return Error::bad_request(cat("cannot set feature gate ", name, " to ", on ? "true" : "false",
                                    ", feature is locked to ", stage->on ? "true" : "false"));
    }
    named[std::string(name)] = on;
  }
  for (const History& gate : kGates) {
    const Since* stage = stage_in(gate, features.minor_);
    if (!stage) continue;
    auto all = named.find(stage->stage == Stage::alpha  ? "AllAlpha"
                          : stage->stage == Stage::beta ? "AllBeta"
                                                        : "");
    if (all != named.end()) features.gates_[std::string(gate.name)] = all->second;
  }
  for (const auto& [name, on] : named) {
    if (auto it = features.gates_.find(name); it != features.gates_.end()) it->second = on;
  }
  // What AllAlpha or AllBeta would switch on stays off where it could do nothing.
  for (const auto& [gate, first] : kDependencies) {
    if (!features.on(gate) || features.on(first)) continue;
    if (named.contains(gate)) {
      std::string missing;
      for (const auto& [other, needs] : kDependencies) {
        if (other != gate || features.on(needs)) continue;
        append(missing, missing.empty() ? "" : " ", needs);
      }
      return Error::bad_request(
          cat(gate, " is enabled, but depends on features that are disabled: [", missing, "]"));
    }
    features.gates_.find(gate)->second = false;
  }
  return features;
}

bool Features::on(std::string_view gate) const {
  auto it = gates_.find(gate);
  return it != gates_.end() && it->second;
}

std::vector<Features::Gate> Features::all() const {
  std::vector<Gate> out;
  for (const auto& [name, on] : gates_) {
    const Since* stage = find_gate(name, minor_);
    std::string_view word = stage->stage == Stage::alpha  ? "ALPHA"
                            : stage->stage == Stage::beta ? "BETA"
                                                          : "";
    out.push_back({name, word, on});
  }
  return out;
}

}  // namespace dibs::api
