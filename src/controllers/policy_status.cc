// Type checking of ValidatingAdmissionPolicies: writes into status.typeChecking what expressions
// would get wrong about the kinds that the rules name (api/expressions/type_check.h). Schemas are
// those that the server publishes, so custom kinds are checked, too. A policy is looked at once for
// each generation: a kind that is defined later is not looked for again.
#include <algorithm>
#include <map>
#include <tuple>

#include "api/expressions/type_check.h"
#include "base/strings.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kPolicies = {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"};
constexpr const char* kManager = "validatingadmissionpolicy-status-controller";

bool comes_before(const api::CheckedKind& a, const api::CheckedKind& b) {
  return std::tie(a.kind.group, a.kind.version, a.kind.kind) <
         std::tie(b.kind.group, b.kind.version, b.kind.kind);
}

/// What one policy needs to know of the server.
class Schemas {
 public:
  Schemas(client::Client& client, Discovery& discovery) : client_(client), discovery_(discovery) {}

  /// The kinds that a policy is checked for, sorted.
  Result<std::vector<api::CheckedKind>> kinds(const Value& policy) {
    std::vector<api::CheckedKind> out;
    for (const auto& rule : api::resources_to_check(policy)) {
      std::size_t count = 0;
      for (const api::RuleResource& named : rule) {
        const auto served = find({named.group, named.version, named.resource});
        if (!served) continue;
        const api::GroupVersionKind kind{named.group, named.version, served->kind};
        const bool known = std::any_of(out.begin(), out.end(), [&](const api::CheckedKind& each) {
          return each.kind == kind;
        });
        if (!known) {
          DIBS_TRY(Value schema, schema_of(kind));
          if (!schema.is_null()) out.push_back({kind, std::move(schema)});
        }
        if (++count == api::kMostCheckedKinds) break;
      }
      if (count == api::kMostCheckedKinds) break;
    }
    std::sort(out.begin(), out.end(), comes_before);
    return out;
  }

  Result<Value> schema_of(const api::GroupVersionKind& kind) {
    if (kind.version.empty() || kind.kind.empty()) return Value();
    const std::string path = kind.group.empty() ? cat("api/", kind.version)
                                                : cat("apis/", kind.group, "/", kind.version);
    auto known = documents_.find(path);
    if (known == documents_.end()) {
      auto document = client_.call(client::make_request("GET", cat("/openapi/v3/", path)));
      if (!document.ok() && !is_gone(document.error())) return std::move(document).error();
      known = documents_.emplace(path, document.ok() ? std::move(document).value() : Value()).first;
    }
    return api::resolved_schema(known->second, kind);
  }

 private:
  /// What is not known may be new: the server is asked once.
  std::optional<ServedResource> find(const Gvr& gvr) {
    auto found = discovery_.find(gvr);
    if (found || refreshed_) return found;
    refreshed_ = true;
    if (!discovery_.refresh(client_).ok()) return std::nullopt;
    return discovery_.find(gvr);
  }

  client::Client& client_;
  Discovery& discovery_;
  bool refreshed_ = false;
  std::map<std::string, Value> documents_;
};

class PolicyStatus : public Controller {
 public:
  explicit PolicyStatus(Environment& environment)
      : environment_(environment),
        policies_(environment.informers.of(kPolicies)),
        loop_(environment, "validating-admission-policy-status",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(policies_);
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& name) {
    const auto policy = policies_.get(name);
    if (!policy) return done();
    const std::int64_t generation = (*policy)["metadata"]["generation"].as_int();
    if (generation <= (*policy)["status"]["observedGeneration"].as_int()) return done();
    Schemas schemas(environment_.client, environment_.discovery);
    DIBS_TRY(const auto kinds, schemas.kinds(*policy));
    DIBS_TRY(const Value params, schemas.schema_of(param_kind(*policy)));
    Value checking = Value::object();
    Value warnings = api::type_check(*policy, kinds, params);
    if (!warnings.empty()) checking.set("expressionWarnings", std::move(warnings));
    client::WriteOptions options;
    options.field_manager = kManager;
    options.force = true;
    options.subresource = "status";
    auto written = environment_.client.patch(
        kPolicies, "", name, client::PatchType::apply,
        Value::object({{"apiVersion", "admissionregistration.k8s.io/v1"},
                       {"kind", "ValidatingAdmissionPolicy"},
                       {"metadata", Value::object({{"name", name}})},
                       {"status", Value::object({{"observedGeneration", generation},
                                                 {"typeChecking", std::move(checking)}})}}),
        options);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    return done();
  }

  static api::GroupVersionKind param_kind(const Value& policy) {
    const Value& kind = policy["spec"]["paramKind"];
    const std::string_view api_version = kind["apiVersion"].as_string();
    const std::string_view group = group_of(api_version);
    const std::string_view version =
        group.empty() ? api_version : api_version.substr(group.size() + 1);
    return {std::string(group), std::string(version), kind["kind"].str()};
  }

  Environment& environment_;
  client::Informer& policies_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_policy_status_controller(Environment& environment) {
  if (!environment.discovery.serves(kPolicies.group, kPolicies.resource)) return nullptr;
  return std::make_unique<PolicyStatus>(environment);
}

}  // namespace dibs::controllers
