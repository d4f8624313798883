#include "server/auth/bootstrap_roles.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "server/auth/bootstrap_data.h"
#include "server/auth/rule.h"

namespace dibs::server::auth {
namespace {

constexpr const char* kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

using json::Value;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kApiVersion = "rbac.authorization.k8s.io/v1";
constexpr std::string_view kAggregate = "rbac.authorization.k8s.io/aggregate-to-";

Value list_of(std::string_view text) {
  Value list = Value::array();
  for (std::string_view item : split(text, ',')) list.push(item == "core" ? "" : item);
  return list;
}

Value verbs_of(std::string_view text) {
  if (text == "read") text = "get,list,watch";
  if (text == "write") text = "create,delete,deletecollection,patch,update";
  if (text == "manage") text = "create,delete,deletecollection,get,list,patch,update,watch";
  return list_of(text);
}

Value rule_of(const std::vector<std::string_view>& words) {
  if (words[1] == "url") {
    return Value::object({{"verbs", verbs_of(words[0])}, {"nonResourceURLs", list_of(words[2])}});
  }
  Value rule = Value::object({{"verbs", verbs_of(words[0])},
                              {"apiGroups", list_of(words[1])},
                              {"resources", list_of(words[2])}});
  if (words.size() == 5) rule.set("resourceNames", list_of(words[4]));
  return rule;
}

/// "namespace/name"; a name alone is of the cluster.
Value metadata_of(std::string_view full_name) {
  Value metadata = Value::object();
  std::size_t slash = full_name.find('/');
  if (slash != std::string_view::npos) {
    metadata.set("namespace", full_name.substr(0, slash));
    full_name = full_name.substr(slash + 1);
  }
  metadata.set("name", full_name);
  metadata.set("labels", Value::object({{"kubernetes.io/bootstrapping", "rbac-defaults"}}));
  metadata.set("annotations", Value::object({{kAutoUpdate, "true"}}));
  return metadata;
}

Value subject_of(std::string_view text) {
  std::size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  std::string_view name = text.substr(colon + 1);
  if (kind == "account") {
    std::size_t slash = name.find('/');
    return Value::object({{"kind", "ServiceAccount"},
                          {"name", name.substr(slash + 1)},
                          {"namespace", name.substr(0, slash)}});
  }
  return Value::object(
      {{"kind", kind == "user" ? "User" : "Group"}, {"apiGroup", kGroup}, {"name", name}});
}

Value role_of(const std::vector<std::string_view>& words, bool is_cluster) {
  Value role = Value::object({{"kind", is_cluster ? "ClusterRole" : "Role"},
                              {"apiVersion", kApiVersion},
                              {"metadata", metadata_of(words[1])},
                              {"rules", nullptr}});
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i].starts_with("to-")) {
      role.mut("metadata").mut("labels").set(cat(kAggregate, words[i].substr(3)), "true");
    } else {
      Value labels = Value::object();
      labels.set(cat(kAggregate, words[i].substr(5)), "true");
      role.mut("aggregationRule")
          .mut("clusterRoleSelectors")
          .push(Value::object({{"matchLabels", labels}}));
    }
  }
  return role;
}

Value binding_of(const std::vector<std::string_view>& words, bool is_cluster) {
  std::string_view kind = "ClusterRole";
  std::string_view name = words[2] == "=" ? words[1] : words[2];
  if (!is_cluster) {
    std::size_t colon = name.find(':');
    if (name.substr(0, colon) == "role") kind = "Role";
    name = name.substr(colon + 1);
  }
  Value binding = Value::object(
      {{"kind", is_cluster ? "ClusterRoleBinding" : "RoleBinding"},
       {"apiVersion", kApiVersion},
       {"metadata", metadata_of(words[1])},
       {"roleRef", Value::object({{"apiGroup", kGroup}, {"kind", kind}, {"name", name}})}});
  for (std::size_t i = 3; i < words.size(); ++i) {
    binding.mut("subjects").push(subject_of(words[i]));
  }
  return binding;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with("      ")) {
      if (lines.back().back() != ',') lines.back() += ' ';
      lines.back() += trim(line);
    } else {
      lines.emplace_back(line);
    }
  }
  return lines;
}

/// A rule may begin with the model of resource.k8s.io that it is for, or say that it is for a
/// server with groups of pods, or of groups. True when it is not wanted.
bool left_out(std::vector<std::string_view>& words, DeviceModels models, GroupKinds groups) {
  if (words[0] == "groups:" || words[0] == "composites:") {
    const GroupKinds least = words[0] == "groups:" ? GroupKinds::pods : GroupKinds::groups;
    words.erase(words.begin());
    return groups < least;
  }
  bool structured = words[0] == "structured:";
  if (!structured && words[0] != "classic:") return false;
  words.erase(words.begin());
  return models == (structured ? DeviceModels::classic : DeviceModels::structured);
}

