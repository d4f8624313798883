"""What the facts do not say: names of the API, Go's type names, enumerations, releases, and the wire side of two groups."""

GROUPS = {
    "core": "", "admissionregistration": "admissionregistration.k8s.io", "apiextensions": "apiextensions.k8s.io",
    "apiregistration": "apiregistration.k8s.io", "authentication": "authentication.k8s.io",
    "authorization": "authorization.k8s.io", "certificates": "certificates.k8s.io",
    "coordination": "coordination.k8s.io", "discovery": "discovery.k8s.io", "events": "events.k8s.io",
    "node": "node.k8s.io", "rbac": "rbac.authorization.k8s.io", "resource": "resource.k8s.io",
    "scheduling": "scheduling.k8s.io", "storage": "storage.k8s.io",
}

GROUP_ORDER = [
    ("", ["v1"]), ("apiregistration.k8s.io", ["v1"]), ("apps", ["v1"]), ("events.k8s.io", ["v1"]),
    ("authentication.k8s.io", ["v1"]), ("authorization.k8s.io", ["v1"]), ("autoscaling", ["v1"]), ("batch", ["v1"]),
    ("certificates.k8s.io", ["v1"]), ("policy", ["v1"]), ("rbac.authorization.k8s.io", ["v1"]),
    ("storage.k8s.io", ["v1"]), ("admissionregistration.k8s.io", ["v1"]), ("apiextensions.k8s.io", ["v1"]),
    ("scheduling.k8s.io", ["v1", "v1beta1", "v1alpha2"]), ("coordination.k8s.io", ["v1"]), ("node.k8s.io", ["v1"]),
    ("discovery.k8s.io", ["v1"]), ("resource.k8s.io", ["v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"]),
]

# Releases (minor numbers) that serve a version: "34-", "27-30". Absent: all.
RELEASES = {
    "resource/v1": "34-", "resource/v1beta2": "33-", "resource/v1beta1": "32-", "resource/v1alpha3": "31-",
    "resource/v1alpha2": "27-30", "scheduling/v1alpha2": "36-36", "scheduling/v1beta1": "37-",
}

# Types of the facts that have no place here.
LEFT_OUT = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
}
# Kinds that the facts do not mark as such.
KINDS = {"io.k8s.apimachinery.pkg.apis.meta.v1." + kind for kind in (
    "DeleteOptions", "Status", "WatchEvent", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions")}
NOT_SERVED = {"componentstatuses"}

SHORT_NAMES = {
    ("", "configmaps"): ["cm"], ("", "endpoints"): ["ep"], ("", "events"): ["ev"], ("", "limitranges"): ["limits"],
    ("", "namespaces"): ["ns"], ("", "nodes"): ["no"], ("", "persistentvolumeclaims"): ["pvc"],
    ("", "persistentvolumes"): ["pv"], ("", "pods"): ["po"], ("", "replicationcontrollers"): ["rc"],
    ("", "resourcequotas"): ["quota"], ("", "serviceaccounts"): ["sa"], ("", "services"): ["svc"],
    ("apps", "daemonsets"): ["ds"], ("apps", "deployments"): ["deploy"], ("apps", "replicasets"): ["rs"],
    ("apps", "statefulsets"): ["sts"], ("batch", "cronjobs"): ["cj"],
    ("certificates.k8s.io", "certificatesigningrequests"): ["csr"], ("events.k8s.io", "events"): ["ev"],
    ("policy", "poddisruptionbudgets"): ["pdb"], ("scheduling.k8s.io", "priorityclasses"): ["pc"],
    ("storage.k8s.io", "storageclasses"): ["sc"], ("storage.k8s.io", "volumeattributesclasses"): ["vac"],
    ("apiextensions.k8s.io", "customresourcedefinitions"): ["crd", "crds"],
}
CATEGORIES = {
    ("", "pods"): ["all"], ("", "replicationcontrollers"): ["all"], ("", "services"): ["all"],
    ("apps", "daemonsets"): ["all"], ("apps", "deployments"): ["all"], ("apps", "replicasets"): ["all"],
    ("apps", "statefulsets"): ["all"], ("batch", "cronjobs"): ["all"], ("batch", "jobs"): ["all"],
    ("apiextensions.k8s.io", "customresourcedefinitions"): ["api-extensions"],
    ("apiregistration.k8s.io", "apiservices"): ["api-extensions"],
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): ["api-extensions"],
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): ["api-extensions"],
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): ["api-extensions"],
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): ["api-extensions"],
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): ["api-extensions"],
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): ["api-extensions"],
}
SUB_KINDS = {"Scale": "autoscaling/v1.Scale", "Eviction": "policy/v1.Eviction", "TokenRequest": "authentication.k8s.io/v1.TokenRequest"}

