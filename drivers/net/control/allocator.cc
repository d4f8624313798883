#include "drivers/net/control/allocator.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "drivers/net/control/today.h"
#include "drivers/net/objects/install.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using driver::Allocation;
using driver::PendingClaim;
using json::Value;

const client::Gvr kPods = {"", "v1", "pods"};
constexpr const char* kParameterKind = "SpiderClaimParameter";
constexpr std::size_t kLongestHandle = 16 << 10;

AskedNics asked_by(const ClaimParameter& parameter) {
  AskedNics out;
  const auto asked = [](const NicName& nic) { return AskedNic{nic.key(), nic.default_route}; };
  if (parameter.default_nic) out.default_nic = asked(*parameter.default_nic);
  for (const NicName& nic : parameter.secondary_nics) out.secondary.push_back(asked(nic));
  return out;
}

/// The pod that a claim was made or allocated for: {name, uid}; null when nobody knows.
Value pod_of(const Value& claim) {
  for (const auto& handle : driver::handles_of(claim, kClassicDriver)) {
    const auto data = json::parse(handle.data);
    if (data && (*data)["pod"].is_object()) return (*data)["pod"];
  }
  for (const Value& owner : claim["metadata"]["ownerReferences"].items()) {
    if (owner["kind"].as_string() == "Pod") return owner;
  }
  return {};
}

/// The handle with what helps a reader: whose addresses they are.
std::string handle_text(const Grant& grant, const Value& pod,
                        const std::vector<Assigned>& addresses) {
  auto handle = json::parse(handle_of(grant));
  if (!handle) return handle_of(grant);
  if (!pod.is_null()) {
    handle->set(
        "pod", Value::object({{"name", pod["metadata"]["name"]}, {"uid", pod["metadata"]["uid"]}}));
  }
  Value list = Value::array();
  for (const Assigned& one : addresses) {
    const bool ours = std::any_of(grant.nics.begin(), grant.nics.end(),
                                  [&](const Given& nic) { return nic.interface == one.interface; });
    if (!ours) continue;
    Value entry = Value::object({{"interface", one.interface}});
    if (!one.ipv4.empty()) entry.set("ipv4", one.ipv4);
    if (!one.ipv6.empty()) entry.set("ipv6", one.ipv6);
    list.push(std::move(entry));
  }
  if (!list.empty()) handle->set("addresses", std::move(list));
  return json::write(*handle);
}

}  // namespace

NetAllocator::NetAllocator(const driver::Environment& environment, AllocatorViews views,
                           AllocatorOptions options)
    : api_(environment.api),
      clock_(environment.runtime.clock),
      views_(std::move(views)),
      options_(std::move(options)) {}

void NetAllocator::warn(const Value& object, const char* reason, const std::string& note) {
  client::EventInput event;
  event.regarding = client::object_reference(object);
  event.warning = true;
  event.reason = reason;
  event.note = note;
  views_.events.record(std::move(event));
}

Result<> NetAllocator::ready() const {
  if (views_.ipam.synced() && views_.networks.synced() && views_.states.synced()) return success();
  return Error::unavailable("pools, networks and nodes are not known yet");
}

Result<Value> NetAllocator::class_parameters(const Value&, driver::ObjectFinder&) {
  return Value();  // what a class refers to means nothing here
}

Result<Value> NetAllocator::claim_parameters(const PendingClaim& pending,
                                             driver::ObjectFinder& objects) {
  const Value& reference = pending.claim["spec"]["parametersRef"];
  if (reference.is_null()) return Value();
  if (reference["apiGroup"].as_string() != kGroup) {
    return Error::invalid(cat("incorrect API Group: ", reference["apiGroup"].as_string()));
  }
  if (reference["kind"].as_string() != kParameterKind) {
    return Error::invalid(cat("incorrect kind: ", reference["kind"].as_string()));
  }
  const auto name_space = client::namespace_of(pending.claim);
  const auto name = reference["name"].as_string();
  auto found = objects.get({std::string(kGroup), kParameterKind}, name_space, name);
  if (!found) {
    return found.error().within(
        cat("failed to getting SpiderClaimParameters ", name_space, "/", name));
  }
  const std::string what = cat("SpiderClaimParameter ", name_space, "/", name);
  const auto read = parse_claim_parameter(*found);
  if (!read) return read.error().within(what);
  const auto judged = check_nics(*read, [this](const std::string& key) {
    const auto config = views_.networks.config(key);
    return config ? std::optional(*config) : std::nullopt;
  });
  // A network that is missing or wrong is told of where nodes are looked at.
  if (!judged && judged.error().code() == Code::invalid) return judged.error().within(what);
  return found;
}

const Grant* NetAllocator::grant_of(const Value& claim) {
  const auto handles = driver::handles_of(claim, kClassicDriver);
  if (handles.empty() || handles.front().data.empty()) return nullptr;
  auto& [text, grant] = grants_[std::string(client::uid_of(claim))];
  if (text != handles.front().data) {
    text = handles.front().data;
    auto read = parse_handle(text);
    if (!read) {
      log::warn("handle of a claim cannot be read",
                {{"claim", client::key_of(claim)}, {"error", read.error()}});
    }
    grant = read ? std::move(read).value() : Grant();
  }
  return &grant;
}

