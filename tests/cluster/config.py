#!/usr/bin/env python3
"""`dibs up --config`: nodes of several shapes from a file, with simulated containers and with real ones; another file on the same folder; a file
with garbage, which leaves nothing; and Ctrl-C, heard at any moment of a start, with 1,000 nodes and with as many as there can be.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

EXAMPLE = os.path.normpath(os.path.join(HERE, "..", "..", "examples", "cluster", "lab.yaml"))
PATIENCE = 120  # seconds; the processors may be shared with other tests
END = 1.0  # seconds from Ctrl-C to the end; the processors may be shared with other tests, which then take their part of it
END_OF_SLOW = 3.0  # with a sanitizer
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def expect(what, found, wanted):
    if found != wanted:
        raise Failure("%s: %r, not %r" % (what, found, wanted))


class Lab:
    """A cluster of a file, in a folder of its own that has the name's link as well."""

    def __init__(self, folder, text, *flags):
        self.file = os.path.join(folder, "cluster.yaml")
        self.write(text)
        self.server = cluster.Server(["--config", self.file, *flags], folder=folder, command="up", environment={"HOME": folder})

    def write(self, text):
        with open(self.file, "w") as f:
            f.write(text)

    def nodes(self):
        items = json.loads(self.server.kubectl("get", "nodes", "-o", "json"))["items"]
        return {item["metadata"]["name"]: item for item in items}

    def taints(self, name):
        taints = self.nodes()[name]["spec"].get("taints", [])
        return [(t["key"], t.get("value", ""), t["effect"]) for t in taints if not t["key"].startswith("node.kubernetes.io/")]

    def devices(self):
        found = {}
        for piece in json.loads(self.server.kubectl("get", "resourceslices", "-o", "json"))["items"]:
            found[piece["spec"]["nodeName"]] = found.get(piece["spec"]["nodeName"], 0) + len(piece["spec"].get("devices", []))
        return found

    def pod(self, name, **spec):
        with self.server.client() as client:
            wait_for(lambda: client.get(ACCOUNT).status == 200, PATIENCE, "the account")
        spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "busybox", "command": ["sleep", "9999"]}], **spec}
        self.server.kubectl("create", "-f", "-", source=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}))

    def runs_on(self, name):
        self.server.kubectl("wait", "pod/" + name, "--for=condition=Ready", "--timeout=%ds" % PATIENCE, timeout=PATIENCE + 30)
        return self.server.kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}")

    def is_gone(self, kind, name):
        return not self.server.kubectl("get", kind, name, "--ignore-not-found", "-o", "name")


def example(folder):
    """The example as it stands: shapes, devices, and where pods go."""
    with open(EXAMPLE) as f:
        lab = Lab(folder, f.read(), "--runtime", "sim", "--wait")
    with lab.server:
        nodes = lab.nodes()
        expect("nodes", sorted(nodes), ["big-0", "big-1", "plain-0", "small-0"])
        labels = nodes["big-1"]["metadata"]["labels"]
        expect("labels", (labels.get("size"), labels.get("node-role.kubernetes.io/training"), labels["kubernetes.io/hostname"]), ("big", "", "big-1"))
        expect("taints", lab.taints("big-0"), [("dedicated", "training", "NoSchedule")])
        expect("no taints", lab.taints("small-0"), [])
        amounts = {name: [node["status"]["capacity"][key] for key in ("cpu", "memory", "pods")] for name, node in nodes.items()}
        expect("amounts", (amounts["big-0"], amounts["small-0"]), (["64", "256Gi", "250"], ["4", "8Gi", "110"]))
        wait_for(lambda: len(lab.devices()) == 3, PATIENCE, "devices")
        if "plain-0" in lab.devices() or lab.devices()["big-0"] == lab.devices()["small-0"]:
            raise Failure("devices: %s" % lab.devices())
        lab.pod("large", tolerations=[{"key": "dedicated", "operator": "Exists"}],
                containers=[{"name": "c", "image": "busybox", "command": ["sleep", "9999"], "resources": {"requests": {"cpu": "40"}}}])
        if not lab.runs_on("large").startswith("big-"):
            raise Failure("40 processors are on " + lab.runs_on("large"))
        link = os.path.join(folder, ".local", "share", "dibs-lab")
        expect("the name", os.path.realpath(link), os.path.realpath(lab.server.data))


def another_file(folder, runtime):
    """What the next file says counts, what others wrote stays, and what is no more leaves nothing at work."""
    group = "- {prefix: a-, count: %d, labels: {%s}, taints: %s, capacity: {cpu: %d}}\n"
    lab = Lab(folder, "nodes:\n" + group % (2, "shape: one, old: x", "[{key: k, effect: PreferNoSchedule}]", 3), "--runtime", runtime, "--wait")
    with lab.server as server:
        server.kubectl("label", "node", "a-0", "mine=1")
        server.kubectl("taint", "node", "a-0", "mine=1:PreferNoSchedule")
        lab.pod("stays", nodeName="a-0")
        lab.pod("goes", nodeName="a-1")
        lab.runs_on("stays"), lab.runs_on("goes")
        containers = len(cluster.containers_of(folder))
        lab.write("nodes:\n" + group % (1, "shape: two", "[]", 5) + "- {prefix: b-}\n")
        server.restart()
        expect("nodes", sorted(lab.nodes()), ["a-0", "b-0"])
        labels = lab.nodes()["a-0"]["metadata"]["labels"]
        expect("labels", (labels.get("shape"), labels.get("old"), labels.get("mine")), ("two", None, "1"))
        expect("taints", lab.taints("a-0"), [("mine", "1", "PreferNoSchedule")])
        wait_for(lambda: lab.nodes()["a-0"]["status"]["capacity"]["cpu"] == "5", PATIENCE, "another capacity")
        lab.runs_on("stays")
        wait_for(lambda: lab.is_gone("pod", "goes"), PATIENCE, "the pod of a node that is no more")
        if runtime != "sim":
            expect("containers", (containers, len(cluster.containers_of(folder))), (2, 1))
        # As with flags, which win.
        server.flags += ["--nodes", "1"]
        server.restart()
        wait_for(lambda: sorted(lab.nodes()) == ["node-0"], PATIENCE, "nodes of a flag")


