#include "drivers/net/objects/install.h"

#include <functional>
#include <set>

#include "base/strings.h"
#include "client/resource_versions.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

const client::Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const client::Gvr kRoles = {"rbac.authorization.k8s.io", "v1", "clusterroles"};
const client::Gvr kBindings = {"rbac.authorization.k8s.io", "v1", "clusterrolebindings"};
const client::Gvr kResourceClasses = {"resource.k8s.io", "v1alpha2", "resourceclasses"};
const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};

const client::Gvr kPolicies = {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"};
const client::Gvr kPolicyBindings = {"admissionregistration.k8s.io", "v1",
                                     "validatingadmissionpolicybindings"};
/// Since when servers have these.
constexpr int kPoliciesSince = 30;
/// Whoever is on a node by its token reports that node and no other.
constexpr const char* kReportsPolicy = "spidernodestates.spiderpool.spidernet.io";
constexpr const char* kPodsPolicy = "pods.spiderpool.spidernet.io";
// Of the driver on nodes, in whatever namespace.
constexpr const char* kNodeAccount = "dibs-driver-net";

/// Nodes read the networks of their pods.
constexpr const char* kNodesRole = "spiderpool:nodes";

/// Somebody else was faster, or the server is not ready: the next call finds it as it should be.
Error named(const Error& error, std::string_view what) {
  const bool again = error.code() == Code::conflict || error.code() == Code::already_exists;
  return Error(again ? Code::unavailable : error.code(), error.within(what).message());
}

bool is_established(const Value& definition) {
  for (const auto& condition : definition["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Established") {
      return condition["status"].as_string() == "True";
    }
  }
  return false;
}

/// From what is there, what shall be there; null when that is the same.
using Next = std::function<Value(const Value& before)>;

Next replace(std::string field, Value value) {
  return [field = std::move(field), value = std::move(value)](const Value& before) -> Value {
    if (before[field] == value) return {};
    Value next = before;
    next.set(field, value);
    return next;
  };
}

class Installation {
 public:
  explicit Installation(client::Client& api) : api_(api), resources_(api) {}

  Result<> all(int release) {
    DIBS_TRY(const auto definitions, crds(release));
    std::string missing;
    for (const auto& definition : definitions) {
      DIBS_TRY(const bool established, kind(definition));
      if (!established) missing = client::name_of(definition);
    }
    DIBS_CHECK(roles());
    DIBS_CHECK(classes());
    if (release >= kPoliciesSince) DIBS_CHECK(policies());
    if (!missing.empty()) return Error::unavailable(cat(missing, " is not established yet"));
    return coordinator();
  }

 private:
  /// Creates the object unless it is there; otherwise brings it up to date.
  Result<Value> keep(client::Client& api, const client::Gvr& gvr, const Value& wanted,
                     const Next& next) {
    const std::string name(client::name_of(wanted));
    auto there = api.get(gvr, "", name);
    if (!there && there.error().code() != Code::not_found) return named(there.error(), name);
    if (!there) {
      auto created = api.create(gvr, "", wanted);
      if (!created) return named(created.error(), name);
      return created;
    }
    const Value changed = next(*there);
    if (changed.is_null()) return there;
    auto updated = api.update(gvr, "", changed);
    if (!updated) return named(updated.error(), name);
    return updated;
  }

  /// Whether it is served.
  Result<bool> kind(const Value& wanted) {
    // NetworkAttachmentDefinition belongs to all who attach networks: who came first has it.
    const bool own = wanted["spec"]["group"].as_string() == kGroup;
    DIBS_TRY(const Value there, keep(api_, kDefinitions, wanted, [&](const Value& before) -> Value {
               if (!own) return {};
               // A server that finds nothing changed by this writes nothing.
               Value next = before;
               next.set("spec", wanted["spec"]);
               return next;
             }));
    return is_established(there);
  }

  Result<> roles() {
    const Value rule = Value::object({{"verbs", Value::array({"get"})},
                                      {"apiGroups", Value::array({kNetAttachDefs.group})},
                                      {"resources", Value::array({kNetAttachDefs.resource})}});
    const Value role = Value::object({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                                      {"kind", "ClusterRole"},
                                      {"metadata", Value::object({{"name", kNodesRole}})},
                                      {"rules", Value::array({rule})}});
    const Value group = Value::object(
        {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Group"}, {"name", "system:nodes"}});
    const Value binding =
        Value::object({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                       {"kind", "ClusterRoleBinding"},
                       {"metadata", Value::object({{"name", kNodesRole}})},
                       {"roleRef", Value::object({{"apiGroup", "rbac.authorization.k8s.io"},
                                                  {"kind", "ClusterRole"},
                                                  {"name", kNodesRole}})},
                       {"subjects", Value::array({group})}});
    DIBS_CHECK(keep(api_, kRoles, role, replace("rules", role["rules"])));
    DIBS_CHECK(keep(api_, kBindings, binding, replace("subjects", binding["subjects"])));
    return success();
  }

  /// One role lets the driver write on all nodes, and says nothing of which node's report or pod.
  Result<> policies() {
    const std::string node = "request.userInfo.extra['authentication.kubernetes.io/node-name']";
    const std::string on_node =
        "has(request.userInfo.extra) && 'authentication.kubernetes.io/node-name' in "
        "request.userInfo.extra";
    const auto rule = [](std::string_view group, const Value& operations, const Value& resources) {
      return Value::object({{"apiGroups", Value::array({group})},
                            {"apiVersions", Value::array({"*"})},
                            {"operations", operations},
                            {"resources", resources}});
    };
    DIBS_CHECK(keep_policy(
        kReportsPolicy,
        rule(kGroup, Value::array({"CREATE", "UPDATE", "DELETE"}),
             Value::array({"spidernodestates", "spidernodestates/status"})),
        on_node, cat(node, "[0] == request.name"),
        cat("'the report of node ' + request.name + ' is not that of ' + ", node, "[0]")));
    return keep_policy(
        kPodsPolicy, rule("", Value::array({"UPDATE"}), Value::array({"pods"})),
        cat(on_node, " && request.userInfo.username.endsWith(':", kNodeAccount, "')"),
        cat("has(object.spec.nodeName) && object.spec.nodeName == ", node, "[0]"),
        cat("'pod ' + request.name + ' is not on node ' + ", node, "[0]"));
  }

  /// Who meets the condition must meet the expression. As with kinds, a server that finds nothing
  /// changed by this writes nothing.
  Result<> keep_policy(const char* name, const Value& rule, const std::string& condition,
                       const std::string& expression, const std::string& message) {
    const Value metadata = Value::object({{"name", name}});
    const Value policy = Value::object(
        {{"apiVersion", "admissionregistration.k8s.io/v1"},
         {"kind", "ValidatingAdmissionPolicy"},
         {"metadata", metadata},
         {"spec",
          Value::object(
              {{"failurePolicy", "Fail"},
               {"matchConstraints", Value::object({{"resourceRules", Value::array({rule})}})},
               {"matchConditions",
                Value::array({Value::object({{"name", "on-a-node"}, {"expression", condition}})})},
               {"validations",
                Value::array({Value::object(
                    {{"expression", expression}, {"messageExpression", message}})})}})}});
    const Value binding = Value::object(
        {{"apiVersion", "admissionregistration.k8s.io/v1"},
         {"kind", "ValidatingAdmissionPolicyBinding"},
         {"metadata", metadata},
         {"spec",
          Value::object({{"policyName", name}, {"validationActions", Value::array({"Deny"})}})}});
    const auto renew = [](const Value& wanted) -> Next {
      return [&wanted](const Value& before) {
        Value next = before;
        next.set("spec", wanted["spec"]);
        return next;
      };
    };
    DIBS_CHECK(keep(api_, kPolicies, policy, renew(policy)));
    DIBS_CHECK(keep(api_, kPolicyBindings, binding, renew(binding)));
    return success();
  }

  /// The versions of resource.k8s.io, none where the group is not served.
  Result<std::set<std::string>> versions() {
    auto group = api_.call(client::make_request("GET", "/apis/resource.k8s.io"));
    if (!group && group.error().code() == Code::not_found) return std::set<std::string>();
    if (!group) return named(group.error(), "resource.k8s.io");
    std::set<std::string> out;
    for (const auto& version : (*group)["versions"].items()) out.insert(version["version"].str());
    return out;
  }

  Result<> classes() {
    DIBS_TRY(auto served, versions());
    if (served.erase("v1alpha2") > 0) {
      const Value wanted = Value::object({{"apiVersion", "resource.k8s.io/v1alpha2"},
                                          {"kind", "ResourceClass"},
                                          {"metadata", Value::object({{"name", kClassicDriver}})},
                                          {"driverName", kClassicDriver}});
      DIBS_CHECK(keep(api_, kResourceClasses, wanted, replace("driverName", kClassicDriver)));
    }
    served.erase("v1alpha1");
    if (served.empty()) return success();
    const std::string own = cat("device.driver == '", kDriver, "'");
    const std::string attributes = cat("device.attributes['", kDriver, "']");
    DIBS_CHECK(device_class("cni.spidernet.io", own));
    DIBS_CHECK(device_class("dra-static-nic.spidernet.io", own));
    return device_class("dra-dynamic-nic.spidernet.io", cat(own, " && ", attributes, ".rdma"));
  }

  Result<> device_class(std::string_view name, const std::string& expression) {
    const Value selector = Value::object({{"cel", Value::object({{"expression", expression}})}});
    const Value wanted =
        Value::object({{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "DeviceClass"},
                       {"metadata", Value::object({{"name", name}})},
                       {"spec", Value::object({{"selectors", Value::array({selector})}})}});
    DIBS_CHECK(keep(resources_, kDeviceClasses, wanted, [&](const Value& before) -> Value {
      if (before["spec"]["selectors"] == wanted["spec"]["selectors"]) return {};
      Value next = before;
      next.mut("spec").set("selectors", wanted["spec"]["selectors"]);
      return next;
    }));
    return success();
  }

  /// Made once; what a user changes of it is his.
  Result<> coordinator() {
    const Value wanted = Value::object(
        {{"apiVersion", cat(kGroup, "/", kVersion)},
         {"kind", "SpiderCoordinator"},
         {"metadata", Value::object({{"name", "default"}})},
         {"spec", Value::object({{"podCIDRType", "auto"},
                                 {"hijackCIDR", Value::array({"169.254.0.0/16"})}})}});
    auto there = keep(api_, kCoordinators, wanted, [](const Value&) { return Value(); });
    // Established is said a moment before the kind is served.
    if (!there && there.error().code() == Code::not_found) {
      return Error::unavailable(there.error().message());
    }
    DIBS_CHECK(std::move(there));
    return success();
  }

  client::Client& api_;
  client::ResourceClient resources_;
};

}  // namespace

Result<> install(client::Client& api, const InstallOptions& options) {
  int release = options.release;
  if (release == 0) {
    DIBS_TRY(release, client::server_release(api));
  }
  return Installation(api).all(release);
}

}  // namespace dibs::drivers::net
