#include "server/auth/node_restriction.h"

#include <optional>
#include <set>
#include <vector>

#include "base/strings.h"
#include "net/x509.h"
#include "server/auth/node_authorizer.h"
#include "server/auth/pod_references.h"

namespace dibs::server::auth {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kLeaseNamespace = "kube-node-lease";

Error refuse(const NodeWrite& write, std::string_view text) {
  return forbidden_error(write.group, write.resource, write.name, text);
}

std::string_view name_of(NodeOperation operation) {
  switch (operation) {
    case NodeOperation::create:
      return "CREATE";
    case NodeOperation::update:
      return "UPDATE";
    case NodeOperation::remove:
      return "DELETE";
    case NodeOperation::connect:
      return "CONNECT";
  }
  return {};
}

Error unexpected_operation(const NodeWrite& write) {
  return refuse(write, cat("unexpected operation ", quoted(name_of(write.operation))));
}

/// A not-found goes out as it is; anything else becomes a refusal.
Result<Value> look_up(const NodeWrite& write, const NodeLookups& lookups, std::string_view resource,
                      std::string_view name_space, std::string_view name) {
  Result<Value> found = lookups.get(resource, name_space, name);
  if (found.ok() || found.error().code() == Code::not_found) return found;
  return refuse(write, found.error().message());
}

// --- pods ---

Result<> check_mirror_owner(const NodeWrite& write, const NodeLookups& lookups,
                            const std::string& node) {
  const Value& owners = (*write.object)["metadata"]["ownerReferences"];
  std::string who = cat("node ", quoted(node));
  if (owners.size() > 1) {
    return refuse(write,
                  cat(who, " can only create pods with a single owner reference set to itself"));
  }
  const Value& owner = owners[0];
  if (owners.empty() || owner["apiVersion"].as_string() != "v1" ||
      owner["kind"].as_string() != "Node" || owner["name"].as_string() != node) {
    return refuse(write, cat(who, " can only create pods with an owner reference set to itself"));
  }
  if (!owner["controller"].as_bool()) {
    return refuse(
        write, cat(who, " can only create pods with a controller owner reference set to itself"));
  }
  if (owner["blockOwnerDeletion"].as_bool()) {
    return refuse(write, cat(who, " must not set blockOwnerDeletion on an owner reference"));
  }
  DIBS_TRY(Value own, look_up(write, lookups, "nodes", "", node));
  const Value& uid = own["metadata"]["uid"];
  if (!(owner["uid"] == uid)) {
    return refuse(write, cat("node ", node, " UID mismatch: expected ", owner["uid"].as_string(),
                             " got ", uid.as_string()));
  }
  return success();
}

Result<> check_pod_create(const NodeWrite& write, const NodeLookups& lookups,
                          const std::string& node) {
  const Value& pod = *write.object;
  if (!is_mirror_pod(pod)) {
    return refuse(write, cat("pod does not have ", quoted(kMirror), " annotation, node ",
                             quoted(node), " can only create mirror pods"));
  }
  if (pod["spec"]["nodeName"].as_string() != node) {
    return refuse(write, cat("node ", quoted(node),
                             " can only create pods with spec.nodeName set to itself"));
  }
  DIBS_CHECK(check_mirror_owner(write, lookups, node));
  if (std::string refers = first_reference(pod); !refers.empty()) {
    return refuse(write,
                  cat("node ", quoted(node), " can not create pods that reference ", refers));
  }
  return success();
}

Result<> check_pod(const NodeWrite& write, const NodeLookups& lookups, const std::string& node) {
  if (write.operation == NodeOperation::create) return check_pod_create(write, lookups, node);
  if (write.operation != NodeOperation::remove) {
    return refuse(write, cat("unexpected operation ", quoted(name_of(write.operation)), ", node ",
                             quoted(node), " can only create and delete mirror pods"));
  }
  Value pod;
  if (write.old) {
    pod = *write.old;
  } else {
    DIBS_TRY(pod, look_up(write, lookups, "pods", write.name_space, write.name));
  }
  if (pod["spec"]["nodeName"].as_string() == node) return success();
  return refuse(
      write, cat("node ", quoted(node), " can only delete pods with spec.nodeName set to itself"));
}

Result<> check_pod_status(const NodeWrite& write, const std::string& node) {
  if (write.operation != NodeOperation::update) return unexpected_operation(write);
  const Value& pod = *write.object;
  const Value& old = *write.old;
  std::string who = cat("node ", quoted(node));
  if (old["spec"]["nodeName"].as_string() != node) {
    return refuse(
        write, cat(who, " can only update pod status for pods with spec.nodeName set to itself"));
  }
  const Value& labels = pod["metadata"]["labels"];
  const Value& old_labels = old["metadata"]["labels"];
  if (!(labels == old_labels) && (labels.size() > 0 || old_labels.size() > 0)) {
    return refuse(write, cat(who, " cannot update labels through pod status"));
  }
  auto differs = [&](std::string_view key) { return !(pod["status"][key] == old["status"][key]); };
  if (differs("resourceClaimStatuses")) {
    return refuse(write, cat(who, " cannot update resource claim statues"));
  }
  if (differs("extendedResourceClaimStatus")) {
    return refuse(write, cat(who, " cannot update extended resource claim status"));
  }
  if (differs("nodeAllocatableResourceClaimStatuses")) {
    return refuse(write, cat(who, " cannot update node allocatable resource claim statuses"));
  }
  return success();
}

Result<> check_eviction(const NodeWrite& write, const NodeLookups& lookups,
                        const std::string& node) {
  if (write.operation != NodeOperation::create) {
    return refuse(write, cat("unexpected operation ", name_of(write.operation)));
  }
  std::string name(write.name);
  if (name.empty() && write.object) name = (*write.object)["metadata"]["name"].str();
  if (name.empty()) return refuse(write, "could not determine pod from request data");
  DIBS_TRY(Value pod, look_up(write, lookups, "pods", write.name_space, name));
  if (pod["spec"]["nodeName"].as_string() == node) return success();
  return refuse(write, cat("node ", node, " can only evict pods with spec.nodeName set to itself"));
}

// --- nodes ---

std::string_view domain_of(std::string_view label) {
  std::size_t slash = label.find('/');
  return slash == std::string_view::npos ? std::string_view() : label.substr(0, slash);
}

bool is_within(std::string_view domain, std::string_view parent) {
  return domain == parent || domain.ends_with(cat(".", parent));
}

/// Labels of Kubernetes itself that nodes set about themselves.
bool is_kubelet_label(std::string_view label) {
  static const std::set<std::string_view> labels = {"kubernetes.io/hostname",
                                                    "topology.kubernetes.io/zone",
                                                    "topology.kubernetes.io/region",
                                                    "failure-domain.beta.kubernetes.io/zone",
                                                    "failure-domain.beta.kubernetes.io/region",
                                                    "beta.kubernetes.io/instance-type",
                                                    "node.kubernetes.io/instance-type",
                                                    "kubernetes.io/os",
                                                    "kubernetes.io/arch",
                                                    "beta.kubernetes.io/os",
                                                    "beta.kubernetes.io/arch"};
  std::string_view domain = domain_of(label);
  return labels.contains(label) || is_within(domain, "kubelet.kubernetes.io") ||
         is_within(domain, "node.kubernetes.io");
}

std::vector<std::string> forbidden_labels(const Value& labels, const Value& old) {
  std::set<std::string> changed;
  for (const auto& [key, value] : labels.members()) {
    if (!old.contains(key) || !(old[key] == value)) changed.emplace(key);
  }
  for (const auto& [key, value] : old.members()) {
    if (!labels.contains(key)) changed.emplace(key);
  }
  std::vector<std::string> forbidden;
  for (const std::string& label : changed) {
    std::string_view domain = domain_of(label);
    bool is_reserved = is_within(domain, "node-restriction.kubernetes.io");
    bool is_ours = is_within(domain, "kubernetes.io") || is_within(domain, "k8s.io");
    if (is_reserved || (is_ours && !is_kubelet_label(label))) forbidden.push_back(label);
  }
  return forbidden;
}

Result<> check_node_object(const NodeWrite& write, const std::string& node) {
  std::string who = cat("node ", quoted(node));
  std::string requested(write.name);
  if (requested.empty() && write.object) requested = (*write.object)["metadata"]["name"].str();
  if (requested != node) {
    return refuse(write, cat(who, " is not allowed to modify node ", quoted(requested)));
  }
  if (!write.object) return success();
  const Value& object = *write.object;
  const Value& labels = object["metadata"]["labels"];
  const Value& source = object["spec"]["configSource"];
  if (write.operation == NodeOperation::create) {
    if (!source.is_null()) {
      return refuse(write, cat(who, " is not allowed to create pods with a non-nil configSource"));
    }
    std::vector<std::string> forbidden = forbidden_labels(labels, Value());
    if (forbidden.empty()) return success();
    return refuse(write,
                  cat(who, " is not allowed to set the following labels: ", join(forbidden, ", ")));
  }
  if (write.operation != NodeOperation::update || !write.old) return success();
  const Value& old = *write.old;
  if (!source.is_null() && !(source == old["spec"]["configSource"])) {
    return refuse(write,
                  cat(who, " is not allowed to update configSource to a new non-nil configSource"));
  }
  if (!(object["spec"]["taints"] == old["spec"]["taints"])) {
    return refuse(write, cat(who, " is not allowed to modify taints"));
  }
  if (!(object["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"])) {
    return refuse(write, cat(who, " is not allowed to modify ownerReferences"));
  }
  std::vector<std::string> forbidden = forbidden_labels(labels, old["metadata"]["labels"]);
  if (forbidden.empty()) return success();
  return refuse(write, cat("is not allowed to modify labels: ", join(forbidden, ", ")));
}

// --- tokens ---

/// The CSI driver behind a volume of a pod, "" where there is none.
std::string driver_of(const Value& pod, const Value& volume, const NodeLookups& lookups) {
  const Value& space = pod["metadata"]["namespace"];
  std::string claim = volume["persistentVolumeClaim"]["claimName"].str();
  if (volume["ephemeral"].is_object()) {
    claim = cat(pod["metadata"]["name"].as_string(), "-", volume["name"].as_string());
  }
  if (claim.empty()) return volume["csi"]["driver"].str();
  Result<Value> found = lookups.get("persistentvolumeclaims", space.as_string(), claim);
  if (!found.ok()) return {};
  Result<Value> stored =
      lookups.get("persistentvolumes", "", (*found)["spec"]["volumeName"].as_string());
  return stored.ok() ? (*stored)["spec"]["csi"]["driver"].str() : std::string();
}

bool pod_uses_audience(const Value& pod, std::string_view audience, const NodeLookups& lookups) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    for (const Value& source : volume["projected"]["sources"].items()) {
      const Value& token = source["serviceAccountToken"];
      if (token.is_object() && token["audience"].as_string() == audience) return true;
    }
    std::string driver = driver_of(pod, volume, lookups);
    if (driver.empty()) continue;
    Result<Value> found = lookups.get("csidrivers", "", driver);
    if (!found.ok()) continue;
    for (const Value& request : (*found)["spec"]["tokenRequests"].items()) {
      if (request["audience"].as_string() == audience) return true;
    }
  }
  return false;
}

