#!/usr/bin/env python3
"""Three machines with different interfaces, the network driver on each, and pods that want addresses.

    machines.py [--release 1.27|1.30] [--seconds N] [--seed N]

The machines are network namespaces on one switch, each with an agent and the driver's node half in processes of their own:

    node-a  eth0 172.18.0.11/16      node-b  eth0 10.6.0.12/16      node-c  eth1 172.18.0.13/16, no eth0

It must hold that
  - a pod goes only where its interface is, in the right subnet, and has an address of the pool; pods on two machines reach each other;
  - without such a node, or without a free address, it waits, and its events and `dibs why` name what is missing;
  - with agents, drivers, controller and server killed by turns (SIGKILL) while pods come and go, no two live pods ever have one address;
  - after the last pod nothing is left: no address, no endpoint, no claim, no CDI file, no interface, no namespace.
Without --release the claims are those of resource.k8s.io/v1.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "chaos"))
sys.dont_write_bytecode = True
from parts import Part, cluster, persist  # noqa: E402
from namespaces import Machines  # noqa: E402

machines = Machines()
INSIDE = "DIBS_TEST_MACHINES"
PATIENCE = 120  # seconds; the processors may be shared with other tests
SERVER = "192.168.77.1"
MACHINES = {"node-a": ("eth0", "172.18.0.11/16"), "node-b": ("eth0", "10.6.0.12/16"), "node-c": ("eth1", "172.18.0.13/16")}
SPIDER = "/apis/spiderpool.spidernet.io/v2beta1"
PODS = "/api/v1/namespaces/default/pods"


def management(machine):
    """The address by which the server reaches a machine."""
    return "192.168.77.%d" % (11 + list(MACHINES).index(machine))


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def lay_cables():
    """In a network of this test's own: the switch, and the way of each machine to the server."""
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "management", "type", "bridge")
    ip("address", "add", SERVER + "/24", "dev", "management")
    ip("link", "set", "management", "up")
    ip("netns", "add", "switch")
    ip("-n", "switch", "link", "add", "bridge0", "type", "bridge")
    ip("-n", "switch", "link", "set", "bridge0", "up")
    for number, (name, (interface, address)) in enumerate(MACHINES.items()):
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "m%d" % number, "type", "veth", "peer", "name", "mgmt0", "netns", name)
        ip("link", "set", "m%d" % number, "master", "management", "up")
        ip("-n", name, "address", "add", management(name) + "/24", "dev", "mgmt0")
        ip("-n", name, "link", "set", "mgmt0", "up")
        ip("-n", name, "link", "add", interface, "type", "veth", "peer", "name", "p%d" % number, "netns", "switch")
        ip("-n", "switch", "link", "set", "p%d" % number, "master", "bridge0", "up")
        ip("-n", name, "address", "add", address, "dev", interface)
        ip("-n", name, "link", "set", interface, "up")
        machines.add(name)


class OnMachine(Part):
    """A part that runs on one of the machines."""

    def __init__(self, machine, server, *arguments, token):
        self.machine = machine
        super().__init__(server, *arguments, kubeconfig=kubeconfig(server, token), name="%s-%s" % (arguments[0], machine))

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(machines.command(self.machine, cluster.binary(), *self.arguments, "--kubeconfig", self.kubeconfig),
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)


def kubeconfig(server, token):
    path = os.path.join(server.folder, "kubeconfig-" + token)
    if os.path.exists(path):
        return path  # a part may be reading it
    with open(path, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "dibs",
                   "clusters": [{"name": "dibs", "cluster": {"server": server.url, "certificate-authority": server.ca_file()}}],
                   "users": [{"name": "part", "user": {"token": token}}],
                   "contexts": [{"name": "dibs", "context": {"cluster": "dibs", "user": "part"}}]}, f)
    return path


