#include "controllers/discovery.h"

#include <algorithm>
#include <set>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::controllers {
namespace {

constexpr Duration kPause = std::chrono::seconds(30);

// Everything in one document since 1.27, and that as v2 since 1.30.
constexpr const char* kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json";

void read_groups(const json::Value& list, std::vector<ServedResource>& out) {
  for (const auto& group : list["items"].items()) {
    const std::string name = group["metadata"]["name"].str();
    for (const auto& version : group["versions"].items()) {
      for (const auto& resource : version["resources"].items()) {
        ServedResource served;
        served.gvr = {name, version["version"].str(), resource["resource"].str()};
        served.kind = resource["responseKind"]["kind"].str();
        served.namespaced = resource["scope"].as_string() == "Namespaced";
        for (const auto& verb : resource["verbs"].items()) served.verbs.push_back(verb.str());
        out.push_back(std::move(served));
      }
    }
  }
}

/// One version of a group, from a server that has no document of all.
Result<> read_version(client::Client& client, const std::string& group, const std::string& version,
                      std::vector<ServedResource>& out) {
  DIBS_TRY(const auto list,
           client.call(client::make_request(
               "GET", group.empty() ? cat("/api/", version) : cat("/apis/", group, '/', version))));
  for (const auto& resource : list["resources"].items()) {
    const std::string_view name = resource["name"].as_string();
    if (name.find('/') != std::string_view::npos) continue;  // a sub-resource
    ServedResource served;
    served.gvr = {group, version, std::string(name)};
    served.kind = resource["kind"].str();
    served.namespaced = resource["namespaced"].as_bool();
    for (const auto& verb : resource["verbs"].items()) served.verbs.push_back(verb.str());
    out.push_back(std::move(served));
  }
  return success();
}

Result<> read_plain(client::Client& client, const json::Value& document,
                    std::vector<ServedResource>& out) {
  for (const auto& version : document["versions"].items())
    DIBS_CHECK(read_version(client, "", version.str(), out));
  for (const auto& group : document["groups"].items()) {
    for (const auto& version : group["versions"].items())
      DIBS_CHECK(read_version(client, group["name"].str(), version["version"].str(), out));
  }
  return success();
}

}  // namespace

bool ServedResource::can(std::string_view verb) const {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

std::string_view group_of(std::string_view api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

Result<> Discovery::refresh(client::Client& client) {
  auto found = std::make_shared<All>();
  for (const char* path : {"/api", "/apis"}) {
    client::Request request = client::make_request("GET", path);
    request.headers.set("Accept", kAggregated);
    DIBS_TRY(const auto list, client.call(std::move(request)));
    if (list["kind"].as_string() == "APIGroupDiscoveryList") {
      read_groups(list, *found);
    } else {
      DIBS_CHECK(read_plain(client, list, *found));
    }
  }
  const auto release = client::server_release(client);
  const MutexLock lock(mutex_);
  all_ = std::move(found);
  release_ = release ? *release : kNewestRelease;
  return success();
}

Result<> Discovery::refresh_at_times(client::Client& client, Duration now) {
  {
    const MutexLock lock(mutex_);
    if (asked_ && now - *asked_ < kPause) return success();
    asked_ = now;
  }
  return refresh(client);
}

int Discovery::release() const {
  const MutexLock lock(mutex_);
  return release_;
}

std::shared_ptr<const Discovery::All> Discovery::all() const {
  const MutexLock lock(mutex_);
  return all_;
}

std::vector<ServedResource> Discovery::resources() const {
  std::vector<ServedResource> out;
  std::set<std::pair<std::string, std::string>> seen;
  const auto known = all();  // held, or a refresh would free it under the loop
  for (const auto& resource : *known) {
    if (seen.emplace(resource.gvr.group, resource.gvr.resource).second) out.push_back(resource);
  }
  return out;
}

bool Discovery::serves(std::string_view group, std::string_view name) const {
  return find(group, name).has_value();
}

std::optional<ServedResource> Discovery::find(std::string_view group, std::string_view name) const {
  const auto known = all();  // held, or a refresh would free it under the loop
  for (const auto& resource : *known) {
    if (resource.gvr.group == group && resource.gvr.resource == name) return resource;
  }
  return std::nullopt;
}

std::optional<ServedResource> Discovery::find(const client::Gvr& gvr) const {
  const auto known = all();  // held, or a refresh would free it under the loop
  for (const auto& resource : *known) {
    if (resource.gvr.group == gvr.group && resource.gvr.version == gvr.version &&
        resource.gvr.resource == gvr.resource)
      return resource;
  }
  return std::nullopt;
}

std::optional<ServedResource> Discovery::find_kind(std::string_view api_version,
                                                   std::string_view kind) const {
  const std::string_view group = group_of(api_version);
  const auto known = all();  // held, or a refresh would free it under the loop
  for (const auto& resource : *known) {
    if (resource.gvr.group == group && resource.kind == kind) return resource;
  }
  return std::nullopt;
}

}  // namespace dibs::controllers
