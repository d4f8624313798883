#!/usr/bin/env python3
"""The project's own Helm chart (deploy/helm/dibs) and plain manifests (deploy/manifests).

    run_own_chart.py files      lint, values that are refused, manifests that agree with the chart, roles that agree with the program; a server's dry run
    run_own_chart.py cluster    installed by unmodified helm on `dibs up` with real containers: pods with claims, `dibs why` there, upgrade, uninstall

The image is made as `make image` makes it, of the binary that is tested. helm is $DIBS_HELM, or what tools/get-upstream builds.

`cluster` runs on a machine of its own (support/underlay.sh), from which nothing leaves. Skipped (exit status 77) where helm, kubectl, or for
`cluster` root and containers are missing.
"""
import filecmp
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import run  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402
from run_chart import find_helm, is_ready  # noqa: E402

CHART = os.path.join(ROOT, "deploy", "helm", "dibs")
MANIFESTS = os.path.join(ROOT, "deploy", "manifests")
RELEASE, NAMESPACE = "dibs", "dibs-system"
DRIVER, SCHEDULER = "gpu.example.com", "dibs-scheduler"
KUBE = ("--kube-version", "1.37.0")
DEADLINE = 120
NODES = ("node-0", "node-1")
RESOURCE = "/apis/resource.k8s.io/v1/"
RBAC = "/apis/rbac.authorization.k8s.io/v1/"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
MACHINE_FOLDERS = ("/var/lib/kubelet", "/var/run/cdi", "/var/run/spidernet")

# Values that a user may want, beside the defaults.
SETS = (
    [],
    ["net.enabled=true"],
    ["net.enabled=true", "net.allowImmediate=true", "net.hostDevicePath=/usr/lib/libtransport.so", "net.excludeInterfaces={docker*,br-*}"],
    ["scheduler.enabled=false", "gpu.enabled=false", "why.enabled=false"],
    ["fullnameOverride=mine", "image.repository=example.com/dibs", "image.tag=v1", "imagePullSecrets[0].name=key", "logLevel=debug"],
    ["scheduler.replicas=1", "scheduler.explainEvents=true", "scheduler.extraConfiguration.percentageOfNodesToScore=50", "scheduler.release=1.36",
     "scheduler.featureGates=DRAPartitionableDevices=false", "scheduler.nodeSelector.disk=ssd", "scheduler.tolerations[0].operator=Exists"],
    ["scheduler.profiles[0].schedulerName=a", "scheduler.profiles[1].schedulerName=b"],
    ["gpu.deviceProfile=net", "gpu.driverName=net.example.com", "gpu.deviceStatus=true", "gpu.bindingConditions=true", "gpu.deviceMetadata=true",
     "gpu.extendedResourceName=example.com/nic", "kubelet.dir=/data/kubelet", "kubelet.cdiRoot=/etc/cdi"],
    ["why.aggregateToView=true", "why.subjects[0].kind=Group", "why.subjects[0].name=developers", "why.subjects[0].apiGroup=rbac.authorization.k8s.io"],
)
REFUSED = (
    ("gpu.numDevice=4", "additional properties 'numDevice' not allowed"),
    ("colour=red", "additional properties 'colour' not allowed"),
    ("gpu.numDevices=many", "got string, want integer"),
    ("gpu.numDevices=1000", "maximum"),
    ("scheduler.extraConfiguration.profiles=x", "/scheduler/extraConfiguration"),
    ("net.subnetMatch=maybe", "value must be one of"),
    ("logLevel=loud", "value must be one of"),
    ("image.tag=", "minLength"),
)


