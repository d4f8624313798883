#!/usr/bin/env python3
"""Nodes of `dibs up` as kubelets' machines: a driver in a DaemonSet registers with the agent of its own node, what it writes below the paths of a
kubelet stays on that node, and links lead nowhere else; CDI files of the machine itself count, and a hostPath volume is its folder; labels and taints
count at once; a debugger sees the processes of its target; a selector that fails holds its pod back; a sandbox that lost its namespaces is made again.

    kubelet_machine.py [CHECK...]

Needs real containers (root, runc) and busybox; without them the test is skipped (exit status 77). Runs in a network of its own that leads nowhere.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
from cluster import Failure  # noqa: E402

SKIPPED = 77
PATIENCE = 120
INSIDE = "DIBS_KUBELET_MACHINE_INSIDE"
PODS = "/api/v1/namespaces/default/pods"
DRIVER_IMAGE = "driver.example.com/dibs:1"


def need(condition, what):
    if not condition:
        raise Failure(what)


class World:
    def __init__(self, server):
        self.server, self.client = server, server.client(timeout=120)

    def node_folder(self, node):
        return os.path.join(self.server.data, "nodes", node)

    def apply(self, *objects):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        done = subprocess.run([cluster.kubectl(), "apply", "-f", "-"], input=text, capture_output=True, text=True,
                              env=dict(os.environ, KUBECONFIG=self.server.kubeconfig))
        if done.returncode != 0:
            raise Failure("kubectl apply: " + done.stderr)

    def pod(self, name, command, volumes=(), container=None, **spec):
        mounts = [{"name": v["name"], "mountPath": v.pop("at"), **v.pop("mount", {})} for v in volumes]
        first = dict({"name": "c", "image": "busybox", "command": ["sh", "-c", command], "volumeMounts": mounts}, **(container or {}))
        self.client.expect(201, "POST", PODS, {"metadata": {"name": name}, "spec": dict({
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "volumes": list(volumes), "containers": [first]}, **spec)})

    def status(self, name):
        return self.client.expect(200, "GET", PODS + "/" + name)["status"]

    def phase(self, name, wanted, seconds=PATIENCE):
        try:
            cluster.wait_for(lambda: self.status(name).get("phase") == wanted, seconds, "%s of pod %s" % (wanted, name), interval=0.05)
        except Failure as failure:
            raise Failure("%s: %s %s" % (failure, json.dumps(self.status(name)), self.events(name)))

    def ran(self, name):
        self.phase(name, "Succeeded")
        return self.server.kubectl("logs", name)

    def events(self, name):
        found = self.client.expect(200, "GET", "/api/v1/namespaces/default/events")["items"]
        return ["%s: %s" % (e["reason"], e["message"]) for e in found if e["involvedObject"].get("name") == name]

    def has_event(self, name, text):
        try:
            cluster.wait_for(lambda: any(text in event for event in self.events(name)), PATIENCE, "", interval=0.1)
        except Failure:
            raise Failure("pod %s: no event with %r: %s" % (name, text, self.events(name)))

    def remove(self, *names):
        for name in names:
            self.client.request("DELETE", PODS + "/%s?gracePeriodSeconds=0" % name)
        for name in names:
            cluster.wait_for(lambda: self.client.get(PODS + "/" + name).status == 404, PATIENCE, "the end of " + name)


def host_path(name, path, at, kind="", **mount):
    return {"name": name, "at": at, "mount": mount, "hostPath": {"path": path, "type": kind}}


def driver_daemon_set(world):
    """As vendors ship theirs, but for the way to the API: its kubeconfig comes in a Secret, and its network is the host's."""
    with open(world.server.kubeconfig) as f:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "way"}, "stringData": {"config": f.read()}}
    world.apply(secret)
    mounts = [("plugins", "/var/lib/kubelet/plugins"), ("registry", "/var/lib/kubelet/plugins_registry"), ("cdi", "/var/run/cdi")]
    container = {
        "name": "driver", "image": DRIVER_IMAGE, "securityContext": {"privileged": True},
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "ASAN_OPTIONS", "value": "detect_leaks=0"}],
        "command": ["/bin/dibs", "driver", "gpu", "--node-name", "$(NODE_NAME)", "--cdi-root", "/var/run/cdi",
                    "--kubeconfig", "/way/config", "--num-devices", "2", "--device-metadata", "--healthcheck-port", "-1"],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts] + [{"name": "way", "mountPath": "/way"}]}
    labels = {"app": "driver"}
    world.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "driver", "namespace": "default"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "hostNetwork": True, "terminationGracePeriodSeconds": 5, "containers": [container],
            "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in mounts] + [
                {"name": "way", "secret": {"secretName": "way"}}]}}}})


