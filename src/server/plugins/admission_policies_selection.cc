#include "server/plugins/admission_policies_selection.h"

#include "api/merge/selectors.h"
#include "base/strings.h"
#include "server/presenting.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

class Selecting {
 public:
  Selecting(PolicyRequest& request, const PluginSources& sources)
      : request_(request), sources_(sources) {}

  void add(const BoundPolicy& bound) {
    const AdmissionPolicy& policy = *bound.policy;
    auto matched = policy.constraints.match(request_.question());
    if (!matched.ok()) return misconfigured(policy, nullptr, matched.error().message());
    if (!matched->matches) return;
    ResourcePtr params;
    if (!policy.param_kind.is_null()) {
      const api::GroupVersionKind& kind = policy.param_kind_name;
      params = find_kind(kind);
      if (!params) {
        return misconfigured(policy, nullptr,
                             cat("failed to find resource referenced by paramKind: '", kind.group,
                                 "/", kind.version, ", Kind=", kind.kind, "'"));
      }
    }
    for (const auto& binding : bound.bindings) add(policy, *binding, params.get(), matched->served);
  }

  std::vector<PolicyInvocation> take() { return std::move(selected_); }

 private:
  void add(const AdmissionPolicy& policy, const PolicyBinding& binding, const Resource* params,
           const api::ServedAs& served) {
    auto matched = binding.resources.match(request_.question());
    if (!matched.ok()) return misconfigured(policy, &binding, matched.error().message());
    if (!matched->matches) return;
    std::vector<Value> given;
    if (std::string fault = collect(binding.param_reference, params, given); !fault.empty())
      return misconfigured(policy, &binding, fault);
    for (Value& one : given) selected_.push_back({&policy, &binding, served, std::move(one)});
  }

  ResourcePtr find_kind(const api::GroupVersionKind& kind) const {
    const ResourceSet& set = request_.resources();
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
      if (name_space.empty()) name_space = request_.question().name_space;
      if (name_space.empty()) {
        return "cannot use namespaced paramRef in policy binding that matches cluster-scoped "
               "resources";
      }
    } else if (!reference["namespace"].as_string().empty()) {
      return "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
    }
    if (std::string_view name = reference["name"].as_string(); !name.empty()) {
      auto object = sources_.objects.get(*resource, name_space, name);
      if (object.ok()) {
        auto served = to_served(*resource, *object);
        if (!served.ok()) return served.error().message();
        out.push_back(std::move(served).value());
      }
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
        auto served = to_served(*resource, *object);
        if (!served.ok()) return served.error().message();
        out.push_back(std::move(served).value());
      }
    }
    if (out.empty() && reference["parameterNotFoundAction"].as_string() == "Deny") {
      return "no params found for policy binding with `Deny` parameterNotFoundAction";
    }
    return {};
  }

  void misconfigured(const AdmissionPolicy& policy, const PolicyBinding* binding,
                     std::string_view why) {
    selected_.push_back(
        {.policy = &policy,
         .binding = binding,
         .fault = cat("failed to configure ", binding ? "binding: " : "policy: ", why)});
  }

  PolicyRequest& request_;
  const PluginSources& sources_;
  std::vector<PolicyInvocation> selected_;
};

}  // namespace

bool is_exempt_from_policies(const Write& write) {
  return write.follows || (write.resource.group == kGroup &&
                           (write.resource.plural.ends_with("admissionpolicies") ||
                            write.resource.plural.ends_with("admissionpolicybindings")));
}

std::string policies_prefix(const PluginSources& sources, std::string_view plural) {
  auto resource = sources.resources.get()->find_plural(kGroup, plural);
  if (!resource) return "";
  const bool off = plural.starts_with("mutating") && resource->features &&
                   !resource->features->on("MutatingAdmissionPolicy");
  return off ? "" : resource->storage_prefix;
}

std::vector<PolicyInvocation> select_policies(const PolicySet& set, PolicyRequest& request,
                                              const PluginSources& sources) {
  Selecting selecting(request, sources);
  for (const BoundPolicy& bound : set) selecting.add(bound);
  return selecting.take();
}

}  // namespace dibs::server