def command(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, **more)
    if check and done.returncode:
        raise Failure("%s: exit status %d\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
    return done


def flags_of(values):
    return [word for one in values for word in ("--set", one)]


def check_chart(helm):
    """As text: what every set of values comes to, and which are refused."""
    for values in SETS:
        command(helm, "lint", "--strict", *KUBE, *flags_of(values), CHART)
        text = command(helm, "template", RELEASE, CHART, "--namespace", NAMESPACE, *KUBE, *flags_of(values)).stdout
        if re.search(r"(?m)[ \t]+$|<no value>", text):
            raise Failure("helm template %s: blanks or nothing where a value should be:\n%s" % (values, text))
    for value, words in REFUSED:
        done = command(helm, "template", RELEASE, CHART, *KUBE, "--set", value, check=False)
        if done.returncode == 0 or words not in done.stderr:
            raise Failure("helm template --set %s: exit status %d\n%s" % (value, done.returncode, done.stderr))
    print("ok %d sets of values, %d refused" % (len(SETS), len(REFUSED)), flush=True)


def check_manifests(helm, folder):
    """What tools/render-manifests writes is what lies there."""
    command(os.path.join(ROOT, "tools", "render-manifests"), helm, folder)
    names = sorted(os.listdir(folder))
    if names != sorted(os.listdir(MANIFESTS)):
        raise Failure("deploy/manifests has %s, the chart makes %s" % (os.listdir(MANIFESTS), names))
    _, differ, strange = filecmp.cmpfiles(folder, MANIFESTS, names, shallow=False)
    if differ or strange:
        raise Failure("deploy/manifests is not what the chart makes: %s; tools/render-manifests HELM writes it" % (differ + strange))
    print("ok plain manifests", flush=True)


def rules_of(objects, name):
    found = [one["rules"] for one in objects if one["kind"] == "ClusterRole" and one["metadata"]["name"] == name]
    if len(found) != 1:
        raise Failure("%d ClusterRoles %s" % (len(found), name))
    return sorted(json.dumps({key: sorted(value) for key, value in rule.items()}, sort_keys=True) for rule in found[0])


def check_on_server(helm, server):
    """Everything is what a server takes, and the net driver may do what it may do in `dibs up`."""
    server.kubectl("create", "namespace", NAMESPACE)
    for values in SETS:
        text = command(helm, "template", RELEASE, CHART, "--namespace", NAMESPACE, *KUBE, *flags_of(values)).stdout
        if text.strip():
            server.kubectl("apply", "--dry-run=server", "-f", "-", source=text)
    for name in sorted(os.listdir(MANIFESTS)):
        server.kubectl("apply", "--dry-run=server", "-f", os.path.join(MANIFESTS, name))
    rendered = command(helm, "template", RELEASE, CHART, "--namespace", NAMESPACE, *KUBE, "--set", "net.enabled=true").stdout
    objects = json.loads(server.kubectl("apply", "--dry-run=client", "-o", "json", "-f", "-", source=rendered))["items"]
    api = server.client()
    roles = api.expect(200, "GET", RBAC + "clusterroles")["items"]
    for one in roles:
        one["kind"] = "ClusterRole"
    for ours, theirs in (("dibs-net", "dibs:account:dibs-driver-net"), ("dibs-net-controller", "dibs:account:dibs-driver-net-controller")):
        if rules_of(objects, ours) != rules_of(roles, theirs):
            raise Failure("%s has not the rules of %s:\n%s" % (ours, theirs, "\n".join(rules_of(roles, theirs))))
    print("ok a server takes all of it; the network driver has the rights that it needs", flush=True)


def make_image(folder):
    """The archive that `make package` writes, and the image of it that `make image` writes."""
    place = os.path.join(folder, "dibs-image")
    command(os.path.join(ROOT, "tools", "install-files"), cluster.binary(), "/", place, "all")
    archive, image = os.path.join(folder, "dibs.tar.gz"), os.path.join(folder, "dibs-image.tar")
    with tarfile.open(archive, "w:gz", compresslevel=1) as out:
        out.add(place, "dibs")
    command(sys.executable, os.path.join(ROOT, "tools", "image"), archive, image)
    command("rm", "-rf", place, archive)
    return image


POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %(name)s, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.example.com, count: %(count)d}
---
apiVersion: v1
kind: Pod
metadata: {name: %(name)s, namespace: default}
spec:
  schedulerName: dibs-scheduler
  terminationGracePeriodSeconds: 0
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %(name)s}]
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "env | grep ^GPU_DEVICE; sleep 100000"]
    resources: {claims: [{name: gpu}]}
