#include "base/release.h"
#include "base/strings.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

// Verbs, group ("core" for none), resources, and perhaps the names of objects. `read` is get, list
// and watch; `write` is create, update, patch and delete as well.
constexpr std::string_view kController = R"(
read,patch core pods
read core nodes,namespaces
get core configmaps cilium-config,kubeadm-config
create,patch,update core events
create,patch,update events.k8s.io events
create,get,list,patch,update,watch coordination.k8s.io leases
read apps daemonsets,deployments,replicasets,statefulsets
read batch cronjobs,jobs
create apiextensions.k8s.io customresourcedefinitions
create rbac.authorization.k8s.io clusterroles,clusterrolebindings
get,update rbac.authorization.k8s.io clusterroles,clusterrolebindings spiderpool:nodes
create admissionregistration.k8s.io validatingadmissionpolicies,validatingadmissionpolicybindings
get,update admissionregistration.k8s.io validatingadmissionpolicies,validatingadmissionpolicybindings spidernodestates.spiderpool.spidernet.io,pods.spiderpool.spidernet.io
read,patch,update resource.k8s.io resourceclaims,podschedulingcontexts
patch,update resource.k8s.io resourceclaims/status,podschedulingcontexts/status
patch,update resource.k8s.io resourceclaims/binding
arbitrary-node:patch,arbitrary-node:update resource.k8s.io resourceclaims/driver dra.spidernet.io
read resource.k8s.io resourceclaimtemplates,resourceslices,resourceclaimparameters,resourceclassparameters
read,create resource.k8s.io resourceclasses
write resource.k8s.io deviceclasses
list networking.k8s.io servicecidrs
list crd.projectcalico.org ippools
write k8s.cni.cncf.io network-attachment-definitions
write spiderpool.spidernet.io *
)";

constexpr std::string_view kNode = R"(
read,patch core pods
read core nodes,namespaces
create,patch,update core events
create,patch,update events.k8s.io events
read apps daemonsets,deployments,replicasets,statefulsets
read batch cronjobs,jobs
read resource.k8s.io resourceclaims,resourceclaimtemplates
patch,update resource.k8s.io resourceclaims/status
associated-node:patch,associated-node:update resource.k8s.io resourceclaims/driver dra.spidernet.io
write resource.k8s.io resourceslices
read k8s.cni.cncf.io network-attachment-definitions
read spiderpool.spidernet.io spiderclaimparameters,spidercoordinators,spiderippools,spidermultusconfigs,spiderreservedips,spidersubnets
patch,update spiderpool.spidernet.io spiderippools/status
write spiderpool.spidernet.io spiderendpoints,spidernodestates
patch,update spiderpool.spidernet.io spidernodestates/status
)";

Value words(std::string_view text) {
  Value out = Value::array();
  for (const auto& word : split(text, ',')) {
    if (word == "read" || word == "write") {
      for (const char* verb : {"get", "list", "watch"}) out.push(verb);
      if (word == "read") continue;
      for (const char* verb : {"create", "update", "patch", "delete"}) out.push(verb);
    } else {
      out.push(word == "core" ? "" : word);
    }
  }
  return out;
}

Value rules_of(std::string_view text) {
  Value out = Value::array();
  for (const auto& line : split(text, '\n')) {
    if (line.empty()) continue;
    const auto parts = split(line, ' ');
    Value rule = Value::object({{"verbs", words(parts[0])},
                                {"apiGroups", words(parts[1])},
                                {"resources", words(parts[2])}});
    if (parts.size() > 3) rule.set("resourceNames", words(parts[3]));
    out.push(std::move(rule));
  }
  return out;
}

}  // namespace

Value controller_rules() {
  Value out = rules_of(kController);
  // Its own kinds it keeps up to date; nobody else's.
  Value names = Value::array();
  if (const auto all = crds(kNewestRelease)) {
    for (const auto& definition : *all) names.push(definition["metadata"]["name"]);
  }
  out.push(Value::object({{"verbs", words("get,update")},
                          {"apiGroups", words("apiextensions.k8s.io")},
                          {"resources", words("customresourcedefinitions")},
                          {"resourceNames", std::move(names)}}));
  return out;
}

Value node_rules() { return rules_of(kNode); }

}  // namespace dibs::drivers::net