Result<> check_token(const NodeWrite& write, const NodeLookups& lookups, const std::string& node) {
  if (write.operation != NodeOperation::create || write.subresource != "token") return success();
  const Value& spec = (*write.object)["spec"];
  const Value& bound = spec["boundObjectRef"];
  if (bound["apiVersion"].as_string() != "v1" || bound["kind"].as_string() != "Pod" ||
      bound["name"].as_string().empty()) {
    return refuse(write, "node requested token not bound to a pod");
  }
  if (bound["uid"].as_string().empty()) {
    return refuse(write, "node requested token with a pod binding without a uid");
  }
  DIBS_TRY(Value pod, look_up(write, lookups, "pods", write.name_space, bound["name"].as_string()));
  if (!(bound["uid"] == pod["metadata"]["uid"])) {
    return refuse(write,
                  cat("the UID in the bound object reference (", bound["uid"].as_string(),
                      ") does not match the UID in record. The object might have been deleted "
                      "and then recreated"));
  }
  if (pod["spec"]["nodeName"].as_string() != node) {
    return refuse(write, "node requested token bound to a pod scheduled on a different node");
  }
  if (spec["audiences"].size() > 1) {
    return refuse(write, "node may only request 0 or 1 audiences");
  }
  std::string audience = spec["audiences"][0].str();
  if (pod_uses_audience(pod, audience, lookups)) return success();
  RequestAttributes what;
  what.user = write.user;
  what.verb = "request-serviceaccounts-token-audience";
  what.group = write.group;
  what.version = "v1";
  what.resource = audience;
  what.name_space = write.name_space;
  what.name = write.name;
  if (lookups.authorize(what).allowed) return success();
  return refuse(write, cat(write.user.name, " is not authorized to request tokens for audience ",
                           quoted(audience)));
}