def slices(world):
    found = world.client.expect(200, "GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
    return sorted(s["spec"]["nodeName"] for s in found if s["spec"]["driver"] == "gpu.example.com")


def a_driver_in_a_pod(world):
    """It registers with its own node's agent, whose pods get its devices; its files are on no other node, and none on the machine."""
    before = set(os.listdir("/var/run/cdi")) if os.path.isdir("/var/run/cdi") else set()
    driver_daemon_set(world)
    try:
        cluster.wait_for(lambda: slices(world) == ["node-0", "node-1"], PATIENCE, "a slice of each node", interval=0.1)
    except Failure as failure:
        raise Failure("%s: %s\n%s\n%s\n%s" % (failure, slices(world), world.server.kubectl("get", "pods", "-o", "wide"), world.server.kubectl(
            "logs", "-l", "app=driver", "--prefix", "--tail=20", check=False), world.server.log_tail()))
    world.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one", "namespace": "default"},
                 "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}})
    for node in ("node-0", "node-1"):
        world.pod("user-" + node[-1], "tr '\\0' '\\n' < /proc/1/environ; cat /var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/g/gpu/*.json; sleep 9999",
                  container={"resources": {"claims": [{"name": "g"}]}}, nodeSelector={"kubernetes.io/hostname": node},
                  resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one"}])
    for node, other in (("node-0", "node-1"), ("node-1", "node-0")):
        name = "user-" + node[-1]
        world.phase(name, "Running")
        cluster.wait_for(lambda: "DeviceMetadata" in world.server.kubectl("logs", name), PATIENCE, "its metadata", interval=0.1)
        said = world.server.kubectl("logs", name).splitlines()
        environment = [line for line in said if "=" in line and not line.startswith("{")]
        need("GPU_DEVICE_0=gpu-0" in environment, "%s has no GPU: %s" % (name, environment))
        need("KUBERNETES_NODE_NAME=" + node in environment, "%s has another node's device: %s" % (name, environment))
        need(environment.index("HOME=/root") > environment.index("GPU_DEVICE_0=gpu-0"), "HOME is not last: %s" % environment)
        metadata = json.loads(next(line for line in said if line.startswith("{")))
        need(metadata["requests"][0]["devices"][0]["name"] == "gpu-0", "metadata: %s" % metadata)
        claim = world.status(name)["resourceClaimStatuses"][0]["resourceClaimName"]
        uid = world.client.expect(200, "GET", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/" + claim)["metadata"]["uid"]
        own = [f for f in os.listdir(world.node_folder(node) + "/cdi") if uid in f]
        need(own, "no CDI file of the claim on " + node)
        need(not [f for f in os.listdir(world.node_folder(other) + "/cdi") if uid in f], "a CDI file of the claim on " + other)
    after = set(os.listdir("/var/run/cdi")) if os.path.isdir("/var/run/cdi") else set()
    need(after <= before, "CDI files on the machine: %s" % (after - before))
    # A driver that is gone keeps its pod, and says so.
    world.client.expect(200, "DELETE", "/apis/apps/v1/namespaces/default/daemonsets/driver")
    cluster.wait_for(lambda: not os.listdir(world.node_folder("node-0") + "/plugins_registry"), PATIENCE, "the driver to go", interval=0.1)
    world.client.request("DELETE", PODS + "/user-0?gracePeriodSeconds=0")
    world.has_event("user-0", "FailedUnprepareDynamicResources: Failed to unprepare dynamic resources: ")
    driver_daemon_set(world)
    world.remove("user-0", "user-1")
    world.client.expect(200, "DELETE", "/apis/apps/v1/namespaces/default/daemonsets/driver")
    cluster.wait_for(lambda: world.client.expect(200, "GET", PODS)["items"] == [], PATIENCE, "all pods to go", interval=0.1)


def files_of_the_machine(world):
    """A driver that runs on the machine itself puts its CDI files where all runtimes look for them."""
    folder = os.path.realpath("/var/run") + "/cdi"
    made = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    node = world.node_folder("node-0")
    driver = subprocess.Popen(
        [cluster.binary(), "driver", "gpu", "--node-name", "node-0", "--driver-name", "machine.example.com", "--kubeconfig", world.server.kubeconfig,
         "--num-devices", "1", "--cdi-root", "/var/run/cdi", "--kubelet-registrar-directory-path", node + "/plugins_registry",
         "--kubelet-plugins-directory-path", node + "/plugins", "--log-level", "warn"], preexec_fn=cluster.die_with_parent)
    try:
        world.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "machine", "namespace": "default"},
                     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "machine.example.com"}}]}}})
        world.pod("machine", "env", container={"resources": {"claims": [{"name": "g"}]}},
                  resourceClaims=[{"name": "g", "resourceClaimName": "machine"}])
        need("GPU_DEVICE_0=gpu-0" in world.ran("machine").splitlines(), "the pod has no GPU")
        need(any("machine.example.com" in name for name in os.listdir(folder)), "files on the machine: %s" % os.listdir(folder))
        world.remove("machine")
        world.client.expect(200, "DELETE", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/machine")
    finally:
        driver.terminate()
        driver.wait()
        subprocess.run(["umount", folder], check=True)
        if made:
            os.rmdir(folder)


def folders_of_a_volume(world):
    """A PersistentVolume of a hostPath is that folder of the machine; what is written stays when its claim is gone."""
    folder = tempfile.mkdtemp(prefix="dibs-km-volume-")
    try:
        world.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "folder"}, "spec": {
                "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": folder, "type": "Directory"}}},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "folder", "namespace": "default"}, "spec": {
                "volumeName": "folder", "storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}})
        for name, command in (("first", "echo kept > /v/file"), ("second", "cat /v/file")):
            world.pod(name, command, volumes=[{"name": "v", "at": "/v", "persistentVolumeClaim": {"claimName": "folder"}}])
            said = world.ran(name)
        need(said.strip() == "kept", "the second pod read %r" % said)
        world.remove("first", "second")
        world.client.expect(200, "DELETE", "/api/v1/namespaces/default/persistentvolumeclaims/folder")
        cluster.wait_for(lambda: world.client.expect(200, "GET", "/api/v1/persistentvolumes/folder")["status"]["phase"] == "Released", PATIENCE,
                         "the volume to be released", interval=0.1)
        world.client.expect(200, "DELETE", "/api/v1/persistentvolumes/folder")
        with open(folder + "/file") as f:
            need(f.read() == "kept\n", "what is left of the file")
    finally:
        shutil.rmtree(folder)


def folders_of_a_node(world):
    """Each node has its own, under either name of /run."""
    for node in ("node-0", "node-1"):
        world.pod("writer-" + node[-1], "echo %s > /a/who; ls /b; echo x > /c/in-etc" % node, nodeName=node, volumes=[
            host_path("a", "/var/run/cdi", "/a"), host_path("b", "/run/cdi", "/b"), host_path("c", "/etc/cdi", "/c")])
        need(world.ran("writer-" + node[-1]).split() == ["who"], "what /run/cdi has")
    for node in ("node-0", "node-1"):
        folder = world.node_folder(node)
        with open(folder + "/cdi/who") as f:
            need(f.read().strip() == node, "what %s has in its folder" % node)
        need(os.path.exists(folder + "/etc-cdi/in-etc"), "etc-cdi of " + node)
        os.remove(folder + "/cdi/who")
        os.remove(folder + "/etc-cdi/in-etc")
    need(not os.path.exists("/var/run/cdi/who") and not os.path.exists("/etc/cdi/in-etc"), "the machine's own folders were written to")
    world.pod("logs", "ls /logs", nodeName="node-0", volumes=[host_path("l", "/var/log/pods", "/logs")])
    need("default_logs_" in world.ran("logs"), "logs of the node's pods")
    world.remove("writer-0", "writer-1", "logs")


def links_lead_nowhere(world):
    """What a pod leaves in its node's folder does not take the next one out of it."""
    world.pod("planter", "ln -s / /p/out; ln -s ../../../../../../.. /p/up; ln -s /etc /p/etc; mkdir -p /p/real; ln -s real /p/inside; "
              "ln -s ../../../../../../../tmp/dibs-was-here /p/new", nodeName="node-0",
              volumes=[host_path("p", "/var/lib/kubelet/plugins/links", "/p")])
    world.ran("planter")
    for number, (path, kind) in enumerate((("out", ""), ("up", "Directory"), ("etc", "DirectoryOrCreate"), ("etc/cdi-new", "DirectoryOrCreate"),
                                           ("new", "FileOrCreate"))):
        name = "visitor-%d" % number
        world.pod(name, "ls /v", nodeName="node-0", volumes=[host_path("v", "/var/lib/kubelet/plugins/links/" + path, "/v", kind)])
        world.has_event(name, "leads out of the node's folder by a link")
        need(world.status(name)["phase"] == "Pending", "%s was let in" % name)
    need(not os.path.exists("/tmp/dibs-was-here") and not os.path.exists("/etc/cdi-new"), "a link was followed")
    world.pod("neighbour", "touch /v/mine", nodeName="node-0", volumes=[host_path("v", "/var/lib/kubelet/plugins/links/inside", "/v")])
    world.ran("neighbour")
    need(os.path.exists(world.node_folder("node-0") + "/plugins/links/real/mine"), "a link inside of the folder")
    refused = world.client.request("POST", PODS, {"metadata": {"name": "dots"}, "spec": {"containers": [{"name": "c", "image": "busybox"}],
                                   "volumes": [{"name": "v", "hostPath": {"path": "/var/lib/kubelet/../../etc"}}]}})
    need(refused.status == 422 and "must not contain '..'" in refused.json["message"], "..: %r" % refused)
    world.remove("planter", "neighbour", *("visitor-%d" % n for n in range(5)))
    shutil.rmtree(world.node_folder("node-0") + "/plugins/links")


def mounts_reach_the_node(world):
    """Bidirectional: what a driver mounts is seen by the node and by other pods; HostToContainer sees it come."""
    shared = {"mountPropagation": "Bidirectional"}
    world.pod("watcher", "until [ -e /v/m/here ]; do sleep 0.1; done; cat /v/m/here", nodeName="node-0", volumes=[
        host_path("v", "/var/lib/kubelet/plugins/mounts", "/v", mountPropagation="HostToContainer")])
    world.pod("mounter", "mkdir -p /v/m; mount -t tmpfs none /v/m; echo seen > /v/m/here; sleep 9999", nodeName="node-0",
              container={"securityContext": {"privileged": True}}, volumes=[host_path("v", "/var/lib/kubelet/plugins/mounts", "/v", **shared)])
    world.phase("mounter", "Running")
    place = world.node_folder("node-0") + "/plugins/mounts/m"
    cluster.wait_for(lambda: os.path.exists(place + "/here"), PATIENCE, "the mount on the node", interval=0.1)
    world.pod("late", "cat /v/m/here", nodeName="node-0", volumes=[host_path("v", "/var/lib/kubelet/plugins/mounts", "/v")])
    need(world.ran("late").strip() == "seen", "what a later pod sees")
    world.remove("mounter", "late")
    world.client.request("DELETE", PODS + "/watcher?gracePeriodSeconds=0")
    subprocess.run(["umount", place], check=True)
    world.remove("watcher")
    shutil.rmtree(world.node_folder("node-0") + "/plugins/mounts")


def labels_count_at_once(world):
    """A pod for a label that was set a moment ago runs; one for a label that was just taken away does not."""
    def label(value):
        world.client.expect(200, "PATCH", "/api/v1/nodes/node-1", {"metadata": {"labels": {"colour": value}}},
                            headers={"Content-Type": "application/merge-patch+json"})
    for number, colour in enumerate(("red", "green", "blue")):
        label(colour)
        world.pod("label-%d" % number, "true", nodeSelector={"colour": colour}, nodeName="node-1")
        world.ran("label-%d" % number)
    label(None)
    time.sleep(1)
    world.pod("label-3", "true", nodeSelector={"colour": "blue"}, nodeName="node-1")
    world.phase("label-3", "Failed")
    need(world.status("label-3")["reason"] == "NodeAffinity", "reason: %s" % world.status("label-3"))
    # Nobody may delete pods meanwhile: the taint's controller would, and it is the node's own word that counts.
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    world.client.expect(201, "POST", policies + "ies", {"metadata": {"name": "keep"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}]},
        "validations": [{"expression": "false"}]}})
    world.client.expect(201, "POST", policies + "ybindings", {"metadata": {"name": "keep"}, "spec": {
        "policyName": "keep", "validationActions": ["Deny"]}})
    cluster.wait_for(lambda: world.client.request("DELETE", PODS + "/label-3?dryRun=All").status != 200, PATIENCE, "pods to be kept")
    taint = [{"key": "away", "effect": "NoExecute"}]
    world.client.expect(200, "PATCH", "/api/v1/nodes/node-1", {"spec": {"taints": taint}}, headers={"Content-Type": "application/merge-patch+json"})
    time.sleep(1)
    world.pod("label-4", "true", nodeName="node-1")
    world.phase("label-4", "Failed")
    need(world.status("label-4")["reason"] == "TaintToleration", "reason: %s" % world.status("label-4"))
    world.client.expect(200, "DELETE", policies + "ybindings/keep")
    world.client.expect(200, "DELETE", policies + "ies/keep")
    cluster.wait_for(lambda: world.client.request("DELETE", PODS + "/label-3?dryRun=All").status == 200, PATIENCE, "pods to be deleted again")
    world.client.expect(200, "PATCH", "/api/v1/nodes/node-1", {"spec": {"taints": None}}, headers={"Content-Type": "application/merge-patch+json"})
    world.remove(*("label-%d" % n for n in range(5)))


