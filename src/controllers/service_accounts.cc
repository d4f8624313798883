// What every namespace holds from its first moment: the service account "default", without which
// no pod can be made, and kube-root-ca.crt, which pods mount beside their token. Both come back
// when somebody deletes or changes them.
#include "controllers/controllers.h"

namespace dibs::controllers {
namespace {

const Gvr kAccounts = {"", "v1", "serviceaccounts"};
const Gvr kConfigMaps = {"", "v1", "configmaps"};
constexpr const char* kAccount = "default";
constexpr const char* kRootCa = "kube-root-ca.crt";
constexpr const char* kDescriptionKey = "kubernetes.io/description";
constexpr const char* kDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters.";

class ServiceAccounts : public Controller {
 public:
  explicit ServiceAccounts(Environment& environment)
      : environment_(environment),
        publisher_(environment.as("root-ca-cert-publisher")),
        namespaces_(environment.informers.of(kNamespaces)),
        accounts_(environment.informers.of(kAccounts)),
        config_maps_(environment.informers.of(kConfigMaps)),
        loop_(environment, "service-accounts",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(namespaces_);
    const auto changed = [this](const char* name) {
      return [this, name](const Value& object) {
        if (name_of(object) == name) loop_.add(std::string(namespace_of(object)));
      };
    };
    loop_.follow(accounts_, changed(kAccount));
    loop_.follow(config_maps_, changed(kRootCa));
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& name_space) {
    const auto object = namespaces_.get(name_space);
    if (!object || is_deleting(*object)) return done();
    if (!accounts_.get(client::key_of(name_space, kAccount))) {
      DIBS_CHECK(create(environment_.client, kAccounts, name_space,
                        Value::object({{"apiVersion", "v1"},
                                       {"kind", "ServiceAccount"},
                                       {"metadata", Value::object({{"name", kAccount}})}})));
    }
    DIBS_CHECK(provide_root_ca(name_space));
    return done();
  }

  Result<> provide_root_ca(const std::string& name_space) {
    const std::string& pem = environment_.options.ca_pem;
    if (pem.empty()) return success();
    const Value data = Value::object({{"ca.crt", pem}});
    const auto found = config_maps_.get(client::key_of(name_space, kRootCa));
    if (!found) {
      return create(
          publisher_, kConfigMaps, name_space,
          Value::object(
              {{"apiVersion", "v1"},
               {"kind", "ConfigMap"},
               {"metadata",
                Value::object({{"name", kRootCa},
                               {"annotations", Value::object({{kDescriptionKey, kDescription}})}})},
               {"data", data}}));
    }
    if ((*found)["data"] == data) return success();
    Value object = *found;
    object.set("data", data);
    auto written = publisher_.update(kConfigMaps, name_space, object);
    if (!written && !is_gone(written.error())) return written.error();
    return success();
  }

  /// A namespace on its way out takes nothing new, which is as good as done.
  static Result<> create(client::Client& client, const Gvr& gvr, const std::string& name_space,
                         const Value& object) {
    auto made = client.create(gvr, name_space, object);
    if (made || made.error().code() == Code::already_exists || is_gone(made.error()) ||
        made.error().code() == Code::forbidden) {
      return success();
    }
    return made.error();
  }

  Environment& environment_;
  client::Client& publisher_;  // of kube-root-ca.crt
  client::Informer& namespaces_;
  client::Informer& accounts_;
  client::Informer& config_maps_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_service_account_controller(Environment& environment) {
  return std::make_unique<ServiceAccounts>(environment);
}

}  // namespace dibs::controllers
