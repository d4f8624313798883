// What upstream's mutating webhooks write into objects.

#include "drivers/net/model/address_space.h"
#include "drivers/net/model/fields.h"
#include "drivers/net/model/ip_pool.h"
#include "drivers/net/model/reserved_ip.h"

namespace dibs::drivers::net {
namespace {

void set_label(json::Value& object, std::string_view key, std::string_view value) {
  if (object["metadata"]["labels"][key].as_string() == value &&
      object["metadata"]["labels"].contains(key)) {
    return;
  }
  object.mut("metadata").mut("labels").set(key, value);
}

void add_finalizer(json::Value& object) {
  for (const json::Value& name : object["metadata"]["finalizers"].items()) {
    if (name.as_string() == kFinalizer) return;
  }
  object.mut("metadata").mut("finalizers").push(kFinalizer);
}

/// Two entries or more are sorted and merged.
void merge_ranges(json::Value& object, std::string_view key, const IpSet& set) {
  const json::Value& given = object["spec"][key];
  if (given.size() < 2) return;
  json::Value merged = texts_value(set.to_strings());
  if (merged != given) object.mut("spec").set(key, std::move(merged));
}

void derive_common(json::Value& object, const AddressSpace& space, std::string_view label) {
  add_finalizer(object);
  if (object["spec"]["ipVersion"].is_null()) object.mut("spec").set("ipVersion", space.version);
  set_label(object, label, cidr_label(space.subnet));
  merge_ranges(object, "ips", space.ips);
  merge_ranges(object, "excludeIPs", space.excluded);
}

bool has_controller(const json::Value& object) {
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return true;
  }
  return false;
}

bool is_controlled_by(const json::Value& object, const json::Value& uid) {
  for (const json::Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool() && owner["uid"] == uid) return true;
  }
  return false;
}

/// A pool of the subnet's CIDR belongs to it, unless somebody else controls it.
void adopt(json::Value& pool, const json::Value& subnet) {
  const json::Value& meta = subnet["metadata"];
  if (!is_controlled_by(pool, meta["uid"])) {
    if (has_controller(pool)) return;
    pool.mut("metadata")
        .mut("ownerReferences")
        .push(json::Value::object({{"apiVersion", subnet["apiVersion"]},
                                   {"kind", subnet["kind"]},
                                   {"name", meta["name"]},
                                   {"uid", meta["uid"]},
                                   {"controller", true},
                                   {"blockOwnerDeletion", true}}));
  }
  set_label(pool, kLabelOwnerSubnet, label_value(meta["name"].as_string()));
  const json::Value& spec = subnet["spec"];
  if (pool["spec"]["gateway"].is_null() && !spec["gateway"].is_null()) {
    pool.mut("spec").set("gateway", spec["gateway"]);
  }
  // An empty list says that the pool wants none.
  if (pool["spec"]["routes"].is_null() && !spec["routes"].empty()) {
    pool.mut("spec").set("routes", spec["routes"]);
  }
}

}  // namespace

json::Value with_derived_fields(const json::Value& pool, const json::Value* subnet) {
  if (is_terminating(pool)) return pool;
  const auto space = parse_address_space(pool, {});
  if (!space.ok()) return pool;
  json::Value made = pool;
  derive_common(made, *space, kLabelPoolCidr);
  if (subnet != nullptr && !is_terminating(*subnet)) {
    const auto theirs = Subnet::parse((*subnet)["spec"]["subnet"].as_string());
    if (theirs.ok() && *theirs == space->subnet) adopt(made, *subnet);
  }
  return made;
}

json::Value subnet_with_derived_fields(const json::Value& subnet) {
  if (is_terminating(subnet)) return subnet;
  const auto space = parse_address_space(subnet, {});
  if (!space.ok()) return subnet;
  json::Value made = subnet;
  derive_common(made, *space, kLabelSubnetCidr);
  return made;
}

json::Value reserved_with_derived_fields(const json::Value& object) {
  const auto reserved = parse_reserved_ip(object);
  if (!reserved.ok() || reserved->terminating) return object;
  json::Value made = object;
  if (made["spec"]["ipVersion"].is_null()) made.mut("spec").set("ipVersion", reserved->version);
  merge_ranges(made, "ips", reserved->ips);
  return made;
}

}  // namespace dibs::drivers::net
