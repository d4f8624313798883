#include "server/auth/pod_references.h"

#include "base/strings.h"

namespace dibs::server::auth {
namespace {

using json::Value;

void visit_container(const Value& container, const VisitReference& visitor) {
  for (const Value& from : container["envFrom"].items()) {
    visitor("secrets", from["secretRef"]["name"].as_string());
    visitor("configmaps", from["configMapRef"]["name"].as_string());
  }
  for (const Value& env : container["env"].items()) {
    const Value& from = env["valueFrom"];
    visitor("secrets", from["secretKeyRef"]["name"].as_string());
    visitor("configmaps", from["configMapKeyRef"]["name"].as_string());
  }
}

void visit_volume(const Value& pod, const Value& volume, const VisitReference& visitor) {
  visitor("secrets", volume["secret"]["secretName"].as_string());
  visitor("secrets", volume["azureFile"]["secretName"].as_string());
  for (std::string_view source :
       {"cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"}) {
    visitor("secrets", volume[source]["secretRef"]["name"].as_string());
  }
  visitor("secrets", volume["csi"]["nodePublishSecretRef"]["name"].as_string());
  visitor("configmaps", volume["configMap"]["name"].as_string());
  for (const Value& source : volume["projected"]["sources"].items()) {
    visitor("secrets", source["secret"]["name"].as_string());
    visitor("configmaps", source["configMap"]["name"].as_string());
  }
  visitor("persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"].as_string());
  if (volume["ephemeral"].is_object()) {
    visitor("persistentvolumeclaims",
            cat(pod["metadata"]["name"].as_string(), "-", volume["name"].as_string()));
  }
}

void visit_claims(const Value& pod, const VisitReference& visitor) {
  const Value& status = pod["status"];
  for (const Value& claim : pod["spec"]["resourceClaims"].items()) {
    const Value& direct = claim["resourceClaimName"];
    if (!direct.as_string().empty()) {
      visitor("resourceclaims", direct.as_string());
      continue;
    }
    for (const Value& made : status["resourceClaimStatuses"].items()) {
      if (made["name"] == claim["name"]) {
        visitor("resourceclaims", made["resourceClaimName"].as_string());
      }
    }
  }
  visitor("resourceclaims", status["extendedResourceClaimStatus"]["resourceClaimName"].as_string());
}

}  // namespace

void visit_references(const Value& pod, const VisitReference& visitor) {
  VisitReference named = [&](std::string_view resource, std::string_view name) {
    if (!name.empty()) visitor(resource, name);
  };
  const Value& spec = pod["spec"];
  named("serviceaccounts", spec["serviceAccountName"].as_string());
  for (const Value& secret : spec["imagePullSecrets"].items()) {
    named("secrets", secret["name"].as_string());
  }
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const Value& container : spec[list].items()) visit_container(container, named);
  }
  for (const Value& volume : spec["volumes"].items()) visit_volume(pod, volume, named);
  visit_claims(pod, named);
}

std::string first_reference(const Value& pod) {
  std::string found;
  visit_references(pod, [&](std::string_view resource, std::string_view) {
    if (found.empty()) found = resource;
  });
  if (!found.empty()) return found;
  if (!pod["spec"]["resourceClaims"].empty()) return "resourceclaims";
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    for (const Value& source : volume["projected"]["sources"].items()) {
      if (source["serviceAccountToken"].is_object()) return "serviceaccounts";
      if (source["clusterTrustBundle"].is_object()) return "clustertrustbundles";
      if (source["podCertificate"].is_object()) return "podcertificates";
    }
  }
  return {};
}

bool is_mirror_pod(const Value& pod) {
  return pod["metadata"]["annotations"].contains("kubernetes.io/config.mirror");
}

}  // namespace dibs::server::auth