def garbage(folder):
    """A line with file, line and key, status 2, and nothing is made."""
    file, data = os.path.join(folder, "bad.yaml"), os.path.join(folder, "data")
    for text, *words in (("nodse: 1\n", "line 1", '"nodse"', '"nodes"'), ("nodes: 2000000\n", "line 1", "nodes", "100000"),
                         ("# a\nbind: nowhere\n", "line 2", "--bind"), ("nodes:\n- count: 1\n  taints: [{key: a, effect: b}]\n", "line 3", "taints[0].effect"),
                         ("drivers: {gpu: {partitions: 900}}\n", "line 1", "partitions"), ("nodes: [", "line"), ("\0\1\2", "yaml"),
                         ("nodes: [{count: -1}]\n", "nodes[0].count"), ("emulate-release: 1.30\n", "quotes"), ("store: etcd\n", "--store")):
        with open(file, "w") as f:
            f.write(text)
        done = subprocess.run([cluster.binary(), "up", "--config", file, "--data-dir", data], capture_output=True, text=True, timeout=PATIENCE)
        said = done.stderr
        if done.returncode != 2 or any(word not in said for word in words) or file not in said or os.path.exists(data):
            raise Failure("%r: status %d, %s%s" % (text, done.returncode, said, " and a folder" if os.path.exists(data) else ""))


def end_by_interrupt(process, what, is_ready=False):
    """Sends Ctrl-C, which ends it at once and in order."""
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        said, errors = process.communicate(timeout=cluster.STOP_DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failure("%s: does not end" % what)
    took = time.monotonic() - began
    is_ready = is_ready or "ready at" in said
    # Before it takes signals for itself they end it, too.
    if process.returncode not in ((0,) if is_ready else (130, -signal.SIGINT)) or cluster.SANITIZER.search(errors):
        raise Failure("%s: status %d, %s%s" % (what, process.returncode, said, errors[-3000:]))
    print("ended %.2f s after Ctrl-C: %s (%s)" % (took, what, "ready" if is_ready else "starting"))
    if took > (END_OF_SLOW if cluster.has_sanitizer() else END):
        raise Failure("%s: ends %.2f s after Ctrl-C" % (what, took))


def start(data, *flags):
    return subprocess.Popen([cluster.binary(), "up", "--data-dir", data, "--bind", "127.0.0.1:0", "--log-level", "error", *flags],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=cluster.die_with_parent)


def interrupted(folder):
    """Ctrl-C ends a start at any moment, and the next start goes on where it was."""
    starts = ((["--nodes", "1000"], (0.1, 0.5, 1.5, 4)), (["--nodes", "1000", "--wait"], (3, 8)), (["--nodes", "100000"], (0.3, 3)))
    for number, (flags, moments) in enumerate(starts):
        for moment in moments:
            process = start(os.path.join(folder, "d%d" % number), *flags)
            time.sleep(moment)  # any moment will do
            end_by_interrupt(process, "%s, after %g s" % (" ".join(flags), moment))
    with cluster.Server(["--nodes", "3", "--runtime", "sim", "--wait"], data=os.path.join(folder, "d1"), folder=folder, command="up") as server:
        expect("nodes after all", len(server.kubectl("get", "nodes", "-o", "name").split()), 3)


def interrupted_at_ready(folder):
    """Ctrl-C is heard at once by a cluster that has just become ready, also where drivers of the one before it do not want to end."""
    driver = os.path.join(folder, "driver")
    with open(driver, "w") as f:
        f.write("#!/bin/sh\nexec >/dev/null 2>&1\ntrap '' TERM\necho >> %s/started\nwhile :; do sleep 1; done\n" % folder)
    os.chmod(driver, 0o755)
    started = os.path.join(folder, "started")
    data = os.path.join(folder, "data")
    for number in (1, 2):
        process = start(data, "--runtime", "sim", "--driver", driver)
        if "ready at" not in process.stdout.readline():
            raise Failure("does not start: %s" % process.stderr.read())
        if number == 1:
            wait_for(lambda: os.path.exists(started), PATIENCE, "the driver")
            process.kill()
            process.communicate()
        else:
            end_by_interrupt(process, "a second start with a driver", is_ready=True)
    subprocess.run([cluster.binary(), "down", "--data-dir", data], check=True, capture_output=True, timeout=PATIENCE)


def main():
    if not cluster.kubectl():
        print("SKIPPED: needs kubectl")
        return 77
    runtimes = ["sim"] + (["auto"] if os.geteuid() == 0 and cluster.has_containers() else [])
    tests = [(example,), (garbage,), (interrupted,), (interrupted_at_ready,)] + [(another_file, runtime) for runtime in runtimes]
    for test, *arguments in tests:
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory(prefix="dibs-c-", dir="/tmp") as folder:
            try:
                test(folder, *arguments)
            finally:
                cluster.clear_machine(folder)
        print("ok %s %s" % (test.__name__, " ".join(arguments)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
