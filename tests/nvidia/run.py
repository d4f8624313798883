#!/usr/bin/env python3
"""The driver of NVIDIA's GPUs on make-believe machines (docs/formats/fake-nvml.md), with `dibs up`, real containers, and the examples as they stand.

    run.py mig        one H200: instances made for pods and destroyed with them, a pod that does not fit, kills at every step, faults
    run.py machine    eight H100: whole GPUs, by resource, in turns, by MPS, health of each kind, a driver in a process of its own

Wants root and containers; without them it is skipped (exit status 77).
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

SKIPPED = 77
DEADLINE = 90  # seconds; the processors may be shared with other tests
DRIVER = "gpu.nvidia.com"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
TOOL = os.path.join(os.environ.get("DIBS_BUILD", ""), "dibs-fake-nvml")


def expect(what, found, wanted):
    if found != wanted:
        raise Failure("%s: %r, expected %r" % (what, found, wanted))


class Machine:
    """A make-believe machine in a folder, with what other programs do on it."""

    def __init__(self, folder, name):
        self.description = os.path.join(folder, name + ".yaml")
        self.root = os.path.join(folder, name)
        shutil.copy(os.path.join(ROOT, "drivers", "nvidia", "machines", name + ".yaml"), self.description)
        self.tool("layout", self.root)

    def tool(self, command, *words):
        return subprocess.run([TOOL, command, self.description, *words],
                              check=True, capture_output=True, text=True).stdout

    def instances(self):
        """"1g.18gb 0:1" of each, of all GPUs."""
        return sorted(re.findall(r"^  \d+ (\S+ \d+:\d+)", self.tool("show"), re.M))

    def has_mig_on(self):
        return "MIG on" in self.tool("show")

    def faults(self, text):
        with open(self.description + ".faults.new", "w") as f:
            f.write(text)
        os.replace(self.description + ".faults.new", self.description + ".faults")


class Story:
    def __init__(self, server, machine):
        self.server, self.machine, self.api = server, machine, server.client()

    def apply(self, example):
        self.server.kubectl("apply", "-f", os.path.join(ROOT, "examples", "nvidia", example + ".yaml"))

    def delete(self, example):
        self.server.kubectl("delete", "-f", os.path.join(ROOT, "examples", "nvidia", example + ".yaml"))

    def pods(self, namespace):
        return self.api.expect(200, "GET", "/api/v1/namespaces/%s/pods" % namespace)["items"]

    def wait_running(self, namespace, *names):
        def running():
            return {pod["metadata"]["name"] for pod in self.pods(namespace) if pod["status"].get("phase") == "Running"} >= set(names)
        try:
            wait_for(running, DEADLINE, "pods %s of %s to run" % (", ".join(names), namespace))
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, self.server.kubectl("-n", namespace, "describe", "pods")))

    def sees(self, namespace, pod, container="ctr"):
        """Lines of `nvidia-smi -L` in the container."""
        return self.server.kubectl("-n", namespace, "exec", pod, "-c", container, "--", "nvidia-smi", "-L").splitlines()

    def devices(self):
        slices = self.api.expect(200, "GET", SLICES)["items"]
        return {device["name"]: device for one in slices for device in one["spec"].get("devices", []) if one["spec"]["driver"] == DRIVER}

    def taints(self, device):
        return sorted("%s=%s:%s" % (one["key"], one.get("value", ""), one["effect"]) for one in self.devices()[device].get("taints", []))

    def wait_taints(self, device, *wanted):
        wait_for(lambda: self.taints(device) == sorted(wanted), DEADLINE, "%s to have the taints %s, it has %s" % (device, wanted, self.taints(device)))

    def why(self, *words):
        done = subprocess.run([cluster.binary(), "why", *words, "--kubeconfig", self.server.kubeconfig], capture_output=True, text=True)
        return done.stdout + done.stderr

    def restart(self):
        """Server, agent and driver, all of them killed."""
        self.server.restart(kill=True)
        self.api = self.server.client()


def one_mig_line(lines):
    found = [line for line in lines if line.startswith("  MIG ")]
    expect("instances that the container sees", len(found), 1)
    return found[0]


def mig(server, machine):
    story = Story(server, machine)
    wait_for(lambda: len(story.devices()) > 20, DEADLINE, "the driver to publish its devices")
    expect("the whole GPU's kind", story.devices()["gpu-0"]["attributes"]["type"]["string"], "gpu")
    expect("instances before anybody asked", machine.instances(), [])

    story.apply("mig")
    story.wait_running("nvidia-mig", "first", "second")
    expect("instances", machine.instances(), ["1g.18gb 0:1", "1g.18gb 1:1"])
    one, other = (one_mig_line(story.sees("nvidia-mig", name)) for name in ("first", "second"))
    if one.split("UUID")[1] == other.split("UUID")[1]:
        raise Failure("both pods see the instance %s" % one)
    print("ok two pods, an instance each, and each sees its own")

    story.apply("mig-does-not-fit")
    wait_for(lambda: "shared counters" in story.why("pod/third", "-n", "nvidia-mig"), DEADLINE, "the third pod to wait")
    print("ok a third one that does not fit waits: %s" % story.why("pod/third", "-n", "nvidia-mig").splitlines()[0])

    before = (one, other)
    story.restart()
    story.wait_running("nvidia-mig", "first", "second")
    expect("instances after everything was killed", machine.instances(), ["1g.18gb 0:1", "1g.18gb 1:1"])
    expect("what the pods see", tuple(one_mig_line(story.sees("nvidia-mig", name)) for name in ("first", "second")), before)
    print("ok all of dibs is killed, and the pods go on with their instances")

    server.kubectl("-n", "nvidia-mig", "delete", "pod", "first", "second")
    story.wait_running("nvidia-mig", "third")
    expect("instances of the third", machine.instances(), ["7g.141gb 0:8"])
    server.kubectl("delete", "namespace", "nvidia-mig")
    wait_for(lambda: machine.instances() == [], DEADLINE, "the instances to be destroyed")
    wait_for(lambda: not machine.has_mig_on(), DEADLINE, "the mode to be put back")
    print("ok when they are gone the third has its place, and at last nothing is left")

    story.apply("mig-four-containers")
    story.wait_running("nvidia-mig-four", "pod")
    expect("instances of four containers", machine.instances(), ["1g.18gb 0:1", "1g.18gb 1:1", "2g.35gb 2:2", "3g.71gb 4:4"])
    for container in ("ctr0", "ctr1", "ctr2", "ctr3"):
        one_mig_line(story.sees("nvidia-mig-four", "pod", container))
    server.kubectl("delete", "namespace", "nvidia-mig-four")
    wait_for(lambda: machine.instances() == [], DEADLINE, "the instances to be destroyed")
    print("ok four containers of one pod, with instances of three profiles")

    # Killed by the library itself in the middle of its work; the cluster is started again, and the pod gets what it asked for.
    for n, (call, when) in enumerate((call, when) for call in ("nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstanceWithPlacement",
                                                               "nvmlGpuInstanceCreateComputeInstance") for when in ("before", "after")):
        machine.faults("calls:\n- {call: %s, kill: %s, times: 1, id: %d}\n" % (call, when, n))
        story.apply("mig")
        wait_for(lambda: not server.alive(), DEADLINE, "the process to be killed %s %s" % (when, call))
        story.restart()
        story.wait_running("nvidia-mig", "first", "second")
        expect("instances after a kill %s %s" % (when, call), machine.instances(), ["1g.18gb 0:1", "1g.18gb 1:1"])
        machine.faults("")
        server.kubectl("delete", "namespace", "nvidia-mig")
        wait_for(lambda: machine.instances() == [] and not machine.has_mig_on(), DEADLINE, "nothing to be left")
    for n, (call, when) in enumerate((call, when) for call in ("nvmlComputeInstanceDestroy", "nvmlGpuInstanceDestroy") for when in ("before", "after")):
        story.apply("mig")
        story.wait_running("nvidia-mig", "first", "second")
        machine.faults("calls:\n- {call: %s, kill: %s, times: 1, id: %d}\n" % (call, when, 10 + n))
        server.kubectl("delete", "namespace", "nvidia-mig", "--wait=false")
        wait_for(lambda: not server.alive(), DEADLINE, "the process to be killed %s %s" % (when, call))
        story.restart()
        wait_for(lambda: story.api.get("/api/v1/namespaces/nvidia-mig").status == 404, DEADLINE, "the namespace to go")
        wait_for(lambda: machine.instances() == [] and not machine.has_mig_on(), DEADLINE, "nothing to be left")
        machine.faults("")
    print("ok killed before and after each step of making and destroying: nothing is left over, nothing is made twice")

    machine.faults("gpus:\n- {gpu: 0, busy: true}\n")
    story.apply("mig")
    wait_for(lambda: "MIG" in story.why("pod/first", "-n", "nvidia-mig") and "Failed" in server.kubectl("-n", "nvidia-mig", "get", "events"),
             DEADLINE, "an event that says why the pod cannot start")
    machine.faults("")
    story.wait_running("nvidia-mig", "first", "second")
    server.kubectl("delete", "namespace", "nvidia-mig")
    wait_for(lambda: machine.instances() == [], DEADLINE, "the instances to be destroyed")
    print("ok a GPU in use lets the pod wait with the reason, and it starts when the GPU is free")


def machine_story(server, machine):
    story = Story(server, machine)
    wait_for(lambda: "gpu-7" in story.devices(), DEADLINE, "the driver to publish eight GPUs")
    roots = [story.devices()["gpu-%d" % n]["attributes"]["resource.kubernetes.io/pcieRoot"]["string"] for n in range(8)]
    expect("PCIe roots", len(set(roots)), 8)

    story.apply("gpu")
    story.wait_running("nvidia-gpu", "first", "second")
    seen = [story.sees("nvidia-gpu", name) for name in ("first", "second")]
    expect("GPUs that each pod sees", [len(lines) for lines in seen], [1, 1])
    if seen[0][0].split("UUID")[1] == seen[1][0].split("UUID")[1]:
        raise Failure("both pods see %s" % seen[0])
    story.apply("extended-resource")
    story.wait_running("default", "by-resource")
    expect("GPUs of a pod that asked by resource", len(story.sees("default", "by-resource")), 1)
    print("ok three pods have a GPU each, by claim and by resource")

    # Of both pods the first has gpu-0; the nearer the fault, the more is tainted.
    machine.faults("gpus:\n- {gpu: 3, lost: true}\n- {gpu: 5, rows: {pending: true}}\n"
                   "events:\n- {gpu: 0, xid: 79}\n- {gpu: 1, xid: 31}\n- {gpu: 4, doubleBitEcc: true}\n")
    story.wait_taints("gpu-0", DRIVER + "/xid=79:NoSchedule")
    story.wait_taints("gpu-1", DRIVER + "/xid=31:None")
    story.wait_taints("gpu-3", DRIVER + "/gpu-lost=:NoSchedule")
    story.wait_taints("gpu-4", DRIVER + "/ecc=double-bit:NoSchedule")
    story.wait_taints("gpu-5", DRIVER + "/row-remap=pending:NoSchedule")
    holder = next(pod["metadata"]["name"] for pod in story.pods("nvidia-gpu") if "gpu-0" in story.why("pod/" + pod["metadata"]["name"], "-n", "nvidia-gpu"))
    def told():
        status = [pod for pod in story.pods("nvidia-gpu") if pod["metadata"]["name"] == holder][0]["status"]["containerStatuses"][0]
        return any(one["health"] == "Unhealthy" for per in status.get("allocatedResourcesStatus", []) for one in per["resources"])
    wait_for(told, DEADLINE, "the status of the pod with the ill GPU to say so")
    machine.faults("")
    story.wait_taints("gpu-3")
    print("ok errors, a lost GPU, broken rows are taints, who has an ill GPU is told, and a GPU that comes back is as before")

    top = subprocess.run([cluster.binary(), "top", "devices", "--driver", DRIVER, "-o", "wide", "--kubeconfig", server.kubeconfig],
                         capture_output=True, text=True, check=True).stdout
    if "gpu-0" not in top or "79640Mi" not in top and "Gi" not in top:
        raise Failure("dibs top devices shows no memory:\n" + top)
    print("ok dibs top devices shows memory")

    server.kubectl("delete", "namespace", "nvidia-gpu")
    story.delete("extended-resource")
    server.kubectl("-n", "default", "wait", "--for=delete", "pod/by-resource", "--timeout=60s")
    slices = os.path.join(machine.root, "run", "fake-nvml")
    story.apply("time-slicing")
    story.wait_running("nvidia-time-slicing", "pod")
    def turns():
        return sorted(open(os.path.join(slices, name)).read().strip() for name in os.listdir(slices) if name.startswith("timeslice-"))
    expect("time slices", [turn for turn in turns() if turn != "0"], ["3"])
    expect("GPUs of the two containers", story.sees("nvidia-time-slicing", "pod", "ctr0"), story.sees("nvidia-time-slicing", "pod", "ctr1"))
    server.kubectl("delete", "namespace", "nvidia-time-slicing")
    wait_for(lambda: set(turns()) <= {"0"}, DEADLINE, "the time slice to be put back")
    print("ok two containers take turns on one GPU, in long slices, which are put back")

    daemons = os.path.join(server.data, "nodes", "node-0", "plugins", DRIVER, "mps")
    story.apply("mps")
    story.wait_running("nvidia-mps", "pod")
    for container in ("ctr0", "ctr1"):
        pipe = server.kubectl("-n", "nvidia-mps", "exec", "pod", "-c", container, "--", "sh", "-c", "ls $CUDA_MPS_PIPE_DIRECTORY")
        if "control" not in pipe:
            raise Failure("container %s has no pipe to an MPS daemon: %r" % (container, pipe))
        link = server.kubectl("-n", "nvidia-mps", "exec", "pod", "-c", container, "--", "sh", "-c",
                              "ln -s /etc/shadow $CUDA_MPS_PIPE_DIRECTORY/link 2>&1 || echo refused")
        if "refused" not in link:
            raise Failure("container %s can lay links where the MPS daemon writes" % container)
    expect("MPS daemons", len(os.listdir(daemons)), 1)
    story.restart()
    story.wait_running("nvidia-mps", "pod")
    expect("MPS daemons after everything was killed", len(os.listdir(daemons)), 1)
    server.kubectl("delete", "namespace", "nvidia-mps")
    wait_for(lambda: not os.path.exists(daemons) or os.listdir(daemons) == [], DEADLINE, "the MPS daemon to end")
    print("ok two containers share a GPU by an MPS daemon, which outlives a kill and ends with the claim")


def alone(server, machine):
    """The driver as a process of its own, killed with a claim prepared."""
    story = Story(server, machine)
    node = os.path.join(server.data, "nodes", "node-0")
    command = [cluster.binary(), "driver", "nvidia", "--node-name", "node-0", "--driver-root", machine.root,
               "--kubelet-registrar-directory-path", os.path.join(node, "plugins_registry"),
               "--kubelet-plugins-directory-path", os.path.join(node, "plugins"),
               "--cdi-root", os.path.join(node, "cdi"), "--kubeconfig", server.kubeconfig, "--log-level", "warn"]
    log = open(os.path.join(server.folder, "driver.log"), "ab")

    def start():
        return subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=cluster.die_with_parent)
    driver = start()
    try:
        wait_for(lambda: "gpu-7" in story.devices(), DEADLINE, "the driver to publish eight GPUs")
        story.apply("mps")
        story.wait_running("nvidia-mps", "pod")
        driver.kill()
        driver.wait()
        server.kubectl("-n", "nvidia-mps", "delete", "pod", "pod", "--wait=false")
        driver = start()
        wait_for(lambda: story.pods("nvidia-mps") == [], DEADLINE, "the pod to end once the driver is back")
        server.kubectl("delete", "namespace", "nvidia-mps")
        driver.send_signal(signal.SIGTERM)
        expect("exit status of the driver", driver.wait(60), 0)
    finally:
        driver.kill()
        driver.wait()
        log.close()
    with open(log.name, errors="replace") as f:
        found = cluster.SANITIZER.search(f.read())
    if found:
        raise Failure("a sanitizer reports in %s: %s" % (log.name, found.group(0)))
    print("ok a driver in a process of its own is killed and takes back what it made")


def refusals(folder, root):
    for words, what in ((["--nodes", "2", "--drivers", "nvidia:driver-root=" + root], "take --nodes 1"),
                        (["--drivers", "nvidia:mig=sometimes"], "dynamic, static"),
                        (["--drivers", "nvidia:driver-root=/no/such"], "--driver-root: no such"),
                        (["--drivers", "nvidia:nodename=x"], "unknown")):
        done = subprocess.run([cluster.binary(), "up", "--data-dir", os.path.join(folder, "refused"), *words], capture_output=True, text=True, timeout=60)
        if done.returncode != 2 or what not in done.stderr or os.path.exists(os.path.join(folder, "refused")):
            raise Failure("dibs up %s: exit status %d, %s" % (" ".join(words), done.returncode, done.stderr))
    print("ok what cannot be is refused before anything is made")


def main():
    which = sys.argv[1] if sys.argv[1:] in (["mig"], ["machine"]) else None
    if which is None:
        sys.exit(__doc__)
    if os.geteuid() != 0 or not cluster.kubectl():
        print("SKIPPED: wants root and kubectl")
        return SKIPPED
    if not os.path.exists(TOOL):
        print("SKIPPED: DIBS_BUILD names no build folder with the fake machine")
        return SKIPPED
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="dibs-nvidia-") as folder:
        machine = Machine(folder, "h200" if which == "mig" else "dgx-h100")
        with cluster.Server(["--nodes", "1", "--drivers", "nvidia:driver-root=%s+usage-every=1s" % machine.root], command="up") as server:
            try:
                (mig if which == "mig" else machine_story)(server, machine)
            except Failure as failure:
                raise Failure("%s\n%s" % (failure, server.log_tail()))
        if which == "machine":
            refusals(folder, machine.root)
            other = Machine(folder, "dgx-h100")
            with cluster.Server(["--nodes", "1"], command="up") as server:
                alone(server, other)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
