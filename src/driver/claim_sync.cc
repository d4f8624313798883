#include "driver/claim_sync.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "driver/guarded.h"

namespace dibs::driver {
namespace {

using json::Value;

const client::Gvr kPods = {"", "v1", "pods"};
constexpr std::size_t kMostNodes = 128;

bool is_going(const Value& object) {
  return !object["metadata"]["deletionTimestamp"].as_string().empty();
}

bool is_allocated(const Value& claim) { return claim["status"]["allocation"].is_object(); }

bool is_controlled_by(const Value& object, std::string_view uid) {
  for (const auto& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool() && owner["uid"].as_string() == uid) return true;
  }
  return false;
}

/// A field of a pod's entry: up to release 1.30 it stood under `source`.
std::string_view source_of(const Value& entry, std::string_view field) {
  const auto old = entry["source"][field].as_string();
  return old.empty() ? entry[field].as_string() : old;
}

/// The server has decided against the write; any other error leaves open whether it happened.
bool is_refusal(Code code) {
  switch (code) {
    case Code::bad_request:
    case Code::unauthorized:
    case Code::forbidden:
    case Code::not_found:
    case Code::conflict:
    case Code::invalid:
    case Code::too_large:
    case Code::too_many_requests:
      return true;
    default:
      return false;
  }
}

std::vector<std::string> strings_in(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.push_back(item.str());
  return out;
}

bool contains(const std::vector<std::string>& list, const std::string& wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

Value allocation_object(const Allocation& allocation, const std::string& driver) {
  Value out = Value::object();
  if (!allocation.handles.empty()) {
    Value handles = Value::array();
    for (const auto& data : allocation.handles) {
      handles.push(Value::object({{"driverName", driver}, {"data", data}}));
    }
    out.set("resourceHandles", std::move(handles));
  }
  if (allocation.nodes.is_object()) out.set("availableOnNodes", allocation.nodes);
  if (allocation.shareable) out.set("shareable", true);
  return out;
}

Value pod_as_user(const Value& pod) {
  return Value::object(
      {{"resource", "pods"}, {"name", pod["metadata"]["name"]}, {"uid", pod["metadata"]["uid"]}});
}

/// All messages as one error; a conflict only when nothing else went wrong.
Error joined(const std::vector<Error>& errors) {
  std::string text;
  Code code = Code::conflict;
  for (const auto& error : errors) {
    append(text, text.empty() ? "" : "\n", error.message());
    if (error.code() != Code::conflict) code = error.code();
  }
  return {code, text};
}

}  // namespace

std::vector<std::string> cut_nodes(const std::vector<std::string>& nodes,
                                   const std::vector<std::string>& asked, const std::string& kept) {
  const std::set<std::string> named(nodes.begin(), nodes.end());
  std::vector<std::string> out;
  for (const auto& node : asked) {
    if (named.contains(node) && !contains(out, node)) out.push_back(node);
  }
  while (out.size() > kMostNodes) {
    out.erase(out.back() == kept && !kept.empty() ? out.begin() : out.end() - 1);
  }
  return out;
}

ClaimSync::ClaimSync(Allocator& allocator, client::Client& api, SyncViews views,
                     client::EventRecorder& events, std::string driver)
    : allocator_(allocator),
      api_(api),
      views_(views),
      events_(events),
      driver_(std::move(driver)),
      finalizer_(cat(driver_, "/deletion-protection")),
      objects_(api),
      claims_(views.claims),
      contexts_(views.contexts) {}

void ClaimSync::take_over() {
  for (const auto& claim : views_.claims.by_index(kByFinalizer, finalizer_)) {
    if (is_classic(claim) && !is_allocated(claim)) unsettled_.insert(client::key_of(claim));
  }
}

bool ClaimSync::has_finalizer(const Value& claim) const {
  for (const auto& finalizer : claim["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() == finalizer_) return true;
  }
  return false;
}

void ClaimSync::warn(const Value& object, const std::string& note, const char* reason) {
  client::EventInput event;
  event.regarding = client::object_reference(object);
  event.warning = true;
  event.reason = reason;
  event.note = note;
  events_.record(std::move(event));
}

Result<Value> ClaimSync::write(const Value& claim, bool status) {
  const auto name_space = client::namespace_of(claim);
  auto written = status ? api_.update_status(kClassicClaims, name_space, claim)
                        : api_.update(kClassicClaims, name_space, claim);
  if (written) claims_.note(*written);
  return written;
}

/// Deallocates, in the order that survives being killed after any step.
Result<> ClaimSync::release(Value claim) {
  const std::string key = client::key_of(claim);
  releasing_.insert(key);
  const bool allocated = is_allocated(claim);
  auto undone = guarded([&] { return allocator_.deallocate(claim); });
  if (!undone) return undone.error().within(allocated ? "deallocate" : "stop allocation");
  if (allocated || claim["status"]["deallocationRequested"].as_bool()) {
    Value& status = claim.mut("status");
    if (allocated) status.erase("driverName");
    status.erase("allocation");
    status.erase("deallocationRequested");
    auto written = write(claim, true);
    if (!written) {
      return written.error().within(allocated ? "remove allocation" : "remove deallocation");
    }
    claim = std::move(written).value();
  }
  Value& finalizers = claim.mut("metadata").mut("finalizers");
  for (std::size_t i = finalizers.size(); i-- > 0;) {
    if (finalizers[i].as_string() == finalizer_) finalizers.erase_at(i);
  }
  if (finalizers.empty()) claim.mut("metadata").erase("finalizers");
  auto written = write(claim, false);
  if (!written && written.error().code() != Code::not_found) {
    return written.error().within("remove finalizer");
  }
  releasing_.erase(key);
  return success();
}

Result<> ClaimSync::settle() {
  while (!unsettled_.empty()) {
    const std::string key = *unsettled_.begin();
    const auto claim = claims_.newest(key);
    if (claim && has_finalizer(*claim) && !is_allocated(*claim)) {
      if (auto released = release(*claim);
          !released && released.error().code() != Code::not_found) {
        return released.error().within(cat("claim ", key));
      }
      log::info("stopped an allocation whose end is not known", {{"claim", key}});
    }
    unsettled_.erase(key);
  }
  return success();
}

Result<Value> ClaimSync::own_class(const Value& claim) {
  const std::string name = claim["spec"]["resourceClassName"].str();
  const auto found = views_.classes.get(name);
  if (!found) {
    return Error::not_found(cat("resourceclass.resource.k8s.io ", quoted(name), " not found"));
  }
  if ((*found)["driverName"].as_string() != driver_) return Value();
  if ((*found)["structuredParameters"].as_bool()) return Value();
  return *found;
}

Result<> ClaimSync::look_up(PendingClaim& pending, bool tell_claim) {
  auto found =
      guarded([&] { return allocator_.class_parameters(pending.resource_class, objects_); });
  if (!found) {
    warn(pending.resource_class, found.error().message());
    return found.error();
  }
  pending.class_parameters = std::move(found).value();
  found = guarded([&] { return allocator_.claim_parameters(pending, objects_); });
  if (!found) {
    if (tell_claim) warn(pending.claim, found.error().message());
    return found.error();
  }
  pending.claim_parameters = std::move(found).value();
  return success();
}

Result<Next> ClaimSync::claim(const std::string& key) {
  const auto claim = claims_.newest(key);
  if (!claim) releasing_.erase(key);
  if (!claim || !is_classic(*claim)) return Next::done;
  const Value& status = (*claim)["status"];
  if (!status["reservedFor"].empty()) return Next::done;
  if (is_going(*claim) || status["deallocationRequested"].as_bool()) {
    if (!has_finalizer(*claim)) return Next::done;
    if (auto released = release(*claim); !released) return released.error();
    unsettled_.erase(key);
    return Next::done;
  }
  if (is_allocated(*claim)) return Next::done;
  if (unsettled_.contains(key)) DIBS_CHECK(settle());
  if (releasing_.contains(key) && has_finalizer(*claim)) DIBS_CHECK(release(*claim));
  if ((*claim)["spec"]["allocationMode"].as_string() != "Immediate") return Next::done;
  PendingClaim pending;
  DIBS_TRY(pending.resource_class, own_class(*claim));
  // The class may yet become ours.
  if (pending.resource_class.is_null()) return Next::retry;
  pending.claim = *claim;
  DIBS_CHECK(look_up(pending, false));
  DIBS_CHECK(allocate({std::move(pending)}, "", Value()));
  return Next::done;
}

Result<std::optional<Value>> ClaimSync::claim_of(const Value& pod, const Value& entry) {
  using Found = std::optional<Value>;
  const auto name_space = client::namespace_of(pod);
  if (const auto named = source_of(entry, "resourceClaimName"); !named.empty()) {
    return claims_.newest(client::key_of(name_space, named));
  }
  const auto name = entry["name"].as_string();
  for (const auto& status : pod["status"]["resourceClaimStatuses"].items()) {
    if (status["name"].as_string() != name) continue;
    const auto made = status["resourceClaimName"].as_string();
    if (made.empty()) return Found();  // none is needed
    auto claim = claims_.newest(client::key_of(name_space, made));
    if (claim && !is_controlled_by(*claim, client::uid_of(pod))) {
      return Error::invalid(cat("ResourceClaim ", name_space, "/", made,
                                " was not created for pod ", client::key_of(pod),
                                " (pod is not owner)"));
    }
    return claim;
  }
  // Release 1.27 has no such list: the claim's name follows from the pod's.
  auto claim = claims_.newest(client::key_of(name_space, cat(client::name_of(pod), "-", name)));
  if (claim && is_controlled_by(*claim, client::uid_of(pod))) return claim;
  return Error::not_found(
      cat("pod ", quoted(client::key_of(pod)), ": ResourceClaim not created yet"));
}

Result<std::optional<PendingClaim>> ClaimSync::pending(const Value& pod, const Value& entry) {
  using Found = std::optional<PendingClaim>;
  DIBS_TRY(const auto claim, claim_of(pod, entry));
  if (!claim || !is_classic(*claim) || is_allocated(*claim) || is_going(*claim)) return Found();
  if ((*claim)["spec"]["allocationMode"].as_string() == "Immediate") return Found();
  PendingClaim out;
  DIBS_TRY(out.resource_class, own_class(*claim));
  if (out.resource_class.is_null()) return Found();
  out.entry = entry["name"].str();
  out.claim = *claim;
  out.pod = pod;
  if (auto found = look_up(out, true); !found) {
    warn(pod, cat("claim ", client::name_of(*claim), ": ", found.error().message()));
    return found.error();
  }
  return Found(std::move(out));
}

Result<ClaimSync::Wanted> ClaimSync::wanted_by(const Value& pod) {
  Wanted wanted;
  for (const auto& entry : pod["spec"]["resourceClaims"].items()) {
    auto one = pending(pod, entry);
    if (!one) return one.error().within(cat("pod claim ", entry["name"].as_string()));
    if (!one->has_value()) continue;
    std::size_t at = 0;
    while (at < wanted.claims.size() &&
           client::uid_of(wanted.claims[at].claim) != client::uid_of((*one)->claim)) {
      ++at;
    }
    wanted.entries.push_back({(*one)->entry, at});
    if (at == wanted.claims.size()) wanted.claims.push_back(std::move(**one));
  }
  return wanted;
}

Result<NodeLists> ClaimSync::ask_unsuitable(const Value& pod,
                                            const std::vector<PendingClaim>& claims,
                                            const Value& spec) {
  const std::string selected = spec["selectedNode"].str();
  std::vector<std::string> nodes = strings_in(spec["potentialNodes"]);
  // A pod that has its node already is not asked about: it can be served there, or not.
  if (nodes.empty()) return NodeLists(claims.size());
  if (!selected.empty() && !contains(nodes, selected)) nodes.push_back(selected);
  const Taken taken = allocated();
  auto answer = guarded([&] { return allocator_.unsuitable_nodes(pod, claims, nodes, taken); });
  if (!answer) return answer.error().within("checking potential nodes");
  NodeLists lists = std::move(answer->nodes);
  lists.resize(claims.size());
  for (auto& list : lists) list = cut_nodes(list, nodes, selected);
  const bool hopeless = std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return std::any_of(lists.begin(), lists.end(),
                       [&](const auto& list) { return contains(list, node); });
  });
  if (hopeless && !answer->reasons.empty()) {
    warn(pod, describe_reasons(answer->reasons), "UnsuitableNodes");
  }
  return lists;
}

