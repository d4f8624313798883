#include "drivers/net/ipam/auto_pools.h"

#include "base/strings.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

constexpr std::string_view kLabelPrefix = "ipam.spidernet.io/app-";

bool is_terminating(const Value& object) {
  return object["metadata"].contains("deletionTimestamp");
}

/// From the labels of its affinity; the uid is not among them.
Application application_in(const Value& pool) {
  const Value& labels = pool["spec"]["podAffinity"]["matchLabels"];
  const auto label = [&](std::string_view name) { return labels[cat(kLabelPrefix, name)].str(); };
  Application out;
  out.api_group = label("api-group");
  out.api_version = label("api-version");
  out.kind = label("kind");
  out.name_space = label("namespace");
  out.name = label("name");
  return out;
}

std::string application_text(const Application& application) {
  return cat(application.api_group, "_", application.api_version, "_", application.kind, "_",
             application.name_space, "_", application.name);
}

/// Does the name end in the part of the uid that names of such pools have?
bool is_named_after(std::string_view pool, std::string_view uid) {
  const auto group = uid.substr(uid.rfind('-') + 1).substr(0, 5);
  return pool.ends_with(cat("-", to_lower(group)));
}

IpSet held_by_others(const std::vector<Value>& pools, std::string_view name) {
  IpSet held;
  for (const auto& object : pools) {
    if (client::name_of(object) == name) continue;
    if (const auto pool = parse_ip_pool(object)) held.add(pool->total);
    if (const auto status = parse_pool_status(object)) held.add(status->admitted);
  }
  return held;
}

Value texts(const IpSet& ips) {
  Value out = Value::array();
  for (const auto& text : ips.to_strings()) out.push(text);
  return out;
}

}  // namespace

WorkOutcome AutoPools::look_at_pod(const std::string& key) {
  const auto pod = shared_.pods.get(key);
  if (!pod || !is_alive(*pod)) return WorkOutcome::done();
  const auto ensured = ensure(*pod);
  const bool faulty = !ensured && ensured.error().code() == Code::invalid;
  complaints_.tell(*pod, "FailedCreatePool", faulty ? ensured.error().message() : "");
  return outcome_of(ensured, key);
}

Result<> AutoPools::ensure(const Value& pod) {
  const auto items = subnet_annotations(pod);
  // Whoever assigns says what is wrong with them.
  if (!items || items->empty()) return success();
  DIBS_TRY(const Application application, shared_.owners.application(pod));
  if (application.orphan() || !Owners::knows(application)) return success();
  DIBS_TRY(const Value controller, shared_.owners.controller(application));
  if (!controller.is_object() || is_terminating(controller)) return success();
  const auto size = pool_size_annotation(pod, shared_.options.auto_pool_size);
  const auto reclaim = pool_reclaim_annotation(pod);
  if (!size) return size.error();
  if (!reclaim) return reclaim.error();
  const auto addresses = wanted_addresses(*size, replicas_of(controller));
  for (const auto& item : *items) {
    const std::string interface =
        item.interface.empty() ? std::string(kDefaultInterface) : item.interface;
    for (const int version : {4, 6}) {
      const auto& subnets = version == 4 ? item.ipv4 : item.ipv6;
      if (subnets.empty()) continue;
      DIBS_CHECK(ensure_pool({application, interface, version, subnets, addresses, *reclaim}));
    }
  }
  return success();
}

Result<> AutoPools::ensure_pool(const Wanted& wanted) {
  const std::string name = auto_pool_name(wanted.application, wanted.interface, wanted.version);
  DIBS_TRY(const auto pools, shared_.api.list(kIpPools, ""));
  IpSet held = held_by_others(pools.items, name);
  held.add(*shared_.reserved.addresses());  // a pool would have them for nothing
  for (const auto& object : pools.items) {
    if (client::name_of(object) == name) return resize_pool(wanted, object, held);
  }
  return make_pool(wanted, held);
}

Result<> AutoPools::make_pool(const Wanted& wanted, const IpSet& held) {
  std::string reasons;
  for (const auto& name : wanted.subnets) {
    DIBS_TRY(const Value object, find_object(shared_.api, kSubnets, "", name));
    const auto subnet = parse_ip_subnet(object);
    if (!object.is_object() || is_terminating(object) || !subnet) {
      append(reasons, reasons.empty() ? "" : "; ", "SpiderSubnet ", name, ": ",
             !object.is_object() ? "not found"
             : !subnet           ? subnet.error().message()
                                 : "being deleted");
      continue;
    }
    auto pool = make_auto_pool(*subnet, object, wanted.application, wanted.interface,
                               wanted.addresses, wanted.reclaim, held);
    if (!pool) {
      append(reasons, reasons.empty() ? "" : "; ", "SpiderSubnet ", name, ": ",
             pool.error().message());
      continue;
    }
    auto made = shared_.api.create(kIpPools, "", *pool);
    if (made || made.error().code() == Code::already_exists) return success();
    return made.error();
  }
  return Error::invalid(reasons);
}

