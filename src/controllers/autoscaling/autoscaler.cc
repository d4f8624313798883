// The horizontal pod autoscaler: every 15 seconds looks at what pods use, and sets the scale of
// what they belong to.
//
// One look: the target's scale is read; each metric proposes a number of replicas, of which the
// highest counts; the history calms and bounds it; the scale is written; conditions say what
// happened.
#include <algorithm>
#include <map>

#include "api/kinds/pod/resources.h"
#include "api/merge/selectors.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/autoscaling/metrics_reader.h"
#include "controllers/autoscaling/replica_plan.h"
#include "controllers/autoscaling/scaling_history.h"
#include "controllers/autoscaling/selector_index.h"
#include "controllers/controllers.h"
#include "controllers/disruption_plan.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

const Gvr kAutoscalers = {"autoscaling", "v2", "horizontalpodautoscalers"};
constexpr const char* kComponent = "horizontal-pod-autoscaler";
constexpr int kScaleTries = 5;

/// An autoscaler while it is looked at.
struct Look {
  Value object;  // its status changes
  std::string key;
  std::string name_space;
  Time now;

  const Value& spec() const { return object["spec"]; }

  void condition(std::string_view type, bool status, std::string_view reason,
                 std::string_view message) {
    Value& list = object.mut("status").mut("conditions");
    std::size_t at = 0;
    while (at < list.size() && list[at]["type"].as_string() != type) ++at;
    if (at == list.size()) list.push(Value::object({{"type", type}}));
    Value& one = list.mut(at);
    const std::string_view text = status ? "True" : "False";
    if (one["status"].as_string() != text) {
      one.set("status", text);
      one.set("lastTransitionTime", format_rfc3339(now));
    }
    one.set("reason", reason);
    one.set("message", message);
  }

  void without_condition(std::string_view type) {
    const Value& list = object["status"]["conditions"];
    if (condition_in(list, type).is_null()) return;
    object.mut("status").set("conditions", controllers::without_condition(list, type));
  }

  void set_status(std::int64_t current, std::int64_t desired, const Value& metrics, bool scaled) {
    const Value before = object["status"];
    Value status = Value::object();
    if (const Value* generation = object["metadata"].find("generation"))
      status.set("observedGeneration", *generation);
    if (scaled) {
      status.set("lastScaleTime", format_rfc3339(now));
    } else if (const Value* last = before.find("lastScaleTime")) {
      status.set("lastScaleTime", *last);
    }
    if (current != 0) status.set("currentReplicas", current);
    status.set("desiredReplicas", desired);
    status.set("currentMetrics", metrics);
    if (!before["conditions"].empty()) status.set("conditions", before["conditions"]);
    object.set("status", std::move(status));
  }
};

/// What a metric came to.
struct MetricOutcome {
  std::int64_t replicas = 0;
  std::string name = {};
  Value status = {};
};

/// All of them.
struct Computed {
  std::int64_t replicas = 0;
  std::string name = {};
  Value statuses = {};
  std::optional<Error> error = {};  // of one of them
  bool failed = false;              // no number comes of it
};

Tolerances tolerances_of(const Value& spec, double otherwise) {
  const auto one = [&](const char* direction) {
    const Value& own = spec["behavior"][direction]["tolerance"];
    return own.is_null() ? otherwise : api::quantity_of(own).approximate();
  };
  return {one("scaleDown"), one("scaleUp")};
}

std::string amount_text(std::int64_t milli, std::string_view resource = "") {
  const auto format =
      resource == "memory" ? Quantity::Format::binary_si : Quantity::Format::decimal_si;
  return Quantity(milli, -3, format).canonical();
}

bool measures_without_pods(const Value& spec) {
  const auto metrics = spec["metrics"].items();
  return std::any_of(metrics.begin(), metrics.end(), [](const Value& metric) {
    const std::string_view type = metric["type"].as_string();
    return type == "Object" || type == "External";
  });
}

class Autoscaler : public Controller {
 public:
  explicit Autoscaler(Environment& environment)
      : environment_(environment),
        options_(environment.options.autoscaler),
        autoscalers_(environment.informers.of(kAutoscalers)),
        pods_(environment.informers.of(kPods, kByNamespace, client::index_by_namespace)),
        metrics_(environment),
        loop_(environment, "horizontalpodautoscaler",
              [this](const std::string& key) { return reconcile(key); }) {
    autoscalers_.add_handler({
        .added = [this](const Value& object, bool) { loop_.add(client::key_of(object)); },
        .updated =
            [this](const Value& before, const Value& after) {
              // Its own writes of the status are no reason to look again.
              if (!(before["spec"] == after["spec"])) loop_.add(client::key_of(after));
            },
        .removed = [this](const Value& object) { loop_.add(client::key_of(object)); },
    });
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto found = autoscalers_.get(key);
    const auto [name_space, name] = client::split_key(key);
    if (!found) {
      const MutexLock lock(mutex_);
      histories_.erase(key);
      selectors_.erase(name_space, name);
      return done();
    }
    Look look{*found, key, name_space, environment_.runtime.clock.now()};
    // What went wrong is told by events and conditions; the next look is due anyway.
    run(look);
    return WorkOutcome::again_after(options_.sync_period);
  }

