// PodSecurity: pods keep to the Pod Security Standards that their namespace asks for
// (api/kinds/pod_security).
//
// A pod that violates what is enforced is refused. A workload's template is only warned of and
// noted, since its pods are refused in their turn. Whoever turns a namespace stricter is told which
// of its pods would be refused today; they go on.
#include <algorithm>
#include <map>
#include <set>

#include "api/kinds/pod_security/pod_security.h"
#include "base/strings.h"
#include "server/audit.h"
#include "server/plugins/plugins.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

using api::SecurityLevel;
using api::SecurityPolicy;
using api::SecurityStandard;
using api::SecurityVerdict;

/// Bounds of the look at a namespace that turns stricter.
constexpr std::size_t kMostPods = 3000;
constexpr Duration kLongestLook = std::chrono::seconds(1);

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return !item.empty() && std::ranges::find(list, item) != list.end();
}

/// Doors into a pod that change nothing of what is judged.
bool is_ignored(std::string_view subresource) {
  static constexpr std::string_view kIgnored[] = {"exec", "attach", "binding",     "eviction",
                                                  "log",  "proxy",  "portforward", "status"};
  return std::ranges::find(kIgnored, subresource) != std::end(kIgnored);
}

/// The template of a workload's pods; null where the kind has none.
const Value* template_of(const Write& write) {
  struct Kind {
    std::string_view group;
    std::string_view plural;
  };
  static constexpr Kind kWithSpec[] = {{"", "replicationcontrollers"}, {"apps", "replicasets"},
                                       {"apps", "deployments"},        {"apps", "statefulsets"},
                                       {"apps", "daemonsets"},         {"batch", "jobs"}};
  for (const Kind& kind : kWithSpec) {
    if (write.is(kind.group, kind.plural)) return &write.object["spec"]["template"];
  }
  if (write.is("batch", "cronjobs")) {
    return &write.object["spec"]["jobTemplate"]["spec"]["template"];
  }
  return write.is("", "podtemplates") ? &write.object["template"] : nullptr;
}

/// Nothing else of a pod that the standards look at can change.
bool is_significant(const Value& pod, const Value& old) {
  for (const char* list : {"containers", "initContainers"}) {
    const Value& now = pod["spec"][std::string_view(list)];
    const Value& before = old["spec"][std::string_view(list)];
    if (now.size() != before.size()) return true;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!(now[i]["image"] == before[i]["image"])) return true;
    }
  }
  for (const Value& now : pod["spec"]["ephemeralContainers"].items()) {
    const auto all = old["spec"]["ephemeralContainers"].items();
    const auto* before = std::find_if(all.begin(), all.end(),
                                      [&](const Value& one) { return one["name"] == now["name"]; });
    if (before == all.end() || !((*before)["image"] == now["image"])) return true;
  }
  return false;
}