# Keys below /registry/, where they are not the plural; one that begins with "/" is whole.
PREFIXES = {
    ("", "nodes"): "minions", ("", "services"): "services/specs", ("", "endpoints"): "services/endpoints",
    ("", "replicationcontrollers"): "controllers",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
    ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
    ("resource.k8s.io", "resourceclasses"): "resourceclasses",
    ("resource.k8s.io", "podschedulingcontexts"): "podschedulingcontexts",
    ("resource.k8s.io", "resourceclaimparameters"): "resourceclaimparameters",
    ("resource.k8s.io", "resourceclassparameters"): "resourceclassparameters",
}
# The version that storageVersionHash names.
STORAGE = {
    ("resource.k8s.io", "deviceclasses"): "v1", ("resource.k8s.io", "resourceclaims"): "v1",
    ("resource.k8s.io", "resourceclaimtemplates"): "v1", ("resource.k8s.io", "resourceslices"): "v1",
    ("resource.k8s.io", "devicetaintrules"): "v1beta2", ("resource.k8s.io", "resourcepoolstatusrequests"): "v1alpha3",
    ("scheduling.k8s.io", "podgroups"): "v1beta1", ("scheduling.k8s.io", "workloads"): "v1beta1",
}
# The group-version in which ours are stored.
HUBS = {
    ("events.k8s.io", "events"): ("", "v1"),
    ("resource.k8s.io", "deviceclasses"): ("resource.k8s.io", "v1"),
    ("resource.k8s.io", "resourceclaims"): ("resource.k8s.io", "v1"),
    ("resource.k8s.io", "resourceclaimtemplates"): ("resource.k8s.io", "v1"),
    ("resource.k8s.io", "resourceslices"): ("resource.k8s.io", "v1"),
    ("resource.k8s.io", "devicetaintrules"): ("resource.k8s.io", "v1"),
    ("scheduling.k8s.io", "podgroups"): ("scheduling.k8s.io", "v1beta1"),
    ("scheduling.k8s.io", "workloads"): ("scheduling.k8s.io", "v1beta1"),
}

# Versions of releases whose decoder did not name embedded structs in its messages.
UNTOLD = {"resource/v1alpha2"}

# Structs that are left out when zero.
OMIT_ZERO = {("meta/v1", "ObjectMeta", "creationTimestamp")}
PLAIN = {}


def _wire(package, text):
    """Lines of `Type: field number p|v omit|keep|inline[=Part], ...`."""
    found = {}
    for line in filter(None, (l.strip() for l in text.splitlines())):
        name, _, fields = line.partition(":")
        rows = {}
        for part in fields.split(","):
            field, number, pointer, zero = part.split()
            kind = ""
            if "=" in zero:
                zero, kind = zero.split("=")
            rows[field] = (int(number), "opt", kind, pointer == "p", zero)
        found[(package, name)] = rows
    return found


