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
    // Releases up to 1.30 have the names one level deeper.
    const Value& source = claim["source"].is_object() ? claim["source"] : claim;
    const Value& direct = source["resourceClaimName"];
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
  const Value& spec = pod["spec"];
  if (!spec["serviceAccountName"].as_string().empty()) return "serviceaccounts";
  bool secrets = false;
  bool maps = false;
  visit_references(pod, [&](std::string_view resource, std::string_view) {
    secrets = secrets || resource == "secrets";
    maps = maps || resource == "configmaps";
  });
  if (secrets) return "secrets";
  if (maps) return "configmaps";
  if (!spec["resourceClaims"].empty()) return "resourceclaims";
  struct Source {
    std::string_view key;
    std::string_view refers;
  };
  constexpr Source kSources[] = {{"configMap", "configmaps (via configmap volumes)"},
                                 {"secret", "secrets (via secret volumes)"},
                                 {"csi", "csidrivers (via CSI volumes)"},
                                 {"glusterfs", "endpoints (via glusterFS volumes)"},
                                 {"persistentVolumeClaim", "persistentvolumeclaims"},
                                 {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
                                 {"azureFile", "secrets (via azureFile volumes)"}};
  constexpr Source kProjected[] = {
      {"configMap", "configmaps (via projected volumes)"},
      {"secret", "secrets (via projected volumes)"},
      {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
      {"clusterTrustBundle", "clustertrustbundles"},
      {"podCertificate", "podcertificates"}};
  for (const Value& volume : spec["volumes"].items()) {
    for (const Source& source : kSources) {
      if (volume[source.key].is_object()) return std::string(source.refers);
    }
    for (const Value& projected : volume["projected"]["sources"].items()) {
      for (const Source& source : kProjected) {
        if (projected[source.key].is_object()) return std::string(source.refers);
      }
    }
  }
  return {};
}

bool is_mirror_pod(const Value& pod) {
  return pod["metadata"]["annotations"].contains("kubernetes.io/config.mirror");
}

}  // namespace dibs::server::auth
