#include "server/extensions.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/strings.h"

namespace dibs::server {
namespace {

struct Known {
  std::string_view group;
  std::string_view version;
  std::int64_t group_priority;
  std::int64_t version_priority;
};
constexpr Known kKnown[] = {
    {"", "v1", 18000, 1},
    {"apps", "v1", 17800, 15},
    {"events.k8s.io", "v1", 17750, 15},
    {"authentication.k8s.io", "v1", 17700, 15},
    {"authorization.k8s.io", "v1", 17600, 15},
    {"autoscaling", "v2", 17500, 30},
    {"autoscaling", "v1", 17500, 15},
    {"batch", "v1", 17400, 15},
    {"certificates.k8s.io", "v1", 17300, 15},
    {"certificates.k8s.io", "v1beta1", 17300, 9},
    {"certificates.k8s.io", "v1alpha1", 17300, 1},
    {"networking.k8s.io", "v1", 17200, 15},
    {"networking.k8s.io", "v1beta1", 17200, 9},
    {"policy", "v1", 17100, 15},
    {"rbac.authorization.k8s.io", "v1", 17000, 15},
    {"storage.k8s.io", "v1", 16800, 15},
    {"storage.k8s.io", "v1beta1", 16800, 9},
    {"storage.k8s.io", "v1alpha1", 16800, 1},
    {"admissionregistration.k8s.io", "v1", 16700, 15},
    {"admissionregistration.k8s.io", "v1beta1", 16700, 12},
    {"admissionregistration.k8s.io", "v1alpha1", 16700, 9},
    {"apiextensions.k8s.io", "v1", 16700, 15},
    {"scheduling.k8s.io", "v1", 16600, 15},
    {"scheduling.k8s.io", "v1beta1", 16600, 9},
    {"scheduling.k8s.io", "v1alpha3", 16600, 3},
    {"scheduling.k8s.io", "v1alpha2", 16600, 2},
    {"coordination.k8s.io", "v1", 16500, 15},
    {"coordination.k8s.io", "v1beta1", 16500, 13},
    {"coordination.k8s.io", "v1alpha2", 16500, 12},
    {"node.k8s.io", "v1", 16300, 15},
    {"discovery.k8s.io", "v1", 16200, 15},
    {"resource.k8s.io", "v1", 16200, 21},
    {"resource.k8s.io", "v1beta2", 16200, 15},
    {"resource.k8s.io", "v1beta1", 16200, 9},
    {"resource.k8s.io", "v1alpha3", 16200, 1},
    {"resource.k8s.io", "v1alpha2", 16200, 1},
    {"flowcontrol.apiserver.k8s.io", "v1", 16100, 21},
    {"storagemigration.k8s.io", "v1", 15800, 15},
    {"storagemigration.k8s.io", "v1beta1", 15800, 9},
};

/// What a version's name says of its age: stable, beta or alpha, and numbers.
struct VersionRank {
  int kind = 0;  // 3 stable, 2 beta, 1 alpha, 0 no version of Kubernetes' kind
  int major = 0;
  int minor = 0;
};
VersionRank rank_of(std::string_view text) {
  VersionRank out;
  const auto number = [&](int& into) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (code != std::errc() || into <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  if (!text.starts_with('v')) return {};
  text.remove_prefix(1);
  if (!number(out.major)) return {};
  if (text.empty()) {
    out.kind = 3;
    return out;
  }
  const bool beta = text.starts_with("beta");
  if (!beta && !text.starts_with("alpha")) return {};
  text.remove_prefix(beta ? 4 : 5);
  if (!number(out.minor) || !text.empty()) return {};
  out.kind = beta ? 2 : 1;
  return out;
}

std::int64_t priority_of_group(std::string_view group) {
  if (group == kAggregationGroup) return 1'000'000;  // it comes first, whatever others are given
  for (const Known& known : kKnown) {
    if (known.group == group) return known.group_priority;
  }
  return Priority{}.group;
}

/// How a kind of list shows groups.
struct GroupForm {
  std::string_view list;
  std::string (*name)(const Value& group);
  Value (*empty)(std::string_view group);
  Value (*version)(const Extension& extension);
};

void add_groups(Value& list, const Extensions& extensions, const GroupForm& form) {
  std::vector<Value> groups;
  for (const Value& group : list[form.list].items()) groups.push_back(group);
  std::vector<std::int64_t> priorities;
  for (const Value& group : groups) priorities.push_back(priority_of_group(form.name(group)));
  for (const ExtensionPtr& one : extensions.all) {
    if (one->group.empty()) continue;
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const Value& group) { return form.name(group) == one->group; });
    if (found == groups.end()) {
      std::int64_t priority = one->group_priority;
      for (const ExtensionPtr& other : extensions.all) {
        if (other->group == one->group) priority = std::max(priority, other->group_priority);
      }
      std::size_t at = 0;
      while (at < groups.size() &&
             (priorities[at] > priority ||
              (priorities[at] == priority && form.name(groups[at]) < one->group))) {
        ++at;
      }
      priorities.insert(priorities.begin() + static_cast<std::ptrdiff_t>(at), priority);
      found =
          groups.insert(groups.begin() + static_cast<std::ptrdiff_t>(at), form.empty(one->group));
    }
    Value versions = (*found)["versions"];
    const Value made = form.version(*one);
    // What somebody else serves is not served here.
    Value kept = Value::array();
    for (const Value& version : versions.items()) {
      if (!(version["version"] == made["version"])) kept.push(version);
    }
    kept.push(made);
    found->set("versions", std::move(kept));
  }
  Value out = Value::array();
  for (Value& group : groups) out.push(std::move(group));
  list.set(form.list, std::move(out));
}

Value group_version(std::string_view group, std::string_view version) {
  return Value::object({{"groupVersion", cat(group, "/", version)}, {"version", version}});
}

Value kind_value(const Value& resource, const Extension& extension) {
  const std::string_view group = resource["group"].as_string();
  const std::string_view version = resource["version"].as_string();
  return Value::object(
      {{"group", version.empty() ? std::string_view(extension.group) : group},
       {"version", version.empty() ? std::string_view(extension.version) : version},
       {"kind", resource["kind"]}});
}

Value discovered_version(const Extension& extension) {
  // Of a server that was never asked nobody is to believe that it serves nothing.
  const bool is_known = extension.available && !extension.resources.is_null();
  Value resources = Value::array();
  std::vector<Value> made;
  const Value& listed = extension.resources["resources"];
  for (const Value& one : listed.items()) {
    const std::string_view name = one["name"].as_string();
    if (name.find('/') != std::string_view::npos) continue;
    Value out = Value::object({{"resource", name},
                               {"responseKind", kind_value(one, extension)},
                               {"scope", one["namespaced"].as_bool() ? "Namespaced" : "Cluster"},
                               {"singularResource", one["singularName"].as_string()},
                               {"verbs", one["verbs"].is_array() ? one["verbs"] : Value::array()}});
    for (std::string_view key : {"shortNames", "categories"}) {
      if (!one[key].empty()) out.set(key, one[key]);
    }
    Value subs = Value::array();
    for (const Value& sub : listed.items()) {
      const std::string_view path = sub["name"].as_string();
      if (!path.starts_with(name) || path.size() <= name.size() || path[name.size()] != '/')
        continue;
      subs.push(
          Value::object({{"subresource", path.substr(name.size() + 1)},
                         {"responseKind", kind_value(sub, extension)},
                         {"verbs", sub["verbs"].is_array() ? sub["verbs"] : Value::array()}}));
    }
    if (!subs.empty()) out.set("subresources", std::move(subs));
    resources.push(std::move(out));
  }
  return Value::object({{"version", extension.version},
                        {"resources", std::move(resources)},
                        {"freshness", is_known ? "Current" : "Stale"}});
}

void prefer_first(Value& group) {
  if (const Value& versions = group["versions"]; !versions.empty()) {
    const Value first = versions[0];
    group.set("preferredVersion", first);
  }
}

constexpr GroupForm kPlain = {
    "groups", [](const Value& group) { return group["name"].str(); },
    [](std::string_view group) {
      return Value::object({{"name", group}, {"versions", Value::array()}});
    },
    [](const Extension& one) { return group_version(one.group, one.version); }};

constexpr GroupForm kAggregated = {
    "items", [](const Value& group) { return group["metadata"]["name"].str(); },
    [](std::string_view group) {
      return Value::object(
          {{"metadata", Value::object({{"name", group}, {"creationTimestamp", nullptr}})},
           {"versions", Value::array()}});
    },
    discovered_version};

}  // namespace