WIRE = {}
WIRE.update(_wire("apiregistration/v1", """
  APIService: metadata 1 v omit, spec 2 v omit, status 3 v omit
  APIServiceList: metadata 1 v omit, items 2 v keep
  APIServiceSpec: service 1 p omit, group 2 v omit, version 3 v omit, insecureSkipTLSVerify 4 v omit, caBundle 5 v omit, groupPriorityMinimum 7 v keep, versionPriority 8 v keep
  APIServiceStatus: conditions 1 v omit
  APIServiceCondition: type 1 v keep, status 2 v keep, lastTransitionTime 3 v omit, reason 4 v omit, message 5 v omit
  ServiceReference: namespace 1 v omit, name 2 v omit, port 3 p omit
"""))
WIRE.update(_wire("resource/v1alpha2", """
  AllocationResult: resourceHandles 1 v omit, availableOnNodes 2 p omit, shareable 3 v omit
  AllocationResultModel: namedResources 1 p omit
  DriverAllocationResult: vendorRequestParameters 1 v omit, allocationResultModel 2 v inline=AllocationResultModel
  DriverRequests: driverName 1 v omit, vendorParameters 2 v omit, requests 3 v omit
  NamedResourcesAllocationResult: name 1 v keep
  NamedResourcesAttribute: name 1 v keep, attributeValue 2 v inline=NamedResourcesAttributeValue
  NamedResourcesAttributeValue: quantity 6 p omit, bool 2 p omit, int 7 p omit, intSlice 8 p omit, string 5 p omit, stringSlice 9 p omit, version 10 p omit
  NamedResourcesFilter: selector 1 v keep
  NamedResourcesInstance: name 1 v keep, attributes 2 v omit
  NamedResourcesIntSlice: ints 1 v keep
  NamedResourcesRequest: selector 1 v keep
  NamedResourcesResources: instances 1 v keep
  NamedResourcesStringSlice: strings 1 v keep
  PodSchedulingContext: metadata 1 v omit, spec 2 v keep, status 3 v omit
  PodSchedulingContextList: metadata 1 v omit, items 2 v keep
  PodSchedulingContextSpec: selectedNode 1 v omit, potentialNodes 2 v omit
  PodSchedulingContextStatus: resourceClaims 1 v omit
  ResourceClaim: metadata 1 v omit, spec 2 v keep, status 3 v omit
  ResourceClaimConsumerReference: apiGroup 1 v omit, resource 3 v keep, name 4 v keep, uid 5 v keep
  ResourceClaimList: metadata 1 v omit, items 2 v keep
  ResourceClaimParameters: metadata 1 v omit, generatedFrom 2 p omit, shareable 3 v omit, driverRequests 4 v omit
  ResourceClaimParametersList: metadata 1 v omit, items 2 v keep
  ResourceClaimParametersReference: apiGroup 1 v omit, kind 2 v keep, name 3 v keep
  ResourceClaimSchedulingStatus: name 1 v omit, unsuitableNodes 2 v omit
  ResourceClaimSpec: resourceClassName 1 v keep, parametersRef 2 p omit, allocationMode 3 v omit
  ResourceClaimStatus: driverName 1 v omit, allocation 2 p omit, reservedFor 3 v omit, deallocationRequested 4 v omit
  ResourceClaimTemplate: metadata 1 v omit, spec 2 v keep
  ResourceClaimTemplateList: metadata 1 v omit, items 2 v keep
  ResourceClaimTemplateSpec: metadata 1 v omit, spec 2 v keep
  ResourceClass: metadata 1 v omit, driverName 2 v keep, parametersRef 3 p omit, suitableNodes 4 p omit, structuredParameters 5 p omit
  ResourceClassList: metadata 1 v omit, items 2 v keep
  ResourceClassParameters: metadata 1 v omit, generatedFrom 2 p omit, vendorParameters 3 v omit, filters 4 v omit
  ResourceClassParametersList: metadata 1 v omit, items 2 v keep
  ResourceClassParametersReference: apiGroup 1 v omit, kind 2 v keep, name 3 v keep, namespace 4 v omit
  ResourceFilter: driverName 1 v omit, resourceFilterModel 2 v inline=ResourceFilterModel
  ResourceFilterModel: namedResources 1 p omit
  ResourceHandle: driverName 1 v omit, data 2 v omit, structuredData 5 p omit
  ResourceModel: namedResources 1 p omit
  ResourceRequest: vendorParameters 1 v omit, resourceRequestModel 2 v inline=ResourceRequestModel
  ResourceRequestModel: namedResources 1 p omit
  ResourceSlice: metadata 1 v omit, nodeName 2 v omit, driverName 3 v keep, resourceModel 4 v inline=ResourceModel
  ResourceSliceList: metadata 1 v omit, items 2 v keep
  StructuredResourceHandle: vendorClassParameters 1 v omit, vendorClaimParameters 2 v omit, nodeName 4 v omit, results 5 v keep
  VendorParameters: driverName 1 v omit, parameters 2 v omit
"""))


