#!/usr/bin/env python3
"""Installs the Helm chart of Kubernetes' example driver (dra-example-driver), unmodified, on `dibs up`.

    run_chart.py demo    its demos on two nodes, as its README has them; `helm upgrade`; everything killed in between; `helm uninstall`
    run_chart.py e2e     its own end-to-end suite, less SKIPPED_SPECS, on one node: what it is written for; that of pod groups as release 1.36

Driver and suite are built in $DIBS_BUILD/clients/chart from the Go module, which has the chart, too; the driver becomes an image of the name
that the chart has, and this machine's bash one of the name that the demos have. helm is $DIBS_HELM, or what tools/get-upstream builds.

Runs on a machine of its own (support/underlay.sh), from which nothing leaves. Skipped (exit status 77) where root, containers, kubectl, Go or
the modules are missing.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
import run  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

MODULE = "sigs.k8s.io/dra-example-driver@v0.4.0"
SUM = "h1:JaJJvAHPULxJNLD6LKTJY8NrS45eyqHSJWd8Q5dmS5k="
IMAGE = "registry.k8s.io/dra-example-driver/dra-example-driver:v0.4.0"
PLUGIN, CONTROLLER = "dra-example-kubeletplugin", "dra-example-controller"
DEADLINE = 90
E2E_DEADLINE = 600
RELEASE = NAMESPACE = "dra-example-driver"
DRIVER = "gpu.example.com"
NODES = ("node-0", "node-1")
RESOURCE = "/apis/resource.k8s.io/v1/"
RBAC = "/apis/rbac.authorization.k8s.io/v1/"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
# Those of demo/examples that the chart's default values are enough for.
DEMOS = ("basic-resourceclaimtemplate", "basic-multiple-requests", "basic-shared-claim-across-containers", "basic-shared-claim-across-pods",
         "basic-resourceclaim-opaque-config", "cel-selector", "initcontainer-shared-gpu", "prioritized-alternatives", "admin-access",
         "extended-resource-request")
TAINTED = "basic-resourceclaimtemplate"  # the namespace of the demos with tainted devices
# The driver writes these and never takes them away, whatever the kubelet.
OWN_FILES = {"cdi/k8s.gpu.example.com-gpu_common.yaml", "plugins/gpu.example.com", "plugins/gpu.example.com/checkpoint.json",
             "plugins/gpu.example.com/serialize.lock"}
# Folders of a kubelet's machine: the chart names them, and nothing of it may come there.
MACHINE_FOLDERS = ("/var/lib/kubelet", "/var/run/cdi", "/etc/cdi")
GROUPS_SPEC = "2 PodGroups"  # scheduling.k8s.io/v1alpha2, on a server that has it
GROUPS_FLAGS = ("--emulate-release", "1.36", "--feature-gates", "GenericWorkload=true,GangScheduling=true,DRAWorkloadResourceClaims=true")
SKIPPED_SPECS = (
    "Webhooks",  # wants cert-manager
    "native CPU resources",  # a field of 1.36 alone (nodeAllocatableResourceMappings), which is not here
    GROUPS_SPEC,
)


def source(go):
    """The folder of the module, which is the one that was meant."""
    done = subprocess.run([go, "mod", "download", "-json", MODULE], capture_output=True, text=True, cwd="/")
    if done.returncode:
        raise run.Missing("%s cannot be had: %s" % (MODULE, (done.stdout + done.stderr)[-500:]))
    found = json.loads(done.stdout)
    if found["Sum"] != SUM:
        raise Failure("%s is not what it was: %s" % (MODULE, found["Sum"]))
    return found["Dir"]


def build(go, folder, which):
    """The driver's programs, and the suite; returns where they are."""
    out = run.build_folder("chart")
    environment = {"CGO_ENABLED": "0"}
    programs = [PLUGIN] if which == "demo" else [PLUGIN, CONTROLLER]
    for program in programs:
        package = "./cmd/" + program
        run.shell([go, "list", "-deps", package], folder, missing=True, environment=environment)
        run.shell([go, "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", os.path.join(out, program), package], folder,
                  missing=False, environment=environment)
    if which == "e2e":
        run.shell([go, "list", "-deps", "-test", "-tags=e2e", "./test/e2e"], folder, missing=True, environment=environment)
        run.shell([go, "test", "-c", "-mod=readonly", "-ldflags=-s -w", "-tags=e2e", "-o", os.path.join(out, "e2e.test"),
                   "./test/e2e"], folder, missing=False, environment=environment)
    return out


