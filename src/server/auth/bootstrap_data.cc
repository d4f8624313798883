#include "server/auth/bootstrap_data.h"

namespace dibs::server::auth {

// clang-format off
const std::string_view kClusterRoles = R"(
cluster-role admin from-admin
cluster-role cluster-admin
  * * *
  * url *
cluster-role edit to-admin from-edit
cluster-role system:aggregate-to-admin to-admin
  create authorization.k8s.io localsubjectaccessreviews
  manage rbac.authorization.k8s.io rolebindings,roles
cluster-role system:aggregate-to-edit to-edit
  read core pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
  impersonate core serviceaccounts
  write core pods,pods/attach,pods/exec,pods/portforward,pods/proxy
  create core pods/eviction
  write core configmaps,persistentvolumeclaims,replicationcontrollers,
      replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy
  create core serviceaccounts/token
  write core,events.k8s.io events
  write apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,
      replicasets/scale,statefulsets,statefulsets/scale
  write autoscaling horizontalpodautoscalers
  write batch cronjobs,jobs
  write extensions daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,
      networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale
  write policy poddisruptionbudgets
  write networking.k8s.io ingresses,networkpolicies
  manage coordination.k8s.io leases
  write resource.k8s.io resourceclaims,resourceclaimtemplates
  groups: write scheduling.k8s.io podgroups,workloads
  composites: write scheduling.k8s.io compositepodgroups
cluster-role system:aggregate-to-view to-view
  read core configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,
      replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,
      services/status
  read core bindings,limitranges,namespaces/status,pods/log,pods/status,
      replicationcontrollers/status,resourcequotas,resourcequotas/status
  read core namespaces
  read core,events.k8s.io events
  read discovery.k8s.io endpointslices
  read apps controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,
      deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,
      statefulsets/scale,statefulsets/status
  read autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status
  read batch cronjobs,cronjobs/status,jobs,jobs/status
  read extensions daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,
      ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,
      replicasets/status,replicationcontrollers/scale
  read policy poddisruptionbudgets,poddisruptionbudgets/status
  read networking.k8s.io ingresses,ingresses/status,networkpolicies
  read resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates
  groups: read scheduling.k8s.io podgroups,podgroups/status,workloads
  composites: read scheduling.k8s.io compositepodgroups,compositepodgroups/status
cluster-role system:auth-delegator
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
cluster-role system:basic-user
  create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
  create authentication.k8s.io selfsubjectreviews
cluster-role system:certificates.k8s.io:certificatesigningrequests:nodeclient
  create certificates.k8s.io certificatesigningrequests/nodeclient
cluster-role system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  create certificates.k8s.io certificatesigningrequests/selfnodeclient
cluster-role system:certificates.k8s.io:kube-apiserver-client-approver
  approve certificates.k8s.io signers named kubernetes.io/kube-apiserver-client
cluster-role system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  approve certificates.k8s.io signers named kubernetes.io/kube-apiserver-client-kubelet
cluster-role system:certificates.k8s.io:kubelet-serving-approver
  approve certificates.k8s.io signers named kubernetes.io/kubelet-serving
cluster-role system:certificates.k8s.io:legacy-unknown-approver
  approve certificates.k8s.io signers named kubernetes.io/legacy-unknown
cluster-role system:cluster-trust-bundle-discovery
  read certificates.k8s.io clustertrustbundles
cluster-role system:discovery
  get url /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,
      /version/
cluster-role system:heapster
  read core events,namespaces,nodes,pods
  read extensions deployments
cluster-role system:kube-aggregator
  read core endpoints,services
cluster-role system:kube-controller-manager
  create,patch,update core,events.k8s.io events
  create coordination.k8s.io leases
  get,update coordination.k8s.io leases named kube-controller-manager
  create core secrets,serviceaccounts
  delete core secrets
  get core configmaps,namespaces,secrets,serviceaccounts
  update core secrets,serviceaccounts
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  list,watch * *
  create core serviceaccounts/token
cluster-role system:kube-dns
  list,watch core endpoints,services
cluster-role system:kube-scheduler
  create,patch,update core,events.k8s.io events
  create coordination.k8s.io leases
  get,list,update,watch coordination.k8s.io leases named kube-scheduler
  manage coordination.k8s.io leasecandidates
  read core nodes
  delete,get,list,watch core pods
  create core bindings,pods/binding
  patch,update core pods/status
  read core replicationcontrollers,services
  read apps,extensions replicasets
  read apps statefulsets
  read policy poddisruptionbudgets
  read core persistentvolumeclaims,persistentvolumes
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  read storage.k8s.io csinodes
  read storage.k8s.io volumeattachments
  read core namespaces
  read storage.k8s.io csidrivers
  read storage.k8s.io csistoragecapacities
  structured: read resource.k8s.io deviceclasses
  get,list,patch,update,watch resource.k8s.io resourceclaims
  get,list,patch,update,watch resource.k8s.io resourceclaims/status
  update core pods/finalizers
  read resource.k8s.io resourceslices
  structured: create,delete resource.k8s.io resourceclaims
  structured: read resource.k8s.io devicetaintrules
  structured: patch,update resource.k8s.io resourceclaims/binding
  classic: read resource.k8s.io resourceclaimparameters,resourceclasses,resourceclassparameters
  classic: manage resource.k8s.io podschedulingcontexts
  classic: read resource.k8s.io podschedulingcontexts/status
  groups: read scheduling.k8s.io podgroups
  groups: patch,update scheduling.k8s.io podgroups/status
  composites: read scheduling.k8s.io compositepodgroups
  composites: patch,update scheduling.k8s.io compositepodgroups/status
cluster-role system:kubelet-api-admin
  read core nodes
  proxy core nodes
  * core nodes/log,nodes/metrics,nodes/proxy,nodes/stats
  * core nodes/configz,nodes/healthz,nodes/pods
cluster-role system:monitoring
  get url /flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,
      /statusz
  get core nodes/metrics
cluster-role system:node
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews
  read core services
  create,get,list,watch core nodes
  patch,update core nodes/status
  patch,update core nodes
  create,patch,update core,events.k8s.io events
  read core pods
  create,delete core pods
  patch,update core pods/status
  create core pods/eviction
  read core configmaps,secrets
  get core persistentvolumeclaims,persistentvolumes
  get core endpoints
  create,get,list,watch certificates.k8s.io certificatesigningrequests
  create,delete,get,patch,update coordination.k8s.io leases
  get storage.k8s.io volumeattachments
  create core serviceaccounts/token
  get,patch,update core persistentvolumeclaims/status
  read storage.k8s.io csidrivers
  create,delete,get,patch,update storage.k8s.io csinodes
  read node.k8s.io runtimeclasses
  get resource.k8s.io resourceclaims
  deletecollection resource.k8s.io resourceslices
  read certificates.k8s.io clustertrustbundles
  get core serviceaccounts
  create,get,list,watch certificates.k8s.io podcertificaterequests
cluster-role system:node-bootstrapper
  create,get,list,watch certificates.k8s.io certificatesigningrequests
cluster-role system:node-problem-detector
  get core nodes
  patch core nodes/status
  create,patch,update core,events.k8s.io events
cluster-role system:node-proxier
  list,watch core endpoints,services
  read core nodes
  create,patch,update core,events.k8s.io events
  list,watch networking.k8s.io servicecidrs
  list,watch discovery.k8s.io endpointslices
cluster-role system:persistent-volume-provisioner
  create,delete,get,list,watch core persistentvolumes
  get,list,update,watch core persistentvolumeclaims
  read storage.k8s.io storageclasses
  watch core events
  create,patch,update core,events.k8s.io events
cluster-role system:public-info-viewer
  get url /healthz,/livez,/readyz,/version,/version/
cluster-role system:service-account-issuer-discovery
  get url /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,
      /openid/v1/jwks/
cluster-role system:volume-scheduler
  get,list,patch,update,watch core persistentvolumes
  read storage.k8s.io storageclasses
  get,list,patch,update,watch core persistentvolumeclaims
cluster-role view to-edit from-view
)";