def names_that_are_none(world):
    world.pod("unnamed", "true", container={"image": "Case:1"})
    cluster.wait_for(lambda: (world.status("unnamed").get("containerStatuses") or [{}])[0].get("state", {}).get("waiting", {}).get("reason")
                     == "InvalidImageName", PATIENCE, "InvalidImageName", interval=0.1)
    world.has_event("unnamed", "InspectFailed: Failed to apply default image tag \"Case:1\": couldn't parse image name")
    world.remove("unnamed")


def a_debugger_sees_its_target(world):
    world.pod("target", "sleep 7654")
    world.phase("target", "Running")
    world.server.kubectl("debug", "target", "--image=busybox", "--target=c", "--container=look", "--", "sh", "-c", "ps; sleep 9999")
    cluster.wait_for(lambda: "sleep 7654" in world.server.kubectl("logs", "target", "-c", "look", check=False), PATIENCE,
                     "the target's process", interval=0.2)
    world.server.kubectl("debug", "target", "--image=busybox", "--container=blind", "--", "sh", "-c", "ps; echo done; sleep 9999")
    cluster.wait_for(lambda: "done" in world.server.kubectl("logs", "target", "-c", "blind", check=False), PATIENCE, "the other one", interval=0.2)
    need("7654" not in world.server.kubectl("logs", "target", "-c", "blind"), "without a target it sees others' processes")
    world.remove("target")


