// DeviceNameHints: a warning for selectors that name what no published device has.
//
// It is no error: devices may come later. But a misspelled attribute never matches anything, and
// nothing else would tell its author. Names are counted per slice as slices change, so a request
// costs its expressions and nothing else.
#include <map>
#include <optional>

#include "api/devices/hints.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "server/plugins/plugins.h"
#include "server/plugins/store_follower.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr std::size_t kMostWarnings = 8;

/// (domain, id) with the number of slices that have it.
using Counts = std::map<std::pair<std::string, std::string>, int>;

void count(Counts& counts, const std::pair<std::string, std::string>& name, int by) {
  auto found = counts.emplace(name, 0).first;
  found->second += by;
  if (found->second <= 0) counts.erase(found);
}

std::pair<std::string, std::string> split_name(std::string_view name, std::string_view driver) {
  auto slash = name.find('/');
  if (slash == std::string_view::npos) return {std::string(driver), std::string(name)};
  return {std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))};
}

struct SliceNames {
  std::map<std::pair<std::string, std::string>, bool> attributes;
  std::map<std::pair<std::string, std::string>, bool> capacities;
};

SliceNames names_of(const Value& slice) {
  SliceNames names;
  std::string_view driver = slice["spec"]["driver"].as_string();
  for (const Value& device : slice["spec"]["devices"].items()) {
    for (const auto& [name, value] : device["attributes"].members()) {
      names.attributes[split_name(name, driver)] = true;
    }
    for (const auto& [name, value] : device["capacity"].members()) {
      names.capacities[split_name(name, driver)] = true;
    }
  }
  return names;
}

void collect_request(const Value& request, std::vector<std::string_view>& expressions) {
  for (const Value& selector : request["selectors"].items()) {
    std::string_view expression = selector["cel"]["expression"].as_string();
    if (!expression.empty()) expressions.push_back(expression);
  }
}

std::vector<std::string_view> expressions_of(const Value& object) {
  std::vector<std::string_view> expressions;
  const Value& spec = object["spec"];
  collect_request(spec, expressions);
  const Value& devices = spec["spec"].is_object() ? spec["spec"]["devices"] : spec["devices"];
  for (const Value& request : devices["requests"].items()) {
    collect_request(request["exactly"], expressions);
    for (const Value& choice : request["firstAvailable"].items()) {
      collect_request(choice, expressions);
    }
  }
  return expressions;
}

class DeviceNameHints : public AdmissionPlugin {
 public:
  explicit DeviceNameHints(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "DeviceNameHints"; }

  Result<> validate(const Write& write) override {
    if (write.resource.group != kGroup || write.operation == Operation::remove ||
        !write.subresource.empty() || write.object.is_null()) {
      return success();
    }
    const std::string& plural = write.resource.plural;
    bool slice = plural == "resourceslices";
    bool selects = write.operation == Operation::create &&
                   (plural == "resourceclaims" || plural == "resourceclaimtemplates" ||
                    plural == "deviceclasses");
    if (!slice && !selects) return success();
    std::vector<std::string_view> expressions;
    if (selects) expressions = expressions_of(write.object);
    if (!slice && expressions.empty()) return success();
    MutexLock lock(mutex_);
    catch_up();
    std::vector<std::string> told;
    for (std::string_view expression : expressions) {
      for (std::string& text : api::unknown_names(expression, names_)) {
        // A domain that nobody publishes may be that of a driver yet to come.
        if (text.find(" in the domain ") == std::string::npos ||
            text.substr(0, 18) != "no device has the ") {
          continue;
        }
        if (told.size() >= kMostWarnings ||
            std::find(told.begin(), told.end(), text) != told.end()) {
          continue;
        }
        told.push_back(text);
        write.context.warn(std::move(text));
      }
    }
    return success();
  }

 private:
  void catch_up() DIBS_REQUIRES(mutex_) {
    if (!slices_) {
      auto resource = sources_.resources.get()->find_plural(kGroup, "resourceslices");
      if (!resource) return;
      slices_.emplace(sources_.store, resource->storage_prefix);
    }
    bool changed = false;
    slices_->catch_up(
        [&]() DIBS_REQUIRES(mutex_) {
          by_slice_.clear();
          attributes_.clear();
          capacities_.clear();
          changed = true;
        },
        [&](const std::string& key, const store::Record* now) DIBS_REQUIRES(mutex_) {
          forget(key);
          changed = true;
          if (now == nullptr) return;
          auto slice = decode_stored(*now);
          if (slice.ok()) learn(key, names_of(*slice));
        });
    if (changed) names_ = made_names();
  }

  void learn(const std::string& key, SliceNames names) DIBS_REQUIRES(mutex_) {
    for (const auto& [name, one] : names.attributes) count(attributes_, name, 1);
    for (const auto& [name, one] : names.capacities) count(capacities_, name, 1);
    by_slice_[key] = std::move(names);
  }

  void forget(const std::string& key) DIBS_REQUIRES(mutex_) {
    auto found = by_slice_.find(key);
    if (found == by_slice_.end()) return;
    for (const auto& [name, one] : found->second.attributes) count(attributes_, name, -1);
    for (const auto& [name, one] : found->second.capacities) count(capacities_, name, -1);
    by_slice_.erase(found);
  }

  api::DeviceNames made_names() const DIBS_REQUIRES(mutex_) {
    api::DeviceNames names;
    for (const auto& [name, slices] : attributes_) names.attributes[name.first].insert(name.second);
    for (const auto& [name, slices] : capacities_) names.capacities[name.first].insert(name.second);
    return names;
  }

  PluginSources sources_;
  Mutex mutex_;
  std::optional<StoreFollower> slices_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, SliceNames> by_slice_ DIBS_GUARDED_BY(mutex_);
  Counts attributes_ DIBS_GUARDED_BY(mutex_);
  Counts capacities_ DIBS_GUARDED_BY(mutex_);
  api::DeviceNames names_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace

PluginPtr make_device_names(PluginSources sources) {
  return std::make_unique<DeviceNameHints>(sources);
}

}  // namespace dibs::server