NetAllocator::UsedByNode NetAllocator::used_by(const driver::Taken& taken) {
  UsedByNode used;
  std::set<std::string> alive;
  for (const Value& claim : taken) {
    alive.emplace(client::uid_of(claim));
    if (const Grant* grant = grant_of(claim)) used[grant->node].add(*grant);
  }
  std::erase_if(grants_, [&](const auto& entry) { return !alive.contains(entry.first); });
  return used;
}

Result<NetAllocator::Plan> NetAllocator::plan_for(const Value& pod,
                                                  const std::vector<PendingClaim>& claims,
                                                  const driver::Taken& taken) {
  Plan plan;
  std::vector<AskedNics> asked;
  std::optional<std::size_t> rest;  // who has the interfaces that no claim names
  std::set<std::string> seen;
  const auto add = [&](Part part, AskedNics nics) {
    if (!rest && part.pending != nullptr) rest = plan.parts.size();
    plan.parts.push_back(std::move(part));
    asked.push_back(std::move(nics));
  };
  const auto add_pending = [&](const PendingClaim& claim) -> Result<> {
    DIBS_TRY(ClaimParameter parameter, parse_claim_parameter(claim.claim_parameters));
    AskedNics nics = asked_by(parameter);
    add({&claim, std::move(parameter), {}}, std::move(nics));
    return success();
  };
  const Value& entries = pod["spec"]["resourceClaims"];
  auto names = claims_of_pod(pod);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string& name = names[i];
    // Release 1.27 does not say it: the name follows from the pod's.
    if (name.empty()) name = cat(client::name_of(pod), "-", entries[i]["name"].as_string());
    if (!seen.insert(name).second) continue;
    const auto named = [&](const Value& claim) {
      return client::name_of(claim) == name &&
             client::namespace_of(claim) == client::namespace_of(pod);
    };
    const auto pending = std::find_if(claims.begin(), claims.end(),
                                      [&](const PendingClaim& one) { return named(one.claim); });
    if (pending != claims.end()) {
      DIBS_CHECK(add_pending(*pending));
      continue;
    }
    const auto held = std::find_if(taken.begin(), taken.end(), named);
    if (held == taken.end()) continue;
    const Grant* grant = grant_of(*held);
    if (grant == nullptr) continue;
    // Its interfaces are counted where they are; what its parameters say by now does not matter.
    add({nullptr, {}, *grant}, {});
  }
  if (plan.parts.empty()) {
    for (const PendingClaim& claim : claims) DIBS_CHECK(add_pending(claim));
  }
  // Interfaces of an allocated claim are those of its handle; they are asked for again by name.
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    if (plan.parts[i].pending != nullptr) continue;
    for (const Given& nic : plan.parts[i].grant.nics) {
      AskedNic one{nic.multus, false};
      if (nic.interface == kDefaultInterface) {
        asked[i].default_nic = std::move(one);
      } else {
        asked[i].secondary.push_back(std::move(one));
      }
    }
  }
  auto planned = plan_pod(pod, asked, rest.value_or(0), views_.networks, options_.selection);
  if (!planned) {
    const Error& error = planned.error();
    const bool conflict = error.code() == Code::conflict;
    const bool missing = error.code() == Code::not_found;
    for (const PendingClaim& claim : claims) {
      if (conflict) warn(claim.claim, "NicConflict", error.message());
      if (missing) warn(claim.claim, "NetworkNotFound", error.message());
    }
    return error;
  }
  plan.pod = std::move(planned).value();
  return plan;
}

Result<std::vector<Grant>> NetAllocator::grants_on(const Plan& plan, const std::string& node,
                                                   const UsedByNode& used) const {
  const auto state = views_.states.get(node);
  const auto found = used.find(node);
  Used now = found == used.end() ? Used() : found->second;
  if (views_.used_elsewhere) views_.used_elsewhere(node, now);
  std::vector<Grant> out;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const Part& part = plan.parts[i];
    if (part.pending == nullptr) {
      out.push_back(part.grant);
      continue;
    }
    std::vector<Need> needs;
    for (const PlannedNic& nic : plan.pod.nics) {
      if (nic.claim == i) needs.push_back(nic.need);
    }
    DIBS_TRY(Grant grant, fit(state.get(), needs, part.parameter, now, clock_.now()));
    grant.node = node;
    now.add(grant);
    out.push_back(std::move(grant));
  }
  return out;
}

std::vector<NicAsk> NetAllocator::asks_on(const Plan& plan, const std::string& node,
                                          const std::vector<Grant>& grants) const {
  const auto state = views_.states.get(node);
  std::vector<NicAsk> out;
  for (const PlannedNic& nic : plan.pod.nics) {
    if (!uses_ipam(nic.need.config)) continue;
    std::string vf;
    for (const Given& given : grants[nic.claim].nics) {
      if (given.interface == nic.need.interface) vf = given.vf;
    }
    out.push_back(ask_of(nic.need, state.get(), vf, plan.parts[nic.claim].parameter.ippools));
  }
  return out;
}

