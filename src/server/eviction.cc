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

// Others write the pod at the same time: so often is looked again.
constexpr int kTries = 20;
// More evictions that the disruption controller has not seen yet are not believed in.
constexpr std::size_t kMostDisrupted = 2000;

Error would_violate(std::string message, int retry_after) {
  ErrorDetails details;
  details.causes.push_back({"DisruptionBudget", std::move(message), ""});
  details.retry_after_seconds = retry_after;
  return {Code::too_many_requests,
          "Cannot evict pod as it would violate the pod's disruption budget.", std::move(details)};
}

Error being_processed(std::string_view budget) {
  return would_violate(
      cat("The disruption budget ", budget, " is still being processed by the server."), 10);
}

Error not_allowed(std::string_view budget, std::string_view fault, std::string_view told) {
  ErrorDetails details;
  details.name = budget;
  details.group = "policy";
  details.kind = "poddisruptionbudget";
  details.causes.push_back(
      {"DisruptionBudget",
       cat("The disruption budget ", budget, " does not allow evicting pods currently: ", told),
       ""});
  return {Code::forbidden, cat("poddisruptionbudget.policy \"", budget, "\" is forbidden: ", fault),
          std::move(details)};
}

bool is_over(const Value& pod) {
  auto phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed" || pod["metadata"].contains("deletionTimestamp");
}

/// Pods that do not run, or not yet, are no loss.
bool counts(const Value& pod) {
  return !is_over(pod) && pod["status"]["phase"].as_string() != "Pending";
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

/// An unready pod is no loss where its budget says so, or has enough healthy ones without it.
bool is_no_loss(const Value& budget) {
  if (budget["spec"]["unhealthyPodEvictionPolicy"].as_string() == "AlwaysAllow") return true;
  const std::int64_t desired = budget["status"]["desiredHealthy"].as_int();
  return desired > 0 && budget["status"]["currentHealthy"].as_int() >= desired;
}

/// Why a budget has nothing left.
std::string spent_words(const Value& budget) {
  std::string_view name = budget["metadata"]["name"].as_string();
  const Value& status = budget["status"];
  Value condition;
  for (const Value& item : status["conditions"].items())
    if (item["type"].as_string() == "DisruptionAllowed") condition = item;
  const std::string_view told =
      condition["status"].as_string() == "False" ? condition["message"].as_string() : "";
  const std::string_view reason = condition["reason"].as_string();
  // The numbers are not to be trusted after a count that failed.
  if (!told.empty() && reason == "SyncFailed") {
    return cat("The disruption budget ", name,
               " does not allow evicting pods currently because it failed sync: ", told);
  }
  const std::int64_t healthy = status["currentHealthy"].as_int();
  const std::int64_t desired = status["desiredHealthy"].as_int();
  if (healthy <= desired) {
    return cat("The disruption budget ", name, " needs ", desired, " healthy pods and has ",
               healthy, " currently");
  }
  std::string out = cat("The disruption budget ", name, " does not allow evicting pods currently");
  if (!told.empty()) append(out, " (", reason, "): ", told);
  return out;
}

/// The budget after an eviction of the pod. Errors: too_many_requests, forbidden.
Result<Value> spent_budget(const Value& budget, std::string_view pod, Time now) {
  std::string_view name = budget["metadata"]["name"].as_string();
  const Value& status = budget["status"];
  if (status["observedGeneration"].as_int() < budget["metadata"]["generation"].as_int())
    return being_processed(name);
  const std::int64_t allowed = status["disruptionsAllowed"].as_int();
  if (allowed < 0) {
    constexpr std::string_view kNegative = "pdb disruptions allowed is negative";
    return not_allowed(name, kNegative, kNegative);
  }
  if (status["disruptedPods"].size() > kMostDisrupted) {
    return not_allowed(
        name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        "too many pending evictions not confirmed by PDB controller");
  }
  if (allowed == 0) return would_violate(spent_words(budget), 0);
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
  Value& eviction = decoded.object;
  auto given = eviction["metadata"]["name"].as_string();
  if (given != context.info.name) {
    return Error::bad_request("name in URL does not match name in Eviction object");
  }
  DIBS_CHECK(access_.check_node_write(context.user, auth::NodeOperation::create, *context.resource,
                                      "eviction", context.info.name_space, context.info.name,
                                      &eviction, nullptr));
  DIBS_CHECK(admit_body(objects_.admission(), context, Operation::create, eviction));
  const DeleteOptions options = to_delete_options(eviction["deleteOptions"]);
  if (options.dry_run) context.dry_run = true;
  const bool pinned = !options.precondition_version.empty();

  for (int tries = 1;; ++tries) {
    DIBS_TRY(Value pod,
             objects_.get(*context.resource, context.info.name_space, context.info.name));
    DeleteOptions own = options;
    const bool counted = counts(pod);
    std::string budget;  // the one by which this very state of the pod is no loss
    if (counted) {
      DIBS_TRY(budget, spend_disruption(context, pod));
    }
    // It might begin to count in the meantime.
    const bool must_stay = counted ? !budget.empty() : !is_over(pod);
    if (must_stay && !pinned) own.precondition_version = pod["metadata"]["resourceVersion"].str();
    auto ended = end_pod(context, std::move(own));
    if (ended.ok()) return Reply(created_answer(context));
    if (pinned || ended.error().code() != Code::conflict) return std::move(ended).error();
    if (!budget.empty()) return being_processed(budget);
    if (counted || tries == kTries) return std::move(ended).error();
  }
}

/// Tells the pod why it goes, and deletes it. Errors: conflict, where it is not the one that the
/// options mean.
Result<> Subresources::end_pod(Context& context, DeleteOptions options) {
  if (!context.dry_run) {
    Context inner = inner_context(context, context.resource, context.info.name);
    Write mark(inner, *context.resource, Verb::patch);
    mark.follows = true;
    mark.removal = options;
    mark.make = [&](const Value* existing) -> Result<Wanted> {
      DIBS_CHECK(check_removal(mark, *existing));
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
    DIBS_CHECK(objects_.run(mark));
    if (!options.precondition_version.empty() && mark.outcome.version != 0)
      options.precondition_version = std::to_string(mark.outcome.version);
  }
  Write removal(context, *context.resource, Verb::remove);
  removal.follows = true;
  removal.removal = std::move(options);
  return objects_.run(removal);
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
      return Error::plain(
          "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
          "support.");
    }
    found = std::move(budget);
  }
  return found;
}

/// Takes the pod's eviction from its budget. The name of a budget that lets the pod go as it is
/// now, without taking anything; "" otherwise.
Result<std::string> Subresources::spend_disruption(Context& context, const Value& pod) {
  ResourcePtr budgets = context.resources->find_plural("policy", "poddisruptionbudgets");
  DIBS_TRY(const Value budget, budget_of(context, *budgets, pod));
  if (budget.is_null()) return std::string();
  const std::string name = budget["metadata"]["name"].str();
  if (!is_ready(pod) && is_no_loss(budget)) return name;

  Context inner = inner_context(context, budgets, name);
  Write write(inner, *budgets, Verb::patch);
  write.follows = true;
  write.make = [&](const Value* existing) -> Result<Wanted> {
    DIBS_TRY(Value spent,
             spent_budget(*existing, pod["metadata"]["name"].as_string(), context.now));
    return Wanted{std::move(spent)};
  };
  DIBS_CHECK(objects_.run(write));
  return std::string();
}

}  // namespace dibs::server