  void run(Look& look) {
    const Value before = look.object["status"];
    scale(look);
    if (!(before == look.object["status"])) {
      auto updated = environment_.client.update_status(kAutoscalers, look.name_space, look.object);
      if (!updated.ok() && !is_gone(updated.error()))
        event(look, true, "FailedUpdateStatus", updated.error().message());
    }
  }

  void scale(Look& look) {
    const Value& reference = look.spec()["scaleTargetRef"];
    const auto target = find_target(reference);
    if (!target.ok()) return without_scale(look, target.error());
    auto got =
        environment_.client.get(*target, look.name_space, reference["name"].as_string(), "scale");
    if (!got.ok()) return without_scale(look, got.error());
    Value scale = std::move(got).value();
    look.condition("AbleToScale", true, "SucceededGetScale",
                   "the HPA controller was able to get the target's current scale");
    const std::int64_t current = scale["spec"]["replicas"].as_int();
    const auto history = history_of(look, current);

    const Value spec = look.spec();
    const std::int64_t least = spec["minReplicas"].as_int(1);
    const std::int64_t most = spec["maxReplicas"].as_int();
    const bool to_zero = environment_.options.scale_to_zero;
    const bool from_zero =
        to_zero &&
        condition_in(look.object["status"]["conditions"], "ScaledToZero")["status"].as_string() ==
            "True";
    std::int64_t desired = current;
    std::string reason;
    Value statuses;
    if (current == 0 && !(from_zero && (least != 0 || measures_without_pods(spec)))) {
      look.condition("ScalingActive", false, "ScalingDisabled",
                     "scaling is disabled since the replica count of the target is zero");
      if (!to_zero) look.without_condition("ScaledToZero");
    } else if (current > most) {
      desired = most;
      reason = "Current number of replicas above Spec.MaxReplicas";
    } else if (current < least && current != 0) {
      desired = least;
      reason = "Current number of replicas below Spec.MinReplicas";
    } else {
      const Computed computed = compute(look, scale);
      statuses = computed.statuses;
      if (computed.failed) {
        look.set_status(current, look.object["status"]["desiredReplicas"].as_int(), statuses,
                        false);
        event(look, true, "FailedComputeMetricsReplicas", computed.error->message());
        return;
      }
      if (computed.replicas > current) reason = cat(computed.name, " above target");
      if (computed.replicas < current) reason = "All metrics below target";
      const auto verdict = history->settle(spec, current, computed.replicas,
                                           options_.downscale_stabilization, look.now);
      look.condition("AbleToScale", true, verdict.able.reason, verdict.able.message);
      look.condition("ScalingLimited", verdict.limited, verdict.limit.reason,
                     verdict.limit.message);
      desired = verdict.replicas;
      if (current == 0 && least != 0 && desired < least) {
        desired = least;
        if (reason.empty()) reason = "Current number of replicas below Spec.MinReplicas";
      }
    }
    const bool rescale = desired != current;
    if (rescale) {
      if (auto set = set_scale(*target, look, std::move(scale), desired); !set.ok()) {
        event(look, true, "FailedRescale",
              cat("New size: ", desired, "; reason: ", reason, "; error: ", set.error().message()));
        look.condition("AbleToScale", false, "FailedUpdateScale",
                       cat("the HPA controller was unable to update the target scale: ",
                           set.error().message()));
        look.set_status(current, look.object["status"]["desiredReplicas"].as_int(), statuses,
                        false);
        return;
      }
      look.condition("AbleToScale", true, "SucceededRescale",
                     cat("the HPA controller was able to update the target scale to ", desired));
      event(look, false, "SuccessfulRescale", cat("New size: ", desired, "; reason: ", reason));
      history->scaled(current, desired, look.now);
      tell_zero(look, desired == 0 && least == 0 && measures_without_pods(spec));
    }
    look.set_status(current, desired, statuses, rescale);
  }