class World:
    """The cluster, its machines, and what the test asks of them."""

    def __init__(self, server, release):
        self.server, self.release, self.client = server, release, server.client()
        self.parts = {}

    def folder(self, machine):
        return os.path.join(self.server.folder, machine)

    def begin(self):
        flags = ["--release", self.release] if self.release else []
        self.parts["controllers"] = Part(self.server, "controllers")
        self.parts["scheduler"] = Part(self.server, "scheduler")
        self.parts["control"] = Part(self.server, "driver", "net", "--controller", name="control")
        for machine in MACHINES:
            root = self.folder(machine)
            cdi = os.path.join(root, "cdi")
            self.parts["agent " + machine] = OnMachine(
                machine, self.server, "node", "--name", machine, "--root-dir", root, "--port", "0", "--address", management(machine), "--node-ip", management(machine), *flags,
                "--images", os.path.join(self.server.folder, "images"), *cluster.AGENT_FLAGS,
                "--cdi-dirs", cdi, "--client-ca-file", self.server.ca_file(), token="node-" + machine)
            cluster.wait_for(lambda: os.path.isdir(os.path.join(root, "plugins_registry")), 30, "the folders of " + machine)
            self.parts["driver " + machine] = OnMachine(
                machine, self.server, "driver", "net", "--node-name", machine, "--cdi-root", cdi,
                "--kubelet-registrar-directory-path", os.path.join(root, "plugins_registry"),
                "--kubelet-plugins-directory-path", os.path.join(root, "plugins"),
                "--ipam-socket", os.path.join(root, "spiderpool.sock"), token="driver")
        self.await_(lambda: "default" not in self.names("/api/v1/namespaces/default/serviceaccounts") and "no account", "accounts")
        self.await_(lambda: self.names(SPIDER + "/spidernodestates") != sorted(MACHINES) and "states of nodes", "the driver's facts")

    def await_(self, question, what):
        """Asks until there is no problem any more."""
        end = time.monotonic() + PATIENCE
        while True:
            for part in self.parts.values():
                part.keep()
            problem = question()
            if not problem:
                return
            if time.monotonic() > end:
                logs = "".join("\n--- %s\n%s" % (name, part.said()[-1500:]) for name, part in self.parts.items())
                raise cluster.Failure("%s: %s%s" % (what, problem, logs))
            time.sleep(0.2)

    def items(self, path):
        answer = persist(self.client, "GET", path, also=(404,))
        return answer.json.get("items", []) if answer.status == 200 else []

    def names(self, path):
        return sorted(item["metadata"]["name"] for item in self.items(path))

    def apply(self, *objects):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.server.kubectl("apply", "-f", "-", source=text)

    def network(self, name, master, ranges, subnet):
        """A network on that interface, with a pool, and what a pod needs to ask for it."""
        spider = {"apiVersion": "spiderpool.spidernet.io/v2beta1"}
        here = {"name": name, "namespace": "kube-system"}
        self.apply({**spider, "kind": "SpiderIPPool", "metadata": {"name": name},
                    "spec": {"subnet": subnet, "ips": ranges, "multusName": ["kube-system/" + name]}},
                   {**spider, "kind": "SpiderMultusConfig", "metadata": here,
                    "spec": {"cniType": "macvlan", "macvlan": {"master": [master]}}})
        if self.release:
            self.apply({"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
                        "spec": {"spec": {"resourceClassName": "netresources.spidernet.io"}}})
        else:
            exactly = {"deviceClassName": name + ".kube-system.cni.spidernet.io"}
            self.apply({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
                        "spec": {"spec": {"devices": {"requests": [{"name": "nic", "exactly": exactly}]}}}})

    def pod(self, name, network):
        source = {"resourceClaimTemplateName": network}
        metadata = {"name": name}
        if self.release:
            source = {"source": source}
            metadata["annotations"] = {"v1.multus-cni.io/default-network": "kube-system/" + network}
        persist(self.client, "POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {
            "terminationGracePeriodSeconds": 1, "resourceClaims": [dict(source, name="nic")],
            "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 9999 & wait"],
                            "resources": {"claims": [{"name": "nic"}]}}]}}, also=(409,))

    def delete(self, name):
        persist(self.client, "DELETE", PODS + "/" + name, also=(404,))

    def get(self, name):
        return persist(self.client, "GET", PODS + "/" + name).json

    def await_ready(self, *names):
        def problem():
            for name in names:
                pod = self.get(name)
                if not (pod["status"].get("containerStatuses") or [{}])[0].get("ready"):
                    return "pod %s: %s\n%s" % (name, json.dumps(pod["status"]), self.events(name))
            return None
        self.await_(problem, "running")
        return [self.get(name) for name in names]

    def events(self, name):
        found = self.items("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=" + name)
        return "\n".join("%s %s: %s" % (e["type"], e["reason"], e["message"]) for e in found)

    def await_reason(self, pod, *words):
        """The pod is not bound, and both its events and `dibs why` hold the words."""
        def why():
            done = subprocess.run([cluster.binary(), "why", "pod/" + pod], capture_output=True, text=True, env=self.server.kubectl_environment())
            return done.stdout + done.stderr

        def problem():
            if self.get(pod)["spec"].get("nodeName"):
                raise cluster.Failure("pod %s was bound to %s" % (pod, self.get(pod)["spec"]["nodeName"]))
            for source, text in (("events", self.events(pod)), ("dibs why", why())):
                missing = [word for word in words if word not in text]
                if missing:
                    return "%s of %s do not name %s:\n%s" % (source, pod, missing, text)
            return None
        self.await_(problem, "the reason of " + pod)

    def shell(self, pod, *command):
        done = subprocess.run([cluster.kubectl(), "exec", pod, "--", *command], capture_output=True, text=True, timeout=60,
                              env=self.server.kubectl_environment())
        return done.stdout + done.stderr

    def addresses(self):
        """Of live pods, each once."""
        held = {}
        for pod in self.items(PODS):
            address = pod["status"].get("podIP")
            if not address or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            if address in held:
                raise cluster.Failure("%s is the address of %s and of %s" % (address, held[address], pod["metadata"]["name"]))
            held[address] = pod["metadata"]["name"]
        return held

    def left_over(self):
        """None, or the first thing that outlived the pods."""
        for path in (PODS, SPIDER + "/namespaces/default/spiderendpoints"):
            if self.names(path):
                return "%s: %s" % (path, self.names(path))
        version = "v1alpha2" if self.release else "v1"
        claims = self.names("/apis/resource.k8s.io/%s/namespaces/default/resourceclaims" % version)
        if claims:
            return "claims: %s" % claims
        for pool in self.items(SPIDER + "/spiderippools"):
            if pool["status"].get("allocatedIPCount") or pool["status"].get("allocatedIPs") or pool["status"].get("settledIPs"):
                return "pool %s: %s" % (pool["metadata"]["name"], json.dumps(pool["status"]))
        for machine, (interface, _) in MACHINES.items():
            files = [name for name in os.listdir(os.path.join(self.folder(machine), "cdi")) if "spidernet" in name]
            if files:
                return "CDI files on %s: %s" % (machine, files)
            shown = subprocess.run(["ip", "-n", machine, "-br", "link"], capture_output=True, text=True).stdout
            links = [line.split()[0].split("@")[0] for line in shown.splitlines()]
            more = [link for link in links if link not in ("lo", "mgmt0", interface) and not link.startswith("dibs-")]
            if more:
                return "interfaces on %s: %s" % (machine, more)
        return None