def a_selector_that_fails(world):
    """On one of two nodes: the pod waits, and is told why; dibs why says so, too."""
    for node, attributes in (("node-0", {"there": {"bool": True}}), ("node-1", {"else": {"bool": True}})):
        world.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "cel-" + node}, "spec": {
            "driver": "cel.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d", "attributes": attributes}]}})
    world.apply(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "cel", "namespace": "dropped"}, "spec": {
            "selectors": [{"cel": {"expression": "device.driver == 'cel.example.com'"}}]}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "cel", "namespace": "default"}, "spec": {
            "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "cel", "selectors": [
                {"cel": {"expression": "device.attributes['cel.example.com'].there"}}]}}]}}})
    world.pod("held", "true", resourceClaims=[{"name": "x", "resourceClaimName": "cel"}])

    def message():
        return " ".join(c.get("message", "") for c in world.status("held").get("conditions", []) if c["type"] == "PodScheduled")
    cluster.wait_for(lambda: "CEL runtime error: no such key: there" in message(), PATIENCE, "the error in the condition", interval=0.1)
    need(world.status("held")["phase"] == "Pending", "the pod was placed")
    told = subprocess.run([cluster.binary(), "why", "pod/held"], capture_output=True, text=True,
                          env=dict(os.environ, KUBECONFIG=world.server.kubeconfig)).stdout
    need("the pod waits because of node node-1" in told and "CEL runtime error" in told, "dibs why: " + told)
    world.remove("held")
    for path in ("resourceslices/cel-node-0", "resourceslices/cel-node-1", "deviceclasses/cel", "namespaces/default/resourceclaims/cel"):
        world.client.expect(200, "DELETE", "/apis/resource.k8s.io/v1/" + path)


