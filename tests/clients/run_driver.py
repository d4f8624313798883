#!/usr/bin/env python3
"""Runs a driver on upstream's own helper (Go package kubeletplugin) unmodified against a dibs node: register, publish, prepare, health,
PodResources by a plain gRPC client, driver and agent restarts, a rolling update, unprepare.

    run_driver.py up|node    the node inside `dibs up`, or alone in a process of its own

The driver (go-driver/) is built in $DIBS_BUILD/clients. Where Go or the modules it needs cannot be had, the test is skipped (exit
status 77).
"""
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import run  # noqa: E402

NAMESPACE = "default"
DRIVER = "go.example.com"
DEADLINE = 30
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims" % NAMESPACE
PODS = "/api/v1/namespaces/%s/pods" % NAMESPACE
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def build(name="go-driver"):
    """In a folder of that name, since tests run side by side."""
    return run.build_go("go-driver", os.path.join(run.build_folder(name), "driver"))


class Driver:
    """One process of the driver; its lines are collected as they come."""

    def __init__(self, program, server, root, instance=""):
        self.lines = []
        self.log = open(os.path.join(server.folder, "driver.log"), "ab")
        cdi = os.path.join(root, "cdi")
        os.makedirs(cdi, exist_ok=True)
        self.process = subprocess.Popen([program, "run", server.kubeconfig, "node-0", root, cdi, instance], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, preexec_fn=cluster.die_with_parent)
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def calls(self):
        return [line for line in self.lines if line.split()[0] in ("prepare", "unprepare")]

    def wait(self, line, count=1):
        def there():
            if self.process.poll() is not None:
                raise cluster.Failure("the driver ended: %s" % self.lines[-10:])
            return self.lines.count(line) >= count
        cluster.wait_for(there, DEADLINE, "the driver's line %r" % line)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(DEADLINE)
        self.thread.join(5)
        self.log.close()


class Agent:
    """`dibs node` beside a server."""

    def __init__(self, server, root):
        self.server, self.root, self.process = server, root, None
        self.start()

    def start(self):
        with open(self.server.log, "ab") as log:
            self.process = subprocess.Popen(
                [cluster.binary(), "node", "--kubeconfig", self.server.kubeconfig, "--name", "node-0", "--root-dir", self.root,
                 *cluster.AGENT_FLAGS, "--cdi-dirs", os.path.join(self.root, "cdi"), "--runtime", "sim", "--port", "0", "--address", "127.0.0.1", "--log-level", "warn"],
                stdout=subprocess.DEVNULL, stderr=log, preexec_fn=cluster.die_with_parent)

    def restart(self, kill):
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        status = self.process.wait(DEADLINE)
        if not kill and status != 0:
            raise cluster.Failure("the agent ended with status %d" % status)
        self.start()

    def end(self):
        self.process.terminate()
        self.process.wait(DEADLINE)


