// Subresources::evict: a deletion that asks the pod's disruption budget first.
#include "api/merge/selectors.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"
#include "server/body.h"
#include "server/plugins/admission_policies_bodies.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/subresources.h"
#include "server/writing.h"

namespace dibs::server {
namespace {

Error would_violate(std::string message, int retry_after) {
  ErrorDetails details;
  details.causes.push_back({"DisruptionBudget", std::move(message), ""});
  details.retry_after_seconds = retry_after;
  return {Code::too_many_requests,
          "Cannot evict pod as it would violate the pod's disruption budget.", std::move(details)};
}

/// Pods that do not run, or not yet, are no loss.
bool counts(const Value& pod) {
  auto phase = pod["status"]["phase"].as_string();
  return phase != "Succeeded" && phase != "Failed" && phase != "Pending" &&
         !pod["metadata"].contains("deletionTimestamp");
}

/// A write of another object's status on behalf of the same request.
Context inner_context(const Context& context, const ResourcePtr& resource,
                      const std::string& name) {
  Context inner;
  inner.request.headers = context.request.headers;
  inner.info = context.info;
  inner.info.subresource = "status";
  inner.info.name = name;
  inner.user = context.user;
  inner.resource = resource;
  inner.resources = context.resources;
  inner.now = context.now;
  inner.fresh = context.fresh;
  inner.dry_run = context.dry_run;
  inner.field_manager = context.field_manager;
  return inner;
}

/// The list with the condition in place of the one of its type; its time stays while the status
/// does.
Value with_condition(const Value& conditions, Value wanted) {
  Value out = Value::array();
  bool placed = false;
  for (const Value& old : conditions.items()) {
    if (!(old["type"] == wanted["type"])) {
      out.push(old);
      continue;
    }
    if (old["status"] == wanted["status"])
      wanted.set("lastTransitionTime", old["lastTransitionTime"]);
    out.push(wanted);
    placed = true;
  }
  if (!placed) out.push(std::move(wanted));
  return out;
}

Value exhausted(const Value& budget, Time now) {
  return Value::object({{"type", "DisruptionAllowed"},
                        {"status", "False"},
                        {"observedGeneration", budget["status"]["observedGeneration"]},
                        {"lastTransitionTime", format_rfc3339(now)},
                        {"reason", "InsufficientPods"},
                        {"message", ""}});
}

bool is_ready(const Value& pod) {
  for (const Value& condition : pod["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Ready") return condition["status"].as_string() == "True";
  }
  return false;
}

/// The budget after an eviction of the pod. Errors: too_many_requests.
Result<Value> spent_budget(const Value& budget, std::string_view pod, bool ready, Time now) {
  std::string_view name = budget["metadata"]["name"].as_string();
  const Value& status = budget["status"];
  if (status["observedGeneration"].as_int() < budget["metadata"]["generation"].as_int()) {
    return would_violate(
        cat("The disruption budget ", name, " is still being processed by the server."), 10);
  }
  const std::int64_t healthy = status["currentHealthy"].as_int();
  const std::int64_t desired = status["desiredHealthy"].as_int();
  const std::int64_t allowed = status["disruptionsAllowed"].as_int();
  if (!ready && healthy >= desired && desired > 0) return budget;
  if (allowed < 1 && healthy > desired) {
    return would_violate(
        cat("The disruption budget ", name, " does not allow evicting pods currently"), 0);
  }
  if (allowed < 1) {
    return would_violate(cat("The disruption budget ", name, " needs ", desired,
                             " healthy pods and has ", healthy, " currently"),
                         0);
  }
  Value out = budget;
  out.mut("status").set("disruptionsAllowed", allowed - 1);
  if (allowed == 1) {
    out.mut("status").set("conditions",
                          with_condition(status["conditions"], exhausted(budget, now)));
  }
  out.mut("status").mut("disruptedPods").set(pod, format_rfc3339(now));
  return out;
}

}  // namespace

Result<Reply> Subresources::evict(Context& context) {
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  const api::SubresourceInfo& sub = *context.resource->subresource("eviction");
  // policy/v1beta1 is still sent by old clients and means the same.
  std::string& body = context.request.body;
  if (auto at = body.find("policy/v1beta1"); at != std::string::npos && at < 256)
    body.replace(at, 14, "policy/v1");
  Expected expected{sub.kind, api::builtin_schema(sub.kind.group, sub.kind.version, sub.kind.kind),
                    nullptr};
  DIBS_TRY(Decoded decoded, decode_body(context, expected));
  const Value& eviction = decoded.object;
  auto given = eviction["metadata"]["name"].as_string();
  if (!given.empty() && given != context.info.name) {
    return Error::bad_request("name in URL does not match name in Eviction object");
  }
  DIBS_CHECK(access_.check_node_write(context.user, auth::NodeOperation::create, *context.resource,
                                      "eviction", context.info.name_space, context.info.name,
                                      &eviction, nullptr));
  DIBS_CHECK(admit_body(objects_.admission(), context, Operation::create, eviction));
  DIBS_TRY(Value pod, objects_.get(*context.resource, context.info.name_space, context.info.name));
  auto write = std::make_shared<Write>(context, *context.resource, Verb::remove);
  write->removal = to_delete_options(eviction["deleteOptions"]);
  write->follows = true;
  context.dry_run = write->is_dry_run();
  if (counts(pod)) DIBS_CHECK(spend_disruption(context, pod));
  DIBS_CHECK(mark_disrupted(context, pod));
  return answered_with_created(std::move(write));
}

Result<> Subresources::mark_disrupted(Context& context, const Value& pod) {
  // A pod that is gone at once need not be told why.
  if (pod["spec"]["nodeName"].as_string().empty() || !counts(pod)) return success();
  Context inner = inner_context(context, context.resource, context.info.name);
  Write write(inner, *context.resource, Verb::patch);
  write.follows = true;
  write.make = [&](const Value* existing) -> Result<Wanted> {
    Value changed = *existing;
    changed.mut("status").set(
        "conditions",
        with_condition((*existing)["status"]["conditions"],
                       Value::object({{"type", "DisruptionTarget"},
                                      {"status", "True"},
                                      {"lastProbeTime", nullptr},
                                      {"lastTransitionTime", format_rfc3339(context.now)},
                                      {"reason", "EvictionByEvictionAPI"},
                                      {"message", "Eviction API: evicting"}})));
    return Wanted{std::move(changed)};
  };
  return objects_.run(write);
}

/// The one budget that the pod counts for, or null.
Result<Value> Subresources::budget_of(const Context& context, const Resource& budgets,
                                      const Value& pod) {
  store::RangeQuery query;
  query.prefix = budgets.namespace_prefix(context.info.name_space);
  DIBS_TRY(store::Listing listing, objects_.store().range(query));
  Value found;
  for (const auto& record : listing.records) {
    DIBS_TRY(Value budget, decode_stored(*record));
    auto selector = api::to_label_selector(budget["spec"]["selector"]);
    if (!selector.ok() || !selector->matches(pod["metadata"]["labels"])) continue;
    if (!found.is_null()) {
      return Error::internal(
          "Internal error occurred: This pod has more than one PodDisruptionBudget, which the "
          "eviction subresource "
          "does not support.");
    }
    found = std::move(budget);
  }
  return found;
}

Result<> Subresources::spend_disruption(Context& context, const Value& pod) {
  ResourcePtr budgets = context.resources->find_plural("policy", "poddisruptionbudgets");
  DIBS_TRY(const Value budget, budget_of(context, *budgets, pod));
  if (budget.is_null()) return success();
  const bool ready = is_ready(pod);
  if (!ready && budget["spec"]["unhealthyPodEvictionPolicy"].as_string() == "AlwaysAllow")
    return success();

  Context inner = inner_context(context, budgets, budget["metadata"]["name"].str());
  Write write(inner, *budgets, Verb::patch);
  write.follows = true;
  write.make = [&](const Value* existing) -> Result<Wanted> {
    DIBS_TRY(Value spent,
             spent_budget(*existing, pod["metadata"]["name"].as_string(), ready, context.now));
    return Wanted{std::move(spent)};
  };
  return objects_.run(write);
}

}  // namespace dibs::server
