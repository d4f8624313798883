#include "server/store_check.h"

#include <utility>

#include "base/strings.h"
#include "server/backup.h"

namespace dibs::server {
namespace {

constexpr std::string_view kDefinitions =
    "/registry/apiextensions.k8s.io/customresourcedefinitions/";
constexpr std::string_view kClaims = "/registry/resourceclaims/";
constexpr std::string_view kSlices = "/registry/resourceslices/";
constexpr std::string_view kServices = "/registry/services/specs/";

std::string_view group_of(std::string_view api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

}  // namespace

StoreCheck::StoreCheck(const std::vector<ResourcePtr>& builtin, Fault fault)
    : fault_(std::move(fault)) {
  for (const auto& resource : builtin) {
    if (resource->storage_prefix.empty()) continue;
    // Several versions, and at times groups, of one resource share a prefix: the group counts that
    // they are stored in.
    kinds_[resource->storage_prefix] = {
        resource->hub_version.empty() ? resource->group : resource->hub_group, resource->kind,
        resource->namespaced};
  }
}

Result<> StoreCheck::run(store::State& state) {
  DIBS_CHECK(learn_definitions(state));
  DIBS_CHECK(state.rewind());
  store::Item item;
  while (true) {
    DIBS_TRY(const bool more, state.next(item));
    if (!more) break;
    check(item);
  }
  // At last: slices come behind claims.
  for (const auto& [key, claim] : claims_) {
    if (const auto conflict = devices_.conflict(key, holds_of(claim))) {
      fault_(cat(key, ": device ", conflict->device, ": ", conflict->why));
    }
  }
  return success();
}

Result<> StoreCheck::learn_definitions(store::State& state) {
  DIBS_CHECK(state.rewind());
  store::Item item;
  while (true) {
    DIBS_TRY(const bool more, state.next(item));
    if (!more) return success();
    if (!item.key.starts_with(kDefinitions)) continue;
    const auto definition = read_object(item.key, item.value);
    if (!definition.ok()) continue;  // told when its turn comes
    const Value& spec = (*definition)["spec"];
    kinds_[cat("/registry/", spec["group"].as_string(), "/", spec["names"]["plural"].as_string(),
               "/")] = {spec["group"].str(), spec["names"]["kind"].str(),
                        spec["scope"].as_string() == "Namespaced"};
  }
}

void StoreCheck::check(const store::Item& item) {
  ++objects_;
  const auto object = read_object(item.key, item.value);
  if (!object.ok()) return fault_(object.error().message());
  check_kind(item, *object);
  if (const auto uid = (*object)["metadata"]["uid"].as_string(); !uid.empty()) {
    take(cat("uid ", uid), item);
  }
  if (item.key.starts_with(kClaims)) {
    check_devices(item, *object);
  } else if (item.key.starts_with(kSlices)) {
    devices_.put_slice(item.key, *object);
  } else if (item.key.starts_with(kServices)) {
    check_service(item, *object);
  }
}

void StoreCheck::check_kind(const store::Item& item, const Value& object) {
  const std::string_view key = item.key;
  const Value& metadata = object["metadata"];
  const std::string_view name = metadata["name"].as_string();
  const std::string_view name_space = metadata["namespace"].as_string();
  // read_object() has found both at the end of the key.
  const std::size_t rest = name.size() + (name_space.empty() ? 0 : name_space.size() + 1);
  const auto kind = kinds_.find(key.substr(0, key.size() - rest));
  if (kind == kinds_.end()) {
    return fault_(cat(key, ": no kind has keys like this one, or its namespace is another"));
  }
  if (kind->second.namespaced == name_space.empty()) {
    return fault_(cat(key, ": ", kind->second.kind,
                      kind->second.namespaced ? " without a namespace" : " with a namespace"));
  }
  if (object["kind"].as_string() != kind->second.kind ||
      group_of(object["apiVersion"].as_string()) != kind->second.group) {
    fault_(cat(key, ": is a ", object["kind"].as_string(), " of ", object["apiVersion"].as_string(),
               ", expected a ", kind->second.kind, " of group ", quoted(kind->second.group)));
  }
}

void StoreCheck::check_devices(const store::Item& item, const Value& claim) {
  if (holds_of(claim).empty()) return;
  devices_.put_claim(item.key, claim);
  claims_.emplace_back(item.key, claim);
}

void StoreCheck::check_service(const store::Item& item, const Value& service) {
  for (const Value& address : service["spec"]["clusterIPs"].items()) {
    if (address.as_string() != "None") take(cat("address ", address.as_string()), item);
  }
  for (const Value& port : service["spec"]["ports"].items()) {
    if (const auto number = port["nodePort"].as_int(); number > 0) {
      take(cat("node port ", number, " of ", port["protocol"].as_string("TCP")), item);
    }
  }
}

void StoreCheck::take(const std::string& what, const store::Item& item) {
  const auto [owner, is_new] = owners_.try_emplace(what, item.key);
  if (!is_new && owner->second != item.key) {
    fault_(cat(item.key, ": ", what, " is that of ", owner->second, ", too"));
  }
}

}  // namespace dibs::server