Result<> AutoPools::resize_pool(const Wanted& wanted, const Value& object, const IpSet& held) {
  if (is_terminating(object)) return Error::conflict("its pool is being deleted");
  DIBS_TRY(const auto pool, parse_ip_pool(object));
  DIBS_TRY(const auto status, parse_pool_status(object));
  for (const auto& name : wanted.subnets) {
    DIBS_TRY(const Value owner, find_object(shared_.api, kSubnets, "", name));
    const auto subnet = parse_ip_subnet(owner);
    if (!owner.is_object() || !subnet || !(subnet->subnet == pool.subnet)) continue;
    auto ips = resize_auto_pool(pool, status, *subnet, wanted.addresses, held);
    if (!ips) return ips.error().within(cat("SpiderSubnet ", name));
    if (*ips == pool.ips) return success();
    Value resized = object;
    resized.mut("spec").set("ips", texts(*ips));
    DIBS_CHECK(shared_.api.update(kIpPools, "", resized));
    return success();
  }
  return success();
}

WorkOutcome AutoPools::look_at_pool(const std::string& name) {
  const auto known = shared_.pools.known(name);
  if (!known || known->pool == nullptr || !is_auto_pool(*known->pool)) return WorkOutcome::done();
  if (is_terminating(known->object)) return WorkOutcome::done();
  const auto status = parse_pool_status(known->object);
  const Application application = application_in(known->object);
  if (!status || !Owners::knows(application)) return WorkOutcome::done();
  const auto controller = shared_.owners.controller(application);
  if (!controller) return outcome_of(controller.error(), name);
  const bool exists = controller->is_object() && is_named_after(name, client::uid_of(*controller));
  if (!is_reclaimable(known->object, *status, exists)) return WorkOutcome::done();
  client::DeleteOptions options;
  options.uid = client::uid_of(known->object);
  options.resource_version = known->object["metadata"]["resourceVersion"].str();
  auto removed = shared_.api.remove(kIpPools, "", name, options);
  if (removed || removed.error().code() == Code::not_found) return WorkOutcome::done();
  return outcome_of(removed.error(), name);
}

WorkOutcome AutoPools::look_at_subnets() {
  auto subnets = shared_.api.list(kSubnets, "");
  if (!subnets) return outcome_of(subnets.error(), "subnets");
  auto pools = shared_.api.list(kIpPools, "");
  if (!pools) return outcome_of(pools.error(), "subnets");
  std::vector<IpSubnet> parsed;
  for (const auto& object : subnets->items) {
    if (auto subnet = parse_ip_subnet(object)) parsed.push_back(std::move(*subnet));
  }
  Result<> worst = success();
  for (const auto& object : subnets->items) {
    if (auto looked = look_at_subnet(object, parsed, pools->items); !looked) worst = looked;
  }
  return outcome_of(worst, "subnets");
}

Result<> AutoPools::look_at_subnet(const Value& given, const std::vector<IpSubnet>& others,
                                   const std::vector<Value>& pools) {
  Value object = given;
  std::map<std::string, ControlledPool> controlled;
  for (const auto& pool : pools) {
    if (controller_of(pool).uid != client::uid_of(object)) continue;
    const auto parsed = parse_ip_pool(pool);
    if (!parsed) continue;
    ControlledPool entry;
    entry.ips = parsed->total;
    if (is_auto_pool(*parsed)) entry.application = application_text(application_in(pool));
    controlled[parsed->name] = std::move(entry);
  }
  if (is_terminating(object)) {
    const Value without = without_finalizer(object);
    if (!controlled.empty() || without == object) return success();
    DIBS_CHECK(shared_.api.update(kSubnets, "", without));
    return success();
  }
  const Value derived = subnet_with_derived_fields(object);
  if (!(derived == object)) {
    DIBS_TRY(object, shared_.api.update(kSubnets, "", derived));
  }
  const auto subnet = parse_ip_subnet(object);
  std::string fault = subnet ? "" : subnet.error().message();
  if (subnet) {
    auto faults = conflicts(*subnet, others);
    for (auto& one : use_faults(*subnet, controlled)) faults.push_back(std::move(one));
    if (!faults.empty()) fault = faults.front();
  }
  complaints_.tell(object, "InvalidSubnet", fault);
  if (!subnet) return success();
  const Value status = to_subnet_status(*subnet, controlled);
  if (status == object["status"]) return success();
  object.set("status", status);
  DIBS_CHECK(shared_.api.update_status(kSubnets, "", object));
  return success();
}

}  // namespace dibs::drivers::net
