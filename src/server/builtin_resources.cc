#include "server/builtin_resources.h"

#include <algorithm>

#include "api/expressions/crd_checker.h"
#include "api/expressions/policy_rules.h"
#include "api/kinds/cluster/event.h"
#include "api/kinds/resource/rules.h"
#include "api/kinds/resource/versions/conversion.h"
#include "api/kinds/resource/versions/lifecycle.h"
#include "api/kinds/resource/versions/model.h"
#include "api/kinds/resource/versions/older_words.h"
#include "api/schema/builtin.h"
#include "api/schema/features.h"
#include "api/structural/crd_rules.h"
#include "base/strings.h"
#include "server/runtime_config.h"

namespace dibs::server {
namespace {

constexpr std::string_view kDevices = "resource.k8s.io";
constexpr int kPodGenerationSince = 33;

using FeaturesPtr = std::shared_ptr<const api::Features>;

/// Alpha and beta versions have to be asked for, but what this server is about has not.
bool served_by_default(const api::ResourceInfo& info) {
  return info.group == kDevices || (info.version.find("alpha") == std::string::npos &&
                                    info.version.find("beta") == std::string::npos);
}

std::string deprecation_of(const api::ResourceInfo& info, int minor) {
  if (info.group == kDevices) return api::resource_deprecation(info.version, info.kind, minor);
  if (info.group.empty() && info.kind == "Endpoints" && minor >= 33) {
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  }
  if (info.group.empty() && info.kind == "ComponentStatus")
    return "v1 ComponentStatus is deprecated in v1.19+";
  return {};
}

const api::KindRules* rules_for(const api::ResourceInfo& info) {
  // Definitions stand above the other kinds: judging one means compiling schemas.
  if (info.group == "apiextensions.k8s.io" && info.kind == "CustomResourceDefinition") {
    static const api::KindRules definitions = api::make_definition_rules(api::make_cel_checker());
    return &definitions;
  }
  // So do the kinds of admission, whose expressions are compiled.
  if (info.group == "admissionregistration.k8s.io")
    return &api::admission_rules_with_expressions(info.kind);
  return &api::kind_rules(info.group, info.kind);
}

/// The rules of a kind of this group, as one version of it is served.
api::KindRules device_rules(const api::ResourceInfo& info, const api::Features& features) {
  api::KindRules rules = api::make_resource_rules(info.kind, info.version, features);
  bool classic = info.version == "v1alpha2";
  if (classic) rules.tracks_generation = false;
  if (info.kind == "DeviceTaintRule" && info.version == "v1")
    rules.allow_unconditional_update = false;
  rules.selectable = api::resource_selectable(info.version, info.kind, features.minor());
  if (!classic) rules = api::in_words_of_release(std::move(rules), info.kind, features.minor());
  return rules;
}

/// An object of these kinds may be stored in the form of another version or model.
void add_device_versions(Resource& resource) {
  auto conversion =
      std::make_shared<const api::Conversion>(resource.kind, resource.version, resource.release);
  bool other_form = resource.version != resource.hub_version ||
                    (resource.release != 0 && conversion->shown_as_stored().empty());
  if (!other_form && !api::has_two_models(resource.kind)) return;
  resource.to_storage = [conversion](const Value& object, const Value* existing,
                                     bool status_write) {
    return conversion->store(object, existing, status_write);
  };
  resource.from_storage = [conversion](const Value& stored) { return conversion->show(stored); };
  resource.shown_as_stored = conversion->shown_as_stored();
}

ResourcePtr make_resource(const api::ResourceInfo& info, const FeaturesPtr& features) {
  auto resource = std::make_shared<Resource>();
  static_cast<api::ResourceInfo&>(*resource) = info;
  resource->features = features;
  resource->deprecation = deprecation_of(info, features->minor());
  if (info.group == kDevices) {
    resource->own_rules = std::make_shared<const api::KindRules>(device_rules(info, *features));
    resource->rules = resource->own_rules.get();
    add_device_versions(*resource);
    return resource;
  }
  resource->rules = rules_for(info);
  if (info.group.empty() && info.kind == "Pod" && features->minor() < kPodGenerationSince) {
    auto rules = std::make_shared<api::KindRules>(*resource->rules);
    rules->tracks_generation = false;
    resource->own_rules = std::move(rules);
    resource->rules = resource->own_rules.get();
  }
  if (info.group == "events.k8s.io" && info.kind == "Event") {
    resource->to_storage = [](const Value& event, const Value*, bool) -> Result<Value> {
      return api::event_to_core(event);
    };
    resource->from_storage = api::event_from_core;
  }
  return resource;
}

}  // namespace

Result<std::vector<ResourcePtr>> builtin_resources(const Options& options) {
  if (auto known = api::release_minor(options.answers_as()); !known.ok())
    return known.error().within("--emulate-release");
  auto gates = api::Features::parse(options.answers_as(), options.feature_gates);
  if (!gates.ok()) return gates.error().within("--feature-gates");
  auto features = std::make_shared<const api::Features>(std::move(gates).value());
  int minor = features->minor();
  bool emulating = !options.release.empty();
  const api::Catalog& catalog = api::builtin_catalog(emulating ? minor : 0);
  api::Catalog known;
  for (const api::GroupInfo& group : catalog.groups) {
    for (const api::VersionInfo& version : group.versions) {
      bool ended = version.last_release != 0 && version.last_release < minor;
      bool beside = !emulating && group.name == kDevices;
      if (version.first_release > minor || (ended && !beside)) continue;
      for (const api::ResourceInfo& info : version.resources) known.add(info);
    }
  }
  auto config = RuntimeConfig::parse(options.runtime_config, known);
  if (!config.ok()) return config.error().within("--runtime-config");
  std::vector<ResourcePtr> out;
  for (const api::GroupInfo& group : known.groups) {
    for (const api::VersionInfo& version : group.versions) {
      for (const api::ResourceInfo& info : version.resources) {
        if (config->serves(info, served_by_default(info)))
          out.push_back(make_resource(info, features));
      }
    }
  }
  return out;
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