  void tell_zero(Look& look, bool zero) const {
    if (!environment_.options.scale_to_zero) return look.without_condition("ScaledToZero");
    if (zero) {
      look.condition("ScaledToZero", true, "ScaledToZero",
                     "the HPA controller scaled the workload to zero");
    } else {
      look.condition("ScaledToZero", false, "NotScaledToZero",
                     "the HPA controller did not scale the workload to zero");
    }
  }

  void without_scale(Look& look, const Error& error) {
    event(look, true, "FailedGetScale", error.message());
    look.condition(
        "AbleToScale", false, "FailedGetScale",
        cat("the HPA controller was unable to get the target's current scale: ", error.message()));
  }

  Result<Gvr> find_target(const Value& reference) {
    const std::string_view version = reference["apiVersion"].as_string();
    if (std::count(version.begin(), version.end(), '/') > 1)
      return Error::plain(cat("unexpected GroupVersion string: ", version));
    const std::string_view kind = reference["kind"].as_string();
    auto served = environment_.discovery.find_kind(version, kind);
    if (!served) {
      // Of a definition that came after the last look.
      DIBS_CHECK(environment_.discovery.refresh_at_times(environment_.client,
                                                         environment_.runtime.clock.steady()));
      served = environment_.discovery.find_kind(version, kind);
    }
    if (served) return served->gvr;
    return Error::plain(
        cat("no matches for kind ", quoted(kind), " in group ", quoted(group_of(version))));
  }

  std::shared_ptr<ScalingHistory> history_of(const Look& look, std::int64_t replicas) {
    std::shared_ptr<ScalingHistory> out;
    {
      const MutexLock lock(mutex_);
      auto& entry = histories_[look.key];
      if (!entry) entry = std::make_shared<ScalingHistory>();
      out = entry;
    }
    // A key is worked on by one at a time.
    out->begin(replicas, look.now);
    return out;
  }

  Result<> set_scale(const Gvr& target, const Look& look, Value scale, std::int64_t desired) {
    client::WriteOptions options;
    options.subresource = "scale";
    for (int tries = 1;; ++tries) {
      scale.mut("spec").set("replicas", desired);
      auto written = environment_.client.update(target, look.name_space, scale, options);
      if (written.ok()) return success();
      if (written.error().code() != Code::conflict || tries == kScaleTries)
        return std::move(written).error();
      DIBS_TRY(scale, environment_.client.get(target, look.name_space, name_of(scale), "scale"));
    }
  }

  // --- Metrics ---

  struct Selected {
    std::string text;
    std::vector<Value> pods;
  };

  /// The pods that the scale selects. Errors have been told.
  Result<Selected> select(Look& look, const Value& scale) {
    const std::string text = scale["status"]["selector"].str();
    if (text.empty()) {
      event(look, true, "SelectorRequired", "selector is required");
      look.condition("ScalingActive", false, "InvalidSelector",
                     "the HPA target's scale is missing a selector");
      return Error::plain("selector is required");
    }
    const auto refuse = [&](const char* reason, const std::string& message) {
      event(look, true, reason, message);
      look.condition("ScalingActive", false, reason, message);
      return Error::plain(message);
    };
    auto selector = api::parse_label_selector(text);
    if (!selector.ok()) {
      return refuse("InvalidSelector",
                    cat("couldn't convert selector into a corresponding internal selector object: ",
                        selector.error().message()));
    }
    Selected out{text, {}};
    for (const Value& pod : pods_.by_index(kByNamespace, look.name_space)) {
      if (selector->matches(pod["metadata"]["labels"])) out.pods.push_back(pod);
    }
    std::vector<std::string> names;
    {
      const MutexLock lock(mutex_);
      selectors_.put(look.name_space, std::string(name_of(look.object)), *selector);
      names = selectors_.selecting(look.name_space, out.pods, 2);
    }
    if (names.size() > 1) {
      return refuse(
          "AmbiguousSelector",
          cat("pods by selector ", text, " are controlled by more than one HPA (e.g. [{", names[0],
              ' ', look.name_space, "} {", names[1], ' ', look.name_space, "}])"));
    }
    return out;
  }

