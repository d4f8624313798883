#include "api/kinds/resource/versions/lifecycle.h"

#include "base/strings.h"

namespace dibs::api {
namespace {

struct Lifecycle {
  std::string_view version;
  std::string_view kind;  // "" for all others of the version
  int deprecated = 0;
  int removed = 0;
};

constexpr Lifecycle kLifecycles[] = {
    {"v1beta2", "DeviceTaintRule", 39, 42},
    {"v1beta2", "", 36, 39},
    {"v1beta1", "", 35, 38},
    {"v1alpha3", "ResourcePoolStatusRequest", 39, 42},
    {"v1alpha3", "DeviceTaintRule", 36, 39},
    {"v1alpha3", "", 34, 37},
};

constexpr int kPoolSelectorSince = 37;

}  // namespace

std::string resource_deprecation(std::string_view version, std::string_view kind, int minor) {
  for (const Lifecycle& life : kLifecycles) {
    if (life.version != version || (!life.kind.empty() && life.kind != kind)) continue;
    if (minor < life.deprecated) return {};
    return cat("resource.k8s.io/", version, " ", kind, " is deprecated in v1.", life.deprecated,
               "+, unavailable in v1.", life.removed, "+");
  }
  return {};
}

std::vector<SelectableField> resource_selectable(std::string_view version, std::string_view kind,
                                                 int minor) {
  if (kind != "ResourceSlice") return {};
  if (version == "v1alpha2") {
    return {{"nodeName", [](const Value& slice) { return slice["nodeName"].str(); }},
            {"driverName", [](const Value& slice) { return slice["driverName"].str(); }}};
  }
  std::vector<SelectableField> fields = {
      {"spec.nodeName", [](const Value& slice) { return slice["spec"]["nodeName"].str(); }},
      {"spec.driver", [](const Value& slice) { return slice["spec"]["driver"].str(); }}};
  if (minor >= kPoolSelectorSince) {
    fields.push_back(
        {"spec.pool.name", [](const Value& slice) { return slice["spec"]["pool"]["name"].str(); }});
  }
  return fields;
}

}  // namespace dibs::api
