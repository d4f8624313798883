#!/usr/bin/env python3
"""The proof of the NVIDIA driver on a real GPU (docs/nvidia.md), within ten minutes, with what `pack` brings along:

    real.py [--out FOLDER] [--upstream FOLDER] [--step NAME ...]
    real.py --fake h200 [...]     the same on a make-believe machine, with a stand-in for the CUDA program

`dibs up --drivers nvidia` is started on the machine as it is, an image is made of the machine's programs and of check.cu, and then, step by step:

    gpu        a pod that claims the GPU computes, and checks what it computed
    mig        two pods on two MIG instances at the same time, each with its own alone; a third one that does not fit says why;
               everything of dibs is killed (kill -9) and they go on; they are deleted, and their instances are destroyed
    kills      kill -9 while instances are made, and while they are destroyed
    sharing    two containers take turns on the GPU; two share it by MPS
    examples   those of examples/nvidia
    upstream   NVIDIA's own manifests as they stand, and those for another GPU's MIG profiles once more with this one's

NVIDIA's manifests are those of a checkout of its DRA driver: --upstream, DIBS_NVIDIA_MANIFESTS, or what `pack` has put into the archive. With --fake Go
may fetch them.

Prints a transcript with figures at its end, which are also in FOLDER from the start: transcript.txt, figures.json, dibs.log. A step that fails is told and
the next one goes on; the exit status is 1 then. Wants root and Linux with cgroups and overlayfs; changes MIG mode and instances of the GPU, and
persistence mode, and puts them back. It refuses to run where there are MIG instances already.
"""
import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402
from proof_machine import FAKE_LIMIT, IMAGE, LIMIT, Borrowed, FakeMachine, OutOfTime, RealMachine, Transcript, make_image, output_of  # noqa: E402

PATIENCE = 60
STEP_NEEDS = 45  # seconds, of the parts that a step has: less than that is not begun
MODULE = "sigs.k8s.io/dra-driver-nvidia-gpu@v0.5.0"
DRIVER = "gpu.nvidia.com"
UPSTREAM = (["demo/specs/quickstart/v1/" + name for name in ("gpu-test1", "gpu-test2", "gpu-test3", "gpu-test4", "gpu-test5", "gpu-test-mps")] +
            ["tests/bats/specs/" + name for name in ("gpu-simple-full", "gpu-2pods-1gpu", "gpu-simple-mig", "gpu-simple-mig-ts", "gpu-anymig",
                                                     "gpu-multiple-mig", "gpu-timeslicing", "gpu-mps")] +
            ["demo/specs/extended-resources/gpu-full"])
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def claim_template(name, device_class, profile=None, sharing=None):
    request = {"name": "it", "exactly": {"deviceClassName": device_class}}
    if profile:
        request["exactly"]["selectors"] = [{"cel": {"expression": "device.attributes['%s'].profile == '%s'" % (DRIVER, profile)}}]
    devices = {"requests": [request]}
    if sharing:
        devices["config"] = [{"requests": ["it"], "opaque": {"driver": DRIVER, "parameters": {
            "apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": sharing}}}]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": {"devices": devices}}}


def pod(name, template, containers=1):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        # What a network can do is no part of the proof, and a kernel for GPUs may have none for containers.
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "hostNetwork": True,
        "resourceClaims": [{"name": "it", "resourceClaimTemplateName": template}],
        "containers": [{"name": "ctr%d" % i, "image": IMAGE, "command": ["cuda-check", "loop"], "resources": {"claims": [{"name": "it"}]}}
                       for i in range(containers)]}}


class Skipped(Exception):
    """A step that cannot be done here; its text says why."""