Taken ClaimSync::allocated() {
  Taken taken;
  for (auto& claim : claims_.by_index(kByDriver, driver_)) {
    if (!is_classic(claim) || !is_allocated(claim)) continue;
    if (!handles_of(claim, driver_).empty()) taken.push_back(claim);
  }
  return taken;
}

Result<> ClaimSync::allocate(std::vector<PendingClaim> claims, const std::string& node,
                             const Value& user) {
  DIBS_CHECK(settle());
  std::vector<Error> errors;
  const auto failed = [&](const Value& claim, const Error& error) {
    const std::string name(client::name_of(claim));
    const bool named = user.is_null() || error.message().find(name) != std::string::npos;
    errors.push_back(named ? error : error.within(cat("claim ", name)));
  };
  std::vector<PendingClaim> ready;
  for (auto& pending : claims) {
    // Settling may have changed it.
    const auto claim = claims_.newest(client::key_of(pending.claim));
    if (!claim || is_allocated(*claim)) continue;
    pending.claim = *claim;
    if (!has_finalizer(*claim)) {
      pending.claim.mut("metadata").mut("finalizers").push(finalizer_);
      auto written = write(pending.claim, false);
      if (!written) {
        failed(*claim, written.error().within("add finalizer"));
        continue;
      }
      pending.claim = std::move(written).value();
    }
    ready.push_back(std::move(pending));
  }
  if (!ready.empty()) {
    const Taken taken = allocated();
    auto answers = guarded([&]() -> Result<std::vector<Result<Allocation>>> {
      return allocator_.allocate(ready, node, taken);
    });
    if (!answers) return answers.error();
    answers->resize(ready.size(), Error::internal("missing allocation from driver"));
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (auto done = record(ready[i].claim, (*answers)[i], user); !done) {
        failed(ready[i].claim, done.error());
      }
    }
  }
  if (!errors.empty()) return joined(errors);
  return success();
}

