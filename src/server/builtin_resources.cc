#include "server/builtin_resources.h"

#include <algorithm>

#include "api/schema/builtin.h"
#include "api/schema/features.h"
#include "api/served/served_kind.h"
#include "base/strings.h"
#include "server/runtime_config.h"

namespace dibs::server {
namespace {

using FeaturesPtr = std::shared_ptr<const api::Features>;

ResourcePtr make_resource(const api::ResourceInfo& info, const FeaturesPtr& features,
                          std::optional<Duration> event_ttl = {}) {
  auto resource = std::make_shared<Resource>();
  static_cast<api::ResourceInfo&>(*resource) = info;
  api::ServedKind served = api::served_kind(info, *features);
  resource->features = features;
  resource->rules = served.rules.get();
  resource->own_rules = std::move(served.rules);
  if (event_ttl && resource->rules->lifetime && resource->rules->lifetime != event_ttl) {
    auto rules = std::make_shared<api::KindRules>(*resource->rules);
    rules->lifetime = event_ttl;
    resource->rules = rules.get();
    resource->own_rules = std::move(rules);
  }
  resource->deprecation = std::move(served.deprecation);
  resource->to_storage = std::move(served.to_storage);
  resource->from_storage = std::move(served.from_storage);
  resource->shown_as_stored = std::move(served.shown_as_stored);
  resource->two_models = served.two_models;
  return resource;
}

Result<FeaturesPtr> features_of(const Options& options) {
  if (auto known = api::release_minor(options.answers_as()); !known.ok())
    return known.error().within("--emulate-release");
  auto gates = api::Features::parse(options.answers_as(), options.feature_gates);
  if (!gates.ok()) return gates.error().within("--feature-gates");
  return std::make_shared<const api::Features>(std::move(gates).value());
}

/// Of all versions in the catalog.
std::vector<ResourcePtr> stored_resources(const api::Catalog& catalog,
                                          const FeaturesPtr& features) {
  std::vector<ResourcePtr> out;
  for (const api::GroupInfo& group : catalog.groups) {
    for (const api::VersionInfo& version : group.versions) {
      for (const api::ResourceInfo& info : version.resources) {
        if (!info.storage_prefix.empty()) out.push_back(make_resource(info, features));
      }
    }
  }
  return out;
}

}  // namespace

Result<std::vector<ResourcePtr>> builtin_resources(const Options& options) {
  DIBS_TRY(const FeaturesPtr features, features_of(options));
  int minor = features->minor();
  bool emulating = !options.release.empty();
  const api::Catalog& catalog = api::builtin_catalog(emulating ? minor : 0);
  api::Catalog known;
  for (const api::GroupInfo& group : catalog.groups) {
    for (const api::VersionInfo& version : group.versions) {
      bool ended = version.last_release != 0 && version.last_release < minor;
      bool beside = !emulating && api::keeps_ended_versions(group.name);
      if (version.first_release > minor || (ended && !beside)) continue;
      for (const api::ResourceInfo& info : version.resources) {
        if (options.metric_resolution > Duration(0) || !api::is_measured(info)) known.add(info);
      }
    }
  }
  auto config = RuntimeConfig::parse(options.runtime_config, known);
  if (!config.ok()) return config.error().within("--runtime-config");
  std::vector<ResourcePtr> out;
  for (const api::GroupInfo& group : known.groups) {
    for (const api::VersionInfo& version : group.versions) {
      for (const api::ResourceInfo& info : version.resources) {
        if (api::can_be_served(info, *features) &&
            config->serves(info, api::is_served_by_default(info))) {
          out.push_back(make_resource(info, features, options.event_ttl));
        }
      }
    }
  }
  return out;
}

std::vector<ResourcePtr> known_resources() {
  const auto features = std::make_shared<const api::Features>(
      api::Features::parse(api::known_releases().back()).value());
  return stored_resources(api::builtin_catalog(), features);
}

Result<std::vector<ResourcePtr>> release_resources(const Options& options) {
  DIBS_TRY(const auto features, features_of(options));
  return stored_resources(api::builtin_catalog(features->minor()), features);
}

ResourceSetPtr make_resource_set(const std::vector<ResourcePtr>& builtin,
                                 const std::vector<ResourcePtr>& custom, std::uint64_t generation) {
  auto set = std::make_shared<ResourceSet>();
  set->generation = generation;
  for (const auto* list : {&builtin, &custom}) {
    for (const ResourcePtr& resource : *list) {
      set->by_path[cat(resource->group, "/", resource->version, "/", resource->plural)] = resource;
      set->catalog.add(*resource);
    }
  }
  // Custom groups follow the built-in ones by name, their versions by preference.
  auto first_custom =
      std::stable_partition(set->catalog.groups.begin(), set->catalog.groups.end(),
                            [](const api::GroupInfo& group) { return !group.custom; });
  std::sort(first_custom, set->catalog.groups.end(),
            [](const api::GroupInfo& a, const api::GroupInfo& b) { return a.name < b.name; });
  for (auto group = first_custom; group != set->catalog.groups.end(); ++group) {
    std::sort(group->versions.begin(), group->versions.end(), [](const auto& a, const auto& b) {
      return api::version_before(a.version, b.version);
    });
  }
  return set;
}

}  // namespace dibs::server