def _go(text):
    """Lines of `package GoType Type.field ...`; package * for any."""
    found = {}
    for line in filter(None, (l.strip() for l in text.splitlines())):
        package, go, *fields = line.split()
        for f in fields:
            name, _, field = f.partition(".")
            found[(package, name, field)] = go
    return found


# Names that show in decoding errors: `of type v1.PullPolicy`.
GO_TYPES = _go("""
  meta/v1 types.UID ObjectMeta.uid OwnerReference.uid Preconditions.uid StatusDetails.uid
  meta/v1 LabelSelectorOperator LabelSelectorRequirement.operator
  meta/v1 ConditionStatus Condition.status
  meta/v1 DeletionPropagation DeleteOptions.propagationPolicy
  meta/v1 ManagedFieldsOperationType ManagedFieldsEntry.operation
  meta/v1 StatusReason Status.reason
  meta/v1 CauseType StatusCause.reason
  core/v1 types.UID ObjectReference.uid
  core/v1 PullPolicy Container.imagePullPolicy EphemeralContainer.imagePullPolicy EphemeralContainerCommon.imagePullPolicy ImageVolumeSource.pullPolicy
  core/v1 TerminationMessagePolicy Container.terminationMessagePolicy EphemeralContainer.terminationMessagePolicy EphemeralContainerCommon.terminationMessagePolicy
  core/v1 RestartPolicy PodSpec.restartPolicy
  core/v1 ContainerRestartPolicy Container.restartPolicy EphemeralContainer.restartPolicy EphemeralContainerCommon.restartPolicy
  core/v1 DNSPolicy PodSpec.dnsPolicy
  core/v1 PreemptionPolicy PodSpec.preemptionPolicy
  core/v1 Protocol ContainerPort.protocol ServicePort.protocol EndpointPort.protocol PortStatus.protocol
  core/v1 URIScheme HTTPGetAction.scheme
  core/v1 TaintEffect Taint.effect Toleration.effect
  core/v1 TolerationOperator Toleration.operator
  core/v1 NodeSelectorOperator NodeSelectorRequirement.operator
  core/v1 UnsatisfiableConstraintAction TopologySpreadConstraint.whenUnsatisfiable
  core/v1 NodeInclusionPolicy TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy
  core/v1 ServiceType ServiceSpec.type
  core/v1 ServiceAffinity ServiceSpec.sessionAffinity
  core/v1 ServiceExternalTrafficPolicy ServiceSpec.externalTrafficPolicy
  core/v1 ServiceInternalTrafficPolicy ServiceSpec.internalTrafficPolicy
  core/v1 IPFamily ServiceSpec.ipFamilies
  core/v1 IPFamilyPolicy ServiceSpec.ipFamilyPolicy
  core/v1 SecretType Secret.type
  core/v1 PodPhase PodStatus.phase
  core/v1 PodQOSClass PodStatus.qosClass
  core/v1 PodResizeStatus PodStatus.resize
  core/v1 PodConditionType PodCondition.type PodReadinessGate.conditionType
  core/v1 ConditionStatus PodCondition.status NodeCondition.status NamespaceCondition.status ReplicationControllerCondition.status ComponentCondition.status PersistentVolumeClaimCondition.status
  core/v1 NodeConditionType NodeCondition.type
  core/v1 NodeAddressType NodeAddress.type
  core/v1 NamespacePhase NamespaceStatus.phase
  core/v1 NamespaceConditionType NamespaceCondition.type
  core/v1 FinalizerName NamespaceSpec.finalizers
  core/v1 PersistentVolumeAccessMode PersistentVolumeSpec.accessModes PersistentVolumeClaimSpec.accessModes PersistentVolumeClaimStatus.accessModes
  core/v1 PersistentVolumeMode PersistentVolumeSpec.volumeMode PersistentVolumeClaimSpec.volumeMode
  core/v1 PersistentVolumeReclaimPolicy PersistentVolumeSpec.persistentVolumeReclaimPolicy
  core/v1 PersistentVolumeClaimPhase PersistentVolumeClaimStatus.phase
  core/v1 PersistentVolumePhase PersistentVolumeStatus.phase
  core/v1 HostPathType HostPathVolumeSource.type
  core/v1 StorageMedium EmptyDirVolumeSource.medium
  core/v1 MountPropagationMode VolumeMount.mountPropagation
  core/v1 RecursiveReadOnlyMode VolumeMount.recursiveReadOnly
  core/v1 Capability Capabilities.add Capabilities.drop
  core/v1 ProcMountType SecurityContext.procMount
  core/v1 SeccompProfileType SeccompProfile.type
  core/v1 AppArmorProfileType AppArmorProfile.type
  core/v1 PodFSGroupChangePolicy PodSecurityContext.fsGroupChangePolicy
  core/v1 SupplementalGroupsPolicy PodSecurityContext.supplementalGroupsPolicy
  core/v1 OSName PodOS.name
  core/v1 LimitType LimitRangeItem.type
  core/v1 ResourceQuotaScope ResourceQuotaSpec.scopes ScopedResourceSelectorRequirement.scopeName
  core/v1 ScopeSelectorOperator ScopedResourceSelectorRequirement.operator
  core/v1 ResourceName ContainerResizePolicy.resourceName
  core/v1 ResourceResizeRestartPolicy ContainerResizePolicy.restartPolicy
  core/v1 AzureDataDiskCachingMode AzureDiskVolumeSource.cachingMode
  core/v1 AzureDataDiskKind AzureDiskVolumeSource.kind
  core/v1 Signal Lifecycle.stopSignal ContainerStatus.stopSignal
  core/v1 ResourceList ResourceRequirements.limits ResourceRequirements.requests VolumeResourceRequirements.limits VolumeResourceRequirements.requests PersistentVolumeSpec.capacity PersistentVolumeClaimStatus.capacity PersistentVolumeClaimStatus.allocatedResources NodeStatus.capacity NodeStatus.allocatable PodSpec.overhead ContainerStatus.allocatedResources PodStatus.allocatedResources ResourceQuotaSpec.hard ResourceQuotaStatus.hard ResourceQuotaStatus.used LimitRangeItem.max LimitRangeItem.min LimitRangeItem.default LimitRangeItem.defaultRequest LimitRangeItem.maxLimitRequestRatio
  node/v1 ResourceList Overhead.podFixed
  apps/v1 DeploymentStrategyType DeploymentStrategy.type
  apps/v1 DaemonSetUpdateStrategyType DaemonSetUpdateStrategy.type
  apps/v1 StatefulSetUpdateStrategyType StatefulSetUpdateStrategy.type
  apps/v1 PodManagementPolicyType StatefulSetSpec.podManagementPolicy
  apps/v1 DeploymentConditionType DeploymentCondition.type
  apps/v1 ReplicaSetConditionType ReplicaSetCondition.type
  apps/v1 StatefulSetConditionType StatefulSetCondition.type
  apps/v1 DaemonSetConditionType DaemonSetCondition.type
  apps/v1 ConditionStatus DeploymentCondition.status ReplicaSetCondition.status StatefulSetCondition.status DaemonSetCondition.status
  apps/v1 PersistentVolumeClaimRetentionPolicyType StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted StatefulSetPersistentVolumeClaimRetentionPolicy.whenScaled
  batch/v1 ConcurrencyPolicy CronJobSpec.concurrencyPolicy
  batch/v1 CompletionMode JobSpec.completionMode
  batch/v1 PodReplacementPolicy JobSpec.podReplacementPolicy
  batch/v1 JobConditionType JobCondition.type
  batch/v1 ConditionStatus JobCondition.status
  batch/v1 PodFailurePolicyAction PodFailurePolicyRule.action
  discovery/v1 AddressType EndpointSlice.addressType
  discovery/v1 Protocol EndpointPort.protocol
  policy/v1 UnhealthyPodEvictionPolicyType PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy
  scheduling/v1 PreemptionPolicy PriorityClass.preemptionPolicy
  storage/v1 PersistentVolumeReclaimPolicy StorageClass.reclaimPolicy
  storage/v1 VolumeBindingMode StorageClass.volumeBindingMode
  storage/v1 FSGroupPolicy CSIDriverSpec.fsGroupPolicy
  storage/v1 VolumeLifecycleMode CSIDriverSpec.volumeLifecycleModes
  certificates/v1 KeyUsage CertificateSigningRequestSpec.usages
  certificates/v1 RequestConditionType CertificateSigningRequestCondition.type
  certificates/v1 ConditionStatus CertificateSigningRequestCondition.status
  admissionregistration/v1 FailurePolicyType ValidatingWebhook.failurePolicy MutatingWebhook.failurePolicy ValidatingAdmissionPolicySpec.failurePolicy MutatingAdmissionPolicySpec.failurePolicy
  admissionregistration/v1 MatchPolicyType ValidatingWebhook.matchPolicy MutatingWebhook.matchPolicy MatchResources.matchPolicy
  admissionregistration/v1 SideEffectClass ValidatingWebhook.sideEffects MutatingWebhook.sideEffects
  admissionregistration/v1 ReinvocationPolicyType MutatingWebhook.reinvocationPolicy MutatingAdmissionPolicySpec.reinvocationPolicy
  admissionregistration/v1 OperationType RuleWithOperations.operations NamedRuleWithOperations.operations
  admissionregistration/v1 ScopeType RuleWithOperations.scope NamedRuleWithOperations.scope Rule.scope
  admissionregistration/v1 ValidationAction ValidatingAdmissionPolicyBindingSpec.validationActions
  admissionregistration/v1 ParameterNotFoundActionType ParamRef.parameterNotFoundAction
  admissionregistration/v1 StatusReason Validation.reason
  authentication/v1 types.UID BoundObjectReference.uid
  apiextensions/v1 ResourceScope CustomResourceDefinitionSpec.scope
  apiextensions/v1 ConversionStrategyType CustomResourceConversion.strategy
  apiextensions/v1 JSONSchemaDefinitions JSONSchemaProps.definitions
  apiextensions/v1 JSONSchemaDependencies JSONSchemaProps.dependencies
  * DeviceAllocationMode ExactDeviceRequest.allocationMode DeviceSubRequest.allocationMode DeviceRequest.allocationMode
  * DeviceTolerationOperator DeviceToleration.operator
  * DeviceTaintEffect DeviceToleration.effect DeviceTaint.effect
  * FullyQualifiedName DeviceConstraint.matchAttribute DeviceConstraint.distinctAttribute
  * AllocationConfigSource DeviceAllocationConfiguration.source
  resource/v1alpha2 AllocationMode ResourceClaimSpec.allocationMode
  resource/v1 types.UID ResourceClaimConsumerReference.uid
  resource/v1beta1 types.UID ResourceClaimConsumerReference.uid
  resource/v1beta2 types.UID ResourceClaimConsumerReference.uid
  resource/v1alpha2 types.UID ResourceClaimConsumerReference.uid
""")

