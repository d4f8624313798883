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
  inner.by_server = true;
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

}  // namespace

Result<Response> Subresources::evict(Context& context) {
  DIBS_CHECK(read_write_options(context, "CreateOptions"));
  const api::SubresourceInfo& sub = *context.resource->subresource("eviction");
  // policy/v1beta1 is still sent by old clients and means the same.
  std::string& body = context.request.body;
  if (auto at = body.find("policy/v1beta1"); at != std::string::npos && at < 256)
    body.replace(at, 14, "policy/v1");
  Expected expected{sub.kind, api::builtin_schema(sub.kind.group, sub.kind.version, sub.kind.kind),
                    nullptr};
  DIBS_TRY(Value eviction, decode_body(context, expected));
  auto given = eviction["metadata"]["name"].as_string();
  if (!given.empty() && given != context.info.name) {
    return Error::bad_request("name in URL does not match name in Eviction object");
  }
  DIBS_CHECK(access_.check_node_write(context.user, auth::NodeOperation::create, *context.resource,
                                      "eviction", context.info.name_space, context.info.name,
                                      &eviction, nullptr));
  DIBS_CHECK(admit_body(objects_.admission(), context, Operation::create, eviction));
  context.by_server = true;
  DIBS_TRY(Value pod, objects_.get(*context.resource, context.info.name_space, context.info.name));
  const Value& raw = eviction["deleteOptions"];
  DeleteOptions options;
  options.raw = raw;
  if (const Value* grace = raw.find("gracePeriodSeconds"); grace && !grace->is_null()) {
    options.grace_seconds = grace->as_int();
  }
  options.propagation = raw["propagationPolicy"].str();
  options.precondition_uid = raw["preconditions"]["uid"].str();
  options.precondition_version = raw["preconditions"]["resourceVersion"].str();
  options.dry_run = context.dry_run || !raw["dryRun"].empty();
  context.dry_run = options.dry_run;
  if (counts(pod)) DIBS_CHECK(spend_disruption(context, pod));

  DIBS_CHECK(mark_disrupted(context, pod));
  context.info.subresource.clear();
  auto deleted = objects_.remove(context, *context.resource, context.info.name_space,
                                 context.info.name, options);
  if (!deleted.ok()) return std::move(deleted).error();
  return present_value(context, 201,
                       Value::object({{"kind", "Status"},
                                      {"apiVersion", "v1"},
                                      {"metadata", Value::object()},
                                      {"status", "Success"},
                                      {"code", 201}}));
}

Result<> Subresources::mark_disrupted(Context& context, const Value& pod) {
  // A pod that is gone at once need not be told why.
  if (pod["spec"]["nodeName"].as_string().empty() || !counts(pod)) return success();
  Context inner = inner_context(context, context.resource, context.info.name);
  auto make = [&](const Value* existing) -> Result<Value> {
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
    return changed;
  };
  auto marked = objects_.update(inner, *context.resource, context.info.name_space,
                                context.info.name, UpdateKind::patch, false, make);
  if (!marked.ok()) return std::move(marked).error();
  return success();
}

Result<> Subresources::spend_disruption(Context& context, const Value& pod) {
  ResourcePtr budgets = context.resources->find_plural("policy", "poddisruptionbudgets");
  store::RangeQuery query;
  query.prefix = budgets->namespace_prefix(context.info.name_space);
  DIBS_TRY(store::Listing listing, objects_.store().range(query));
  std::vector<Value> matching;
  for (const auto& record : listing.records) {
    DIBS_TRY(Value budget, decode_stored(*record));
    auto selector = api::to_label_selector(budget["spec"]["selector"]);
    if (selector.ok() && selector->matches(pod["metadata"]["labels"]))
      matching.push_back(std::move(budget));
  }
  if (matching.empty()) return success();
  if (matching.size() > 1) {
    return Error::internal(
        "Internal error occurred: This pod has more than one PodDisruptionBudget, which the "
        "eviction subresource "
        "does not support.");
  }
  std::string name = matching[0]["metadata"]["name"].str();
  if (!is_ready(pod) &&
      matching[0]["spec"]["unhealthyPodEvictionPolicy"].as_string() == "AlwaysAllow")
    return success();

  auto make = [&](const Value* existing) -> Result<Value> {
    const Value& status = (*existing)["status"];
    if (status["observedGeneration"].as_int() < (*existing)["metadata"]["generation"].as_int()) {
      return would_violate(
          cat("The disruption budget ", name, " is still being processed by the server."), 10);
    }
    std::int64_t allowed = status["disruptionsAllowed"].as_int();
    bool healthy_enough = status["currentHealthy"].as_int() >= status["desiredHealthy"].as_int() &&
                          status["desiredHealthy"].as_int() > 0;
    if (!is_ready(pod) && healthy_enough) return *existing;
    if (allowed < 1) {
      if (status["currentHealthy"].as_int() > status["desiredHealthy"].as_int()) {
        return would_violate(
            cat("The disruption budget ", name, " does not allow evicting pods currently"), 0);
      }
      return would_violate(
          cat("The disruption budget ", name, " needs ", status["desiredHealthy"].as_int(),
              " healthy pods and has ", status["currentHealthy"].as_int(), " currently"),
          0);
    }
    Value budget = *existing;
    budget.mut("status").set("disruptionsAllowed", allowed - 1);
    if (allowed == 1)
      budget.mut("status").set("conditions", with_condition(budget["status"]["conditions"],
                                                            exhausted(budget, context.now)));
    budget.mut("status")
        .mut("disruptedPods")
        .set(pod["metadata"]["name"].as_string(), format_rfc3339(context.now));
    return budget;
  };
  Context inner = inner_context(context, budgets, name);
  auto spent = objects_.update(inner, *budgets, context.info.name_space, name, UpdateKind::patch,
                               false, make);
  if (!spent.ok()) return std::move(spent).error();
  return success();
}

}  // namespace dibs::server