class Story:
    def __init__(self, server, program, alone):
        self.server, self.program = server, program
        self.root = os.path.join(server.folder, "kubelet") if alone else os.path.join(server.data, "nodes", "node-0")
        self.agent = Agent(server, self.root) if alone else None
        self.api = server.client()
        self.running = []

    def driver(self, instance=""):
        driver = Driver(self.program, self.server, self.root, instance)
        self.running.append(driver)
        return driver

    def claim(self, name, annotations=None):
        self.api.expect(201, "POST", CLAIMS, {
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": DRIVER}}]}}})

    def pod(self, name, claims):
        self.api.expect(201, "POST", PODS, {
            "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 0,
                     "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
                     "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"],
                                     "resources": {"claims": [{"name": claim} for claim in claims]}}]}})

    def status(self, name):
        return self.api.expect(200, "GET", PODS + "/" + name).get("status", {})

    def wait_running(self, name):
        try:
            cluster.wait_for(lambda: self.status(name).get("phase") == "Running", DEADLINE, "pod %s to run" % name)
        except cluster.Failure as failure:
            raise cluster.Failure("%s; events: %s, status: %s" % (failure, self.events(name), self.status(name)))

    def events(self, name):
        items = self.api.expect(200, "GET", "/api/v1/namespaces/%s/events" % NAMESPACE)["items"]
        return [item["message"] for item in items if item["involvedObject"]["name"] == name]

    def delete(self, name, driver=None):
        """Without a grace period the object goes at once; the driver hears of it a moment later."""
        before = len(driver.calls()) if driver else 0
        self.api.expect(200, "DELETE", PODS + "/" + name)
        cluster.wait_for(lambda: self.api.get(PODS + "/" + name).status == 404, DEADLINE, "pod %s to be gone" % name)
        if driver:
            cluster.wait_for(lambda: len(driver.calls()) > before, DEADLINE, "the driver to unprepare")

    def slices(self):
        return [item for item in self.api.expect(200, "GET", SLICES)["items"] if item["spec"]["driver"] == DRIVER]

    def pod_resources(self):
        socket = os.path.join(self.root, "pod-resources", "kubelet.sock")
        done = subprocess.run([self.program, "pods", socket], capture_output=True, text=True, timeout=DEADLINE)
        if done.returncode:
            raise cluster.Failure("PodResources: %s" % (done.stdout + done.stderr))
        return done.stdout.splitlines()

    def expect(self, what, got, want):
        if got != want:
            raise cluster.Failure("%s: %s, expected %s" % (what, got, want))
        print("ok %s" % what)

    def registers(self):
        first = self.driver()
        first.wait("starts")
        begin = time.monotonic()
        first.wait("registered")
        print("ok registered after %.0f ms" % ((time.monotonic() - begin) * 1000))
        cluster.wait_for(self.slices, DEADLINE, "slices of the driver")
        print("ok published after %.0f ms" % ((time.monotonic() - begin) * 1000))
        published = self.slices()
        self.expect("devices published", [device["name"] for item in published for device in item["spec"]["devices"]],
                    ["dev-0", "dev-1", "dev-2", "dev-3"])
        return first

    def prepares(self, driver):
        for name in ("a", "b"):
            self.claim(name)
        begin = time.monotonic()
        self.pod("p", ["a", "b"])
        self.wait_running("p")
        print("ok pod runs after %.0f ms" % ((time.monotonic() - begin) * 1000))
        self.expect("one call for both claims", driver.calls(), ["prepare a b"])
        uids = {name: self.api.expect(200, "GET", CLAIMS + "/" + name)["metadata"]["uid"] for name in ("a", "b")}
        self.expect("PodResources", [line for line in self.pod_resources() if line.startswith("pod ")],
                    ["pod default/p c %s %s/pool/dev-%d %s/device=%s-dev-%d" % (name, DRIVER, i, DRIVER, uids[name], i)
                     for i, name in enumerate(("a", "b"))])
        self.expect("PodResources of others", [line for line in self.pod_resources() if not line.startswith("pod ")],
                    ["get none: rpc error: code = Unknown desc = pod none in namespace default not found", "allocatable: <nil>"])

    def health(self, driver):
        driver.wait("health")

        def shown():
            return {entry["name"]: entry["resources"][0].get("health", "") + entry["resources"][0].get("message", "")
                    for entry in (self.status("p").get("containerStatuses") or [{}])[0].get("allocatedResourcesStatus", [])}
        want = {"claim:a": "Healthy", "claim:b": "Unhealthytoo hot"}
        cluster.wait_for(lambda: shown() == want, DEADLINE, "health in the pod's status")
        print("ok health in the pod's status")

    def fails(self, driver):
        self.claim("bad", {"fail": "out of order"})
        self.pod("bad", ["bad"])
        text = ("Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim bad: "
                "out of order")
        cluster.wait_for(lambda: text in self.events("bad"), DEADLINE, "the event %r" % text)
        print("ok the driver's refusal is an event")
        self.delete("bad", driver)

    def driver_restarts(self, driver):
        driver.end(signal.SIGKILL)
        self.claim("c")
        self.pod("q", ["c"])
        cluster.wait_for(lambda: any("Unavailable" in text for text in self.events("q")), DEADLINE, "the event of a dead driver")
        second = self.driver()
        second.wait("registered")
        begin = time.monotonic()
        self.wait_running("q")
        print("ok a waiting pod runs %.0f ms after the driver is back" % ((time.monotonic() - begin) * 1000))
        self.expect("slices stay", len(self.slices()), 1)
        self.delete("q", second)
        self.expect("calls after the restart", second.calls(), ["prepare c", "unprepare c"])
        return second

    def agent_restarts(self, driver, kill):
        before, name = driver.lines.count("registered"), "after-kill" if kill else "after-stop"
        if self.agent:
            self.agent.restart(kill)
        else:
            self.server.restart(kill=kill)
            self.api = self.server.client()
        self.wait_running("p")
        self.claim(name)
        self.pod("r", [name])
        self.wait_running("r")
        self.delete("r", driver)
        self.expect("the agent was %s and the driver used again" % ("killed" if kill else "stopped"),
                    # Simulated containers end with their agent, so the claims of others are prepared again, too.
                    [[line for line in driver.calls() if name in line], driver.lines.count("registered")],
                    [["prepare " + name, "unprepare " + name], before])

    def rolls(self, old):
        new = self.driver("uid-of-a-pod")
        new.wait("registered")
        new.wait("published")
        old.end()
        self.claim("rolled")
        self.pod("s", ["rolled"])
        self.wait_running("s")
        self.delete("s", new)
        # What the killed agent had not noted as done is asked of it too.
        self.expect("the new instance gets the calls", [line for line in new.calls() if "rolled" in line],
                    ["prepare rolled", "unprepare rolled"])
        return new

    def ends(self, driver):
        self.delete("p", driver)
        self.expect("unprepared from the checkpoint", "unprepare a b" in driver.calls(), True)
        self.expect("no CDI file is left", [name for name in os.listdir(os.path.join(self.root, "cdi")) if name.startswith(DRIVER)], [])
        driver.end()
        self.expect("the driver ended well", [driver.process.returncode, driver.lines[-1]], [0, "stopped"])
        cluster.wait_for(lambda: not self.slices(), 60, "slices of a driver that is gone to go")
        print("ok slices went")

    def run(self):
        self.api.expect(201, "POST", "/apis/resource.k8s.io/v1/deviceclasses", {
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver == "%s"' % DRIVER}}]}})
        cluster.wait_for(lambda: os.path.isdir(os.path.join(self.root, "plugins_registry")), DEADLINE, "the node's folders")
        driver = self.registers()
        self.prepares(driver)
        self.health(driver)
        self.fails(driver)
        driver = self.driver_restarts(driver)
        self.agent_restarts(driver, kill=False)
        self.agent_restarts(driver, kill=True)
        driver = self.rolls(driver)
        self.ends(driver)

    def close(self):
        if self.agent:
            self.agent.end()
        for driver in self.running:
            if driver.process.poll() is None:
                driver.end(signal.SIGKILL)


def main():
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    if which not in ("up", "node"):
        sys.exit("usage: run_driver.py up|node")
    try:
        program = build()
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    with cluster.Server(["--nodes", "1" if which == "up" else "0", "--runtime", "sim"], command="up") as server:
        story = Story(server, program, which == "node")
        try:
            story.run()
        except cluster.Failure as failure:
            raise cluster.Failure("%s\n%s" % (failure, server.log_tail()))
        finally:
            story.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