def lost_namespaces(world):
    """Of a sandbox whose container has not started it is made again; one that runs is left alone."""
    def lose(name):
        """Unmounts what holds the namespaces of the pod's sandboxes."""
        lost = []
        uid = world.client.expect(200, "GET", PODS + "/" + name)["metadata"]["uid"]
        for line in open("/proc/self/mountinfo"):
            place = line.split()[4]
            kind = os.path.basename(place)
            if " nsfs " in line and kind in ("net", "ipc", "uts") and place.startswith(("/run/", "/var/run/", world.server.data)):
                folder = os.path.basename(os.path.dirname(place))
                for node in ("node-0", "node-1"):
                    record = os.path.join(world.node_folder(node), "containers", "sandboxes")
                    for sandbox in os.listdir(record) if os.path.isdir(record) else ():
                        with open(os.path.join(record, sandbox, "record.json")) as f:
                            if sandbox.startswith(folder) and uid in f.read():
                                lost.append(place)
        need(lost, "no namespaces of " + name)
        for place in lost:
            subprocess.run(["umount", "-l", place], check=True)
    # It waits for its image, which is not there, with its sandbox.
    world.pod("waiter", "true", container={"image": "late.example.com/x:1", "imagePullPolicy": "Never"})
    cluster.wait_for(lambda: (world.status("waiter").get("containerStatuses") or [{}])[0].get("state", {}).get("waiting", {}).get("reason")
                     == "ErrImageNeverPull", PATIENCE, "that it waits", interval=0.1)
    lose("waiter")
    with open(images_of(world) + "/late.tar", "wb") as f:
        f.write(images.of_program(busybox(), "busybox", busybox=busybox()))
    with open(images_of(world) + "/late.tar", "rb") as f:
        images.add(images_of(world), "late.example.com/x:1", f.read())
    os.remove(images_of(world) + "/late.tar")
    world.phase("waiter", "Succeeded")
    world.has_event("waiter", "SandboxChanged")
    world.pod("runner", "sleep 9999", restartPolicy="Always")
    world.phase("runner", "Running")
    before = world.status("runner")["containerStatuses"][0]["containerID"]
    lose("runner")
    world.server.kubectl("debug", "runner", "--image=busybox", "--container=look", "--", "sh", "-c", "echo come; sleep 9999")
    cluster.wait_for(lambda: "come" in world.server.kubectl("logs", "runner", "-c", "look", check=False), PATIENCE, "a container in it", interval=0.2)
    after = world.status("runner")["containerStatuses"][0]
    need(after["containerID"] == before and after["restartCount"] == 0, "the container was restarted: %s" % after)
    world.remove("waiter", "runner")