Result<> ClaimSync::record(const Value& claim, const Result<Allocation>& answer,
                           const Value& user) {
  if (!answer) return answer.error().within("allocating claim");
  Value object = claim;
  Value& status = object.mut("status");
  status.set("driverName", driver_);
  status.set("allocation", allocation_object(*answer, driver_));
  if (!user.is_null()) status.mut("reservedFor").push(user);
  auto written = write(object, true);
  if (written) {
    log::info("claim allocated", {{"claim", client::key_of(claim)}});
    return success();
  }
  if (!is_refusal(written.error().code())) unsettled_.insert(client::key_of(claim));
  return written.error().within("add allocation");
}

Result<> ClaimSync::tell(Value context, const Wanted& wanted, const NodeLists& lists) {
  Value known = context["status"]["resourceClaims"];
  if (!known.is_array()) known = Value::array();
  bool changed = false;
  for (const auto& [name, index] : wanted.entries) {
    Value entry = Value::object({{"name", name}});
    Value nodes = Value::array();
    for (const auto& node : lists[index]) nodes.push(node);
    if (!nodes.empty()) entry.set("unsuitableNodes", nodes);
    std::size_t at = 0;
    while (at < known.size() && known[at]["name"].as_string() != name) ++at;
    if (at == known.size()) {
      known.push(std::move(entry));
    } else if (strings_in(known[at]["unsuitableNodes"]) != lists[index]) {
      known.mut(at) = std::move(entry);
    } else {
      continue;
    }
    changed = true;
  }
  if (!changed) return success();
  context.mut("status").set("resourceClaims", std::move(known));
  auto written = api_.update_status(kContexts, client::namespace_of(context), context);
  // The pod may have been bound meanwhile, and needs it no longer.
  if (!written && written.error().code() == Code::not_found) return success();
  if (!written) return written.error().within("update pod scheduling status");
  contexts_.note(*written);
  return success();
}

