#!/usr/bin/env python3
"""Three machines make one cluster, as docs/several-machines.md says, and agents run on two more.

    machines.py [--rounds N] [--seed N]

The machines are network namespaces on one switch. One, two and three each run a member of etcd and `dibs up --nodes 0` (API server, scheduler,
controllers); four and five an agent and the driver of make-believe GPUs, which find the servers by one name with three addresses. Pods with
claims come and go all the time, and a client writes objects, one after another, to whichever server answers. Meanwhile machines are killed by
turns, everything on one at once (SIGKILL), or cut off from the others, and brought back. It must hold that
  - kubectl works against each server that has the others, and all say the same in the end;
  - work goes on with two of three: pods get devices and run;
  - with one of three nothing is taken, and both /readyz and the answer to a write say why;
  - at no revision do two claims have one device, and no acknowledged write is missing;
  - the Endpoints of the `kubernetes` Service name the servers that live.
Each round kills one machine and cuts off another. One round is under two minutes.
"""
import argparse
import http.client
import json
import os
import random
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../chaos"):
    sys.path.insert(0, os.path.join(HERE, folder))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402
from namespaces import Machines  # noqa: E402

machines = Machines()
INSIDE = "DIBS_TEST_CLUSTER"
PATIENCE = 120  # seconds; the processors may be shared with other tests
NAME = "dibs.test"
SERVERS = {"one": "192.168.78.11", "two": "192.168.78.12", "three": "192.168.78.13"}
AGENTS = {"four": "192.168.78.14", "five": "192.168.78.15"}
RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = RESOURCE + "/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def lay_cables():
    """In a network of this test's own: a switch, and a cable from it to each machine."""
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "switch", "type", "bridge")
    ip("address", "add", "192.168.78.1/24", "dev", "switch")
    ip("link", "set", "switch", "up")
    for name, address in dict(SERVERS, **AGENTS).items():
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "to-" + name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", "to-" + name, "master", "switch", "up")
        ip("-n", name, "address", "add", address + "/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        machines.add(name)


class Process:
    """A program on a machine."""

    def __init__(self, machine, name, *arguments):
        self.machine, self.arguments, self.process = machine, arguments, None
        self.log = os.path.join(machine.folder, name + ".log")

    def start(self):
        # The machine's own hosts file has the name of the servers.
        inside = ["sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.machine.hosts]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(machines.command(self.machine.name, *inside, *self.arguments), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def said(self, size=3000):
        try:
            with open(self.log, "rb") as f:
                return f.read()[-size:].decode("utf-8", "replace")
        except OSError:
            return ""

    def stop(self):
        self.process.terminate()
        status = self.process.wait(cluster.STOP_DEADLINE)
        with open(self.log, "rb") as f:
            text = f.read().decode("utf-8", "replace")
        if status != 0 or cluster.SANITIZER.search(text) or cluster.OWN_REFUSAL in text:
            raise cluster.Failure("%s on %s ended with status %d:\n%s" % (self.arguments[1], self.machine.name, status, text[-4000:]))


class Machine:
    def __init__(self, world, name, address):
        self.name, self.address = name, address
        self.folder = os.path.join(world.folder, name)
        self.data = os.path.join(self.folder, "data")
        self.hosts = os.path.join(world.folder, "hosts")
        self.kubeconfig = os.path.join(self.data, "kubeconfig")
        self.up, self.parts = False, []
        os.makedirs(self.folder)

    def start(self):
        for part in self.parts:
            part.start()
        self.up = True

    def kill(self):
        """Everything at once."""
        for part in self.parts:
            part.process.kill()
        for part in self.parts:
            part.kill()
        self.up = False

    def cable(self, state):
        ip("link", "set", "to-" + self.name, state)
        self.up = state == "up"

    def dibs(self, *arguments, source=None, check=True):
        done = subprocess.run([cluster.binary(), *arguments], input=source, capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise cluster.Failure("dibs %s: %s%s" % (" ".join(arguments), done.stdout, done.stderr))
        return done

    def kubectl(self, *arguments, source=None, check=True):
        done = subprocess.run([cluster.kubectl(), "--kubeconfig", self.kubeconfig, *arguments], input=source, capture_output=True, text=True,
                              timeout=90, env=dict(os.environ, HOME=self.folder))
        if check and done.returncode != 0:
            raise cluster.Failure("kubectl %s on %s: %s%s" % (" ".join(arguments), self.name, done.stdout, done.stderr))
        return done.stdout + ("" if check else done.stderr)

    def get(self, path, timeout=15):
        """Status and text of the answer of this machine's server, or (0, why there is none)."""
        return self.request("GET", path, None, timeout)

    def request(self, method, path, body, timeout=15):
        connection = None
        try:
            connection = http.client.HTTPSConnection(self.address, 6443, timeout=timeout, context=self.context())
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            if connection:
                connection.close()

    def context(self):
        pki = os.path.join(self.data, "pki")
        made = ssl.create_default_context(cafile=os.path.join(pki, "ca.crt"))
        made.load_cert_chain(os.path.join(pki, "admin.crt"), os.path.join(pki, "admin.key"))
        return made

    def ready(self):
        return self.get("/readyz")[0] == 200


class World:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "hosts"), "w") as f:
            f.write("127.0.0.1 localhost\n" + "".join("%s %s\n" % (address, NAME) for address in SERVERS.values()))
        self.servers = {name: Machine(self, name, address) for name, address in SERVERS.items()}
        self.agents = {name: Machine(self, name, address) for name, address in AGENTS.items()}
        self.alive, self.made, self.problems, self.seen = [], 0, [], {}

    def all(self):
        return list(self.servers.values()) + list(self.agents.values())

    def await_(self, question, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while problem := question():
            if time.monotonic() > end:
                logs = "".join("\n--- %s on %s\n%s" % (p.arguments[1], m.name, p.said()) for m in self.all() for p in m.parts)
                raise cluster.Failure("%s: %s%s" % (what, problem, logs))
            time.sleep(0.2)

    def begin(self):
        """As the page says."""
        members = ",".join("%s=http://%s:2380" % item for item in SERVERS.items())
        endpoints = ",".join("http://%s:2379" % address for address in SERVERS.values())
        for name, machine in self.servers.items():
            own = "http://" + machine.address
            machine.parts.append(Process(
                machine, "etcd", etcd.program(), "--name", name, "--data-dir", os.path.join(machine.folder, "etcd"),
                "--listen-client-urls", own + ":2379", "--advertise-client-urls", own + ":2379", "--listen-peer-urls", own + ":2380",
                "--initial-advertise-peer-urls", own + ":2380", "--initial-cluster", members,
                "--heartbeat-interval", "300", "--election-timeout", "3000"))
            machine.parts.append(Process(
                machine, "up", cluster.binary(), "up", "--nodes", "0", "--data-dir", machine.data, "--bind", "0.0.0.0:6443",
                "--advertise-address", machine.address, "--tls-san", NAME, "--store", "etcd", "--etcd-endpoints", endpoints, "--log-level", "warn"))
            machine.parts[0].start()
        first, *others = self.servers.values()
        first.parts[1].start()
        self.await_(lambda: not os.path.exists(first.kubeconfig) and "no kubeconfig", "the first server")
        keys = first.dibs("pki", "export", "--data-dir", first.data).stdout
        for machine in others:
            machine.dibs("pki", "import", "--data-dir", machine.data, source=keys)
            machine.parts[1].start()
        for machine in self.servers.values():
            self.await_(lambda m=machine: not (os.path.exists(m.kubeconfig) and m.ready()) and "%s %s" % (m.name, m.get("/readyz")), "servers")
            machine.up = True
        for name, machine in self.agents.items():
            config = os.path.join(machine.folder, "kubeconfig")
            first.dibs("pki", "kubeconfig", "node/" + name, "--data-dir", first.data, "--server", "https://%s:6443" % NAME, "--out", config)
            if os.stat(config).st_mode & 0o77:
                raise cluster.Failure("others can read " + config)
            shutil.copy(os.path.join(first.data, "pki", "ca.crt"), machine.folder)
            root = os.path.join(machine.folder, "n")
            machine.parts.append(Process(
                machine, "node", cluster.binary(), "node", "--kubeconfig", config, "--name", name, "--root-dir", root, "--runtime", "sim",
                "--node-ip", machine.address, "--client-ca-file", os.path.join(machine.folder, "ca.crt"), "--cdi-dirs", os.path.join(root, "cdi"),
                "--eviction-hard", "", "--image-alias", cluster.ALIASES, "--log-level", "warn"))
            machine.parts.append(Process(
                machine, "driver", cluster.binary(), "driver", "gpu", "--kubeconfig", config, "--node-name", name,
                "--kubelet-registrar-directory-path", os.path.join(root, "plugins_registry"),
                "--kubelet-plugins-directory-path", os.path.join(root, "plugins"), "--cdi-root", os.path.join(root, "cdi")))
            machine.parts[0].start()
            self.await_(lambda: not os.path.isdir(os.path.join(root, "plugins_registry")) and root, "folders of an agent")
            machine.parts[1].start()
            machine.up = True
        self.await_(lambda: len(self.items(RESOURCE + "/resourceslices")) < len(AGENTS) and "no slices", "devices")
        self.apply({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"},
                    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}})
        self.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one", "namespace": "default"},
                    "spec": {"spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}})

    def apply(self, thing):
        self.living()[0].kubectl("apply", "-f", "-", source=json.dumps(thing))

    def living(self):
        return [m for m in self.servers.values() if m.up]

    def ask(self, method, path, body=None, good=(200, 201), also=()):
        """Repeats a request at the servers by turns, as who has all their addresses does."""
        end = time.monotonic() + PATIENCE
        turn = 0
        while True:
            machine = list(self.servers.values())[turn % len(self.servers)]
            turn += 1
            status, text = machine.request(method, path, body, timeout=5)
            if status in good or status in also:
                return json.loads(text)
            if status not in (0, 429, 500, 503, 504) or time.monotonic() > end:
                raise cluster.Failure("%s %s at %s: %d %s" % (method, path, machine.name, status, text[:500]))
            time.sleep(0.1)

    def items(self, path):
        return self.ask("GET", path).get("items", [])

    # The load.

    def write_for_ever(self):
        """One object after another; what was acknowledged must be there in the end."""
        number = 0
        while not self.ending:
            name = "w%d" % number
            number += 1
            try:
                self.ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}, also=(409,))
                self.acknowledged.append(name)
            except cluster.Failure as failure:
                if not self.pausing:
                    self.problems.append(str(failure))
            time.sleep(0.02)

    def look_for_ever(self):
        """Of the claims at one revision no two may have one device."""
        while not self.ending:
            time.sleep(0.2)
            for machine in self.living():
                status, text = machine.get(CLAIMS, timeout=5)
                if status != 200:
                    continue
                held = {}
                for claim in json.loads(text)["items"]:
                    for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []):
                        device = (result["pool"], result["device"])
                        if device in held:
                            self.problems.append("%s is of %s and of %s" % (device, held[device], claim["metadata"]["name"]))
                        held[device] = claim["metadata"]["name"]

    def load(self):
        self.acknowledged, self.ending, self.pausing = [], False, False
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self.write_for_ever, self.look_for_ever)]
        for thread in self.threads:
            thread.start()

    def end_load(self):
        self.ending = True
        for thread in self.threads:
            thread.join(PATIENCE)

    def work(self, pods=3):
        """New pods get devices and run; old ones go."""
        fresh = []
        for _ in range(pods):
            self.made += 1
            fresh.append("p%d" % self.made)
            self.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": fresh[-1]}, "spec": {
                "terminationGracePeriodSeconds": 1, "resourceClaims": [{"name": "d", "resourceClaimTemplateName": "one"}],
                "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"], "resources": {"claims": [{"name": "d"}]}}]}},
                     also=(409,))

        def waiting():
            running = {p["metadata"]["name"]: p["status"].get("phase") for p in self.items(PODS)}
            return [(name, running.get(name)) for name in fresh if running.get(name) != "Running"]
        self.await_(waiting, "pods run")
        for name in self.alive:
            self.ask("DELETE", PODS + "/" + name, also=(404,))
        self.alive = fresh

    # What is done to it.

    def endpoints(self):
        found = self.ask("GET", "/api/v1/namespaces/default/endpoints/kubernetes")
        slices = self.ask("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
        return (sorted(a["ip"] for a in found["subsets"][0]["addresses"]), sorted(e["addresses"][0] for e in slices["endpoints"]))

    def await_endpoints(self):
        wanted = sorted(m.address for m in self.living())
        self.await_(lambda: self.endpoints() != (wanted, wanted) and "%s, not %s" % (self.endpoints(), wanted), "the endpoints")

    def leader(self, lease):
        holder = self.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/" + lease)["spec"].get("holderIdentity", "")
        return next((m for m in self.servers.values() if holder.startswith(m.address + ":")), None)

    def back(self, machine):
        self.await_(lambda: not machine.ready() and "%s: %s" % (machine.name, machine.get("/readyz?verbose")), "back again")

    def kill_one(self, machine):
        machine.kill()
        self.work()
        self.await_endpoints()
        machine.start()
        self.back(machine)
        self.work()
        self.await_endpoints()

    def cut_off(self, machine):
        machine.cable("down")
        self.work()
        self.await_endpoints()
        machine.cable("up")
        self.back(machine)
        self.work()

    def leave_one(self, last):
        """With one of three nothing can be written, and it says so."""
        self.pausing = True
        others = [m for m in self.servers.values() if m is not last]
        for machine in others:
            machine.kill()
        self.await_(lambda: last.ready() and "still ready", "not ready alone")
        status, text = last.get("/readyz")
        if status != 500 or "etcd failed" not in text:
            raise cluster.Failure("/readyz of one of three: %d %s" % (status, text))
        said = last.kubectl("create", "configmap", "alone", check=False)
        if "created" in said or "etcd" not in said.lower():
            raise cluster.Failure("kubectl with one of three: " + said)
        print("one of three says: %s | %s" % (" ".join(text.split()), said.strip()))
        for machine in others:
            machine.start()
        for machine in self.servers.values():
            self.back(machine)
        self.pausing = False
        self.work()

    def check_end(self):
        for machine in self.servers.values():
            there = set(machine.kubectl("get", "configmaps", "-o", "name").split())
            lost = [name for name in self.acknowledged if "configmap/" + name not in there]
            if lost:
                raise cluster.Failure("%s lost %s" % (machine.name, lost[:10]))
            pods = machine.kubectl("get", "pods", "--no-headers", "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase")
            running = sorted(line.split()[0] for line in pods.splitlines() if line.split()[1] == "Running")
            if not set(self.alive) <= set(running):
                raise cluster.Failure("pods at %s: %s" % (machine.name, pods))
        if self.problems:
            raise cluster.Failure("\n".join(self.problems[:20]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not os.environ.get(INSIDE):
        if os.geteuid() != 0 or not etcd.program() or not cluster.kubectl():
            print("SKIPPED: needs root (namespaces), etcd and kubectl")
            return 77
        inside = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        return subprocess.run(inside + [sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: "1"})).returncode
    chance = random.Random(args.seed)
    lay_cables()
    folder = tempfile.mkdtemp(prefix="dibs-m-", dir="/tmp")
    began = time.monotonic()
    try:
        world = World(folder)
        world.begin()
        world.load()
        world.work()
        world.await_endpoints()
        for number in range(args.rounds):
            leader = world.leader("kube-scheduler") or world.servers["one"]
            world.kill_one(leader if number % 2 == 0 else chance.choice(list(world.servers.values())))
            world.cut_off(world.leader("kube-controller-manager") or chance.choice(list(world.servers.values())))
        world.leave_one(chance.choice(list(world.servers.values())))
        world.end_load()
        world.check_end()
        print("%d rounds, %d pods, %d acknowledged writes, %.0f s" % (args.rounds, world.made, len(world.acknowledged), time.monotonic() - began))
        for machine in world.agents.values():
            for part in reversed(machine.parts):
                part.stop()
        for machine in world.servers.values():
            machine.parts[1].stop()
    finally:
        for machine in world.all():
            for part in machine.parts:
                part.kill()
        if not os.environ.get("DIBS_TEST_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
