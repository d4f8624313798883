// ValidatingAdmissionPolicies: what users forbid in expressions of their own.
#include <algorithm>
#include <map>
#include <utility>

#include "api/merge/selectors.h"
#include "base/strings.h"
#include "json/parse.h"
#include "server/audit.h"
#include "server/plugins/admission_policies_request.h"
#include "server/plugins/admission_policies_source.h"
#include "server/plugins/plugins.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::size_t kLongestAnnotation = 10 * 1024;

/// Policies are not asked about themselves: one that denies everything could not be taken back.
bool is_exempt(const Write& request) {
  return request.resource.group == "admissionregistration.k8s.io" &&
         (request.resource.plural.ends_with("admissionpolicies") ||
          request.resource.plural.ends_with("admissionpolicybindings"));
}

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
    for (const BoundPolicy& bound : set) DIBS_CHECK(ask(bound));
    if (!denied_) return success();
    return *denied_;
  }

 private:
  Result<> ask(const BoundPolicy& bound) {
    const AdmissionPolicy& policy = *bound.policy;
    auto matched = policy.constraints.match(seen_.question());
    if (!matched.ok()) {
      misconfigured(policy, nullptr, matched.error().message());
      return success();
    }
    if (!matched->matches) return success();
    ResourcePtr params;
    if (!policy.param_kind.is_null()) {
      params = find_kind(policy.param_kind_name);
      if (!params) {
        const api::GroupVersionKind& kind = policy.param_kind_name;
        misconfigured(policy, nullptr,
                      cat("failed to find resource referenced by paramKind: '", kind.group, "/",
                          kind.version, ", Kind=", kind.kind, "'"));
        return success();
      }
    }
    for (const auto& binding : bound.bindings) {
      auto in_binding = binding->resources.match(seen_.question());
      if (!in_binding.ok()) {
        misconfigured(policy, binding.get(), in_binding.error().message());
        continue;
      }
      if (!in_binding->matches) continue;
      std::vector<Value> given;
      if (std::string fault = collect(binding->param_reference, params.get(), given);
          !fault.empty()) {
        misconfigured(policy, binding.get(), fault);
        continue;
      }
      for (Value& one : given) {
        DIBS_TRY(api::PolicyInput input, seen_.input(matched->served));
        input.params = std::move(one);
        take(policy, *binding, policy.program->evaluate(input));
      }
    }
    tell_annotations(policy);
    return success();
  }

  ResourcePtr find_kind(const api::GroupVersionKind& kind) const {
    const ResourceSet& set = seen_.resources();
    const api::ResourceInfo* info = set.catalog.find_kind(kind.group, kind.version, kind.kind);
    return info ? set.find(info->group, info->version, info->plural) : nullptr;
  }

  /// The parameters that a binding means; one null where it has none. Returns what is wrong, or "".
  std::string collect(const Value& reference, const Resource* resource,
                      std::vector<Value>& out) const {
    if (resource == nullptr || reference.is_null()) {
      out.emplace_back();
      return {};
    }
    std::string name_space;
    if (resource->namespaced) {
      name_space = reference["namespace"].as_string();
      if (name_space.empty()) name_space = seen_.question().name_space;
      if (name_space.empty()) {
        return "cannot use namespaced paramRef in policy binding that matches cluster-scoped "
               "resources";
      }
    } else if (!reference["namespace"].as_string().empty()) {
      return "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
    }
    if (std::string_view name = reference["name"].as_string(); !name.empty()) {
      auto object = sources_.objects.get(*resource, name_space, name);
      if (object.ok()) out.push_back(to_served(*resource, *object));
    } else {
      auto selector = api::to_label_selector(reference["selector"]);
      if (!selector.ok()) return selector.error().message();
      store::RangeQuery query;
      query.prefix = resource->namespace_prefix(name_space);
      auto listing = sources_.store.range(query);
      if (!listing.ok()) return listing.error().message();
      for (const auto& record : listing->records) {
        auto object = decode_stored(*record);
        if (!object.ok() || !selector->matches((*object)["metadata"]["labels"])) continue;
        out.push_back(to_served(*resource, *object));
      }
    }
    if (out.empty() && reference["parameterNotFoundAction"].as_string() == "Deny") {
      return "no params found for policy binding with `Deny` parameterNotFoundAction";
    }
    return {};
  }

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

  void misconfigured(const AdmissionPolicy& policy, const PolicyBinding* binding,
                     std::string_view why) {
    if (policy.ignores_failures) return;
    deny(policy, binding, cat("failed to configure ", binding ? "binding: " : "policy: ", why), "");
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
                prefix(sources, "validatingadmissionpolicies"),
                prefix(sources, "validatingadmissionpolicybindings")) {}
  std::string_view name() const override { return "ValidatingAdmissionPolicy"; }

  Result<> validate(const Write& request) override {
    if (request.follows || is_exempt(request)) return success();
    auto set = source_.current();
    if (!set) return success();
    return Asking(request, sources_).ask(*set);
  }

 private:
  static std::string prefix(const PluginSources& sources, std::string_view plural) {
    auto resource = sources.resources.get()->find_plural("admissionregistration.k8s.io", plural);
    return resource ? resource->storage_prefix : "";
  }

  PluginSources sources_;
  PolicySource source_;
};

}  // namespace

PluginPtr make_admission_policies(PluginSources sources) {
  return std::make_unique<AdmissionPolicies>(sources);
}

}  // namespace dibs::server