def place(world):
    """Each pod where its interface is, and a reason where there is none."""
    world.network("lan", "eth0", ["172.18.30.131-172.18.30.200"], "172.18.0.0/16")
    world.network("lan1", "eth1", ["172.18.31.1-172.18.31.50"], "172.18.0.0/16")
    for number in range(4):
        world.pod("p%d" % number, "lan")
    world.pod("q0", "lan1")
    pods = world.await_ready("p0", "p1", "p2", "p3", "q0")
    for pod in pods[:4]:
        if pod["spec"]["nodeName"] != "node-a" or not pod["status"]["podIP"].startswith("172.18.30.13"):
            raise cluster.Failure("%s is on %s with %s" % (pod["metadata"]["name"], pod["spec"]["nodeName"], pod["status"]["podIP"]))
    if pods[4]["spec"]["nodeName"] != "node-c":
        raise cluster.Failure("q0 is on %s" % pods[4]["spec"]["nodeName"])
    for source, target in (("p0", pods[1]), ("q0", pods[0]), ("p1", pods[4])):
        said = world.shell(source, "ping", "-c", "2", "-w", "10", target["status"]["podIP"])
        if ", 0% packet loss" not in said:
            raise cluster.Failure("%s does not reach %s (%s): %s" % (source, target["metadata"]["name"], target["status"]["podIP"], said))
    world.network("nowhere", "eth7", ["172.18.32.1-172.18.32.9"], "172.18.0.0/16")
    world.network("lost", "eth0", ["10.99.0.1-10.99.0.9"], "10.99.0.0/16")
    world.network("narrow", "eth0", ["172.18.33.1"], "172.18.0.0/16")
    world.pod("nowhere", "nowhere")
    world.await_reason("nowhere", "eth7")
    world.pod("lost", "lost")
    world.await_reason("lost", "10.99.0.0/16" if not world.release else "lost")
    world.pod("first", "narrow")
    world.await_ready("first")
    world.pod("second", "narrow")
    world.await_reason("second", "narrow")
    world.delete("first")
    world.await_ready("second")
    for name in ("nowhere", "lost", "second", "p0", "p1", "p2", "p3", "q0"):
        world.delete(name)
    world.await_(world.left_over, "after the pods")