const std::string_view kClusterBindings = R"(
cluster-binding cluster-admin = group:system:masters
cluster-binding system:basic-user = group:system:authenticated
cluster-binding system:cluster-trust-bundle-discovery = group:system:serviceaccounts
cluster-binding system:discovery = group:system:authenticated
cluster-binding system:kube-controller-manager = user:system:kube-controller-manager
cluster-binding system:kube-dns = account:kube-system/kube-dns
cluster-binding system:kube-scheduler = user:system:kube-scheduler
cluster-binding system:kubelet-api-admin = user:kube-apiserver-kubelet-client
cluster-binding system:monitoring = group:system:monitoring
cluster-binding system:node =
cluster-binding system:node-proxier = user:system:kube-proxy
cluster-binding system:public-info-viewer = group:system:authenticated
      group:system:unauthenticated
cluster-binding system:service-account-issuer-discovery = group:system:serviceaccounts
cluster-binding system:volume-scheduler = user:system:kube-scheduler
cluster-binding system:controller:attachdetach-controller =
      account:kube-system/attachdetach-controller
cluster-binding system:controller:certificate-controller =
      account:kube-system/certificate-controller
cluster-binding system:controller:clusterrole-aggregation-controller =
      account:kube-system/clusterrole-aggregation-controller
cluster-binding system:controller:cronjob-controller = account:kube-system/cronjob-controller
cluster-binding system:controller:daemon-set-controller =
      account:kube-system/daemon-set-controller
cluster-binding system:controller:deployment-controller =
      account:kube-system/deployment-controller
cluster-binding system:controller:device-taint-eviction-controller =
      account:kube-system/device-taint-eviction-controller
cluster-binding system:controller:disruption-controller =
      account:kube-system/disruption-controller
cluster-binding system:controller:endpoint-controller = account:kube-system/endpoint-controller
cluster-binding system:controller:endpointslice-controller =
      account:kube-system/endpointslice-controller
cluster-binding system:controller:endpointslicemirroring-controller =
      account:kube-system/endpointslicemirroring-controller
