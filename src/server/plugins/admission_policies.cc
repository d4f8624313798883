// ValidatingAdmissionPolicies: what users forbid in expressions of their own.
#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "json/parse.h"
#include "server/audit.h"
#include "server/plugins/admission_policies_selection.h"
#include "server/plugins/plugins.h"
#include "server/status.h"

namespace dibs::server {
namespace {

constexpr std::size_t kLongestAnnotation = 10 * 1024;

Code code_of(std::string_view reason) {
  if (reason == "Forbidden") return Code::forbidden;
  if (reason == "Unauthorized") return Code::unauthorized;
  if (reason == "RequestEntityTooLarge") return Code::too_large;
  return Code::invalid;
}

bool has_control_characters(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

/// The answer to one request, as the policies are asked one after the other. The first denial is
/// the one that is told.
class Asking {
 public:
  Asking(const Write& request, const PluginSources& sources)
      : request_(request), sources_(sources), seen_(request, sources) {}

  Result<> ask(const PolicySet& set) {
    const AdmissionPolicy* last = nullptr;
    for (PolicyInvocation& one : select_policies(set, seen_, sources_)) {
      if (last != nullptr && last != one.policy) tell_annotations(*last);
      last = one.policy;
      if (!one.fault.empty()) {
        misconfigured(one);
        continue;
      }
      DIBS_TRY(api::PolicyInput input, seen_.input(one.served));
      input.params = std::move(one.params);
      take(*one.policy, *one.binding, one.policy->program->evaluate(input));
    }
    if (last != nullptr) tell_annotations(*last);
    if (!denied_) return success();
    return *denied_;
  }

 private:
  void take(const AdmissionPolicy& policy, const PolicyBinding& binding,
            const api::PolicyVerdict& verdict) {
    for (std::size_t i = 0; i < verdict.decisions.size(); ++i) {
      const api::PolicyDecision& decision = verdict.decisions[i];
      if (!decision.denies) continue;
      for (const Value& action : binding.actions.items()) {
        if (action.as_string() == "Deny") {
          deny(policy, &binding, decision.message, decision.reason);
        } else if (action.as_string() == "Warn") {
          warn(cat("Validation failed for ValidatingAdmissionPolicy '", policy.name,
                   "' with binding '", binding.name, "': ", decision.message));
        } else if (action.as_string() == "Audit") {
          tell_failure(policy, binding, i, decision.message);
        }
      }
    }
    for (const api::PolicyAnnotation& annotation : verdict.annotations) {
      if (!annotation.error.empty()) {
        deny(policy, &binding, annotation.error, "");
      } else {
        auto& values = annotations_[annotation.key];
        std::string value = annotation.value.substr(0, kLongestAnnotation);
        if (std::find(values.begin(), values.end(), value) == values.end()) {
          values.push_back(std::move(value));
        }
      }
    }
  }

  /// To the audit log, where that tells of this request.
  void tell_failure(const AdmissionPolicy& policy, const PolicyBinding& binding, std::size_t index,
                    const std::string& message) {
    if (!request_.context.audit) return;
    const Value failure = Value::object({{"message", message},
                                         {"policy", policy.name},
                                         {"binding", binding.name},
                                         {"expressionIndex", index},
                                         {"validationActions", binding.actions}});
    request_.context.audit->annotate("validation.policy.admission.k8s.io/validation_failure",
                                     json::write(Value::array({failure}), true));
  }

  /// Bindings with other parameters may have found other values.
  void tell_annotations(const AdmissionPolicy& policy) {
    for (const auto& [key, values] : std::exchange(annotations_, {})) {
      if (!request_.context.audit) continue;
      request_.context.audit->annotate(cat(policy.name, "/", key), join(values, ", "));
    }
  }

  /// Each text once, and none that cannot stand in a header.
  void warn(std::string text) {
    if (has_control_characters(text)) return;
    for (const std::string& told : request_.context.warnings) {
      if (told == text) return;
    }
    request_.context.warn(std::move(text));
  }

  void misconfigured(const PolicyInvocation& one) {
    if (!one.policy->ignores_failures) deny(*one.policy, one.binding, one.fault, "");
  }

  void deny(const AdmissionPolicy& policy, const PolicyBinding* binding, std::string_view why,
            std::string_view reason) {
    if (denied_) return;
    std::string message = cat("ValidatingAdmissionPolicy '", policy.name, "' ");
    if (binding) append(message, "with binding '", binding->name, "' ");
    append(message, "denied request: ", why);
    Error plain = forbidden_error(request_.resource.group, request_.resource.plural,
                                  seen_.shown_name(), message);
    ErrorDetails details = *plain.details();
    details.causes.push_back({"", std::move(message), ""});
    denied_ = Error(code_of(reason), plain.message(), std::move(details));
  }

  const Write& request_;
  const PluginSources& sources_;
  PolicyRequest seen_;
  std::optional<Error> denied_;
  std::map<std::string, std::vector<std::string>> annotations_;  // of the policy that is asked
};

class AdmissionPolicies : public AdmissionPlugin {
 public:
  explicit AdmissionPolicies(PluginSources sources)
      : sources_(sources),
        source_(sources.runtime.clock, sources.store,
                policies_prefix(sources, "validatingadmissionpolicies"),
                policies_prefix(sources, "validatingadmissionpolicybindings")) {}
  std::string_view name() const override { return "ValidatingAdmissionPolicy"; }

  Result<> validate(const Write& request) override {
    if (is_exempt_from_policies(request)) return success();
    auto set = source_.current();
    if (!set) return success();
    return Asking(request, sources_).ask(*set);
  }

 private:
  PluginSources sources_;
  PolicySource source_;
};

}  // namespace

PluginPtr make_admission_policies(PluginSources sources) {
  return std::make_unique<AdmissionPolicies>(sources);
}

}  // namespace dibs::server