def find_helm():
    path = os.environ.get("DIBS_HELM")
    if not path:
        path = os.path.join(ROOT, "build", "tools", "helm")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Two tests want it, side by side.
        run.shell(["flock", path + ".lock", os.path.join(ROOT, "tools", "get-upstream"), "helm"], ROOT, missing=True)
    if not os.access(path, os.X_OK):
        raise run.Missing("no helm: tools/get-upstream helm builds it")
    return os.path.abspath(path)


def image_of(paths):
    """An archive of programs, as /usr/bin/NAME, with their libraries."""
    files = {}
    for path in paths:
        files["/usr/bin/" + os.path.basename(path)] = path
        files.update({library: os.path.realpath(library) for library in images.libraries_of(path)})
    return images.archive(files)


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


def listing(folder):
    """All below a folder, by relative path."""
    return {os.path.relpath(path, folder) for path in glob.glob(folder + "/**", recursive=True)} - {"."}


class Story:
    def __init__(self, server, module, helm):
        self.server, self.module, self.program, self.api = server, module, helm, server.client()
        self.began = time.monotonic()
        self.uninstalled = None

    def done(self, what):
        now = time.monotonic()
        print("ok %s (%.1f s)" % (what, now - self.began), flush=True)
        self.began = now

    # What a user types.

    def helm(self, *arguments, check=True):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=2 * DEADLINE, stdin=subprocess.DEVNULL,
                              env=self.server.kubectl_environment())
        if check and done.returncode:
            raise Failure("helm %s: exit status %d\n%s%s" % (" ".join(arguments), done.returncode, done.stdout, done.stderr))
        return done.stdout

    def install(self, *values):
        """As the README says it, without a word on how the cluster is made."""
        self.helm("upgrade", "-i", "--create-namespace", "--namespace", NAMESPACE, RELEASE,
                  os.path.join(self.module, "deployments", "helm", "dra-example-driver"), *values)

    def uninstall(self):
        self.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait")
        self.uninstalled = time.monotonic()

    def manifest(self, *parts):
        return os.path.join(self.module, "demo", "examples", *parts)

    def apply(self, *parts):
        self.server.kubectl("apply", "-f", self.manifest(*parts))

    def delete_namespace(self, name):
        self.server.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=true", timeout=DEADLINE)

    # What is there.

    def get(self, path):
        answer = self.api.get(path)
        return answer.json if answer.status == 200 else None

    def names(self, path):
        return {one["metadata"]["name"] for one in self.api.expect(200, "GET", path)["items"]}

    def pods(self, namespace):
        return {one["metadata"]["name"]: one for one in self.api.expect(200, "GET", "/api/v1/namespaces/%s/pods" % namespace)["items"]}

    def slices(self):
        """Devices by node."""
        return {one["spec"]["nodeName"]: len(one["spec"].get("devices", [])) for one in
                self.api.expect(200, "GET", RESOURCE + "resourceslices?fieldSelector=spec.driver%3D" + DRIVER)["items"]}

    def wait_ready(self, namespace, wanted):
        def there():
            pods = self.pods(namespace)
            return all(name in pods and is_ready(pods[name]) for name in wanted)
        wait_for(there, DEADLINE, "%s of %s to be ready" % (", ".join(wanted), namespace), 0.1)

    def wait_driver(self, devices):
        """The driver is all that its chart wants it to be."""
        path = "/apis/apps/v1/namespaces/%s/daemonsets/%s-kubeletplugin" % (NAMESPACE, RELEASE)

        def rolled():
            found = self.get(path)
            status = found["status"] if found else {}
            return found and status.get("observedGeneration") == found["metadata"]["generation"] and all(
                status.get(field) == len(NODES) for field in ("numberReady", "updatedNumberScheduled", "currentNumberScheduled"))
        wait_for(rolled, DEADLINE, "the DaemonSet to be ready", 0.1)
        wait_for(lambda: self.slices() == {node: devices for node in NODES}, DEADLINE, "slices with %d devices on both nodes" % devices, 0.1)

    def environment(self, namespace, pod, container):
        """What bash's `export` printed; it is the first thing that a container does."""
        path = "/api/v1/namespaces/%s/pods/%s/log?container=%s" % (namespace, pod, container)

        def said():
            text = self.api.get(path).data.decode("utf-8", "replace")
            return dict(re.findall(r'(?m)^declare -x (\w+)="(.*)"$', text))
        return wait_for(said, DEADLINE, "what %s/%s says" % (namespace, pod), 0.1)

    def devices(self, namespace, pod, container, **properties):
        """Those of a container, as (node, device); each must have these properties."""
        found = self.environment(namespace, pod, container)
        if found.get("DRA_RESOURCE_DRIVER_NAME") != DRIVER:
            raise Failure("%s/%s knows no driver: %s" % (namespace, pod, found))
        devices = {(found["KUBERNETES_NODE_NAME"], value): name for name, value in found.items() if re.fullmatch(r"GPU_DEVICE_\d+", name)}
        for name in devices.values():
            for key, value in properties.items():
                if found.get("%s_%s" % (name, key)) != value:
                    raise Failure("%s/%s, %s: no %s_%s=%s in %s" % (namespace, pod, container, name, key, value, found))
        return set(devices)

    def expect(self, what, found, wanted):
        if found != wanted:
            raise Failure("%s: %s, expected %s" % (what, found, wanted))

    # The demos.

    def check_demos(self, devices):
        """What the demos' READMEs say that one sees, on nodes with so many devices."""
        wanted = {name: ("pod0", "pod1") for name in ("basic-resourceclaimtemplate", "basic-shared-claim-across-pods", "prioritized-alternatives")}
        for name in DEMOS:
            self.wait_ready(name, wanted.get(name, ("pod0",)))
        seen = []  # by claim

        def one(namespace, members, count=1, **properties):
            """These containers have the same devices, so many, which nobody else has."""
            found = [self.devices(namespace, pod, container, **properties) for pod, container in members]
            self.expect("devices of %s" % namespace, [len(each) for each in found], [count] * len(members))
            self.expect("devices of %s, shared" % namespace, found, found[:1] * len(members))
            seen.append(found[0])

        sliced = {"SHARING_STRATEGY": "TimeSlicing", "TIMESLICE_INTERVAL": "Default"}
        for namespace in ("basic-resourceclaimtemplate", "prioritized-alternatives"):
            one(namespace, [("pod0", "ctr0")], **sliced)
            one(namespace, [("pod1", "ctr0")], **sliced)
        one("basic-multiple-requests", [("pod0", "ctr0")], 2, **sliced)
        one("basic-shared-claim-across-containers", [("pod0", "ctr0"), ("pod0", "ctr1")], **sliced)
        one("basic-shared-claim-across-pods", [("pod0", "ctr0"), ("pod1", "ctr0")], **sliced)
        opaque = "basic-resourceclaim-opaque-config"
        one(opaque, [("pod0", "ts-ctr0"), ("pod0", "ts-ctr1")], SHARING_STRATEGY="TimeSlicing", TIMESLICE_INTERVAL="Long")
        one(opaque, [("pod0", "sp-ctr0"), ("pod0", "sp-ctr1")], SHARING_STRATEGY="SpacePartitioning", PARTITION_COUNT="10")
        one("cel-selector", [("pod0", "ctr0")], **sliced)
        one("initcontainer-shared-gpu", [("pod0", "init0"), ("pod0", "ctr0")], **sliced)
        one("extended-resource-request", [("pod0", "ctr0")], **sliced)
        if sum(len(each) for each in seen) != len(set().union(*seen)):
            raise Failure("a device was given to two claims: %s" % seen)
        self.expect("devices of the administrator", len(self.devices("admin-access", "pod0", "ctr0", **sliced)), devices)
        self.expect("admin access", self.environment("admin-access", "pod0", "ctr0")["DRA_ADMIN_ACCESS"], "true")
        chosen = sorted(result["request"] for claim in self.get(RESOURCE + "namespaces/prioritized-alternatives/resourceclaims")["items"]
                        for result in claim["status"]["allocation"]["devices"]["results"])
        self.expect("alternatives", chosen, ["gpu/latest-gpu", "gpu/older-gpu"])
        mapped = self.pods("extended-resource-request")["pod0"]["status"]["extendedResourceClaimStatus"]["requestMappings"]
        self.expect("the extended resource", [each["resourceName"] for each in mapped], ["deviceclass.resource.kubernetes.io/" + DRIVER])

    def demos(self):
        began = time.monotonic()
        self.server.kubectl("apply", *[flag for name in DEMOS for flag in ("-f", self.manifest(name, name + ".yaml"))])
        self.wait_ready(DEMOS[0], ("pod0",))
        print("   first pod with a device after %.1f s" % (time.monotonic() - began))
        self.check_demos(8)
        # The class has no such name yet.
        self.waits("extended-resource-request", "pod1", "Insufficient example.com/gpu")
        self.done("%d demos run and have their devices" % len(DEMOS))

    def waits(self, namespace, pod, why):
        def told():
            return [event for event in self.get("/api/v1/namespaces/%s/events" % namespace)["items"]
                    if event["involvedObject"]["name"] == pod and event["reason"] == "FailedScheduling" and why in event["message"]]
        wait_for(told, DEADLINE, "the event that %s/%s waits: %s" % (namespace, pod, why), 0.1)
        self.expect("%s/%s" % (namespace, pod), self.pods(namespace)[pod]["status"].get("phase"), "Pending")

    def tainted(self):
        """Devices that are tainted by a rule."""
        folder = "device-taints-tolerations"

        def runs(*names):
            self.wait_ready(TAINTED, names)
            for name in names:
                self.environment(TAINTED, name, "ctr0")  # only then does bash end when it is told to

        def ends(name, *others):
            wait_for(lambda: name not in self.pods(TAINTED), DEADLINE, "%s to be evicted" % name, 0.1)
            self.wait_ready(TAINTED, others)

        where = (folder, "device-taint-pod-noexecute")
        self.apply(*where, "1-basic-resourceclaimtemplate.yaml")
        self.apply(*where, "2-pod-to-be-evicted.yaml")
        runs("pod-to-be-evicted")
        self.apply(*where, "3-device-taint-rule.yaml")
        ends("pod-to-be-evicted")
        self.rule_says("Completed", "1 pod evicted since starting the controller.")
        self.apply(*where, "4-pod-no-execute.yaml")
        self.waits(TAINTED, "pod-no-execute", "cannot allocate all claims")
        self.tidy_tainted()
        where = (folder, "device-taint-configurable-pod-eviction-time")
        self.apply(*where, "1-basic-resourceclaimtemplate.yaml")
        stay = ("pod-with-toleration", "pod-with-300s-toleration")
        runs("pod-no-toleration", *stay)
        self.apply(*where, "2-device-taint-rule.yaml")
        ends("pod-no-toleration", *stay)
        self.rule_says("PodsPendingEviction", "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller.")
        self.tidy_tainted()
        where = (folder, "device-taint-pod-toleration")
        self.apply(*where, "1-device-taint-rule.yaml")
        self.rule_says("NotStarted", "")  # another rule of that name was
        self.apply(*where, "2-basic-resourceclaimtemplate.yaml")
        runs("pod-with-toleration")
        self.waits(TAINTED, "pod-without-toleration", "cannot allocate all claims")
        self.tidy_tainted()
        self.done("pods leave tainted devices, or may stay")

    def rule_says(self, reason, message):
        def said():
            rule = self.get("/apis/resource.k8s.io/v1beta2/devicetaintrules/example")
            conditions = (rule or {}).get("status", {}).get("conditions", [])
            return [(one["reason"], one["message"]) for one in conditions] == [(reason, message)]
        wait_for(said, DEADLINE, "the rule to say %s: %s" % (reason, message), 0.1)

    def tidy_tainted(self):
        self.delete_namespace(TAINTED)  # first: a pod that waits would start, and bash not listen yet
        self.server.kubectl("delete", "devicetaintrule", "example", "--ignore-not-found")

    # The chart.

    def installed(self):
        began = time.monotonic()
        self.install()
        wait_for(self.slices, DEADLINE, "the first slice", 0.05)
        print("   first slice %.1f s after `helm install` began" % (time.monotonic() - began))
        self.wait_driver(8)
        warnings = [event["message"] for event in self.get("/api/v1/namespaces/%s/events" % NAMESPACE)["items"] if event["type"] != "Normal"]
        self.expect("warnings", warnings, [])
        self.done("the chart is installed, and both nodes have their devices")

    def holds_to_its_node(self):
        """The chart's admission policy: a driver writes slices of its own node alone."""
        pods = self.pods(NAMESPACE).values()
        pod = next(one["metadata"]["name"] for one in pods if one["spec"]["nodeName"] == "node-0")
        token = self.server.kubectl("create", "token", "--namespace", NAMESPACE, RELEASE + "-service-account", "--bound-object-kind", "Pod",
                                    "--bound-object-name", pod).strip()
        slices = self.get(RESOURCE + "resourceslices")["items"]
        other = next(one["metadata"]["name"] for one in slices if one["spec"]["nodeName"] == "node-1")
        with self.server.client(token=token) as driver:
            answer = driver.request("DELETE", RESOURCE + "resourceslices/" + other)
        if answer.status != 422 or "running on node 'node-0' may not modify resourceslices on node 'node-1'" not in answer.json["message"]:
            raise Failure("the driver of node-0 deletes a slice of node-1: %r" % answer)
        self.done("a driver may not write for another node")

    def killed(self):
        """The server and both agents die; containers stay, and all goes on."""
        before = self.containers()
        self.kill()
        self.wait_driver(8)
        self.delete_namespace("basic-multiple-requests")
        self.apply("basic-multiple-requests", "basic-multiple-requests.yaml")
        self.check_demos(8)
        after = self.containers()
        changed = {key: after.get(key) for key in before if after.get(key) != before[key] and key[0] != "basic-multiple-requests"}
        self.expect("containers that changed", changed, {})
        self.done("killed and started again, the driver serves on, and containers are what they were")

    def kill(self):
        self.server.restart(kill=True)
        self.api = self.server.client()

    def containers(self):
        return {(pod["metadata"]["namespace"], pod["metadata"]["name"]): [one["containerID"] for one in pod["status"]["containerStatuses"]]
                for pod in self.api.expect(200, "GET", "/api/v1/pods")["items"] if pod["status"].get("containerStatuses")}

    def upgraded(self):
        """While the old driver's pods are replaced, all is killed once more."""
        self.install("--set", "kubeletPlugin.numDevices=9", "--set", "deviceClass.extendedResourceName=example.com/gpu")
        self.kill()
        self.wait_driver(9)
        self.wait_ready("extended-resource-request", ("pod0", "pod1"))
        self.expect("devices of the pod that waited", len(self.devices("extended-resource-request", "pod1", "ctr0")), 1)
        self.delete_namespace("admin-access")
        self.apply("admin-access", "admin-access.yaml")
        self.check_demos(9)
        self.done("upgraded, nodes have nine devices, and a pod that waited has one")

    def demos_deleted(self):
        for name in DEMOS:
            self.delete_namespace(name)
        self.expect("claims", self.names(RESOURCE + "resourceclaims"), set())
        for node in NODES:
            self.expect("files for containers on %s" % node, listing(self.folder(node, "cdi")), {"k8s.gpu.example.com-gpu_common.yaml"})
        self.done("the demos are deleted")

    def folder(self, node, *parts):
        return os.path.join(self.server.data, "nodes", node, *parts)

    def installed_again(self):
        """Slices of a driver that is gone are deleted half a minute later, but not those of one that came back."""
        self.uninstall()
        self.install("--wait")
        self.wait_driver(8)
        self.done("uninstalled and installed again at once")

    def stays(self):
        kept = self.names(RESOURCE + "resourceslices")
        wait_for(lambda: time.monotonic() > self.uninstalled + 35, DEADLINE, "half a minute", 0.5)
        self.expect("slices", self.names(RESOURCE + "resourceslices"), kept)
        self.wait_driver(8)
        self.done("its slices stay")

    def nothing_left(self, machine):
        self.uninstall()
        wait_for(lambda: not self.slices(), DEADLINE, "the slices to go", 0.1)
        print("   slices gone %.1f s after `helm uninstall`" % (time.monotonic() - self.uninstalled))
        wait_for(lambda: not self.pods(NAMESPACE), DEADLINE, "the driver's pods to go", 0.1)
        self.expect("releases", json.loads(self.helm("list", "--all-namespaces", "--all", "-o", "json")), [])
        left = {name for path in (RESOURCE + "deviceclasses", RESOURCE + "resourceclaims", RBAC + "clusterroles", RBAC + "clusterrolebindings",
                                  POLICIES + "ies", POLICIES + "ybindings") for name in self.names(path) if "dra-" in name or DRIVER in name}
        for kind in ("services", "secrets", "endpoints"):
            left |= self.names("/api/v1/namespaces/%s/%s" % (NAMESPACE, kind))
        left |= self.names("/apis/apps/v1/namespaces/%s/controllerrevisions" % NAMESPACE)
        self.expect("serviceaccounts", self.names("/api/v1/namespaces/%s/serviceaccounts" % NAMESPACE), {"default"})
        self.expect("objects left", left, set())
        self.delete_namespace(NAMESPACE)
        for node in NODES:
            files = {path for path in listing(self.folder(node)) if path.startswith(("plugins/", "plugins_registry/", "cdi/", "etc-cdi/"))}
            self.expect("files left on %s" % node, files - OWN_FILES, set())
        self.expect("the machine's own folders", {path: listing(path) for path in MACHINE_FOLDERS}, machine)
        self.expect("containers left", cluster.containers_of(self.server.folder), [])
        self.done("after `helm uninstall` nothing is left but what the driver itself leaves on its nodes")

    def run(self):
        machine = {path: listing(path) for path in MACHINE_FOLDERS}
        self.installed()
        self.holds_to_its_node()
        self.demos()
        self.killed()
        self.upgraded()
        self.demos_deleted()
        self.installed_again()
        self.tainted()
        self.stays()
        self.nothing_left(machine)

    def suite(self, program, which):
        """Installs and uninstalls releases of its own, one for each spec."""
        done = subprocess.run([program, "-ginkgo.no-color", which], capture_output=True, text=True,
                              timeout=E2E_DEADLINE, env=self.server.kubectl_environment(), cwd=os.path.join(self.module, "test", "e2e"))
        summary = re.search(r"(?m)^.*\d+ Passed \| .*$", done.stdout)
        if done.returncode or not summary:
            raise Failure("the suite ends with %d\n%s" % (done.returncode, (done.stdout + done.stderr)[-12000:]))
        self.done("its own suite: " + summary.group(0))
        self.expect("containers left", cluster.containers_of(self.server.folder), [])

    def end(self):
        """Containers outlive their agent."""
        self.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--ignore-not-found", check=False)
        self.server.kubectl("delete", "namespaces", "--field-selector", "metadata.name!=default,metadata.name!=kube-system,"
                            "metadata.name!=kube-public,metadata.name!=kube-node-lease", "--wait=false", check=False)
        wait_for(lambda: not self.get("/api/v1/pods")["items"], DEADLINE, "the pods to go", 0.2)

    def report(self):
        said = [self.server.kubectl("get", "pods", "-A", "-o", "wide", check=False), self.server.kubectl("get", "events", "-A", check=False)[-4000:]]
        for pod in self.pods(NAMESPACE):
            said.append("%s:\n%s" % (pod, self.server.kubectl("logs", "--namespace", NAMESPACE, pod, "--tail=30", check=False)))
        return "\n".join(said)