def kill(world, seconds, chance):
    """Everything dies by turns while pods come and go."""
    alive, made, killed = [], 0, {}
    victims = [name for name in world.parts if name.split()[0] in ("agent", "driver", "control")] + ["server"]
    end = time.monotonic() + seconds
    next_kill = time.monotonic() + 2
    while time.monotonic() < end:
        if len(alive) < 12 and (len(alive) < 3 or chance.random() < 0.55):
            name = "k%d" % made
            made += 1
            world.pod(name, chance.choice(("lan", "lan", "lan1")))
            alive.append(name)
        else:
            world.delete(alive.pop(chance.randrange(len(alive))))
        if time.monotonic() > next_kill:
            next_kill = time.monotonic() + chance.uniform(0.05, 2)
            which = chance.choice(victims)
            killed[which] = killed.get(which, 0) + 1
            if which == "server":
                world.server.restart(kill=True)
            else:
                world.parts[which].kill()
                time.sleep(chance.choice((0, 0, 0.3)))
                world.parts[which].start()
        world.addresses()
        time.sleep(chance.uniform(0, 0.3))
    world.await_ready(*alive)
    held = world.addresses()
    if set(alive) - set(held.values()):
        raise cluster.Failure("addresses %s of pods %s" % (held, alive))
    for name in alive:
        world.delete(name)
    world.await_(world.left_over, "after the last pod")
    print("%d pods; killed: %s" % (made, ", ".join("%s %d" % item for item in sorted(killed.items()))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="", choices=("", "1.27", "1.30"))
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not os.environ.get(INSIDE):
        if not cluster.has_containers():
            print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay)")
            return 77
        inside = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        return subprocess.run(inside + [sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: "1"})).returncode
    lay_cables()
    server = cluster.Server(["--emulate-release", args.release] if args.release else [])
    server.host = SERVER
    server.write_tokens([("node-" + name, "system:node:" + name, ["system:nodes"]) for name in MACHINES] +
                        [("driver", "driver", ["system:masters"])])
    with server:
        world = World(server, args.release)
        world.begin()
        place(world)
        kill(world, args.seconds, random.Random(args.seed))
        for part in reversed(list(world.parts.values())):
            part.stop()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