std::string_view controller_of(const Value& pod) {
  for (const Value& owner : pod["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner["uid"].as_string();
  }
  return {};
}

class PodSecurity : public AdmissionPlugin {
 public:
  explicit PodSecurity(PluginSources sources)
      : sources_(sources),
        configuration_(sources.options.pod_security),
        evaluations_(sources.metrics.counter(
            "pod_security_evaluations_total",
            "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
            {"decision", "policy_level", "policy_version", "mode", "request_operation", "resource",
             "subresource"})),
        exemptions_(sources.metrics.counter(
            "pod_security_exemptions_total",
            "Number of exempt requests, not counting ignored or out of scope requests.",
            {"request_operation", "resource", "subresource"})),
        errors_(sources.metrics.counter(
            "pod_security_errors_total",
            "Number of errors preventing normal evaluation. Non-fatal errors may result in the "
            "latest restricted profile being used for evaluation.",
            {"fatal", "request_operation", "resource", "subresource"})) {}
  std::string_view name() const override { return "PodSecurity"; }

  Result<> validate(const Write& write) override {
    if (write.operation != Operation::create && write.operation != Operation::update) {
      return success();
    }
    if (write.is("", "namespaces")) return validate_namespace(write);
    if (write.is("", "pods")) return validate_pod(write);
    if (const Value* shape = template_of(write)) validate_template(write, *shape);
    return success();
  }

 private:
  Result<> validate_namespace(const Write& write) const {
    if (!write.subresource.empty()) return success();
    const Value& labels = write.object["metadata"]["labels"];
    api::FieldErrors faults;
    const SecurityPolicy policy = api::security_policy_of(labels, configuration_.defaults, faults);
    const bool exempt = contains(configuration_.exempt_namespaces, write.name);
    if (write.operation == Operation::create) {
      if (!faults.empty()) return faults.to_error("Namespace", "", write.name);
      if (exempt) warn_of_exemption(write, policy);
      return success();
    }
    api::FieldErrors old_faults;
    const SecurityPolicy before = api::security_policy_of(write.old["metadata"]["labels"],
                                                          configuration_.defaults, old_faults);
    // What was wrong before may stay, or nothing else of the namespace could be changed.
    if (!faults.empty() && !same(faults, old_faults)) {
      return faults.to_error("Namespace", "", write.name);
    }
    const bool stricter = policy.enforce.level > before.enforce.level ||
                          !(policy.enforce.version == before.enforce.version);
    if (policy.enforce == before.enforce || policy.enforce.level == SecurityLevel::privileged ||
        !stricter) {
      return success();
    }
    if (exempt) {
      warn_of_exemption(write, policy);
    } else {
      warn_of_pods(write, policy.enforce);
    }
    return success();
  }

  Result<> validate_pod(const Write& write) const {
    if (is_ignored(write.subresource) || is_exempt(write)) return success();
    const Value found = sources_.find("", "namespaces", "", write.name_space);
    if (found.is_null()) {
      count_error(write, true);
      return Error::internal(
          cat("Internal error occurred: failed to lookup namespace ", quoted(write.name_space)));
    }
    api::FieldErrors faults;
    const SecurityPolicy policy =
        api::security_policy_of(found["metadata"]["labels"], configuration_.defaults, faults);
    if (faults.empty() && policy.is_privileged()) {
      count(write, policy.enforce, "enforce", true);
      return success();
    }
    if (write.operation == Operation::update && !is_significant(write.object, write.old)) {
      return success();
    }
    return judge_pod(write, policy, faults, write.object, true);
  }

  void validate_template(const Write& write, const Value& shape) const {
    if (!write.subresource.empty() || is_exempt(write) || shape.is_null()) return;
    const Value found = sources_.find("", "namespaces", "", write.name_space);
    api::FieldErrors faults;
    const SecurityPolicy policy =
        api::security_policy_of(found["metadata"]["labels"], configuration_.defaults, faults);
    if (faults.empty() && policy.warn.level == SecurityLevel::privileged &&
        policy.audit.level == SecurityLevel::privileged) {
      return;
    }
    // Nothing is enforced, so nothing is refused.
    (void)judge_pod(write, policy, faults, shape, false);
  }

  Result<> judge_pod(const Write& write, const SecurityPolicy& policy,
                     const api::FieldErrors& faults, const Value& pod, bool enforces) const {
    if (contains(configuration_.exempt_runtime_classes,
                 pod["spec"]["runtimeClassName"].as_string())) {
      count_exemption(write, "runtimeClass");
      return success();
    }
    if (!faults.empty()) {
      annotate(write, "error",
               cat("Failed to parse policy: ", faults.errors().front().field, ": ",
                   faults.errors().front().text));
      count_error(write, false);
    }
    Result<> outcome = success();
    if (enforces) {
      annotate(write, "enforce-policy", policy.enforce.str());
      const SecurityVerdict verdict = verdict_of(policy.enforce, pod);
      count(write, policy.enforce, "enforce", verdict.is_allowed());
      if (!verdict.is_allowed()) {
        outcome = refuse(write, cat("violates PodSecurity ", quoted(policy.enforce.str()), ": ",
                                    verdict.details()));
      }
    }
    if (const SecurityVerdict verdict = verdict_of(policy.audit, pod); !verdict.is_allowed()) {
      annotate(write, "audit-violations", would_violate(policy.audit, verdict));
      count(write, policy.audit, "audit", false);
    }
    if (!outcome.ok()) return outcome;
    if (const SecurityVerdict verdict = verdict_of(policy.warn, pod); !verdict.is_allowed()) {
      write.context.warn(would_violate(policy.warn, verdict));
      count(write, policy.warn, "warn", false);
    }
    return outcome;
  }

  SecurityVerdict verdict_of(const SecurityStandard& standard, const Value& pod) const {
    return api::judge_pod_security(standard, sources_.options.minor(), pod["metadata"],
                                   pod["spec"]);
  }

  static std::string would_violate(const SecurityStandard& standard,
                                   const SecurityVerdict& verdict) {
    return cat("would violate PodSecurity ", quoted(standard.str()), ": ", verdict.details());
  }

  bool is_exempt(const Write& write) const {
    if (contains(configuration_.exempt_namespaces, write.name_space)) {
      count_exemption(write, "namespace");
      return true;
    }
    if (contains(configuration_.exempt_users, write.context.user.name)) {
      count_exemption(write, "user");
      return true;
    }
    return false;
  }

  static bool same(const api::FieldErrors& a, const api::FieldErrors& b) {
    return std::ranges::equal(a.errors(), b.errors(), [](const auto& x, const auto& y) {
      return x.field == y.field && x.text == y.text;
    });
  }

  // --- namespaces ---

  /// Labels that have no effect.
  void warn_of_exemption(const Write& write, const SecurityPolicy& policy) const {
    if (policy.is_privileged() || policy.is_equivalent(configuration_.defaults)) return;
    std::vector<std::string> ignored;
    const auto look = [&](std::string_view mode, const SecurityStandard& standard) {
      if (standard.level == SecurityLevel::privileged ||
          !api::has_security_label(write.object["metadata"]["labels"], mode)) {
        return;
      }
      ignored.push_back(cat(mode, "=", standard.str()));
    };
    look("enforce", policy.enforce);
    look("audit", policy.audit);
    look("warn", policy.warn);
    write.context.warn(cat("namespace ", quoted(write.name),
                           " is exempt from Pod Security, and the policy (", join(ignored, ", "),
                           ") will be ignored"));
  }

  struct Pods {
    std::vector<Value> first;   // one of each controller, and those without
    std::vector<Value> others;  // alike, as a rule
    std::size_t exempt = 0;
    std::size_t total = 0;
  };

  /// What can be read of them until then.
  Pods pods_of(const std::string& name_space, Duration until) const {
    Pods pods;
    auto resource = sources_.resources.get()->find_plural("", "pods");
    if (!resource) return pods;
    store::RangeQuery query;
    query.prefix = resource->namespace_prefix(name_space);
    auto listing = sources_.store.range(query);
    if (!listing.ok()) return pods;
    pods.total = listing->records.size();
    std::set<std::string, std::less<>> controllers;
    for (const auto& record : listing->records) {
      if (sources_.runtime.clock.steady() > until) break;
      auto pod = decode_stored(*record);
      if (!pod.ok()) continue;
      if (contains(configuration_.exempt_runtime_classes,
                   (*pod)["spec"]["runtimeClassName"].as_string())) {
        ++pods.exempt;
        continue;
      }
      const std::string_view controller = controller_of(*pod);
      const bool is_first = controller.empty() || controllers.emplace(controller).second;
      (is_first ? pods.first : pods.others).push_back(std::move(pod).value());
    }
    return pods;
  }

  void warn_of_pods(const Write& write, const SecurityStandard& standard) const {
    const Duration until = sources_.runtime.clock.steady() + kLongestLook;
    Pods pods = pods_of(write.name, until);
    std::vector<Value> order = std::move(pods.first);
    std::ranges::move(pods.others, std::back_inserter(order));
    struct Violators {
      std::string first;  // by name
      std::size_t count = 0;
    };
    std::map<std::string, Violators> by_reason;
    const std::size_t total = pods.total - pods.exempt;
    std::size_t checked = 0;
    for (const Value& pod : order) {
      if (checked == kMostPods || (checked > 0 && sources_.runtime.clock.steady() > until)) break;
      ++checked;
      const SecurityVerdict verdict = verdict_of(standard, pod);
      if (verdict.is_allowed()) continue;
      Violators& violators = by_reason[verdict.reasons()];
      const std::string_view name = pod["metadata"]["name"].as_string();
      if (violators.count++ == 0 || name < violators.first) violators.first = name;
    }
    if (checked < total) {
      write.context.warn(cat("new PodSecurity enforce level only checked against the first ",
                             checked, " of ", total, " existing pods"));
    }
    if (by_reason.empty()) return;
    write.context.warn(cat("existing pods in namespace ", quoted(write.name),
                           " violate the new PodSecurity enforce level ", quoted(standard.str())));
    std::vector<std::string> texts;
    for (const auto& [reason, violators] : by_reason) {
      std::string others;
      if (violators.count == 2) others = " (and 1 other pod)";
      if (violators.count > 2) others = cat(" (and ", violators.count - 1, " other pods)");
      texts.push_back(cat(violators.first, others, ": ", reason));
    }
    std::ranges::sort(texts);
    for (std::string& text : texts) write.context.warn(std::move(text));
  }

  // --- what is counted and noted ---

  static std::string_view operation_of(const Write& write) {
    return write.operation == Operation::create ? "create" : "update";
  }
  static std::string_view kind_of(const Write& write) {
    return write.is("", "pods") ? "pod" : "controller";
  }

  void count(const Write& write, const SecurityStandard& standard, std::string_view mode,
             bool allowed) const {
    std::string version = standard.version.str();
    if (standard.level == SecurityLevel::privileged) {
      version = "latest";
    } else if (standard.version.minor > sources_.options.minor()) {
      version = "future";  // bounds the number of series
    }
    evaluations_
        .with({allowed ? "allow" : "deny", name_of(standard.level), version, mode,
               operation_of(write), kind_of(write), write.subresource})
        .add();
  }
  void count_error(const Write& write, bool fatal) const {
    errors_.with({fatal ? "true" : "false", operation_of(write), kind_of(write), write.subresource})
        .add();
  }
  void count_exemption(const Write& write, std::string_view why) const {
    exemptions_.with({operation_of(write), kind_of(write), write.subresource}).add();
    annotate(write, "exempt", std::string(why));
  }

  static void annotate(const Write& write, std::string_view key, const std::string& value) {
    if (write.context.audit) {
      write.context.audit->annotate(cat("pod-security.kubernetes.io/", key), value);
    }
  }

  PluginSources sources_;
  const api::PodSecurityConfiguration& configuration_;
  mutable metrics::CounterFamily evaluations_;
  mutable metrics::CounterFamily exemptions_;
  mutable metrics::CounterFamily errors_;
};

}  // namespace

PluginPtr make_pod_security(PluginSources sources) {
  return std::make_unique<PodSecurity>(sources);
}

}  // namespace dibs::server