"""


class Story:
    def __init__(self, server, helm):
        self.server, self.program, self.api = server, helm, server.client()

    def done(self, what):
        print("ok " + what, flush=True)

    def helm(self, *words, check=True):
        return command(self.program, *words, check=check, env=self.server.kubectl_environment()).stdout

    def install(self, *values):
        self.helm("upgrade", "-i", "--create-namespace", "--namespace", NAMESPACE, RELEASE, CHART, "--wait", "--timeout", "%ds" % DEADLINE,
                  *flags_of(values))

    def items(self, path):
        return self.api.expect(200, "GET", path)["items"]

    def names(self, path):
        return {one["metadata"]["name"] for one in self.items(path)}

    def pods(self, component):
        return [one for one in self.items("/api/v1/namespaces/%s/pods?labelSelector=app.kubernetes.io/component%%3D%s" % (NAMESPACE, component))
                if "deletionTimestamp" not in one["metadata"]]

    def slices(self):
        return {one["spec"]["nodeName"]: len(one["spec"].get("devices", [])) for one in self.items(RESOURCE + "resourceslices")}

    def wait_devices(self, count):
        wait_for(lambda: self.slices() == {node: count for node in NODES}, DEADLINE, "%d devices on both nodes" % count, 0.1)

    def run_pod(self, name, count=1):
        self.server.kubectl("apply", "-f", "-", source=POD % {"name": name, "count": count})

    def pod(self, name):
        return self.api.expect(200, "GET", "/api/v1/namespaces/default/pods/" + name)

    def wait_runs(self, name):
        wait_for(lambda: is_ready(self.pod(name)), DEADLINE, "pod %s to run" % name, 0.1)
        said = wait_for(lambda: self.server.kubectl("logs", name), DEADLINE, "what %s says" % name, 0.1)
        if "GPU_DEVICE" not in said:
            raise Failure("pod %s has no device: %s" % (name, said))
        bound = [event["reportingComponent"] for event in self.items("/api/v1/namespaces/default/events")
                 if event["involvedObject"]["name"] == name and event["reason"] == "Scheduled"]
        if bound != [SCHEDULER]:
            raise Failure("pod %s was scheduled by %s" % (name, bound))

    def leader(self):
        lease = self.api.get("/apis/coordination.k8s.io/v1/namespaces/%s/leases/dibs-scheduler" % NAMESPACE)
        holder = lease.json["spec"].get("holderIdentity", "") if lease.status == 200 else ""
        for pod in self.pods("scheduler"):
            if holder.startswith(pod["metadata"]["name"] + "_"):
                return pod
        return None

    def scrape(self, pod, port):
        answer = self.api.get("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics" % (NAMESPACE, pod["metadata"]["name"], port))
        if answer.status != 200:
            raise Failure("no metrics of %s: %r" % (pod["metadata"]["name"], answer))
        return answer.data.decode()

    def installed(self):
        self.install()
        self.wait_devices(8)
        if len(self.pods("scheduler")) != 2 or not all(is_ready(pod) for pod in self.pods("scheduler") + self.pods("gpu")):
            raise Failure("not everything is ready")
        self.run_pod("one")
        self.wait_runs("one")
        self.done("installed: a pod has a device from the chart's scheduler and driver")

    def measured(self):
        leader = wait_for(self.leader, DEADLINE, "a leader", 0.1)
        text = self.scrape(leader, 10259)
        for wanted in ('scheduler_schedule_attempts_total{result="scheduled",profile="dibs-scheduler"} 1', "process_cpu_seconds_total",
                       'leader_election_master_status{name="dibs-scheduler"} 1'):
            if wanted not in text:
                raise Failure("%s is not among the scheduler's metrics:\n%s" % (wanted, text))
        prepared = sum(int(found) for pod in self.pods("gpu")
                       for found in re.findall(r'dra_example_driver_prepare_claims_total\{result="success"\} (\d+)', self.scrape(pod, 8080)))
        if prepared != 1:
            raise Failure("the drivers count %d prepared claims" % prepared)
        self.done("scheduler and drivers tell what they have done")

    def explained(self):
        """`dibs why` in a pod of the cluster, and by kubectl on the user's machine."""
        self.run_pod("greedy", 9)
        overrides = json.dumps({"spec": {"serviceAccountName": "dibs-why"}})
        configuration = self.server.kubectl("-n", NAMESPACE, "get", "configmap", "dibs-scheduler", "-o", r"jsonpath={.data.scheduler\.yaml}")
        place = os.path.join(self.server.folder, "scheduler.yaml")
        with open(place, "w") as f:
            f.write(configuration)
        self.server.kubectl("-n", NAMESPACE, "run", "why", "--restart=Never", "--image=dibs:latest", "--image-pull-policy=IfNotPresent",
                            "--overrides", overrides, "--", "why", "pod/one", "-n", "default")
        wait_for(lambda: self.api.get("/api/v1/namespaces/%s/pods/why" % NAMESPACE).json["status"].get("phase") in ("Succeeded", "Failed"),
                 DEADLINE, "the pod with dibs why to end", 0.1)
        said = self.server.kubectl("-n", NAMESPACE, "logs", "why")
        ended = self.api.get("/api/v1/namespaces/%s/pods/why" % NAMESPACE).json["status"]
        if ended["phase"] != "Succeeded" or "pod default/one is on " not in said:
            raise Failure("dibs why in a pod: %s\n%s" % (ended, said))
        if "forbidden" in said:
            raise Failure("dibs why may not read everything:\n" + said)
        self.server.kubectl("-n", NAMESPACE, "delete", "pod", "why")
        folder = os.path.join(self.server.folder, "bin")
        os.makedirs(folder)
        os.symlink(cluster.binary(), os.path.join(folder, "kubectl-dibs"))
        environment = self.server.kubectl_environment()
        environment["PATH"] = folder + ":" + environment["PATH"]
        done = command(cluster.one_kubectl(), "dibs", "why", "pod/greedy", "--config", place, env=environment, check=False)
        if done.returncode != 2 or "wants 9 of 8 devices" not in done.stdout:
            raise Failure("kubectl dibs why pod/greedy: exit status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
        self.server.kubectl("delete", "pod", "greedy")
        self.done("`dibs why` answers in a pod, and as `kubectl dibs why`")

    def another_leads(self):
        gone = wait_for(self.leader, DEADLINE, "a leader", 0.1)["metadata"]["name"]
        self.server.kubectl("-n", NAMESPACE, "delete", "pod", gone)
        wait_for(lambda: self.leader() and self.leader()["metadata"]["name"] != gone, DEADLINE, "another leader", 0.1)
        self.run_pod("two")
        self.wait_runs("two")
        self.done("the leader went, and another one schedules")

    def holds_to_its_node(self):
        pod = next(one["metadata"]["name"] for one in self.pods("gpu") if one["spec"]["nodeName"] == "node-0")
        token = self.server.kubectl("create", "token", "--namespace", NAMESPACE, "dibs-gpu", "--bound-object-kind", "Pod", "--bound-object-name", pod).strip()
        other = next(one["metadata"]["name"] for one in self.items(RESOURCE + "resourceslices") if one["spec"]["nodeName"] == "node-1")
        with self.server.client(token=token) as driver:
            answer = driver.request("DELETE", RESOURCE + "resourceslices/" + other)
        if answer.status != 422 or "a driver on node node-0 may not write slices of node node-1" not in answer.json["message"]:
            raise Failure("the driver of node-0 deletes a slice of node-1: %r" % answer)
        self.done("a driver writes no slices of other nodes")

    def refused_nothing(self):
        """Nobody asks for what his role does not have."""
        for pod in self.pods("scheduler") + self.pods("gpu"):
            log = self.server.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"])
            if re.search(r"forbidden|refused|cannot be", log):
                raise Failure("%s was refused something:\n%s" % (pod["metadata"]["name"], log))
        self.done("the roles are enough")

    def upgraded(self):
        self.install("gpu.numDevices=3", "scheduler.extraConfiguration.percentageOfNodesToScore=50")
        self.wait_devices(3)
        wait_for(self.leader, DEADLINE, "a leader", 0.1)
        self.run_pod("three")
        self.wait_runs("three")
        self.done("upgraded, with other devices and another configuration")

    def delete_pods(self):
        self.server.kubectl("delete", "pods,resourceclaimtemplates", "--all", "--wait=true", timeout=DEADLINE)
        wait_for(lambda: not self.items(RESOURCE + "resourceclaims"), DEADLINE, "the claims to go", 0.1)

    def nothing_left(self):
        wait_for(lambda: not self.slices(), DEADLINE, "the slices to go", 0.1)
        wait_for(lambda: not self.items("/api/v1/namespaces/%s/pods" % NAMESPACE), DEADLINE, "the pods to go", 0.1)
        left = {name for path in (RESOURCE + "deviceclasses", RBAC + "clusterroles", RBAC + "clusterrolebindings", POLICIES + "ies", POLICIES + "ybindings")
                for name in self.names(path) if name.startswith("dibs-") or name == DRIVER}
        for kind in ("apis/apps/v1/%s/deployments", "apis/apps/v1/%s/daemonsets", "api/v1/%s/secrets", "api/v1/%s/configmaps", "api/v1/%s/serviceaccounts",
                     "apis/rbac.authorization.k8s.io/v1/%s/roles", "apis/rbac.authorization.k8s.io/v1/%s/rolebindings"):
            left |= self.names("/" + kind % ("namespaces/" + NAMESPACE)) - {"kube-root-ca.crt", "default"}
        if left:
            raise Failure("left behind: %s" % sorted(left))

    def by_hand(self):
        """The same from the plain manifests."""
        files = [flag for part in ("scheduler", "gpu", "why") for flag in ("-f", os.path.join(MANIFESTS, part + ".yaml"))]
        self.server.kubectl("apply", *files)
        self.wait_devices(8)
        wait_for(self.leader, DEADLINE, "a leader", 0.1)
        self.run_pod("four")
        self.wait_runs("four")
        self.delete_pods()
        self.server.kubectl("delete", *files, "--wait=true", timeout=DEADLINE)
        wait_for(lambda: NAMESPACE not in self.names("/api/v1/namespaces"), DEADLINE, "the namespace to go", 0.1)
        wait_for(lambda: not self.slices(), DEADLINE, "the slices to go", 0.1)
        self.done("the plain manifests do the same")

    def run(self):
        machine = {path: os.path.exists(path) and os.listdir(path) for path in MACHINE_FOLDERS}
        self.installed()
        self.measured()
        self.explained()
        self.another_leads()
        self.holds_to_its_node()
        self.refused_nothing()
        self.upgraded()
        self.delete_pods()
        self.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait")
        self.nothing_left()
        self.server.kubectl("delete", "namespace", NAMESPACE, "--wait=true", timeout=DEADLINE)
        self.done("`helm uninstall` leaves nothing")
        self.by_hand()
        now = {path: os.path.exists(path) and os.listdir(path) for path in MACHINE_FOLDERS}
        if now != machine:
            raise Failure("the machine's own folders: %s, before %s" % (now, machine))

    def network(self):
        """The network driver, on one node: its halves share the machine's network with everything else here."""
        self.install("scheduler.enabled=false", "gpu.enabled=false", "why.enabled=false", "net.enabled=true")
        reports = "/apis/spiderpool.spidernet.io/v2beta1/spidernodestates"
        wait_for(lambda: any(one["status"].get("ready") for one in (self.api.get(reports).json or {}).get("items", []) if "status" in one), DEADLINE,
                 "the report of the node", 0.1)
        wait_for(lambda: "node-0" in self.slices(), DEADLINE, "slices of interfaces", 0.1)
        for pod in self.pods("net") + self.pods("net-controller"):
            log = self.server.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"])
            if re.search(r"forbidden|refused", log):
                raise Failure("%s was refused something:\n%s" % (pod["metadata"]["name"], log))
        self.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait")
        self.nothing_left()
        self.done("the network driver reports its node, with the rights of the chart")

    def end(self):
        """Containers outlive their agent."""
        self.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--ignore-not-found", check=False)
        self.server.kubectl("delete", "pods", "--all", "--wait=false", check=False)
        self.server.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found", check=False)
        wait_for(lambda: not self.items("/api/v1/pods"), DEADLINE, "the pods to go", 0.2)

    def report(self):
        said = [self.server.kubectl("get", "pods", "-A", "-o", "wide", check=False), self.server.kubectl("get", "events", "-A", check=False)[-6000:]]
        for pod in self.items("/api/v1/namespaces/%s/pods" % NAMESPACE):
            name = pod["metadata"]["name"]
            said.append("%s:\n%s" % (name, self.server.kubectl("logs", "--namespace", NAMESPACE, name, "--tail=30", check=False)))
        return "\n".join(said)


def inside(helm):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    with tempfile.TemporaryDirectory(prefix="dibs-test-images-") as folder:
        image = make_image(folder)
        store = os.path.join(folder, "images")
        command(cluster.binary(), "image", "load", "--images", store, image)
        for nodes, told in ((len(NODES), Story.run), (1, Story.network)):
            with cluster.Server(["--nodes", str(nodes), "--images", store, "--image-alias", "busybox"], command="up") as server:
                story = Story(server, helm)
                try:
                    told(story)
                except Failure as failure:
                    raise Failure("%s\n%s\n%s" % (failure, story.report(), server.log_tail()))
                finally:
                    story.end()
    return 0


def files(helm):
    with tempfile.TemporaryDirectory(prefix="dibs-test-manifests-") as folder:
        check_chart(helm)
        check_manifests(helm, folder)
        with cluster.Server(["--runtime", "sim", "--drivers", "net"], command="up") as server:
            check_on_server(helm, server)
    return 0


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("files", "cluster"):
        sys.exit("usage: run_own_chart.py files|cluster")
    if len(sys.argv) > 2:
        return inside(*sys.argv[2:])
    if not cluster.kubectl() or (sys.argv[1] == "cluster" and os.geteuid() != 0):
        print("SKIPPED: wants kubectl, and for `cluster` root")
        return run.SKIPPED
    try:
        helm = find_helm()
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    return files(helm) if sys.argv[1] == "files" else run.on_own_machine(__file__, "cluster", helm)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
