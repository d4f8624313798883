#!/usr/bin/env python3
"""Runs a device plugin (go-driver/plugin.go, on upstream's API) beside a node of `dibs up` with real containers: what it offers becomes an extended
resource, a pod gets what it prefers, with its variables, mounts and devices; an ill device, a plugin and an agent that are killed change nothing for
pods that run.

    run_device_plugin.py

Runs on a machine of its own (support/underlay.sh), from which nothing leaves. Where root, containers, Go or the modules it needs cannot be had, the
test is skipped (exit status 77).
"""
import os
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import run  # noqa: E402
import run_driver  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

RESOURCE = "example.com/thing"
PODS = "/api/v1/namespaces/default/pods"
DEADLINE = 60


class Plugin:
    """One process of the plugin; its lines are collected as they come."""

    def __init__(self, program, folder):
        self.lines = []
        self.process = subprocess.Popen([program, "plugin", folder], stdout=subprocess.PIPE, text=True, preexec_fn=cluster.die_with_parent)
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def wait(self, line, count=1):
        wait_for(lambda: self.lines.count(line) >= count, DEADLINE, "the plugin's line %r, of %s" % (line, self.lines))

    def kill(self):
        self.process.kill()
        self.process.wait()


class Story:
    def __init__(self, server, program):
        self.server, self.program, self.api = server, program, server.client()
        self.root = os.path.join(server.data, "nodes", "node-0")
        self.folder = os.path.join(self.root, "device-plugins")
        self.plugins = []

    def start_plugin(self):
        self.plugins.append(Plugin(self.program, self.folder))
        self.plugins[-1].wait("registered")
        return self.plugins[-1]

    def node(self, field):
        return self.api.expect(200, "GET", "/api/v1/nodes/node-0")["status"][field].get(RESOURCE)

    def wait_amount(self, field, amount):
        wait_for(lambda: self.node(field) == amount, DEADLINE, "%s of the node to be %s" % (field, amount))

    def pod(self, name, things):
        self.api.expect(201, "POST", PODS, {"metadata": {"name": name}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{
                "name": "c", "image": "busybox", "command": ["sh", "-c", "echo $THINGS; cat /thing; head -c 3 /dev/thing | wc -c; sleep 9999"],
                "resources": {"limits": {RESOURCE: str(things)}}}]}})

    def status(self, name):
        return self.api.expect(200, "GET", PODS + "/" + name)["status"]

    def wait_running(self, name):
        wait_for(lambda: self.status(name)["phase"] == "Running", DEADLINE, "pod %s to run: %s" % (name, self.status(name)))

    def restarts(self, name):
        return self.status(name)["containerStatuses"][0]["restartCount"]

    def log(self, name):
        answer = self.api.get(PODS + "/" + name + "/log")
        return answer.data.decode("utf-8", "replace").splitlines() if answer.status == 200 else []

    def pending(self, name):
        for condition in self.status(name).get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition["message"]
        return ""

    def remove(self, name):
        self.api.request("DELETE", PODS + "/%s?gracePeriodSeconds=0" % name)
        wait_for(lambda: self.api.get(PODS + "/" + name).status == 404, DEADLINE, "pod %s to go" % name)

    def run(self):
        plugin = self.start_plugin()
        self.wait_amount("allocatable", "3")
        self.pod("one", 2)
        self.wait_running("one")
        wait_for(lambda: len(self.log("one")) == 3, DEADLINE, "what pod one says: %s" % self.log("one"))
        if sorted(self.log("one")[0]) != ["b", "c"] or self.log("one")[1:] != ["of the plugin", "3"]:
            raise Failure("the pod has got %s" % self.log("one"))
        if plugin.lines[-2:] != ["allocate 2", "prestart 2"]:
            raise Failure("the plugin was asked: %s" % plugin.lines)
        print("ok a pod has the devices that the plugin prefers, with variables, mounts and device nodes")

        self.pod("two", 2)
        wait_for(lambda: "Insufficient " + RESOURCE in self.pending("two"), DEADLINE, "pod two to wait")
        print("ok another one waits: %s" % self.pending("two"))

        plugin.process.send_signal(signal.SIGUSR1)
        self.wait_amount("allocatable", "2")
        wait_for(lambda: any(one["health"] == "Unhealthy" and one["resourceID"] == "c"
                             for status in self.status("one")["containerStatuses"][0].get("allocatedResourcesStatus", [])
                             for one in status["resources"]), DEADLINE, "the pod's status to tell of the ill device")
        plugin.process.send_signal(signal.SIGUSR1)
        self.wait_amount("allocatable", "3")
        print("ok a device that is ill is not given out, and who has it is told")

        plugin.kill()
        self.wait_amount("allocatable", "0")
        self.server.kill()
        self.server.start()
        self.api = self.server.client()
        plugin = self.start_plugin()
        self.wait_amount("allocatable", "3")
        self.wait_running("one")
        if self.restarts("one") != 0:
            raise Failure("pod one was started again")
        if plugin.lines != ["registered"]:
            raise Failure("the new plugin was asked for what is given out: %s" % plugin.lines)
        print("ok plugin and agent were killed, the pod goes on with its devices")

        self.server.kill()
        self.server.start()
        self.api = self.server.client()
        plugin.wait("registered", 2)
        self.wait_amount("allocatable", "3")
        self.remove("one")
        self.wait_running("two")
        print("ok a plugin that lived on registers anew, and what was freed goes to the pod that waited")
        self.remove("two")

    def end(self):
        for plugin in self.plugins:
            plugin.kill()
        for pod in self.api.expect(200, "GET", PODS)["items"]:
            self.remove(pod["metadata"]["name"])


def inside(program):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    with cluster.Server(["--nodes", "1"], command="up") as server:
        story = Story(server, program)
        try:
            story.run()
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, server.log_tail()))
        finally:
            story.end()
    return 0


def main():
    if len(sys.argv) > 1:
        return inside(sys.argv[1])
    if os.geteuid() != 0:
        print("SKIPPED: wants root")
        return run.SKIPPED
    try:
        program = run_driver.build("device-plugin")
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    return run.on_own_machine(__file__, program)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
