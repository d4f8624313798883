"""What Kubernetes 1.37 changed after the facts, which are those of 1.36."""
import copy


def field(kind, number, *flags, zero="omit"):
    pointer = kind.startswith("*")
    kind = kind.lstrip("*")
    struct = not pointer and not kind.startswith(("[]", "{}")) and (kind[0].isupper() or "." in kind or kind == "quantity")
    return dict(type=kind, number=number, pointer=pointer, zero="keep" if struct else zero, flags=list(flags))


def add_type(types, name, /, **fields):
    prefix = next(iter(types.values()))["full"].rpartition(".")[0]
    types[name] = dict(full=prefix + "." + name, flags=[], inline=[], fields=fields)


def resource_versions(packages):
    for version in ("v1", "v1beta2", "v1beta1"):
        types = packages["resource/" + version]
        types.pop("NodeAllocatableResourceMapping")
        device = types["BasicDevice" if version == "v1beta1" else "Device"]["fields"]
        device.pop("nodeAllocatableResourceMappings")
        device["nodeAllocatableResources"] = field("{}NodeAllocatableResource", 13 if version == "v1beta1" else 14)
        add_type(types, "NodeAllocatableResource", mapping=field("*NodeAllocatableMapping", 3),
                 overhead=field("*NodeAllocatableOverhead", 4))
        add_type(types, "NodeAllocatableMapping", capacityKey=field("*string", 1),
                 capacityMultiplier=field("*quantity", 2), deviceMultiplier=field("*quantity", 3))
        add_type(types, "NodeAllocatableOverhead", perPod=field("*quantity", 1), perContainer=field("*quantity", 2))
        types["ResourceSliceSpec"]["fields"]["partitionTypeAttribute"] = field("*string", 9)
        types["ResourceSliceSpec"]["fields"]["skipNodeOperations"] = field("[]string", 10, "set")
        types["DeviceCounterConsumption"]["fields"]["compatibilityGroups"] = field("[]string", 3)
        types["DeviceRequestAllocationResult"]["fields"]["skipNodeOperations"] = field("[]string", 11, "set")
        add_type(types, "DeviceDerivedAttribute", name=field("string", 1, "required", zero="keep"),
                 expression=field("string", 2, "required", zero="keep"))
        request = types["DeviceRequest" if version == "v1beta1" else "ExactDeviceRequest"]["fields"]
        request["derivedAttributes"] = field("[]DeviceDerivedAttribute", 10 if version == "v1beta1" else 8)
        types["DeviceSubRequest"]["fields"]["derivedAttributes"] = field(
            "[]DeviceDerivedAttribute", 9 if version == "v1beta1" else 8)
        flags = types["ResourceClaim"]["fields"]["spec"]["flags"]
        if "required" in flags:
            flags.remove("required")


def device_taint_rule(packages):
    """v1 has the shape of v1beta2."""
    old, new = packages["resource/v1beta2"], packages["resource/v1"]
    prefix = new["ResourceClaim"]["full"].rpartition(".")[0]
    for name in ("DeviceTaintRule", "DeviceTaintRuleList", "DeviceTaintRuleSpec", "DeviceTaintRuleStatus", "DeviceTaintSelector"):
        new[name] = copy.deepcopy(old[name])
        new[name]["full"] = prefix + "." + name


def pool_status(packages):
    types = packages["resource/v1alpha3"]
    types["ResourcePoolStatusRequestSpec"]["fields"]["defaultPartitionTypeAttribute"] = field("*string", 4)
    types["PoolStatus"]["fields"]["partitionSummary"] = field("[]PartitionTypeStatus", 11, "keys=attribute,type")
    types["PoolStatus"]["fields"]["shareableSummary"] = field("*ShareableSummaryStatus", 13)
    add_type(types, "PartitionTypeStatus", type=field("string", 1, "required", zero="keep"),
             total=field("*int32", 2, "required"), allocatable=field("*int32", 3, "required"),
             attribute=field("string", 4, "required", zero="keep"))
    add_type(types, "ShareableSummaryStatus", fullyAvailableDevices=field("*int32", 1),
             partiallyAvailableDevices=field("*int32", 2), capacity=field("[]ShareableCapacityStatus", 3, "keys=name"))
    add_type(types, "ShareableCapacityStatus", name=field("string", 1, "required", zero="keep"), total=field("*quantity", 2),
             consumed=field("*quantity", 3), available=field("*quantity", 4))


