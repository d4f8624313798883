"""What a story about a shared etcd puts into a cluster, with each field that is decoded in its own way: something of every kind that is stored and
has a stable version, but of those that servers make or keep in order themselves (APIService, IPAddress, FlowSchema, PriorityLevelConfiguration).
What a server does not know it is not given.
"""

SPACE = "story"
LABELS = {"story": "told"}
GROUP = "zoo.example"


def metadata(name, space=SPACE, **more):
    out = dict({"name": name, "labels": LABELS}, **more)
    if space:
        out["namespace"] = space
    return out


def made(kind, api_version, name, space=SPACE, **more):
    return dict({"kind": kind, "apiVersion": api_version, "metadata": metadata(name, space)}, **more)


CONTAINER = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 1 && echo '<&>'"],
             "env": [{"name": "A", "value": "é\u2028x"},
                     {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "a"}}}],
             "ports": [{"containerPort": 80, "name": "http"}],
             "resources": {"requests": {"cpu": "0.1", "memory": "1024Ki"}, "limits": {"cpu": "1500m", "memory": "1Gi"}},
             "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "initialDelaySeconds": 3},
             "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
             "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}}
POD = {"containers": [CONTAINER], "terminationGracePeriodSeconds": 0, "restartPolicy": "Always", "priorityClassName": "system-node-critical",
       "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "secret", "optional": True}},
                                                           {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}],
       "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
       "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
           {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}},
       "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
                                      "labelSelector": {"matchLabels": {"a": "b"}}}]}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": dict(POD, priorityClassName="")}
SELECTOR = {"matchLabels": {"app": "a"}}
NOTHINGS = {"resourceRules": [{"apiGroups": ["none.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]}
# Of somebody, for a key that nobody has.
REQUEST = ("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIZU1JR0ZBZ0VBTUNNeERqQU1CZ05WQkFvTUJYTjBiM0o1TVJFd0R3WURWUVFEREFoemIy"
           "MWxZbTlrZVRCWgpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQUJJWUNPWFA5ZDdZRWFWMGVyUXJqNENEM0p0amJxWGs2CmVsU0FsVjAwZURRbHpa"
           "dHlUVFBrNTRqUjBMK2JmMnF2bTRnSGF2eHJFaHVGMkdra3l5VnVYd2FnQURBS0JnZ3EKaGtqT1BRUURBZ05JQURCRkFpQlhmS3FDeGdJa1JtQUdoQlpNTi9Z"
           "QWJ0OXlJeElWdTkvNkpxT2Myb1EzRndJaApBUGJLTmhtOFFKMzlvUVcwTWFpKzlJZVM4SXNHYWhsQU5MRG15eHdEdnFNcAotLS0tLUVORCBDRVJUSUZJQ0FU"
           "RSBSRVFVRVNULS0tLS0K")
REQUESTS = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example", "count": 2, "selectors": [
    {"cel": {"expression": "device.capacity['gpu.example'].memory.compareTo(quantity('1Gi')) >= 0"}}]}}],
    "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example/model"}],
    "config": [{"requests": ["gpu"], "opaque": {"driver": "gpu.example", "parameters": {
        "apiVersion": "gpu.example/v1", "kind": "Config", "deep": {"n": 1, "f": 0.25, "list": [None, True]}}}}]}


def definition(plural, kind, schema):
    return made("CustomResourceDefinition", "apiextensions.k8s.io/v1", "%s.%s" % (plural, GROUP), None, spec={
        "group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                      "subresources": {"status": {}},
                      "additionalPrinterColumns": [{"name": "Lives", "type": "integer", "jsonPath": ".spec.lives"}]}]})


def definitions():
    return [definition("cats", "Cat", {"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {
            "lives": {"type": "integer", "default": 9, "maximum": 9}, "name": {"type": "string", "pattern": "^[A-Z]"},
            "weight": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}})]


def cats():
    return [made("Cat", GROUP + "/v1", "tom", spec={"name": "Tom", "weight": "5kg", "big": 9007199254740993, "deep": {"a": [1, 2.5, "x", None]}})]