cluster-binding system:controller:ephemeral-volume-controller =
      account:kube-system/ephemeral-volume-controller
cluster-binding system:controller:expand-controller = account:kube-system/expand-controller
cluster-binding system:controller:generic-garbage-collector =
      account:kube-system/generic-garbage-collector
cluster-binding system:controller:horizontal-pod-autoscaler =
      account:kube-system/horizontal-pod-autoscaler
cluster-binding system:controller:job-controller = account:kube-system/job-controller
cluster-binding system:controller:kube-apiserver-serving-clustertrustbundle-publisher =
      account:kube-system/kube-apiserver-serving-clustertrustbundle-publisher
cluster-binding system:controller:legacy-service-account-token-cleaner =
      account:kube-system/legacy-service-account-token-cleaner
cluster-binding system:controller:namespace-controller =
      account:kube-system/namespace-controller
cluster-binding system:controller:node-controller = account:kube-system/node-controller
cluster-binding system:controller:persistent-volume-binder =
      account:kube-system/persistent-volume-binder
cluster-binding system:controller:pod-garbage-collector =
      account:kube-system/pod-garbage-collector
cluster-binding system:controller:podcertificaterequestcleaner =
      account:kube-system/podcertificaterequestcleaner
cluster-binding system:controller:pv-protection-controller =
      account:kube-system/pv-protection-controller
cluster-binding system:controller:pvc-protection-controller =
      account:kube-system/pvc-protection-controller
cluster-binding system:controller:replicaset-controller =
      account:kube-system/replicaset-controller
cluster-binding system:controller:replication-controller =
      account:kube-system/replication-controller
cluster-binding system:controller:resource-claim-controller =
      account:kube-system/resource-claim-controller
cluster-binding system:controller:resourcequota-controller =
      account:kube-system/resourcequota-controller
cluster-binding system:controller:root-ca-cert-publisher =
      account:kube-system/root-ca-cert-publisher
cluster-binding system:controller:route-controller = account:kube-system/route-controller
cluster-binding system:controller:selinux-warning-controller =
      account:kube-system/selinux-warning-controller
cluster-binding system:controller:service-account-controller =
      account:kube-system/service-account-controller
cluster-binding system:controller:service-cidrs-controller =
      account:kube-system/service-cidrs-controller
cluster-binding system:controller:service-controller = account:kube-system/service-controller
cluster-binding system:controller:statefulset-controller =
      account:kube-system/statefulset-controller
cluster-binding system:controller:storage-version-migrator-controller =
      account:kube-system/storage-version-migrator-controller
cluster-binding system:controller:ttl-after-finished-controller =
      account:kube-system/ttl-after-finished-controller
cluster-binding system:controller:ttl-controller = account:kube-system/ttl-controller
cluster-binding system:controller:validatingadmissionpolicy-status-controller =
      account:kube-system/validatingadmissionpolicy-status-controller
cluster-binding system:controller:volumeattributesclass-protection-controller =
      account:kube-system/volumeattributesclass-protection-controller
)";

const std::string_view kNamespaced = R"(
role kube-public/system:controller:bootstrap-signer
  read core configmaps
  update core configmaps named cluster-info
  create,patch,update core,events.k8s.io events
role kube-system/extension-apiserver-authentication-reader
  read core configmaps named extension-apiserver-authentication
role kube-system/system::leader-locking-kube-controller-manager
  create,get,list,update,watch coordination.k8s.io leases
  create,get,list,update,watch coordination.k8s.io leasecandidates
role kube-system/system::leader-locking-kube-scheduler
  create,get,list,update,watch coordination.k8s.io leases
  create,get,list,update,watch coordination.k8s.io leasecandidates
role kube-system/system:controller:bootstrap-signer
  read core secrets
role kube-system/system:controller:cloud-provider
  create,get,list,watch core configmaps
role kube-system/system:controller:token-cleaner
  delete,get,list,watch core secrets
  create,patch,update core,events.k8s.io events
binding kube-public/system:controller:bootstrap-signer role:system:controller:bootstrap-signer
      account:kube-system/bootstrap-signer
binding kube-system/system::extension-apiserver-authentication-reader
      role:extension-apiserver-authentication-reader user:system:kube-controller-manager
      user:system:kube-scheduler
binding kube-system/system::leader-locking-kube-controller-manager
      role:system::leader-locking-kube-controller-manager user:system:kube-controller-manager
      account:kube-system/kube-controller-manager account:kube-system/leader-election-controller
binding kube-system/system::leader-locking-kube-scheduler
      role:system::leader-locking-kube-scheduler user:system:kube-scheduler
      account:kube-system/kube-scheduler
binding kube-system/system:controller:bootstrap-signer role:system:controller:bootstrap-signer
      account:kube-system/bootstrap-signer
binding kube-system/system:controller:cloud-provider role:system:controller:cloud-provider
      account:kube-system/cloud-provider
binding kube-system/system:controller:token-cleaner role:system:controller:token-cleaner
      account:kube-system/token-cleaner
)";
// clang-format on

}  // namespace dibs::server::auth