Result<Next> ClaimSync::context(const std::string& key) {
  const auto context = contexts_.newest(key);
  if (!context || is_going(*context)) return Next::done;
  const Value& spec = (*context)["spec"];
  const std::string selected = spec["selectedNode"].str();
  if (selected.empty() && spec["potentialNodes"].empty()) return Next::done;
  // Live: a pod that is gone must not get what others wait for.
  const auto pod = api_.get(kPods, client::namespace_of(*context), client::name_of(*context));
  if (!pod && pod.error().code() == Code::not_found) return Next::done;
  if (!pod) return pod.error();
  if (is_going(*pod) || !is_controlled_by(*context, client::uid_of(*pod))) return Next::done;
  DIBS_TRY(const auto wanted, wanted_by(*pod));
  if (wanted.claims.empty()) return Next::recheck;
  DIBS_CHECK(settle());
  DIBS_TRY(const auto lists, ask_unsuitable(*pod, wanted.claims, spec));
  const bool suitable =
      std::none_of(lists.begin(), lists.end(),
                   [&](const std::vector<std::string>& list) { return contains(list, selected); });
  if (!selected.empty() && suitable) {
    DIBS_CHECK(allocate(wanted.claims, selected, pod_as_user(*pod)));
  }
  DIBS_CHECK(tell(*context, wanted, lists));
  return Next::recheck;
}

}  // namespace dibs::driver
