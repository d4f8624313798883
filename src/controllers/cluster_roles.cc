// ClusterRole aggregation: writes the rules of the roles that an aggregationRule selects into the
// role that has it. The server decides by the same sum without waiting for this
// (server/auth/rbac.h); who reads the role finds it here.
#include <algorithm>

#include "api/merge/selectors.h"
#include "controllers/cluster_roles.h"
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kClusterRoles = {"rbac.authorization.k8s.io", "v1", "clusterroles"};
constexpr const char* kManager = "clusterrole-aggregation-controller";

bool aggregates(const Value& role) { return !role["aggregationRule"].is_null(); }

}  // namespace

Value aggregated_rules(const Value& role, std::vector<Value> all) {
  std::sort(all.begin(), all.end(),
            [](const Value& a, const Value& b) { return name_of(a) < name_of(b); });
  Value rules = Value::array();
  for (const Value& selects : role["aggregationRule"]["clusterRoleSelectors"].items()) {
    const auto selector = api::to_label_selector(selects);
    if (!selector.ok()) continue;
    for (const Value& other : all) {
      if (name_of(other) == name_of(role) || !selector->matches(other["metadata"]["labels"]))
        continue;
      for (const Value& rule : other["rules"].items()) {
        const auto known = rules.items();
        if (std::find(known.begin(), known.end(), rule) == known.end()) rules.push(rule);
      }
    }
  }
  return rules;
}

namespace {

class ClusterRoles : public Controller {
 public:
  explicit ClusterRoles(Environment& environment)
      : environment_(environment),
        roles_(environment.informers.of(kClusterRoles)),
        loop_(environment, "cluster-role-aggregation",
              [this](const std::string& key) { return reconcile(key); }) {
    // Who selects whom is not known, and aggregating roles are few.
    loop_.follow(roles_, [this](const Value&) {
      for (const Value& role : roles_.list())
        if (aggregates(role)) loop_.add(client::key_of(role));
    });
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& name) {
    const auto role = roles_.get(name);
    if (!role || !aggregates(*role)) return done();
    const Value rules = aggregated_rules(*role, roles_.list());
    const Value& known = (*role)["rules"];
    if (rules == known || (rules.empty() && known.empty())) return done();
    client::WriteOptions options;
    options.field_manager = kManager;
    options.force = true;
    auto written =
        environment_.client.patch(kClusterRoles, "", name, client::PatchType::apply,
                                  Value::object({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                                                 {"kind", "ClusterRole"},
                                                 {"metadata", Value::object({{"name", name}})},
                                                 {"rules", rules}}),
                                  options);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    return done();
  }

  Environment& environment_;
  client::Informer& roles_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_cluster_role_controller(Environment& environment) {
  if (!environment.discovery.serves(kClusterRoles.group, kClusterRoles.resource)) return nullptr;
  return std::make_unique<ClusterRoles>(environment);
}

}  // namespace dibs::controllers