  Computed compute(Look& look, const Value& scale) {
    Computed out;
    auto selected = select(look, scale);
    if (!selected.ok()) {
      out.error = selected.error();
      out.failed = true;
      return out;
    }
    const Value& metrics = look.spec()["metrics"];
    Measured measured{scale["spec"]["replicas"].as_int(), std::move(selected->pods),
                      tolerances_of(look.spec(), options_.tolerance), options_, look.now};
    const std::int64_t pods = scale["status"]["replicas"].as_int();
    out.statuses = Value::array();
    std::size_t invalid = 0;
    std::string first_reason;
    std::string first_cause;
    for (const Value& metric : metrics.items()) {
      std::string reason;
      std::string cause;  // without what the caller was about
      auto one = propose(look, metric, measured, selected->text, pods, reason, cause);
      if (!one.ok()) {
        // As much as is known of it.
        out.statuses.push(Value::object({{"type", ""}}));
        event(look, true, reason.c_str(), cause);
        if (invalid++ == 0) {
          out.error = one.error();
          first_reason = reason;
          first_cause = cause;
        }
        continue;
      }
      out.statuses.push(one->status);
      if (out.replicas == 0 || one->replicas > out.replicas) {
        out.replicas = one->replicas;
        out.name = one->name;
      }
    }
    if (invalid > 0) {
      out.error = out.error->within(cat("invalid metrics (", invalid, " invalid out of ",
                                        metrics.size(), "), first error is"));
    }
    if (invalid == metrics.size() || (invalid > 0 && out.replicas < measured.replicas)) {
      look.condition("ScalingActive", false, first_reason,
                     cat("the HPA was unable to compute the replica count: ", first_cause));
      out.failed = true;
      return out;
    }
    look.condition(
        "ScalingActive", true, "ValidMetricFound",
        cat("the HPA was able to successfully calculate a replica count from ", out.name));
    return out;
  }

  /// One metric. On an error `reason` and `cause` are what the condition says.
  Result<MetricOutcome> propose(const Look& look, const Value& metric, const Measured& measured,
                                const std::string& selector, std::int64_t pods, std::string& reason,
                                std::string& cause) {
    const std::string type = metric["type"].str();
    const auto finish = [&](Result<MetricOutcome> outcome, const std::string& about) {
      if (outcome.ok()) return outcome;
      reason = cat("FailedGet", type, "Metric");
      if (cause.empty()) cause = outcome.error().message();
      return Result<MetricOutcome>(outcome.error().within(about));
    };
    if (type == "Resource") {
      const Value& source = metric["resource"];
      return finish(by_resource(look, source, "resource", measured, selector),
                    cat("failed to get ", source["name"].as_string(), " resource metric value"));
    }
    if (type == "ContainerResource") {
      const Value& source = metric["containerResource"];
      return finish(
          by_resource(look, source, "containerResource", measured, selector),
          cat("failed to get ", source["container"].as_string(), " container metric value"));
    }
    if (type == "Pods") {
      return finish(by_pods(look, metric["pods"], measured, selector),
                    "failed to get pods metric value");
    }
    if (type == "Object") {
      return finish(by_object(look, metric["object"], measured, pods, cause),
                    "failed to get object metric value");
    }
    if (type == "External") {
      return finish(by_external(look, metric["external"], measured, pods, cause),
                    cat("failed to get ", metric["external"]["metric"]["name"].as_string(),
                        " external metric value"));
    }
    reason = "InvalidMetricSourceType";
    cause = cat("unknown metric source type ", quoted(type));
    return Error::plain(cause);
  }

  Result<MetricOutcome> by_resource(const Look& look, const Value& source, const char* field,
                                    const Measured& measured, const std::string& selector) {
    const std::string_view resource = source["name"].as_string();
    const std::string container = source["container"].str();
    const Value& target = source["target"];
    const bool raw = !target["averageValue"].is_null();
    const auto fail = [&](const Error& error) {
      return error.within(cat("failed to get ", resource, raw ? " usage" : " utilization"));
    };
    auto usages = metrics_.resource(look.name_space, selector, resource, container);
    if (!usages.ok())
      return fail(usages.error().within(cat("unable to get metrics for resource ", resource)));
    auto proposal = raw ? propose_by_average(measured, std::move(usages).value(), resource,
                                             api::quantity_of(target["averageValue"]).milli_value())
                        : propose_by_utilization(measured, std::move(usages).value(), resource,
                                                 container, target["averageUtilization"].as_int());
    if (!proposal.ok()) return fail(proposal.error());
    Value current = Value::object({{"averageValue", amount_text(proposal->usage, resource)}});
    if (proposal->utilization) current.set("averageUtilization", *proposal->utilization);
    Value status = Value::object({{"name", resource}, {"current", std::move(current)}});
    if (!container.empty()) status.set("container", container);
    const std::string name = raw ? cat(resource, " resource")
                                 : cat(resource, container.empty() ? "" : " container",
                                       " resource utilization (percentage of request)");
    return MetricOutcome{
        proposal->replicas, name,
        Value::object({{"type", container.empty() ? "Resource" : "ContainerResource"},
                       {field, std::move(status)}})};
  }

