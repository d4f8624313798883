// ParamAccess: who lets a policy read objects (paramKind, paramRef) must be able to read them
// himself, since a policy's messages can tell what is in them.
#include "base/strings.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

class ParamAccess : public AdmissionPlugin {
 public:
  explicit ParamAccess(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "ParamAccess"; }
  bool may_be_disabled() const override { return false; }

  void judge(const Write& write, api::FieldErrors& errors) override {
    if (write.resource.group != kGroup || !write.subresource.empty()) return;
    const std::string& plural = write.resource.plural;
    if (plural.ends_with("admissionpolicies")) judge_policy(write, errors);
    if (plural.ends_with("admissionpolicybindings")) judge_binding(write, errors);
  }

 private:
  /// The resource of a kind; "*" for what is not known.
  void set_resource(const Value& kind, auth::RequestAttributes& what) const {
    what.group = what.version = what.resource = "*";
    const std::string_view api_version = kind["apiVersion"].as_string();
    if (kind.is_null() || api_version.empty()) return;
    const auto slash = api_version.find('/');
    what.group = slash == std::string_view::npos ? "" : api_version.substr(0, slash);
    what.version = slash == std::string_view::npos ? api_version : api_version.substr(slash + 1);
    auto resource = sources_.resources.get()->find_kind(what.group, kind["kind"].as_string());
    if (resource) what.resource = resource->plural;
  }

  void judge_policy(const Write& write, api::FieldErrors& errors) const {
    const Value& kind = write.object["spec"]["paramKind"];
    if (kind.is_null() || kind == write.old["spec"]["paramKind"]) return;
    auth::RequestAttributes what;
    what.user = write.context.user;
    what.verb = "get";
    what.name_space = what.name = "*";
    set_resource(kind, what);
    if (sources_.access.authorize(what).allowed) return;
    errors.forbidden(
        api::Path("spec").child("paramKind"),
        cat("user ", quoted(what.user.name),
            " must have \"get\" permission on all objects of the referenced paramKind "
            "(kind=",
            kind["kind"].as_string(), ", apiVersion=", kind["apiVersion"].as_string(), ")"));
  }

  void judge_binding(const Write& write, api::FieldErrors& errors) const {
    const Value& spec = write.object["spec"];
    const Value& ref = spec["paramRef"];
    if (ref.is_null() || (ref == write.old["spec"]["paramRef"] &&
                          spec["policyName"] == write.old["spec"]["policyName"])) {
      return;
    }
    // "validatingadmissionpolicybindings" bind "validatingadmissionpolicies".
    constexpr std::string_view kBindings = "ybindings";
    const std::string policies = cat(
        write.resource.plural.substr(0, write.resource.plural.size() - kBindings.size()), "ies");
    const Value policy = sources_.find(kGroup, policies, "", spec["policyName"].as_string());
    auth::RequestAttributes what;
    what.user = write.context.user;
    what.name = ref["name"].str();
    what.verb = what.name.empty() ? "list" : "get";
    what.name_space = ref["namespace"].str();
    set_resource(policy["spec"]["paramKind"], what);
    if (sources_.access.authorize(what).allowed) return;
    const std::string who =
        cat("user ", quoted(what.user.name), " does not have ", quoted(what.verb), " permission ");
    errors.forbidden(api::Path("spec").child("paramRef"),
                     policy.is_null() ? cat("unable to get policy ", spec["policyName"].as_string(),
                                            " to determine minimum required permissions and ", who,
                                            "for all groups, versions and resources")
                                      : cat(who, "on the object referenced by paramRef"));
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_param_access(PluginSources sources) {
  return std::make_unique<ParamAccess>(sources);
}

}  // namespace dibs::server