def busybox():
    for path in ("/bin/busybox", "/usr/bin/busybox"):
        if os.path.exists(path):
            return path
    return None


def images_of(world):
    return os.path.join(world.server.folder, "images")


CHECKS = (files_of_the_machine, folders_of_a_volume, folders_of_a_node, links_lead_nowhere, mounts_reach_the_node, labels_count_at_once,
          names_that_are_none, a_debugger_sees_its_target, a_selector_that_fails, lost_namespaces, a_driver_in_a_pod)


def run():
    folder = tempfile.mkdtemp(prefix="dibs-km-")
    os.mkdir(folder + "/images")
    failed = 0
    try:
        images.add(folder + "/images", DRIVER_IMAGE, images.of_program(cluster.binary(), "dibs", busybox=busybox()))
        server = cluster.Server(["--nodes", "2", "--runtime", "oci", "--images", folder + "/images"], folder=folder, command="up")
        with server:
            world = World(server)
            cluster.wait_for(lambda: world.client.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, PATIENCE, "an account")
            for check in CHECKS:
                if sys.argv[1:] and check.__name__ not in sys.argv[1:]:
                    continue
                began = time.monotonic()
                try:
                    check(world)
                    print("ok %s (%.1f s)" % (check.__name__, time.monotonic() - began), flush=True)
                except Failure as failure:
                    failed += 1
                    print("FAILED %s: %s" % (check.__name__, failure), flush=True)
            # What a check that failed left running would outlive the server.
            world.server.kubectl("delete", "daemonsets,pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
            cluster.wait_for(lambda: not world.client.expect(200, "GET", PODS)["items"], PATIENCE, "the end of all pods")
    except Failure as failure:
        failed += 1
        print("FAILED %s" % failure)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


def main():
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return run()
    missing = [what for what, there in (("root", os.geteuid() == 0), ("kubectl", cluster.kubectl()), ("busybox", busybox()),
                                        ("unshare", shutil.which("unshare"))) if not there]
    if not missing and not cluster.has_containers():
        missing = ["real containers (runc or crun, and conmon)"]
    if missing:
        print("skipped: needs " + ", ".join(missing))
        return SKIPPED
    return subprocess.run(["unshare", "--net", "--mount", sys.executable, "-B", os.path.abspath(__file__)] + sys.argv[1:],
                          env=dict(os.environ, **{INSIDE: "1"})).returncode


if __name__ == "__main__":
    sys.exit(main())