def basics():
    """In the order in which they can be made."""
    return [
        made("Namespace", "v1", SPACE, None),
        made("ServiceAccount", "v1", "default"),
        made("ServiceAccount", "v1", "robot", secrets=[{"name": "secret"}]),
        made("ConfigMap", "v1", "map", data={"a": "1", "text": "line\nline\t\"quoted\" <&> \u2028"}, binaryData={"b": "AAEC/w=="}),
        made("ConfigMap", "v1", "gone", data={"a": "1"}),
        made("Secret", "v1", "secret", type="Opaque", data={"key": "c2VjcmV0"}),
        made("LimitRange", "v1", "limits", spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}}]}),
        made("PersistentVolumeClaim", "v1", "disk", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        made("PersistentVolume", "v1", "volume", None, spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                                                             "hostPath": {"path": "/data"}}),
        made("StorageClass", "storage.k8s.io/v1", "slow", None, provisioner="example.com/slow", parameters={"a": "b"}),
        made("CSIDriver", "storage.k8s.io/v1", "csi.example.com", None, spec={}),
        made("PriorityClass", "scheduling.k8s.io/v1", "high", None, value=1000),
        made("RuntimeClass", "node.k8s.io/v1", "small", None, handler="runc", overhead={"podFixed": {"cpu": "10m"}}),
        made("Node", "v1", "machine", None, spec={"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.1.0.0/24"},
             status={"capacity": {"cpu": "4", "memory": "8Gi"}, "conditions": [{"type": "Ready", "status": "False"}]}),
        made("Pod", "v1", "pod", spec=POD),
        made("PodTemplate", "v1", "template", template=TEMPLATE),
        made("ReplicationController", "v1", "rc", spec={"replicas": 0, "selector": {"app": "a"}, "template": TEMPLATE}),
        made("Deployment", "apps/v1", "deployment", spec={"replicas": 3, "selector": SELECTOR, "template": TEMPLATE,
                                                         "strategy": {"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": 0}}}),
        made("ReplicaSet", "apps/v1", "set", spec={"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}),
        made("StatefulSet", "apps/v1", "stateful", spec={"replicas": 1, "selector": SELECTOR, "template": TEMPLATE, "serviceName": "service",
                                                         "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {
                                                             "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}]}),
        made("DaemonSet", "apps/v1", "daemon", spec={"selector": SELECTOR, "template": TEMPLATE}),
        made("ControllerRevision", "apps/v1", "revision", revision=3, data={"spec": {"x": [1, {"y": None}]}}),
        made("Job", "batch/v1", "job", spec={"suspend": True, "completions": 2, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}),
        made("CronJob", "batch/v1", "cron", spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "busybox"}]}}}}}),
        made("Service", "v1", "service", spec={"type": "NodePort", "selector": {"app": "a"},
                                               "ports": [{"port": 80, "targetPort": "http", "name": "http"}, {"port": 81, "name": "other", "protocol": "UDP"}]}),
        made("Service", "v1", "headless", spec={"clusterIP": "None", "ports": [{"port": 80}]}),
        made("Endpoints", "v1", "manual", subsets=[{"addresses": [{"ip": "10.2.0.1"}], "ports": [{"port": 80}]}]),
        made("EndpointSlice", "discovery.k8s.io/v1", "slice", addressType="IPv4", ports=[{"name": "", "port": 80, "protocol": "TCP"}],
             endpoints=[{"addresses": ["10.2.0.1"], "conditions": {"ready": True}, "hints": {"forZones": [{"name": "z"}]}}]),
        made("PodDisruptionBudget", "policy/v1", "budget", spec={"minAvailable": "50%", "selector": SELECTOR}),
        made("Lease", "coordination.k8s.io/v1", "lease", spec={"holderIdentity": "x", "leaseDurationSeconds": 15,
                                                               "renewTime": "2026-01-02T03:04:05.678901Z"}),
        made("Role", "rbac.authorization.k8s.io/v1", "reader", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        made("RoleBinding", "rbac.authorization.k8s.io/v1", "readers", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                                                                               "name": "reader"},
             subjects=[{"kind": "ServiceAccount", "name": "robot", "namespace": SPACE}]),
        made("ClusterRole", "rbac.authorization.k8s.io/v1", "story-all", None,
             aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"none": "at-all"}}]}),
        made("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "story-view", None, subjects=[{"kind": "User", "name": "u",
                                                                                                "apiGroup": "rbac.authorization.k8s.io"}],
             roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}),
        made("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", "policy.example.com", None, spec={
            "matchConstraints": NOTHINGS, "validations": [{"expression": "object.metadata.name != 'x'", "message": "no"}]}),
        made("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", "binding.example.com", None, spec={
            "policyName": "policy.example.com", "validationActions": ["Warn"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}}),
        made("MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1", "change.example.com", None, spec={
            "matchConstraints": NOTHINGS, "reinvocationPolicy": "Never", "failurePolicy": "Ignore", "mutations": [{
                "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}]}),
        made("MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", "changes.example.com", None, spec={
            "policyName": "change.example.com"}),
        made("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "change.example.com", None, webhooks=[{
            "name": "change.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "reinvocationPolicy": "IfNeeded",
            "failurePolicy": "Ignore", "clientConfig": {"service": {"namespace": SPACE, "name": "service", "path": "/x", "port": 8443}},
            "matchConditions": [{"name": "never", "expression": "false"}],
            "rules": [{"apiGroups": ["none.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]}]}]),
        made("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "hook.example.com", None, webhooks=[{
            "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:1/x"},
            "rules": [{"apiGroups": ["none.example"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]}]),
        made("DeviceClass", "resource.k8s.io/v1", "gpu.example", None, spec={
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example'"}}],
            "config": [{"opaque": {"driver": "gpu.example", "parameters": {"a": [1, 2]}}}]}),
        made("ResourceSlice", "resource.k8s.io/v1", "slice", None, spec={
            "driver": "gpu.example", "nodeName": "machine", "pool": {"name": "machine", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-%d" % i, "attributes": {"model": {"string": "A"}, "index": {"int": i}, "ok": {"bool": False},
                                                             "version": {"version": "1.2.3"}},
                         "capacity": {"memory": {"value": "80Gi"}}} for i in range(4)]}),
        made("ResourceClaimTemplate", "resource.k8s.io/v1", "template", spec={"spec": {"devices": REQUESTS}}),
        made("ResourceClaim", "resource.k8s.io/v1", "claim", spec={"devices": REQUESTS}),
        made("ResourceClaim", "resource.k8s.io/v1", "free", spec={"devices": {"requests": [
            {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu.example"}, {"name": "all", "deviceClassName": "gpu.example",
                                                                                                    "allocationMode": "All"}]}]}}),
        made("DeviceTaintRule", "resource.k8s.io/v1", "rule", None, spec={
            "deviceSelector": {"driver": "none.example", "pool": "machine"},
            "taint": {"key": "gpu.example/broken", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z"}}),
        made("IngressClass", "networking.k8s.io/v1", "some", None, spec={"controller": "example.com/some", "parameters": {
            "apiGroup": "example.com", "kind": "Parameters", "name": "p", "scope": "Namespace", "namespace": SPACE}}),
        made("Ingress", "networking.k8s.io/v1", "door", spec={
            "ingressClassName": "some", "defaultBackend": {"service": {"name": "service", "port": {"name": "http"}}},
            "tls": [{"hosts": ["story.example"], "secretName": "secret"}],
            "rules": [{"host": "*.story.example", "http": {"paths": [{"path": "/a", "pathType": "Prefix", "backend": {
                "service": {"name": "service", "port": {"number": 80}}}}]}}]}),
        made("NetworkPolicy", "networking.k8s.io/v1", "walls", spec={
            "podSelector": SELECTOR, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, {"namespaceSelector": {}}],
                         "ports": [{"port": "http"}, {"protocol": "UDP", "port": 100, "endPort": 200}]}], "egress": [{}]}),
        made("ServiceCIDR", "networking.k8s.io/v1", "more", None, spec={"cidrs": ["10.97.0.0/24"]}),
        made("HorizontalPodAutoscaler", "autoscaling/v2", "scaler", spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment"}, "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
                        {"type": "Pods", "pods": {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]}}}),
        made("CSINode", "storage.k8s.io/v1", "machine", None, spec={"drivers": [{
            "name": "csi.example.com", "nodeID": "m", "topologyKeys": ["zone"], "allocatable": {"count": 3}}]}),
        made("VolumeAttachment", "storage.k8s.io/v1", "attached", None, spec={
            "attacher": "csi.example.com", "nodeName": "machine", "source": {"persistentVolumeName": "volume"}}),
        made("CSIStorageCapacity", "storage.k8s.io/v1", "room", storageClassName="slow", capacity="10Gi", maximumVolumeSize="1Gi",
             nodeTopology={"matchLabels": {"zone": "a"}}),
        made("VolumeAttributesClass", "storage.k8s.io/v1", "gold", None, driverName="csi.example.com", parameters={"speed": "high"}),
        made("CertificateSigningRequest", "certificates.k8s.io/v1", "somebody", None, spec={
            "request": REQUEST, "signerName": "example.com/nobody", "usages": ["client auth"], "expirationSeconds": 3600}),
        made("Event", "v1", "event", involvedObject={"kind": "Pod", "namespace": SPACE, "name": "pod"}, reason="Told", message="m", type="Normal",
             firstTimestamp="2026-01-02T03:04:05Z", lastTimestamp="2026-01-02T03:04:05Z", count=1, source={"component": "story"}),
        # Last: without its controller nothing that it counts may be made.
        made("ResourceQuota", "v1", "quota", spec={"hard": {"persistentvolumeclaims": "100", "requests.storage": "1Ti"}}),
    ]


ALLOCATION = {"allocation": {"devices": {"results": [
    {"request": "gpu", "driver": "gpu.example", "pool": "machine", "device": "gpu-%d" % i} for i in range(2)]},
    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["machine"]}]}]}},
    "reservedFor": [{"resource": "pods", "name": "pod", "uid": "0b0b0b0b-0000-0000-0000-000000000001"}]}