ExtensionPtr Extensions::find(std::string_view group, std::string_view version) const {
  for (const ExtensionPtr& one : all) {
    if (one->group == group && one->version == version) return one;
  }
  return nullptr;
}

ExtensionPtr Extensions::find_path(std::string_view path) const {
  if (all.empty()) return nullptr;
  constexpr std::string_view kDocuments = "/openapi/v3";
  if (path.starts_with(cat(kDocuments, "/api"))) path.remove_prefix(kDocuments.size());
  const auto parts = split(path.substr(std::min<std::size_t>(1, path.size())), '/');
  if (parts.size() >= 3 && parts[0] == "apis") return find(parts[1], parts[2]);
  if (parts.size() >= 2 && parts[0] == "api") return find("", parts[1]);
  return nullptr;
}

bool Extensions::has_group(std::string_view group) const {
  return std::any_of(all.begin(), all.end(),
                     [&](const ExtensionPtr& one) { return one->group == group; });
}

bool is_newer_version(std::string_view a, std::string_view b) {
  const VersionRank left = rank_of(a);
  const VersionRank right = rank_of(b);
  if (left.kind == 0 && right.kind == 0) return a < b;
  return std::tie(left.kind, left.major, left.minor) >
         std::tie(right.kind, right.major, right.minor);
}