void read_into(std::vector<Value>& objects, std::string_view text, DeviceModels models,
               GroupKinds groups = GroupKinds::none) {
  for (const std::string& line : lines_of(text)) {
    std::vector<std::string_view> words = split(trim(line), ' ');
    if (line.starts_with("  ")) {
      if (left_out(words, models, groups)) continue;
      objects.back().mut("rules").push(rule_of(words));
    } else if (words[0] == "cluster-role" || words[0] == "role") {
      objects.push_back(role_of(words, words[0] == "cluster-role"));
    } else {
      objects.push_back(binding_of(words, words[0] == "cluster-binding"));
    }
  }
}

}  // namespace

std::vector<Value> bootstrap_roles(DeviceModels models, GroupKinds groups) {
  std::vector<Value> objects;
  for (std::string_view text : {kClusterRoles, kControllerRoles, kClusterBindings, kNamespaced})
    read_into(objects, text, models, groups);
  if (groups == GroupKinds::none) return objects;
  read_into(objects,
            "cluster-role system:controller:podgroup-protection-controller\n"
            "  get,list,update,watch scheduling.k8s.io podgroups\n"
            "  read core pods\n"
            "cluster-binding system:controller:podgroup-protection-controller = "
            "account:kube-system/podgroup-protection-controller\n",
            models);
  return objects;
}

std::vector<Value> driver_roles(std::string_view account, std::string_view driver) {
  std::vector<Value> objects;
  read_into(objects,
            cat("cluster-role dibs:driver:", driver,
                "\n"
                "  read resource.k8s.io resourceclaims\n"
                "  patch,update resource.k8s.io resourceclaims/status\n"
                "  associated-node:patch,associated-node:update resource.k8s.io "
                "resourceclaims/driver named ",
                driver,
                "\n"
                "  create,delete,get,list,patch,update,watch resource.k8s.io resourceslices\n"
                "  create resource.k8s.io deviceclasses,resourceclasses\n"
                "  read core nodes\n"
                "cluster-binding dibs:driver:",
                driver, " = account:kube-system/", account, "\n"),
            DeviceModels::both);
  return objects;
}

std::vector<Value> account_roles(std::string_view account, const Value& rules) {
  std::vector<Value> objects;
  read_into(objects,
            cat("cluster-role dibs:account:", account, "\ncluster-binding dibs:account:", account,
                " = account:kube-system/", account, "\n"),
            DeviceModels::both);
  objects.front().set("rules", rules);
  return objects;
}

std::vector<Value> pool_status_roles() {
  std::vector<Value> objects;
  read_into(objects,
            "cluster-role system:controller:resourcepoolstatusrequest-controller\n"
            "  delete,get,list,watch resource.k8s.io resourcepoolstatusrequests\n"
            "  patch,update resource.k8s.io resourcepoolstatusrequests/status\n"
            "  read resource.k8s.io resourceslices\n"
            "  read resource.k8s.io resourceclaims\n"
            "  read resource.k8s.io devicetaintrules\n"
            "  create,patch,update core,events.k8s.io events\n"
            "cluster-binding system:controller:resourcepoolstatusrequest-controller = "
            "account:kube-system/resourcepoolstatusrequest-controller\n",
            DeviceModels::both);
  return objects;
}

std::vector<Value> fleet_roles(std::string_view user) {
  std::vector<Value> objects;
  read_into(objects,
            cat("cluster-role dibs:nodes\n"
                "  list,watch core pods,services\n"
                "cluster-binding dibs:nodes = user:",
                user, "\n"),
            DeviceModels::both);
  return objects;
}

std::vector<Value> metrics_roles() {
  std::vector<Value> objects;
  read_into(objects,
            "cluster-role system:aggregated-metrics-reader\n"
            "  read metrics.k8s.io nodes,pods\n",
            DeviceModels::both);
  Value& labels = objects.back().mut("metadata").mut("labels");
  for (const char* role : {"admin", "edit", "view"}) labels.set(cat(kAggregate, role), "true");
  return objects;
}

std::vector<Value> service_roles() {
  std::vector<Value> objects;
  read_into(objects,
            "cluster-role dibs:services\n"
            "  list,watch core namespaces,pods\n"
            "  list,watch networking.k8s.io networkpolicies\n"
            "cluster-role dibs:node-services\n"
            "  list,watch core namespaces,pods\n"
            "  list,watch discovery.k8s.io endpointslices\n"
            "  list,watch networking.k8s.io networkpolicies,servicecidrs\n"
            "cluster-binding dibs:services = user:system:kube-proxy\n"
            "cluster-binding dibs:node-services = group:system:nodes\n",
            DeviceModels::both);
  return objects;
}

Value brought_up_to_date(const Value& existing, const Value& wanted) {
  if (existing["metadata"]["annotations"][kAutoUpdate].as_string() != "true") return {};
  Value out;
  const auto add = [&](const char* list, const Value& item) {
    if (out.is_null()) out = existing;
    out.mut(list).push(item);
  };
  const std::vector<PolicyRule> held = rules_of(existing);
  for (const Value& rule : wanted["rules"].items()) {
    if (!missing_rights(held, {rule_of(rule)}).empty()) add("rules", rule);
  }
  for (const Value& subject : wanted["subjects"].items()) {
    const auto& there = existing["subjects"].items();
    if (std::find(there.begin(), there.end(), subject) == there.end()) add("subjects", subject);
  }
  return out;
}

}  // namespace dibs::server::auth