Result<driver::Unsuitable> NetAllocator::unsuitable_nodes(const Value& pod,
                                                          const std::vector<PendingClaim>& claims,
                                                          const std::vector<std::string>& nodes,
                                                          const driver::Taken& taken) {
  DIBS_CHECK(ready());
  const auto plan = plan_for(pod, claims, taken);
  const auto used = used_by(taken);
  const auto suits = [&](const std::string& node) -> Result<> {
    if (!plan) return plan.error();
    DIBS_TRY(const auto grants, grants_on(*plan, node, used));
    const auto asks = asks_on(*plan, node, grants);
    return asks.empty() ? success() : views_.ipam.can_assign(pod, node, asks);
  };
  driver::Unsuitable out;
  std::vector<std::string> bad;
  for (const auto& node : nodes) {
    const auto answer = suits(node);
    if (answer) continue;
    bad.push_back(node);
    out.reasons[node] = answer.error().message();
  }
  out.nodes = driver::NodeLists(claims.size(), bad);
  return out;
}

Result<> NetAllocator::annotate(const Value& pod, const Value& annotations) {
  if (annotations.is_null()) return success();
  const Value patch = Value::object({{"metadata", Value::object({{"uid", pod["metadata"]["uid"]},
                                                                 {"annotations", annotations}})}});
  auto written = api_.patch(kPods, client::namespace_of(pod), client::name_of(pod),
                            client::PatchType::merge, patch);
  if (!written) return written.error().within("annotations of the pod");
  return success();
}

Result<std::vector<Allocation>> NetAllocator::allocate_for(const Value& pod,
                                                           const std::vector<PendingClaim>& claims,
                                                           const std::string& node,
                                                           const driver::Taken& taken) {
  DIBS_CHECK(ready());
  DIBS_TRY(const Plan plan, plan_for(pod, claims, taken));
  DIBS_TRY(const auto grants, grants_on(plan, node, used_by(taken)));
  std::vector<Assigned> addresses;
  if (const auto asks = asks_on(plan, node, grants); !asks.empty()) {
    DIBS_TRY(addresses, views_.ipam.assign(pod, node, asks));
  }
  DIBS_CHECK(annotate(pod, plan.pod.annotations));
  std::vector<Allocation> out;
  for (const PendingClaim& claim : claims) {
    std::size_t at = 0;
    while (at < plan.parts.size() && plan.parts[at].pending != &claim) ++at;
    if (at == plan.parts.size()) return Error::invalid("the claim is none of the pod's");
    std::string handle = handle_text(grants[at], pod, addresses);
    if (handle.size() > kLongestHandle) {
      return Error::invalid("the claim asks for more than one allocation can say (16 KiB)");
    }
    out.push_back({{std::move(handle)}, driver::only_on(node), false});
  }
  return out;
}

Result<Allocation> NetAllocator::allocate_at_once(const PendingClaim& claim,
                                                  const driver::Taken& taken) {
  if (!options_.allow_immediate) {
    return Error::invalid(
        "immediate allocations are not supported: allocationMode must be WaitForFirstConsumer "
        "(or the controller be started with --allow-immediate)");
  }
  DIBS_CHECK(ready());
  const Value nobody = Value::object(
      {{"metadata", Value::object({{"namespace", claim.claim["metadata"]["namespace"]}})}});
  DIBS_TRY(const Plan plan, plan_for(nobody, {claim}, {}));
  const auto used = used_by(taken);
  std::map<std::string, std::size_t> load;
  for (const Value& one : taken) {
    if (const Grant* grant = grant_of(one)) ++load[grant->node];
  }
  auto nodes = views_.states.names();
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](const auto& a, const auto& b) { return load[a] < load[b]; });
  std::map<std::string, std::string> reasons;
  for (const auto& node : nodes) {
    const auto grants = grants_on(plan, node, used);
    if (grants) {
      return Allocation{{handle_text(grants->front(), {}, {})}, driver::only_on(node), false};
    }
    reasons[node] = grants.error().message();
  }
  if (reasons.empty()) return Error::unavailable("no node has reported what it has");
  return Error::unavailable(driver::describe_reasons(reasons));
}

std::vector<Result<Allocation>> NetAllocator::allocate(const std::vector<PendingClaim>& claims,
                                                       const std::string& node,
                                                       const driver::Taken& taken) {
  std::vector<Result<Allocation>> out;
  if (node.empty()) {
    for (const auto& claim : claims) out.push_back(allocate_at_once(claim, taken));
    return out;
  }
  const auto all = allocate_for(claims.front().pod, claims, node, taken);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (all) {
      out.push_back((*all)[i]);
    } else {
      out.push_back(all.error());
    }
  }
  return out;
}

Result<> NetAllocator::deallocate(const Value& claim) {
  const Value pod = pod_of(claim);
  if (pod.is_null()) return success();
  // Addresses of a pod that lives stay: it may be allocated for another node next.
  return views_.ipam.release(client::namespace_of(claim), pod["name"].as_string(),
                             pod["uid"].as_string());
}

}  // namespace dibs::drivers::net