# (group, Go type) -> values, as OpenAPI lists them. The meaning of the words is the API's.
ENUMS = {
    ("core", "PullPolicy"): ["Always", "IfNotPresent", "Never"],
    ("core", "TerminationMessagePolicy"): ["FallbackToLogsOnError", "File"],
    ("core", "RestartPolicy"): ["Always", "Never", "OnFailure"],
    ("core", "DNSPolicy"): ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
    ("core", "PreemptionPolicy"): ["Never", "PreemptLowerPriority"],
    ("core", "Protocol"): ["SCTP", "TCP", "UDP"],
    ("core", "URIScheme"): ["HTTP", "HTTPS"],
    ("core", "TaintEffect"): ["NoExecute", "NoSchedule", "PreferNoSchedule"],
    ("core", "TolerationOperator"): ["Equal", "Exists", "Gt", "Lt"],
    ("core", "NodeSelectorOperator"): ["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"],
    ("core", "UnsatisfiableConstraintAction"): ["DoNotSchedule", "ScheduleAnyway"],
    ("core", "NodeInclusionPolicy"): ["Honor", "Ignore"],
    ("core", "ServiceType"): ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    ("core", "ServiceAffinity"): ["ClientIP", "None"],
    ("core", "ServiceExternalTrafficPolicy"): ["Cluster", "Local"],
    ("core", "ServiceInternalTrafficPolicy"): ["Cluster", "Local"],
    ("core", "IPFamilyPolicy"): ["PreferDualStack", "RequireDualStack", "SingleStack"],
    ("core", "PodPhase"): ["Failed", "Pending", "Running", "Succeeded", "Unknown"],
    ("core", "PodQOSClass"): ["BestEffort", "Burstable", "Guaranteed"],
    ("core", "NamespacePhase"): ["Active", "Terminating"],
    ("core", "PersistentVolumeMode"): ["Block", "Filesystem"],
    ("core", "PersistentVolumeReclaimPolicy"): ["Delete", "Recycle", "Retain"],
    ("core", "PersistentVolumeClaimPhase"): ["Bound", "Lost", "Pending"],
    ("core", "PersistentVolumePhase"): ["Available", "Bound", "Failed", "Pending", "Released"],
    ("core", "HostPathType"): ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"],
    ("core", "MountPropagationMode"): ["Bidirectional", "HostToContainer", "None"],
    ("core", "ProcMountType"): ["Default", "Unmasked"],
    ("core", "SeccompProfileType"): ["Localhost", "RuntimeDefault", "Unconfined"],
    ("core", "AppArmorProfileType"): ["Localhost", "RuntimeDefault", "Unconfined"],
    ("core", "PodFSGroupChangePolicy"): ["Always", "OnRootMismatch"],
    ("core", "SupplementalGroupsPolicy"): ["Merge", "Strict"],
    ("core", "ScopeSelectorOperator"): ["DoesNotExist", "Exists", "In", "NotIn"],
    ("apps", "DeploymentStrategyType"): ["Recreate", "RollingUpdate"],
    ("apps", "DaemonSetUpdateStrategyType"): ["OnDelete", "RollingUpdate"],
    ("apps", "StatefulSetUpdateStrategyType"): ["OnDelete", "RollingUpdate"],
    ("apps", "PodManagementPolicyType"): ["OrderedReady", "Parallel"],
    ("batch", "ConcurrencyPolicy"): ["Allow", "Forbid", "Replace"],
    ("batch", "CompletionMode"): ["Indexed", "NonIndexed"],
    ("batch", "PodReplacementPolicy"): ["Failed", "TerminatingOrFailed"],
    ("batch", "PodFailurePolicyAction"): ["Count", "FailIndex", "FailJob", "Ignore"],
    ("discovery", "AddressType"): ["FQDN", "IPv4", "IPv6"],
    ("policy", "UnhealthyPodEvictionPolicyType"): ["AlwaysAllow", "IfHealthyBudget"],
    ("scheduling", "PreemptionPolicy"): ["Never", "PreemptLowerPriority"],
    ("storage", "PersistentVolumeReclaimPolicy"): ["Delete", "Recycle", "Retain"],
    ("storage", "VolumeBindingMode"): ["Immediate", "WaitForFirstConsumer"],
    ("admissionregistration", "FailurePolicyType"): ["Fail", "Ignore"],
    ("admissionregistration", "MatchPolicyType"): ["Equivalent", "Exact"],
    ("admissionregistration", "SideEffectClass"): ["None", "NoneOnDryRun", "Some", "Unknown"],
    ("admissionregistration", "ReinvocationPolicyType"): ["IfNeeded", "Never"],
    ("resource", "DeviceTaintEffect"): ["NoExecute", "NoSchedule", "None"],
    ("resource", "DeviceTolerationOperator"): ["Equal", "Exists"],
}
