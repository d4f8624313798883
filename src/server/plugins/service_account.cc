// Every pod has a service account, and its token is mounted unless somebody says no.
#include "base/strings.h"
#include "server/auth/pod_references.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

Value token_volume(std::string_view name) {
  Value token = Value::object(
      {{"serviceAccountToken", Value::object({{"expirationSeconds", 3607}, {"path", "token"}})}});
  Value ca = Value::object(
      {{"configMap",
        Value::object(
            {{"name", "kube-root-ca.crt"},
             {"items", Value::array({Value::object({{"key", "ca.crt"}, {"path", "ca.crt"}})})}})}});
  Value field = Value::object({{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}});
  Value where = Value::object(
      {{"downwardAPI",
        Value::object({{"items", Value::array({Value::object(
                                     {{"path", "namespace"}, {"fieldRef", field}})})}})}});
  return Value::object({{"name", name},
                        {"projected", Value::object({{"sources", Value::array({token, ca, where})},
                                                     {"defaultMode", 420}})}});
}

class ServiceAccount : public AdmissionPlugin {
 public:
  explicit ServiceAccount(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "ServiceAccount"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create || !write.is("", "pods") ||
        !write.subresource.empty()) {
      return success();
    }
    Value& pod = write.object;
    if (pod["metadata"]["annotations"].contains(kMirror)) return check_mirror(write, pod);
    std::string account_name(pod["spec"]["serviceAccountName"].as_string());
    if (account_name.empty()) account_name = "default";
    pod.mut("spec").set("serviceAccountName", account_name);
    pod.mut("spec").set("serviceAccount", account_name);

    Value account = sources_.find("", "serviceaccounts", write.name_space, account_name);
    if (account.is_null()) {
      // Every namespace gets this one from a controller, soon after it was made.
      Error error =
          refuse(write, cat("error looking up service account ", write.name_space, "/",
                            account_name, ": serviceaccount \"", account_name, "\" not found"));
      return account_name == "default" ? write.not_yet(std::move(error)) : error;
    }
    if (wants_token(pod, account)) mount_token(pod);
    if (pod["spec"]["imagePullSecrets"].empty() && !account["imagePullSecrets"].empty()) {
      pod.mut("spec").set("imagePullSecrets", account["imagePullSecrets"]);
    }
    return success();
  }

 private:
  static Result<> check_mirror(const Write& write, const Value& pod) {
    if (!pod["spec"]["serviceAccountName"].as_string().empty()) {
      return refuse(write, "a mirror pod may not reference service accounts");
    }
    if (auth::first_reference(pod) == "secrets")
      return refuse(write, "a mirror pod may not reference secrets");
    return success();
  }

  static bool wants_token(const Value& pod, const Value& account) {
    if (const Value* mine = pod["spec"].find("automountServiceAccountToken");
        mine && !mine->is_null()) {
      return mine->as_bool();
    }
    if (const Value* theirs = account.find("automountServiceAccountToken");
        theirs && !theirs->is_null()) {
      return theirs->as_bool();
    }
    return true;
  }

  void mount_token(Value& pod) {
    std::string volume;
    for (const Value& existing : pod["spec"]["volumes"].items()) {
      if (existing["name"].as_string().starts_with("kube-api-access-"))
        volume = existing["name"].str();
    }
    bool have_volume = !volume.empty();
    if (volume.empty())
      volume = cat("kube-api-access-", runtime::make_suffix(sources_.runtime.random));
    bool mounted = false;
    for (std::string_view list : {"initContainers", "containers"}) {
      std::size_t count = pod["spec"][list].size();
      for (std::size_t i = 0; i < count; ++i) {
        bool taken = false;
        for (const Value& mount : pod["spec"][list][i]["volumeMounts"].items()) {
          taken = taken || mount["mountPath"].as_string() == kMountPath;
        }
        if (taken) continue;
        pod.mut("spec")
            .mut(list)
            .mut(i)
            .mut("volumeMounts")
            .push(Value::object({{"name", volume}, {"readOnly", true}, {"mountPath", kMountPath}}));
        mounted = true;
      }
    }
    if (mounted && !have_volume) pod.mut("spec").mut("volumes").push(token_volume(volume));
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_service_account(PluginSources sources) {
  return std::make_unique<ServiceAccount>(sources);
}

}  // namespace dibs::server