// --- others ---

std::string written_name(const NodeWrite& write) {
  if (write.operation == NodeOperation::create && write.object) {
    return (*write.object)["metadata"]["name"].str();
  }
  return std::string(write.name);
}

Result<> check_lease(const NodeWrite& write, const std::string& node) {
  if (write.name_space != kLeaseNamespace) {
    return refuse(
        write, cat("can only access leases in the ", quoted(kLeaseNamespace), " system namespace"));
  }
  if (written_name(write) == node) return success();
  return refuse(write, "can only access node lease with the same name as the requesting node");
}

Result<> check_claim_status(const NodeWrite& write, const std::string& node) {
  if (write.subresource != "status") return refuse(write, "may only update PVC status");
  if (write.operation != NodeOperation::update) return unexpected_operation(write);
  auto rest = [](Value claim) {
    claim.mut("metadata").erase("resourceVersion");
    claim.mut("metadata").erase("managedFields");
    Value& status = claim.mut("status");
    for (std::string_view key :
         {"capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"}) {
      status.erase(key);
    }
    return claim;
  };
  if (rest(*write.object) == rest(*write.old)) return success();
  return refuse(write, cat("node ", quoted(node),
                           " is not allowed to update fields other than status.quantity and "
                           "status.conditions"));
}

Result<> check_slice(const NodeWrite& write, const std::string& node) {
  bool creates = write.operation == NodeOperation::create;
  if (!creates && write.operation != NodeOperation::remove) return success();
  const Value* slice = creates ? write.object : write.old;
  if (slice) {
    // One of the classic model has no spec.
    const Value& own =
        slice->contains("nodeName") ? (*slice)["nodeName"] : (*slice)["spec"]["nodeName"];
    if (own.as_string() == node) return success();
  }
  return refuse(write, cat("can only ", creates ? "create" : "delete",
                           " ResourceSlice with the same NodeName as the requesting node"));
}