def pod_status(packages):
    types = packages["core/v1"]
    entry = types["NodeAllocatableResourceClaimStatus"]["fields"]
    entry.pop("resources")
    entry["mapping"] = field("[]NodeAllocatableMappingStatus", 4, "keys=name")
    entry["overhead"] = field("[]NodeAllocatableOverheadStatus", 5, "keys=name")
    add_type(types, "NodeAllocatableMappingStatus", name=field("string", 1, "required", zero="keep"),
             quantity=field("*quantity", 2))
    add_type(types, "NodeAllocatableOverheadStatus", name=field("string", 1, "required", zero="keep"),
             perPod=field("*quantity", 2), perContainer=field("*quantity", 3))
    types["PodStatus"]["fields"]["nodeAllocatableResourceClaimStatuses"]["flags"] = [
        "keys=resourceClaimName", "merge=resourceClaimName"]


def csi_node(packages):
    types = packages["storage/v1"]
    types["CSINode"]["fields"]["status"] = field("CSINodeStatus", 3)
    add_type(types, "CSINodeStatus")


def pod_groups(packages):
    """scheduling.k8s.io/v1beta1, made from v1alpha2."""
    old = packages["scheduling/v1alpha2"]
    new = packages["scheduling/v1beta1"]
    for name, t in old.items():
        if name in ("PodGroupTemplateReference", "WorkloadPodGroupTemplateReference"):
            continue
        new[name] = copy.deepcopy(t)
        new[name]["full"] = t["full"].replace("v1alpha2", "v1beta1")
    add_type(new, "WorkloadReference", workloadName=field("string", 1, "required", zero="keep"),
             templateName=field("string", 2, "required", zero="keep"))
    add_type(new, "SingleDisruptionMode")
    add_type(new, "AllDisruptionMode")
    add_type(new, "DisruptionMode", single=field("*SingleDisruptionMode", 1), all=field("*AllDisruptionMode", 2))
    spec = new["PodGroupSpec"]["fields"]
    spec.pop("podGroupTemplateRef")
    spec["workloadRef"] = field("*WorkloadReference", 2)
    spec["parentCompositePodGroupName"] = field("*string", 1)
    for name, number in (("schedulingPolicy", 3), ("schedulingConstraints", 4), ("resourceClaims", 5), ("priorityClassName", 7), ("priority", 8)):
        spec[name]["number"] = number
    spec["disruptionMode"] = field("*DisruptionMode", 6)
    spec["preemptionPolicy"] = field("*string", 9)
    template = new["PodGroupTemplate"]["fields"]
    template["disruptionMode"] = field("*DisruptionMode", 5)
    template["preemptionPolicy"] = field("*string", 8)


def any_list(packages):
    """The list of anything, which kubectl writes; no URL serves it."""
    add_type(packages["core/v1"], "List", apiVersion=field("string", 0), kind=field("string", 0),
             metadata=field("meta/v1.ListMeta", 1), items=field("[]raw", 2, "required", zero="keep"))
    packages["core/v1"]["List"]["flags"] = ["kind"]


def apply(packages):
    any_list(packages)
    resource_versions(packages)
    device_taint_rule(packages)
    pool_status(packages)
    pod_status(packages)
    csi_node(packages)
    pod_groups(packages)


# Versions without a facts file: the URLs are those of another version.
def _paths(kinds, version):
    paths = {}
    for plural, kind, status in kinds:
        base = "/apis/scheduling.k8s.io/%s/namespaces/{namespace}/%s" % (version, plural)
        paths[base] = {"get": "list " + kind, "post": "post " + kind, "delete": "deletecollection " + kind}
        paths[base + "/{name}"] = {"get": "get " + kind, "put": "put " + kind, "patch": "patch " + kind, "delete": "delete " + kind}
        if status:
            paths[base + "/{name}/status"] = {"get": "get " + kind, "put": "put " + kind, "patch": "patch " + kind}
    return paths


NEW_VERSIONS = {
    "scheduling/v1beta1": {
        "group": "scheduling.k8s.io", "version": "v1beta1",
        "paths": _paths([("podgroups", "PodGroup", True), ("workloads", "Workload", False)], "v1beta1"),
    },
}


def resources(package, found):
    """Resources that 1.37 serves beyond the facts."""
    if package == "resource/v1":
        verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
        found["devicetaintrules"] = dict(
            kind="DeviceTaintRule", namespaced=False, verbs=verbs,
            subs={"status": dict(kind="DeviceTaintRule", verbs={"get", "patch", "update"})})