class Proof:
    def __init__(self, server, machine, transcript, upstream):
        self.server, self.machine, self.transcript, self.upstream = server, machine, transcript, upstream
        self.say = transcript.say
        self.begin()

    def patience(self, times=1):
        """Seconds; never more than there are, and enough to hear a program out."""
        return max(5, min(PATIENCE * times, self.transcript.left()))

    def wait_for(self, condition, what, interval=0.02):
        return wait_for(condition, self.patience(), what, interval=interval)

    def begin(self):
        self.api = self.server.client()

    def kubectl(self, *words, **more):
        said = self.server.kubectl(*words, **more)
        self.say("$ kubectl %s\n%s" % (" ".join(words), said))
        return said

    def devices(self):
        slices = self.api.expect(200, "GET", SLICES)["items"]
        return {device["name"]: device for one in slices for device in one["spec"].get("devices", []) if one["spec"]["driver"] == DRIVER}

    def apply(self, namespace, *objects):
        """When it was."""
        items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
        items += [dict(one, metadata=dict(one["metadata"], namespace=namespace)) for one in objects]
        self.say("$ kubectl apply: %s" % ", ".join("%s %s" % (one["kind"], one["metadata"]["name"]) for one in items))
        at = time.time()
        self.server.kubectl("apply", "-f", "-", source=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return at

    def pods(self, namespace):
        return self.api.expect(200, "GET", "/api/v1/namespaces/%s/pods" % namespace)["items"]

    def log(self, namespace, name, container="ctr0"):
        return self.server.kubectl("-n", namespace, "logs", name, "-c", container, check=False)

    def wait_passed(self, namespace, names, containers=("ctr0",)):
        """Logs in which it stands, by pod and container."""
        wanted = [(name, container) for name in names for container in containers]
        logs = {}

        def passed():
            logs.update({one: self.log(namespace, *one) for one in wanted})
            if any("FAILED" in text for text in logs.values()):
                raise Failure("\n".join(logs.values()))
            return all("PASSED" in text for text in logs.values())
        try:
            self.wait_for(passed, "pods %s to compute" % ", ".join(names), interval=0.2)
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, self.server.kubectl("-n", namespace, "describe", "pods")))
        for (name, container), text in logs.items():
            self.say("log of %s/%s:\n%s" % (name, container, text))
        return logs

    def sees(self, namespace, name, container="ctr0"):
        return self.kubectl("-n", namespace, "exec", name, "-c", container, "--", "nvidia-smi", "-L").splitlines()

    def delete(self, namespace):
        at = time.monotonic()
        self.kubectl("delete", "namespace", namespace, timeout=self.patience(2))
        return time.monotonic() - at

    def wait_nothing(self):
        self.wait_for(lambda: not self.machine.instances(), "all instances to be destroyed", interval=0.5)

    def kill(self):
        self.say("$ kill -9 %d (all of dibs), and dibs up again" % self.server.process.pid)
        self.server.restart(kill=True)
        self.begin()

    def why(self, *words):
        return output_of(cluster.binary(), "why", *words, "--kubeconfig", self.server.kubeconfig)

    def wait_why(self, namespace, name):
        """What `dibs why` says of a pod that does not fit, once the scheduler has said so."""
        said = [""]

        def told():
            said[0] = self.why("pod/" + name, "-n", namespace)
            return "is pending" in said[0] and "shared counters" in said[0]
        try:
            self.wait_for(told, "the pod %s to wait with a reason" % name, interval=0.5)
        except Failure as failure:
            raise Failure("%s; dibs why says:\n%s" % (failure, said[0]))
        return said[0]

    def profiles(self):
        """The smallest and the largest that are plain, by how many memory slices their devices take."""
        size = {}
        for device in self.devices().values():
            profile = device["attributes"].get("profile", {}).get("string", "")
            if re.fullmatch(r"\d+g\.\d+gb", profile):
                size[profile] = int(re.match(r"\d+", profile.split(".")[1]).group())
        if not size:
            raise Failure("the driver publishes no places for MIG instances")
        by_size = sorted(size, key=lambda profile: (size[profile], int(profile.split("g")[0])))
        return by_size[0], by_size[-1]

    # The steps.

    def gpu(self):
        at = self.apply("proof-gpu", claim_template("whole", "gpu.nvidia.com"), pod("whole", "whole"))
        log = self.wait_passed("proof-gpu", ["whole"])[("whole", "ctr0")]
        self.transcript.figure("apply to first kernel, a GPU", int(re.search(r"first kernel (\d+)", log).group(1)) / 1000 - at)
        if "devices 1\n" not in log or len([line for line in self.sees("proof-gpu", "whole") if line.startswith("GPU ")]) != 1:
            raise Failure("the pod does not see exactly one GPU")
        def used():
            said = output_of(cluster.binary(), "top", "devices", "--driver", DRIVER, "--kubeconfig", self.server.kubeconfig)
            lines = [line for line in said.splitlines() if " blocked " not in line]
            return "\n".join(lines) if any(re.search(r"\d[KMG]i", line) for line in lines) else None
        self.say("$ dibs top devices\n" + self.wait_for(used, "the memory that is used", interval=0.5))
        self.delete("proof-gpu")

    def mig(self):
        small, whole = self.profiles()
        at = self.apply("proof-mig", claim_template("small", "mig.nvidia.com", small), pod("first", "small"), pod("second", "small"))
        logs = self.wait_passed("proof-mig", ["first", "second"])
        for log in logs.values():
            self.transcript.figure("apply to first kernel, an instance of two made at once",
                                   int(re.search(r"first kernel (\d+)", log).group(1)) / 1000 - at)
        seen = {name: [line for line in self.sees("proof-mig", name) if "MIG " in line] for name in ("first", "second")}
        if any("devices 1\n" not in log for log in logs.values()) or any(len(lines) != 1 for lines in seen.values()):
            raise Failure("a pod does not see exactly one instance")
        if seen["first"][0].split("UUID")[1] == seen["second"][0].split("UUID")[1]:
            raise Failure("both pods see the same instance")
        self.say("instances: %s" % self.machine.instances())

        self.apply("proof-mig", claim_template("all", "mig.nvidia.com", whole), pod("third", "all"))
        self.say("$ dibs why pod/third\n" + self.wait_why("proof-mig", "third"))

        before = self.machine.instances()
        self.kill()
        if self.machine.instances() != before:
            raise Failure("after the kill there are %s, not %s" % (self.machine.instances(), before))
        again = {name: [line for line in self.sees("proof-mig", name) if "MIG " in line] for name in ("first", "second")}
        if again != seen:
            raise Failure("after the kill the pods see %s" % again)
        running = {one["metadata"]["name"]: one["status"]["containerStatuses"][0] for one in self.pods("proof-mig") if one["metadata"]["name"] != "third"}
        if any("running" not in status["state"] or status["restartCount"] for status in running.values()):
            raise Failure("after the kill pods do not run on: %s" % running)

        self.kubectl("-n", "proof-mig", "delete", "pod", "first", "second", timeout=self.patience())
        self.wait_passed("proof-mig", ["third"])
        self.say("instances when it was the third one's turn: %s" % self.machine.instances())
        self.delete("proof-mig")
        self.wait_nothing()

    def kills(self):
        small, _ = self.profiles()
        ledger = os.path.join(self.server.data, "nodes", "node-0", "plugins", DRIVER, "gpus.json")

        def has(state):
            try:
                with open(ledger) as f:
                    return any(one["state"] == state for one in json.load(f).get("claims", []))
            except (OSError, ValueError):
                return False
        for delay in (0, 0.3, 1):
            self.transcript.need(STEP_NEEDS, "another round of kills")
            self.apply("proof-kills", claim_template("small", "mig.nvidia.com", small), pod("first", "small"), pod("second", "small"))
            self.wait_for(lambda: has("preparing") or has("ready"), "an instance to be begun", interval=0.002)
            time.sleep(delay)
            self.say("killed with the instances %s" % self.machine.instances() if not delay else "killed %.1f s later" % delay)
            self.kill()
            self.wait_passed("proof-kills", ["first", "second"])
            if len(self.machine.instances()) != 2:
                raise Failure("after a kill while they were made there are %s" % self.machine.instances())
            self.kubectl("delete", "namespace", "proof-kills", "--wait=false")
            self.wait_for(lambda: len(self.machine.instances()) < 2, "an instance to be destroyed", interval=0.05)
            self.kill()
            self.wait_for(lambda: self.api.get("/api/v1/namespaces/proof-kills").status == 404, "the namespace to go", interval=0.2)
            self.wait_nothing()
        self.say("killed three times while instances were made and three times while they were destroyed: nothing is left")

    def sharing(self):
        wrong = []
        before = self.machine.time_slice()
        self.apply("proof-turns", claim_template("shared", "gpu.nvidia.com", sharing={
            "strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}), pod("turns", "shared", containers=2))
        self.wait_passed("proof-turns", ["turns"], ("ctr0", "ctr1"))
        now = self.machine.time_slice()
        self.say("time slice before:\n%s\ntime slice now:\n%s" % (before, now))
        try:
            self.machine.check_time_slice(before, now)
        except Failure as failure:
            wrong.append(str(failure))
        self.delete("proof-turns")
        if self.machine.time_slice() != before:
            wrong.append("the time slice is not put back: %s" % self.machine.time_slice())
        at = self.apply("proof-mps", claim_template("shared", "gpu.nvidia.com", sharing={
            "strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "10Gi"}}),
            pod("mps", "shared", containers=2))
        logs = self.wait_passed("proof-mps", ["mps"], ("ctr0", "ctr1"))
        first = min(int(re.search(r"first kernel (\d+)", log).group(1)) / 1000 for log in logs.values())
        self.transcript.figure("apply to first kernel, by MPS", first - at)
        daemon_log = ""
        for path in glob.glob(os.path.join(self.server.data, "nodes/node-0/plugins", DRIVER, "mps/*/log/*")):
            with open(path, errors="replace") as f:
                text = f.read()
            daemon_log += text
            self.say("%s:\n%s" % (os.path.basename(path), text[-2000:]))
        clients = self.machine.mps_clients(daemon_log, logs.values())
        self.say("compute mode: %s; clients of the MPS daemon: %d" % (self.machine.compute_mode(), clients))
        if clients < 2:
            wrong.append("of two containers %d went through the MPS daemon" % clients)
        self.delete("proof-mps")
        if glob.glob(os.path.join(self.server.data, "nodes/node-0/plugins", DRIVER, "mps/*")):
            wrong.append("the MPS daemon has left its folder")
        if wrong:
            raise Failure("\n".join(wrong))

    def examples(self):
        small, whole = self.profiles()
        for path in sorted(glob.glob(os.path.join(ROOT, "examples", "nvidia", "*.yaml"))):
            with open(path) as f:
                text = f.read().replace("image: busybox", "image: " + IMAGE)
            # Written for an H200; another GPU has other profiles.
            text = text.replace("'1g.18gb'", "'%s'" % small).replace("'7g.141gb'", "'%s'" % whole)
            self.try_manifest(os.path.basename(path), text)

    def words_of(self, every):
        """What each container of pods that run, or ran, has said; None until all have. Fails on what says that it failed."""
        said = {}
        for one in every:
            namespace, name = one["metadata"]["namespace"], one["metadata"]["name"]
            if one["status"]["phase"] == "Pending":
                continue
            for container in one["spec"]["containers"]:
                text = self.log(namespace, name, container["name"])
                if "FAILED" in text or one["status"]["phase"] == "Failed":
                    raise Failure("%s of the pod %s: %s" % (container["name"], name, text))
                if not text.strip():
                    return None
                said[namespace, name, container["name"]] = text
        return said

    def all_made(self, namespaces):
        """Whether controllers have made the pods that they are to make."""
        deployments = [one for namespace in namespaces for one in self.api.expect(200, "GET", "/apis/apps/v1/namespaces/%s/deployments" % namespace)["items"]]
        return all(one["status"].get("replicas", 0) == one["spec"]["replicas"] for one in deployments)

    def try_manifest(self, title, text):
        """Applied, looked at when every container has said something or its pod is said not to fit, and deleted."""
        self.transcript.need(STEP_NEEDS, title)
        file = os.path.join(self.server.folder, "manifest.yaml")
        with open(file, "w") as f:
            f.write(text)
        namespaces = set(re.findall(r"^ *namespace: *(\S+)", text, re.M)) or {"default"}
        if len(set(re.findall(r"^kind: *Namespace", text, re.M))) == 0:
            for namespace in namespaces - {"default"}:
                self.server.kubectl("create", "namespace", namespace)
        at = time.monotonic()
        self.server.kubectl("apply", "-f", file)

        def settled():
            every = [one for namespace in namespaces for one in self.pods(namespace)]
            waits = [one for one in every if one["status"]["phase"] == "Pending"]
            told = [one for one in waits if any(c["type"] == "PodScheduled" and c["status"] == "False" for c in one["status"].get("conditions", []))]
            if not every or len(told) != len(waits) or not self.all_made(namespaces):
                return None
            said = self.words_of(every)
            return None if said is None else (every, said)
        try:
            found, said = self.wait_for(settled, "each container of %s to say something" % title, interval=0.2)
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, "\n".join(self.server.kubectl("-n", one, "describe", "pods") for one in namespaces)))
        self.say("%s, after %.1f s:" % (title, time.monotonic() - at))
        for one in found:
            name, phase = one["metadata"]["name"], one["status"]["phase"]
            if phase == "Pending":
                reason = [c.get("message", "") for c in one["status"]["conditions"] if c["type"] == "PodScheduled"][0]
            else:
                reason = "; ".join(line for container in one["spec"]["containers"]
                                   for line in said[one["metadata"]["namespace"], name, container["name"]].splitlines()[:4])
            self.say("  %s %s: %s" % (name, phase, reason))
        self.server.kubectl("delete", "-f", file, "--wait=true", "--ignore-not-found", timeout=self.patience(2))
        for namespace in namespaces - {"default"}:
            self.server.kubectl("delete", "namespace", namespace, "--ignore-not-found", timeout=self.patience(2))
        self.wait_nothing()

    def with_own_profiles(self, text):
        """Profiles of a GPU with other memory, as manifests name them, replaced by those of this one with as many slices."""
        own = {}
        for device in self.devices().values():
            found = re.fullmatch(r"(\d+)g\.(\d+)gb", device["attributes"].get("profile", {}).get("string", ""))
            if found:
                own.setdefault(found.group(1), []).append((int(found.group(2)), found.group()))
        return re.sub(r"\b(\d+)g\.\d+gb\b", lambda found: min(own[found.group(1)])[1] if found.group(1) in own else found.group(), text)

    def upstream_manifests(self):
        if not self.upstream:
            raise Skipped("no checkout of NVIDIA's DRA driver: --upstream or DIBS_NVIDIA_MANIFESTS names one")
        tried, failed = [], []
        for path in UPSTREAM:
            path = os.path.join(self.upstream, path + ".yaml")
            if not os.path.exists(path):
                failed.append(path + " (is not there)")
                continue
            with open(path) as f:
                text = f.read()
            title, own = os.path.basename(path), self.with_own_profiles(text)
            tried.append((title, text))
            if own != text:
                tried.append((title + " with this GPU's profiles", own))
        for title, text in tried:
            try:
                self.try_manifest(title, text)
            except OutOfTime:
                raise
            except Failure as failure:
                failed.append(title)
                self.say("FAILED: %s" % failure)
                self.clean()
        if failed:
            raise Failure("manifests that did not work: %s" % ", ".join(failed))

    STEPS = [("gpu", gpu), ("mig", mig), ("kills", kills), ("sharing", sharing), ("examples", examples), ("upstream", upstream_manifests)]

    def clean(self):
        """After a step that failed: the next one finds nothing of it."""
        for one in self.api.expect(200, "GET", "/api/v1/namespaces")["items"]:
            name = one["metadata"]["name"]
            if name == "default" or name.startswith("kube-"):
                continue
            self.server.kubectl("delete", "namespace", name, "--wait=false", check=False)
        self.server.kubectl("delete", "pods", "--all", "--wait=false", check=False)

    def run(self, wanted, after_step):
        """Adds to these, of steps: those that failed, those that cannot be done here with the reasons."""
        for name, step in self.STEPS:
            if wanted and name not in wanted:
                continue
            self.say("== %s" % name)
            try:
                self.transcript.need(STEP_NEEDS, "the step " + name)
                step(self)
                self.say("ok %s" % name)
            except Skipped as reason:
                self.skipped.append(name)
                self.say("SKIPPED %s: %s" % (name, reason))
            except Exception as failure:
                self.failed.append(name)
                self.say("FAILED %s: %s" % (name, failure))
                # What the test itself did not expect.
                if not isinstance(failure, Failure):
                    self.say(traceback.format_exc())
                self.say(self.server.log_tail(3000))
                self.recover()
            after_step()

    def recover(self):
        """After a step that failed. It may be the machine that fails, and the next step says so then."""
        try:
            if not self.server.alive():
                self.server.restart(kill=True)
            self.begin()
            self.clean()
        except Exception:
            self.say("what the step has left cannot be taken away:\n" + traceback.format_exc())


def durations(log):
    """Of what the driver did to the GPU, as its log tells, by what it was."""
    out = {}
    with open(log, errors="replace") as f:
        for line in f:
            found = re.search(r"(MIG instance made|MIG instance destroyed|MIG mode switched)", line)
            took = re.search(r"milliseconds\W+(\d+)", line)
            if found and took:
                what = found.group(1) + (" on" if re.search(r"enabled\W+true", line) else " off" if "mode" in found.group(1) else "")
                out.setdefault(what, []).append(int(took.group(1)) / 1000)
    return out


def manifests(given, bundle, fetch):
    """The folder with NVIDIA's manifests; "" where there is none."""
    for folder in (given, os.environ.get("DIBS_NVIDIA_MANIFESTS", ""), os.path.join(bundle, "upstream")):
        if folder and os.path.isdir(folder):
            return folder
    if not fetch or not shutil.which("go"):
        return ""
    try:
        done = subprocess.run(["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, timeout=120,
                              env=dict(os.environ, GOFLAGS="-mod=mod"))
        return json.loads(done.stdout).get("Dir", "")
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


def prove(options, folder, out, machine, transcript, upstream, failed, skipped):
    """The steps on this machine, which is ready for them."""
    machine.describe()
    machine.begin()
    had_mig = machine.has_mig_on()
    if machine.instances():
        raise Failure("there are MIG instances on this machine, which this would disturb: %s" % machine.instances())
    store = make_image(machine, folder, transcript)
    flags = machine.up_flags + ["--nodes", "1", "--images", store, "--image-alias", "busybox",
                                "--drivers", "nvidia:usage-every=2s" + "".join(machine.flags)]
    transcript.say("$ dibs up " + " ".join(flags))
    server = cluster.Server(flags, folder=folder, command="up", log_level="info")
    server.log = os.path.join(out, "dibs.log")
    with server:
        proof = Proof(server, machine, transcript, upstream)
        proof.failed, proof.skipped = failed, skipped
        transcript.say(server.said())
        proof.wait_for(proof.devices, "the driver to publish its devices")
        transcript.say("devices: " + ", ".join(sorted(proof.devices())))
        proof.run(options.step, lambda: transcript.keep_figures(durations(server.log)))
        # Not often: whoever asks has the GPU open, and the mode cannot be changed then.
        proof.wait_for(lambda: machine.has_mig_on() == had_mig, "MIG mode to be as it was", interval=7)
    if machine.instances():
        raise Failure("instances are left: %s" % machine.instances())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="")
    parser.add_argument("--upstream", default="")
    parser.add_argument("--fake", default="")
    parser.add_argument("--step", action="append", default=[], choices=[name for name, _ in Proof.STEPS])
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIPPED: wants root")
        return 77
    bundle = os.path.join(ROOT, "bundle")
    if os.path.exists(os.path.join(bundle, "dibs", "bin", "dibs")):
        os.environ.setdefault("DIBS", os.path.join(bundle, "dibs", "bin", "dibs"))
    folder = tempfile.mkdtemp(prefix="dibs-proof-")
    out = os.path.abspath(options.out or os.path.join(folder, "out"))
    os.makedirs(out, exist_ok=True)
    log = os.path.join(out, "dibs.log")
    open(log, "w").close()
    transcript = Transcript(out, FAKE_LIMIT if options.fake else LIMIT)
    borrowed, machine, failed, skipped, impossible = None, None, [], [], ""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        borrowed = Borrowed(transcript, bundle)
        if options.fake and not (cluster.kubectl() and cluster.has_containers()):
            impossible = "SKIPPED: wants kubectl and real containers"
            return 77
        machine = FakeMachine(folder, transcript, options.fake) if options.fake else RealMachine(folder, transcript)
        upstream = manifests(options.upstream, bundle, fetch=bool(options.fake)) if not options.step or "upstream" in options.step else ""
        prove(options, folder, out, machine, transcript, upstream, failed, skipped)
    except Exception as failure:
        failed.append(str(failure).partition("\n")[0] or type(failure).__name__)
        transcript.say("FAILED: %s" % failure)
        if not isinstance(failure, Failure):
            transcript.say(traceback.format_exc())
        with open(log, errors="replace") as f:
            transcript.say("end of dibs.log:\n" + f.read()[-4000:])
    except BaseException:
        failed.append("was ended before its time")
        raise
    finally:
        if not impossible:
            transcript.summary(durations(log))
        cleaning = [lambda: cluster.clear_machine(folder)]
        cleaning += [machine.end] if machine else []
        cleaning += [borrowed.give_back] if borrowed else []
        for clean in cleaning:
            try:
                clean()
            except Exception:
                failed.append("the machine is not as it was")
                transcript.say(traceback.format_exc())
        if options.out or not failed:
            shutil.rmtree(folder, ignore_errors=True)
        verdict = "FAILED: %s" % ", ".join(failed) if failed else "PROVEN%s" % (" (on a make-believe machine)" if options.fake else "")
        transcript.say(impossible or verdict + (", SKIPPED: %s" % ", ".join(skipped) if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
