#include "server/builtin_resources.h"

#include <algorithm>
#include <charconv>

#include "api/kinds/event.h"
#include "api/schema/builtin.h"
#include "api/structural/crd_rules.h"
#include "base/strings.h"

namespace dibs::server {
namespace {

constexpr std::string_view kReleases[] = {"1.27", "1.30", "1.32", "1.34", "1.36", "1.37"};

/// Groups whose other versions cannot be converted yet are served in the stored one alone.
bool convertible(const api::ResourceInfo& info) {
  if (info.group != "resource.k8s.io" && info.group != "scheduling.k8s.io") return true;
  return info.group == info.hub_group && info.version == info.hub_version;
}

std::string deprecation_of(const api::ResourceInfo& info) {
  if (info.group.empty() && info.kind == "Endpoints") {
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  }
  if (info.group.empty() && info.kind == "ComponentStatus")
    return "v1 ComponentStatus is deprecated in v1.19+";
  return {};
}

const api::KindRules* rules_for(const api::ResourceInfo& info) {
  // Definitions stand above the other kinds: judging one means compiling schemas.
  if (info.group == "apiextensions.k8s.io" && info.kind == "CustomResourceDefinition") {
    static const api::KindRules definitions = api::make_definition_rules();
    return &definitions;
  }
  return &api::kind_rules(info.group, info.kind);
}

ResourcePtr make_resource(const api::ResourceInfo& info) {
  auto resource = std::make_shared<Resource>();
  static_cast<api::ResourceInfo&>(*resource) = info;
  resource->rules = rules_for(info);
  resource->deprecation = deprecation_of(info);
  if (info.group == "events.k8s.io" && info.kind == "Event") {
    resource->to_storage = api::event_to_core;
    resource->from_storage = api::event_from_core;
  }
  return resource;
}

}  // namespace

Result<std::vector<ResourcePtr>> builtin_resources(std::string_view release) {
  if (std::find(std::begin(kReleases), std::end(kReleases), release) == std::end(kReleases)) {
    std::string known;
    for (std::string_view one : kReleases) append(known, known.empty() ? "" : ", ", one);
    return Error::bad_request(cat("release ", quoted(release), " is not known; known are ", known));
  }
  int minor = 0;
  auto digits = release.substr(2);
  std::from_chars(digits.data(), digits.data() + digits.size(), minor);
  std::vector<ResourcePtr> out;
  for (const api::GroupInfo& group : api::builtin_catalog().groups) {
    for (const api::VersionInfo& version : group.versions) {
      if (version.first_release > minor ||
          (version.last_release != 0 && version.last_release < minor))
        continue;
      for (const api::ResourceInfo& info : version.resources) {
        if (convertible(info)) out.push_back(make_resource(info));
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