  Result<MetricOutcome> by_pods(const Look& look, const Value& source, const Measured& measured,
                                const std::string& selector) {
    const std::string_view name = source["metric"]["name"].as_string();
    auto usages = metrics_.pods(look.name_space, selector, source["metric"]);
    if (!usages.ok()) return usages.error().within(cat("unable to get metric ", name));
    DIBS_TRY(const Proposal proposal,
             propose_by_average(measured, std::move(usages).value(), "",
                                api::quantity_of(source["target"]["averageValue"]).milli_value()));
    const Value current = Value::object({{"averageValue", amount_text(proposal.usage)}});
    return MetricOutcome{
        proposal.replicas, cat("pods metric ", name),
        Value::object(
            {{"type", "Pods"},
             {"pods", Value::object({{"metric", source["metric"]}, {"current", current}})}})};
  }

  /// A value, or a share of it for each pod.
  static Result<Proposal> by_target(const Value& target, const Measured& measured,
                                    std::int64_t pods, std::int64_t usage, bool average) {
    if (average) {
      return propose_by_share(pods, measured.tolerances, usage,
                              api::quantity_of(target["averageValue"]).milli_value());
    }
    return propose_by_value(measured, usage, api::quantity_of(target["value"]).milli_value());
  }

  Result<MetricOutcome> by_object(const Look& look, const Value& source, const Measured& measured,
                                  std::int64_t pods, std::string& cause) {
    const Value& described = source["describedObject"];
    const Value& target = source["target"];
    const std::string_view name = source["metric"]["name"].as_string();
    const std::string_view type = target["type"].as_string();
    const bool average = type == "AverageValue" && !target["averageValue"].is_null();
    if (!average && (type != "Value" || target["value"].is_null())) {
      return Error::plain(
          "invalid object metric source: neither a value target nor an average value target was "
          "set");
    }
    auto usage = metrics_.object(look.name_space, described, source["metric"]);
    if (!usage.ok()) {
      Error error = usage.error().within(cat("unable to get metric ", name, " on ",
                                             described["kind"].as_string(), ' ', look.name_space,
                                             '/', described["name"].as_string()));
      cause = error.message();
      if (average) return error.within(cat("failed to get ", name, " object metric"));
      return error;
    }
    DIBS_TRY(const Proposal proposal, by_target(target, measured, pods, *usage, average));
    const Value current =
        Value::object({{average ? "averageValue" : "value", amount_text(proposal.usage)}});
    return MetricOutcome{
        proposal.replicas,
        average ? external_name(source["metric"])
                : cat(described["kind"].as_string(), " metric ", name),
        Value::object({{"type", "Object"},
                       {"object", Value::object({{"metric", source["metric"]},
                                                 {"current", current},
                                                 {"describedObject", described}})}})};
  }

  Result<MetricOutcome> by_external(const Look& look, const Value& source, const Measured& measured,
                                    std::int64_t pods, std::string& cause) {
    const Value& target = source["target"];
    const std::string_view name = source["metric"]["name"].as_string();
    const bool average = !target["averageValue"].is_null();
    auto outcome = [&]() -> Result<Proposal> {
      DIBS_TRY(const std::int64_t usage, metrics_.external(look.name_space, source["metric"]));
      return by_target(target, measured, pods, usage, average);
    }();
    if (!outcome.ok()) {
      cause = outcome.error().message();
      return outcome.error().within(average ? cat("failed to get ", name, " external metric")
                                            : cat("failed to get external metric ", name));
    }
    const Value current =
        Value::object({{average ? "averageValue" : "value", amount_text(outcome->usage)}});
    return MetricOutcome{
        outcome->replicas, external_name(source["metric"]),
        Value::object(
            {{"type", "External"},
             {"external", Value::object({{"metric", source["metric"]}, {"current", current}})}})};
  }

  static std::string external_name(const Value& metric) {
    return cat("external metric ", metric["name"].as_string(), '(',
               selector_words(metric["selector"]), ')');
  }

  void event(const Look& look, bool warning, const char* reason, const std::string& note) {
    environment_.events.event(kComponent, look.object, warning, reason, note);
  }

  Environment& environment_;
  const AutoscalerOptions options_;
  client::Informer& autoscalers_;
  client::Informer& pods_;
  MetricsReader metrics_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<ScalingHistory>, std::less<>> histories_
      DIBS_GUARDED_BY(mutex_);
  SelectorIndex selectors_ DIBS_GUARDED_BY(mutex_);
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_autoscaler(Environment& environment) {
  if (!environment.discovery.serves(kAutoscalers.group, kAutoscalers.resource)) return nullptr;
  return std::make_unique<Autoscaler>(environment);
}

}  // namespace dibs::controllers
