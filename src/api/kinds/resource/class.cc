// DeviceClasses and DeviceTaintRules.
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/resource/checks.h"
#include "api/kinds/resource/names.h"
#include "base/names.h"

namespace dibs::api {

void check_class_spec(const Value& spec, const Value* old, const Path& path, Findings& found) {
  auto stored = [&](const char* key) { return old != nullptr && (*old)[key] == spec[key]; };
  check_selectors(spec["selectors"], stored("selectors"), path.child("selectors"), found);
  const Value& config = spec["config"];
  Path config_at = path.child("config");
  if (fits(config, 32, config_at, found, true)) {
    for (std::size_t i = 0; i < config.size(); ++i) {
      check_configuration(config[i], stored("config"), config_at.index(i), found);
    }
  }
  const Value& extended = spec["extendedResourceName"];
  if (!extended.is_null() && !is_extended_resource_name(extended.as_string())) {
    std::size_t from = found.errors.size();
    found.errors.invalid(path.child("extendedResourceName"), extended,
                         "must be a valid extended resource name");
    found.cover(from);
  }
}

void check_taint_rule_spec(const Value& spec, const Value* old, const Path& path, Findings& found) {
  const Value& selector = spec["deviceSelector"];
  Path selector_at = path.child("deviceSelector");
  if (is_set(selector, "driver")) {
    check_driver_name(selector["driver"].as_string(), selector_at.child("driver"), found.errors);
  }
  if (is_set(selector, "pool")) {
    check_pool_name(selector["pool"].as_string(), selector_at.child("pool"), found.errors);
  }
  if (is_set(selector, "device")) {
    add_invalid(is_dns1123_label(selector["device"].as_string()), selector["device"],
                selector_at.child("device"), found.errors);
  }
  const Value* old_effect = old == nullptr ? nullptr : &(*old)["taint"]["effect"];
  check_device_taint(spec["taint"], old_effect, path.child("taint"), found);
}

}  // namespace dibs::api