Result<> check_signing_request(const NodeWrite& write, const std::string& node) {
  if (write.operation != NodeOperation::create) return success();
  const Value& spec = (*write.object)["spec"];
  std::string_view signer = spec["signerName"].as_string();
  if (signer != "kubernetes.io/kubelet-serving" &&
      signer != "kubernetes.io/kube-apiserver-client-kubelet") {
    return success();
  }
  std::string pem;
  base64_decode(spec["request"].as_string(), pem);
  Result<net::SigningRequest> request = net::parse_signing_request(pem);
  if (!request.ok()) {
    return refuse(write, cat("unable to parse csr: ", request.error().message()));
  }
  if (request->common_name == cat("system:node:", node)) return success();
  return refuse(write, cat("can only create a node CSR with CN=system:node:", node));
}

// --- certificates of pods ---

bool pod_uses_signer(const Value& pod, std::string_view signer) {
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    for (const Value& source : volume["projected"]["sources"].items()) {
      const Value& wanted = source["podCertificate"];
      if (wanted.is_object() && wanted["signerName"].as_string() == signer) return true;
    }
  }
  return false;
}

/// An object that a request for a certificate names. One that is not there, or is not the one
/// meant, may be there soon: such an answer does not forbid to try again.
Result<Value> named_object(const NodeWrite& write, const NodeLookups& lookups,
                           std::string_view what, std::string_view resource,
                           std::string_view name_space, std::string_view name) {
  Result<Value> found = lookups.get(resource, name_space, name);
  if (found.ok()) return found;
  const std::string shown = name_space.empty() ? std::string(name) : cat(name_space, "/", name);
  const Error told = found.error().within(
      cat("while retrieving ", what, " ", quoted(shown), " named in the PodCertificateRequest"));
  if (found.error().code() == Code::not_found) return Error::plain(told.message());
  return refuse(write, told.message());
}

Result<> check_certificate_pod(const NodeWrite& write, const NodeLookups& lookups, const Value& pod,
                               const std::string& shown) {
  const Value& spec = (*write.object)["spec"];
  if (is_mirror_pod(pod)) return refuse(write, cat("pod ", shown, " is a mirror pod"));
  const Value& account = pod["spec"]["serviceAccountName"];
  if (spec["serviceAccountName"].as_string() != account.as_string()) {
    return refuse(write,
                  cat("PodCertificateRequest for pod ", shown, " contains serviceAccountName (",
                      quoted(spec["serviceAccountName"].as_string()),
                      ") that differs from running pod (", quoted(account.as_string()), ")"));
  }
  DIBS_TRY(const Value owner, named_object(write, lookups, "service account", "serviceaccounts",
                                           write.name_space, account.as_string()));
  const std::string_view uid = owner["metadata"]["uid"].as_string();
  if (spec["serviceAccountUID"].as_string() != uid) {
    return Error::plain(cat("PodCertificateRequest for pod ", shown, " names service account UID ",
                            quoted(spec["serviceAccountUID"].as_string()),
                            ", which differs from the running service account (", quoted(uid),
                            ")"));
  }
  const std::string signer = spec["signerName"].str();
  if (pod_uses_signer(pod, signer)) return success();
  RequestAttributes what;
  what.user = write.user;
  what.verb = "request-serviceaccounts-podcertificate-signer";
  what.group = write.group;
  what.version = "v1";
  // A resource cannot have a slash in its name.
  what.resource = signer;
  for (char& c : what.resource) c = c == '/' ? ':' : c;
  what.name_space = write.name_space;
  what.name = spec["serviceAccountName"].str();
  if (lookups.authorize(what).allowed) return success();
  return refuse(write,
                cat("pod ", shown, " does not mount a podCertificate projected volume for signer ",
                    quoted(signer)));
}