Priority local_priority(std::string_view group, std::string_view version) {
  Priority out;
  for (const Known& known : kKnown) {
    if (known.group != group) continue;
    if (known.version == version) return {known.group_priority, known.version_priority};
    out = {known.group_priority, 1};
  }
  return out;
}

Value local_api_service(std::string_view group, std::string_view version, bool continuous) {
  const Priority priority = local_priority(group, version);
  Value spec = Value::object();
  if (!group.empty()) spec.set("group", group);
  spec.set("version", version);
  spec.set("groupPriorityMinimum", priority.group);
  spec.set("versionPriority", priority.version);
  return Value::object(
      {{"kind", "APIService"},
       {"apiVersion", cat(kAggregationGroup, "/v1")},
       {"metadata",
        Value::object({{"name", cat(version, ".", group)},
                       {"labels", Value::object({{"kube-aggregator.kubernetes.io/automanaged",
                                                  continuous ? "true" : "onstart"}})}})},
       {"spec", std::move(spec)}});
}

void add_to_group_list(Value& list, const Extensions& extensions) {
  if (extensions.all.empty()) return;
  add_groups(list, extensions, kPlain);
  Value groups = Value::array();
  for (Value group : list["groups"].items()) {
    prefer_first(group);
    groups.push(std::move(group));
  }
  list.set("groups", std::move(groups));
}

void add_to_discovery(Value& list, const Extensions& extensions) {
  if (!extensions.all.empty()) add_groups(list, extensions, kAggregated);
}

Value group_with(Value local, std::string_view group, const Extensions& extensions) {
  Extensions own;
  for (const ExtensionPtr& one : extensions.all) {
    if (one->group == group) own.all.push_back(one);
  }
  Value list = Value::object({{"groups", Value::array()}});
  if (!local.is_null()) list.mut("groups").push(std::move(local));
  add_groups(list, own, kPlain);
  Value found = list["groups"][0];
  prefer_first(found);
  Value out = Value::object({{"kind", "APIGroup"}, {"apiVersion", "v1"}});
  for (const auto& [key, value] : found.members()) out.set(key, value);
  return out;
}

void add_to_openapi_v3(Value& index, const Extensions& extensions) {
  for (const ExtensionPtr& one : extensions.all) {
    if (one->group.empty() || one->openapi_v3.is_null()) continue;
    index.mut("paths").set(cat("apis/", one->group, "/", one->version), one->openapi_v3);
  }
}

void add_to_openapi_v2(Value& document, const Extensions& extensions) {
  for (const ExtensionPtr& one : extensions.all) {
    const std::string prefix = cat("/apis/", one->group, "/", one->version, "/");
    bool any = false;
    for (const auto& [path, value] : one->openapi_v2["paths"].members()) {
      if (!path.starts_with(prefix)) continue;
      document.mut("paths").set(path, value);
      any = true;
    }
    if (!any) continue;
    for (const auto& [name, value] : one->openapi_v2["definitions"].members()) {
      if (!document["definitions"].contains(name)) document.mut("definitions").set(name, value);
    }
  }
}

}  // namespace dibs::server