def inside(which, module, programs, helm):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    with tempfile.TemporaryDirectory(prefix="dibs-test-images-") as folder:
        images.add(folder, IMAGE, image_of([os.path.join(programs, name) for name in (PLUGIN, CONTROLLER) if which == "e2e" or name == PLUGIN]))
        images.add(folder, "ubuntu:22.04", image_of([shutil.which(tool) for tool in ("bash", "env", "grep", "sort", "sleep")]))
        nodes = len(NODES) if which == "demo" else 1
        flags = ["--nodes", str(nodes), "--images", folder, "--image-alias", "busybox"]
        suite = os.path.join(programs, "e2e.test")
        if which == "demo":
            tell(flags, module, helm, lambda story: story.run())
        else:
            tell(flags, module, helm, lambda story: story.suite(suite, "-ginkgo.skip=" + "|".join(SKIPPED_SPECS)))
            tell([*flags, *GROUPS_FLAGS], module, helm, lambda story: story.suite(suite, "-ginkgo.focus=" + GROUPS_SPEC))
    return 0


def tell(flags, module, helm, what):
    """A story on a cluster of its own."""
    with cluster.Server(flags, command="up") as server:
        story = Story(server, module, helm)
        try:
            what(story)
        except Failure as failure:
            raise Failure("%s\n%s\n%s" % (failure, story.report(), server.log_tail()))
        finally:
            story.end()


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("demo", "e2e"):
        sys.exit("usage: run_chart.py demo|e2e")
    if len(sys.argv) > 2:
        return inside(*sys.argv[1:])
    if os.geteuid() != 0 or not cluster.kubectl():
        print("SKIPPED: wants root and kubectl")
        return run.SKIPPED
    try:
        go = run.find_go()
        module = source(go)
        programs = build(go, module, sys.argv[1])
        helm = find_helm()
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    return run.on_own_machine(__file__, sys.argv[1], module, programs, helm)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