Result<> check_pod_certificate(const NodeWrite& write, const NodeLookups& lookups,
                               const std::string& node) {
  if (write.operation != NodeOperation::create) {
    return refuse(write, cat("unexpected operation ", name_of(write.operation)));
  }
  if (!write.subresource.empty()) {
    return refuse(write, cat("unexpected subresource ", write.subresource));
  }
  const Value& spec = (*write.object)["spec"];
  const std::string name = spec["nodeName"].str();
  const std::string pod_name = spec["podName"].str();
  const std::string shown = quoted(cat(write.name_space, "/", pod_name));
  if (name != node) {
    return refuse(write, cat("PodCertificateRequest.Spec.NodeName=", quoted(name),
                             ", which is not the requesting node ", quoted(node)));
  }
  DIBS_TRY(const Value own, named_object(write, lookups, "node", "nodes", "", name));
  const std::string_view node_uid = own["metadata"]["uid"].as_string();
  if (spec["nodeUID"].as_string() != node_uid) {
    return Error::plain(cat("PodCertificateRequest for pod ", shown, " names node UID ",
                            quoted(spec["nodeUID"].as_string()),
                            ", inconsistent with the running node (", quoted(node_uid), ")"));
  }
  DIBS_TRY(const Value pod,
           named_object(write, lookups, "pod", "pods", write.name_space, pod_name));
  const std::string_view pod_uid = pod["metadata"]["uid"].as_string();
  if (spec["podUID"].as_string() != pod_uid) {
    return Error::plain(cat("PodCertificateRequest for pod ", shown, " contains pod UID (",
                            quoted(spec["podUID"].as_string()), ") which differs from running pod ",
                            quoted(pod_uid)));
  }
  if (pod["spec"]["nodeName"].as_string() != name) {
    return refuse(write, cat("pod ", shown, " is not running on node ", quoted(name),
                             " named in the PodCertificateRequest"));
  }
  return check_certificate_pod(write, lookups, pod, shown);
}

Result<> check_core(const NodeWrite& write, const NodeLookups& lookups, const std::string& node) {
  if (write.resource == "pods") {
    if (write.subresource.empty()) return check_pod(write, lookups, node);
    if (write.subresource == "status") return check_pod_status(write, node);
    if (write.subresource == "eviction") return check_eviction(write, lookups, node);
    return refuse(write, cat("unexpected pod subresource ", quoted(write.subresource),
                             ", only 'status' and 'eviction' are allowed"));
  }
  if (write.resource == "nodes") return check_node_object(write, node);
  if (write.resource == "persistentvolumeclaims") return check_claim_status(write, node);
  if (write.resource == "serviceaccounts") return check_token(write, lookups, node);
  return success();
}

}  // namespace

Result<> check_node_write(const NodeWrite& write, const NodeLookups& lookups) {
  std::optional<std::string> node = node_identity(write.user);
  if (!node) return success();
  if (node->empty()) {
    return refuse(write, cat("could not determine node from user ", quoted(write.user.name)));
  }
  if (write.group.empty()) return check_core(write, lookups, *node);
  if (write.group == "coordination.k8s.io" && write.resource == "leases") {
    return check_lease(write, *node);
  }
  if (write.group == "storage.k8s.io" && write.resource == "csinodes") {
    if (written_name(write) == *node) return success();
    return refuse(write, "can only access CSINode with the same name as the requesting node");
  }
  if (write.group == "resource.k8s.io" && write.resource == "resourceslices") {
    return check_slice(write, *node);
  }
  if (write.group == "certificates.k8s.io" && write.resource == "certificatesigningrequests") {
    return check_signing_request(write, *node);
  }
  if (write.group == "certificates.k8s.io" && write.resource == "podcertificaterequests") {
    return check_pod_certificate(write, lookups, *node);
  }
  return success();
}

}  // namespace dibs::server::auth
