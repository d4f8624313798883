#!/usr/bin/env python3
"""Services on a machine with real containers: what answers at their addresses, for pods, for the machine and for strangers, and that no
packet to a Service or a pod ever leaves.

Runs in a network namespace of its own with a default route to a veth, behind which a stranger counts what comes. Needs root and real
containers; without them the test is skipped (exit status 77). `run.py NAME…` runs some of the checks.
"""
import glob
import ipaddress
import json
import os
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure  # noqa: E402
from stranger import ADDRESS as STRANGER, OWN, Stranger, sh  # noqa: E402

SKIPPED = 77
MACHINE = os.path.join(HERE, "..", "support", "machine.sh")
PATIENCE = 120  # seconds; the processors may be shared with other tests
INSIDE = "DIBS_SERVICES_TEST"
ROOT = "/api/v1/namespaces/default/"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
FILTERED = "/proc/sys/net/bridge/bridge-nf-call-iptables"  # rules see what is bridged, too

# What a pod serves: its name and who asked, by HTTP.
SERVE = ("mkdir -p /www/cgi-bin; printf '#!/bin/sh\\necho; echo '$NAME' $REMOTE_ADDR\\n' > /www/cgi-bin/who; "
         "chmod +x /www/cgi-bin/who; exec httpd -f -p 8080 -h /www")
ASK = """
import socket, sys
host, port, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for _ in range(times):
    try:
        s = socket.create_connection((host, port), 3)
        s.sendall(b"GET /cgi-bin/who HTTP/1.0\\r\\n\\r\\n")
        data = b""
        while True:
            more = s.recv(4096)
            if not more: break
            data += more
        print(data.split(b"\\n\\n")[-1].decode().replace("\\r", "").split("\\n\\n")[-1].strip().splitlines()[-1])
    except ConnectionRefusedError:
        print("refused")
    except (OSError, IndexError) as problem:
        print("error", problem)
"""


class World:
    """A machine with a way out, a stranger behind it, and a cluster of two nodes."""

    def __init__(self, filtered):
        self.networks = {}  # of pods, by address
        sh("ip link set lo up")
        if os.path.exists(FILTERED):
            sh("echo %d > %s" % (filtered, FILTERED))
        self.stranger = Stranger()
        self.server = cluster.Server(["--nodes", "2", "--runtime", "oci", "--node-prefix", "node-"], command="up")
        self.server.start()
        self.client = self.server.client(timeout=PATIENCE)
        self.bridge = next(line.split(":")[1].strip() for line in sh("ip -o link show type bridge").splitlines())
        routes = [line.split()[0] for line in sh("ip -4 route show dev " + self.bridge).splitlines()]
        self.pods = next(r for r in routes if r.endswith("/16"))
        self.services = next(r for r in routes if not r.endswith("/16"))
        self.gateway = str(ipaddress.ip_network(self.pods)[1])

    def close(self, check=True):
        self.client.close()
        self.server.stop(check=check)
        self.server.remove()
        self.stranger.close()

    # --- who asks ---

    def inside(self, pod):
        """What runs a command in a pod's network."""
        if pod == "machine":
            return []
        if pod == "stranger":
            return ["nsenter", "-t", str(self.stranger.process.pid), "-n"]
        address = self.address(pod)
        if address not in self.networks:
            # The youngest first: others may be of clusters that run beside this one.
            found = sorted(glob.glob("/run/dibs/*/ns/*/net"), key=os.path.getmtime, reverse=True)
            for command in (["nsenter", "--net=" + path] for path in found):
                if " %s/" % address in subprocess.run(command + ["ip", "-4", "-o", "addr"], capture_output=True, text=True).stdout:
                    self.networks[address] = command
                    break
            else:
                raise Failure("no network of pod %s" % pod)
        return self.networks[address]

    def ask(self, who, host, port=80, times=12):
        """The answers, each once."""
        done = subprocess.run(self.inside(who) + [sys.executable, "-c", ASK, host, str(port), str(times)], capture_output=True, text=True)
        return sorted(set(done.stdout.replace("[::ffff:", "").replace("]", "").split("\n")) - {""})

    def names(self, who, host, port=80, times=12):
        return sorted({a.split()[0] for a in self.ask(who, host, port, times)})

    def until(self, expected, who, host, port=80, times=12):
        """Asks until these and no others answer."""
        last = []

        def right():
            last[:] = self.names(who, host, port, times)
            return last == sorted(expected)
        try:
            cluster.wait_for(right, PATIENCE, "", interval=0.1)
        except Failure:
            raise Failure("%s at %s:%d is answered by %s, expected %s\n%s" %
                          (who, host, port, last, expected, sh("nft list table inet " + self.bridge, check=False)[-6000:]))

    def left(self):
        """Packets to the cluster's own addresses that the stranger saw since the last time."""
        return self.stranger.heard(self.pods, self.services)

    # --- objects ---

    def address(self, pod):
        return self.client.expect(200, "GET", ROOT + "pods/" + pod)["status"]["podIP"]

    def pod(self, name, node="node-0", app="web", command=SERVE, **more):
        self.client.expect(201, "POST", ROOT + "pods", {
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": dict({"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [dict({
                "name": "c", "image": "busybox:1.36", "command": ["sh", "-c", command], "env": [{"name": "NAME", "value": name}]},
                **more.pop("container", {}))]}, **more)})

    def ready(self, *names):
        for name in names:
            def is_ready():
                status = self.client.expect(200, "GET", ROOT + "pods/" + name)["status"]
                return status.get("podIP") and status.get("containerStatuses", [{}])[0].get("ready")
            try:
                cluster.wait_for(is_ready, PATIENCE, "pod %s to be ready" % name, interval=0.1)
            except Failure as problem:
                raise Failure("%s\n%s\n%s" % (problem, self.server.kubectl("get", "events", check=False)[-2000:], self.server.log_tail()))

    def service(self, name, app="web", ports=None, **spec):
        made = self.client.expect(201, "POST", ROOT + "services", {"metadata": {"name": name}, "spec": dict(
            {"ports": ports or [{"port": 80, "targetPort": 8080}]}, **({"selector": {"app": app}} if app else {}), **spec)})
        return made["spec"]

    def patch(self, path, patch):
        return self.client.expect(200, "PATCH", ROOT + path, patch, headers={"Content-Type": "application/merge-patch+json"})

    def delete(self, *paths):
        for path in paths:
            self.client.request("DELETE", path if path.startswith("/") else ROOT + path)
        for path in paths:
            full = path if path.startswith("/") else ROOT + path
            cluster.wait_for(lambda: self.client.get(full).status == 404, PATIENCE, path + " to be gone", interval=0.05)

    def start_pods(self):
        self.pod("a", "node-0")
        self.pod("b", "node-1")
        self.pod("client", "node-0", app="client", command="sleep 9999")
        self.pod("client1", "node-1", app="client", command="sleep 9999")
        self.ready("a", "b", "client", "client1")


def equal(what, got, expected):
    if got != expected:
        raise Failure("%s: %r, expected %r" % (what, got, expected))


def nothing_leaves(world):
    """By rules, and by the route alone where somebody took the rules away."""
    unused = str(ipaddress.ip_network(world.services)[200])
    nobody = str(ipaddress.ip_network(world.pods)[60000])
    began = time.monotonic()
    equal("an address without a Service", world.ask("client", unused, times=1), ["refused"])
    equal("for the machine", world.ask("machine", unused, times=1), ["refused"])
    if time.monotonic() - began > 5:
        raise Failure("it was refused only after %.1f s" % (time.monotonic() - began))
    world.service("empty", app="nobody")
    equal("a Service without backends", world.ask("client", "%s" % world.client.expect(200, "GET", ROOT + "services/empty")["spec"]["clusterIP"], times=1), ["refused"])
    world.delete("services/empty")

    def try_all():
        for who in ("client", "machine"):
            for address in (unused, nobody):
                world.ask(who, address, times=1)
                subprocess.run(world.inside(who) + [sys.executable, "-c", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
                                                    "s.sendto(b'x', ('%s', 53))" % address], capture_output=True)
    try_all()
    equal("packets that left", world.left(), [])
    world.ask("machine", STRANGER, port=9, times=1)
    cluster.wait_for(lambda: STRANGER in world.stranger.hear(), 10, "a packet that the stranger hears: the test would notice none")
    rules = sh("nft list table inet " + world.bridge)
    sh("nft delete table inet " + world.bridge)
    try:
        try_all()
        equal("packets that left without rules", world.left(), [])
    finally:
        with open("/tmp/services-%d.nft" % os.getpid(), "w") as f:
            f.write(rules)
        sh("nft -f /tmp/services-%d.nft; rm -f /tmp/services-%d.nft" % (os.getpid(), os.getpid()))


def cluster_address(world):
    """Both backends, for pods of both nodes and for the machine; a pod that asks itself; and who asked is known."""
    ip = world.service("web")["clusterIP"]
    for who in ("client", "client1", "machine", "a"):
        world.until(["a", "b"], who, ip, times=20)
    equal("who asked", {a.split()[1] for a in world.ask("client", ip)}, {world.address("client")})
    equal("another port", world.ask("client", ip, port=81, times=1), ["refused"])
    equal("a stranger is answered, too", world.names("stranger", ip, times=20), ["a", "b"])
    world.delete("services/web")
    world.until(["refused"], "client", ip, times=1)


def node_ports(world):
    spec = world.service("np", type="NodePort")
    port = spec["ports"][0]["nodePort"]
    for who, host in (("machine", "127.0.0.1"), ("machine", OWN), ("client", OWN), ("stranger", OWN), ("client", world.gateway)):
        world.until(["a", "b"], who, host, port, times=20)
    equal("the stranger's address", {a.split()[1] for a in world.ask("stranger", OWN, port)}, {world.gateway})
    world.patch("services/np", {"spec": {"externalTrafficPolicy": "Local"}})
    cluster.wait_for(lambda: {a.split()[1] for a in world.ask("stranger", OWN, port)} == {STRANGER}, PATIENCE, "the stranger's own address")
    equal("all here are local", world.names("stranger", OWN, port, times=20), ["a", "b"])
    # What listens at the machine's loopback is not opened to pods by it, however they send there.
    quiet = socket.socket()
    quiet.bind(("127.0.0.1", 0))
    quiet.listen(5)
    inside = " ".join(world.inside("client")) + " "
    sh(inside + "sh -c 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet; ip route add 127.0.0.1/32 via %s dev eth0 table 5; "
       "ip rule add pref 1 to 127.0.0.1 lookup 5; ip rule add pref 2 lookup local; ip rule del pref 0'" % world.gateway)
    equal("a pod at the machine's loopback", world.names("client", "127.0.0.1", quiet.getsockname()[1], times=1), ["error"])
    sh(inside + "sh -c 'ip rule add pref 0 lookup local; ip rule del pref 1; ip rule del pref 2; ip route flush table 5; "
       "echo 0 > /proc/sys/net/ipv4/conf/all/route_localnet'")
    quiet.close()
    world.patch("services/np", {"spec": {"selector": {"app": "nobody"}}})
    world.until(["refused"], "stranger", OWN, port, times=1)
    world.delete("services/np")


def outside_addresses(world):
    spec = world.service("out", type="LoadBalancer", externalIPs=["192.0.2.77"], loadBalancerSourceRanges=["198.51.100.0/24"])
    world.client.expect(200, "PATCH", ROOT + "services/out/status", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.78"}]}}},
                        headers={"Content-Type": "application/merge-patch+json"})
    there = "nsenter -t %d -n " % world.stranger.process.pid
    sh(there + "ip route replace 192.0.2.77/32 via " + OWN)
    sh(there + "ip route replace 192.0.2.78/32 via " + OWN)
    world.until(["a", "b"], "stranger", "192.0.2.77", times=20)
    world.until(["a", "b"], "client", "192.0.2.77", times=20)
    equal("a balancer's address for others", world.names("stranger", "192.0.2.78", times=1), ["error"])
    world.patch("services/out", {"spec": {"loadBalancerSourceRanges": [STRANGER + "/32"]}})
    world.until(["a", "b"], "stranger", "192.0.2.78", times=20)
    # The cluster's own addresses cannot be caught by naming them.
    victim = world.service("victim")["clusterIP"]
    world.patch("services/out", {"spec": {"externalIPs": [victim], "selector": {"app": "nobody"}}})
    time.sleep(0.3)
    world.until(["a", "b"], "client", victim, times=20)
    world.delete("services/out", "services/victim")
    del spec


def affinity(world):
    ip = world.service("sticky", sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 3}})["clusterIP"]
    cluster.wait_for(lambda: world.names("client", ip, times=1) != ["refused"], PATIENCE, "backends", interval=0.1)
    time.sleep(4)
    seen = set()
    end = time.monotonic() + PATIENCE
    while seen != {"a", "b"} and time.monotonic() < end:
        names = world.names("client", ip, times=20)
        if len(names) != 1:
            raise Failure("one client was led to %s" % names)
        seen.update(names)
        time.sleep(3.5)  # and then it may be the other
    equal("after some pauses", seen, {"a", "b"})
    # One that is gone is nobody's home any more.
    (name,) = world.names("client", ip, times=20)
    world.patch("pods/" + name, {"metadata": {"labels": {"app": "away"}}})
    other = "b" if name == "a" else "a"
    world.until([other], "client", ip, times=5)
    world.patch("pods/" + name, {"metadata": {"labels": {"app": "web"}}})
    world.delete("services/sticky")


def near_ones(world):
    """internalTrafficPolicy: each pod is answered on its own node; the machine by all of them."""
    ip = world.service("near", internalTrafficPolicy="Local")["clusterIP"]
    world.until(["a"], "client", ip)
    world.until(["b"], "client1", ip)
    world.until(["a", "b"], "machine", ip, times=20)
    world.patch("pods/b", {"metadata": {"labels": {"app": "away"}}})
    world.until(["refused"], "client1", ip, times=2)
    world.until(["a"], "client", ip)
    world.patch("pods/b", {"metadata": {"labels": {"app": "web"}}})
    world.until(["b"], "client1", ip)
    world.delete("services/near")


def hints(world):
    """What trafficDistribution comes to: slices say for which node or zone a backend is."""
    ip = world.service("hinted", app=None)["clusterIP"]
    world.client.expect(201, "POST", SLICES, {
        "metadata": {"name": "hinted", "labels": {"kubernetes.io/service-name": "hinted"}}, "addressType": "IPv4",
        "ports": [{"name": "", "protocol": "TCP", "port": 8080}],
        "endpoints": [{"addresses": [world.address(pod)], "nodeName": node, "conditions": {"ready": True}, "hints": {"forNodes": [{"name": node}]}}
                      for pod, node in (("a", "node-0"), ("b", "node-1"))]})
    world.until(["a"], "client", ip)
    world.until(["b"], "client1", ip)
    world.delete(SLICES + "/hinted", "services/hinted")


def readiness(world):
    world.pod("slow", "node-0", app="slow", container={
        "readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "10"]}}}}, terminationGracePeriodSeconds=15)
    ip = world.service("slow", app="slow")["clusterIP"]
    anyhow = world.service("anyhow", app="slow", publishNotReadyAddresses=True)["clusterIP"]
    world.until(["slow"], "client", anyhow, times=2)
    equal("one that is not ready", world.names("client", ip, times=2), ["refused"])
    # Ready, and then ending: while nobody else is there it is still asked.
    pod = world.inside("slow")
    del pod
    world.server.kubectl("exec", "slow", "--", "touch", "/tmp/ready")
    world.until(["slow"], "client", ip, times=2)
    world.client.expect(200, "DELETE", ROOT + "pods/slow")
    time.sleep(1.5)
    equal("one that ends and serves", world.names("client", ip, times=4), ["slow"])
    cluster.wait_for(lambda: world.client.get(ROOT + "pods/slow").status == 404, PATIENCE, "the end of pod slow", interval=0.1)
    world.until(["refused"], "client", ip, times=1)
    world.delete("services/slow", "services/anyhow")


def udp(world):
    """A client that goes on sending from one port is led to the backend of now."""
    servers = []
    for _ in range(2):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind((world.gateway, 0))
        one.settimeout(1)
        servers.append(one)
    ip = world.service("udp", app=None, ports=[{"port": 53, "protocol": "UDP"}])["clusterIP"]
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.settimeout(0.2)
    asking.connect((ip, 53))
    slice_ = {"metadata": {"name": "udp", "labels": {"kubernetes.io/service-name": "udp"}}, "addressType": "IPv4",
              "ports": [{"name": "", "protocol": "UDP", "port": servers[0].getsockname()[1]}],
              "endpoints": [{"addresses": [world.gateway], "conditions": {"ready": True}}]}
    world.client.expect(201, "POST", SLICES, slice_)

    def hears(server):
        try:
            asking.send(b"hello")
        except OSError:
            return False  # refused
        try:
            data, sender = server.recvfrom(100)
            server.sendto(b"answer", sender)
            return asking.recv(100) == b"answer"
        except OSError:
            return False
    cluster.wait_for(lambda: hears(servers[0]), PATIENCE, "an answer by UDP")
    slice_["ports"][0]["port"] = servers[1].getsockname()[1]
    world.client.expect(200, "PUT", SLICES + "/udp", slice_)
    cluster.wait_for(lambda: hears(servers[1]), PATIENCE, "an answer by the other backend")
    world.delete(SLICES + "/udp", "services/udp")
    for one in servers + [asking]:
        one.close()


def health_port(world):
    spec = world.service("balanced", type="LoadBalancer", externalTrafficPolicy="Local")
    port = spec.get("healthCheckNodePort", 0)
    if not port:
        raise Failure("the Service was given no healthCheckNodePort")

    def asked():
        try:
            with socket.create_connection((OWN, port), 2) as s:
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                data = b""
                while True:
                    more = s.recv(4096)
                    if not more:
                        break
                    data += more
                return int(data.split()[1]), json.loads(data.split(b"\r\n\r\n", 1)[1])["localEndpoints"]
        except OSError:
            return None
    cluster.wait_for(lambda: asked() == (200, 2), PATIENCE, "a healthy answer", interval=0.1)
    world.patch("services/balanced", {"spec": {"selector": {"app": "nobody"}}})
    cluster.wait_for(lambda: asked() == (503, 0), PATIENCE, "an unhealthy answer", interval=0.1)
    world.delete("services/balanced")
    cluster.wait_for(lambda: asked() is None, PATIENCE, "the end of the port", interval=0.1)


def taking_over(world):
    """Rules outlive a server that is killed, or stopped, and the next one goes on with them."""
    ip = world.service("kept")["clusterIP"]
    world.until(["a", "b"], "client", ip, times=20)
    clients = world.inside("client")
    world.client.close()

    def answers():
        done = subprocess.run(clients + [sys.executable, "-c", ASK, ip, "80", "5"], capture_output=True, text=True)
        return {a.split()[0] for a in done.stdout.split("\n") if a} <= {"a", "b"}
    for stop in (world.server.kill, world.server.stop):
        stop()
        if not answers():
            raise Failure("nobody answers while no server runs")
        if "refuse" not in sh("nft list table inet " + world.bridge):
            raise Failure("the table is gone")
        world.server.start()
        if not answers():
            raise Failure("nobody answers while the server starts")
    world.client = world.server.client(timeout=PATIENCE)
    world.patch("pods/b", {"metadata": {"labels": {"app": "away"}}})
    world.until(["a"], "client", ip)
    world.patch("pods/b", {"metadata": {"labels": {"app": "web"}}})
    world.delete("services/kept")


def two_clusters(world):
    """A second one on the machine shares nothing, and is cleaned up when its folder is gone."""
    with cluster.Server(["--nodes", "1", "--runtime", "oci"], command="up") as other:
        with other.client(timeout=PATIENCE) as client:
            ip = client.expect(200, "GET", ROOT + "services/kubernetes")["spec"]["clusterIP"]
        if ipaddress.ip_address(ip) in ipaddress.ip_network(world.services):
            raise Failure("both have " + world.services)
        bridges = {line.split(":")[1].strip() for line in sh("ip -o link show type bridge").splitlines()}
        (second,) = bridges - {world.bridge}
        taken = subprocess.run([cluster.binary(), "up", "--data-dir", other.folder + "/x", "--bind", "127.0.0.1:0", "--runtime", "oci",
                                "--service-cluster-ip-range", world.services], capture_output=True, text=True)
        if taken.returncode == 0 or "--service-cluster-ip-range" not in taken.stderr or os.path.exists(other.folder + "/x"):
            raise Failure("a range that is taken: %s" % taken.stderr)
    with cluster.Server(["--nodes", "1", "--runtime", "oci"], command="up"):
        if second in sh("nft list tables") or second in sh("ip -o link"):
            raise Failure("what was left of a cluster that is gone is still there")


CHECKS = [nothing_leaves, cluster_address, node_ports, outside_addresses, affinity, near_ones, hints, readiness, udp, health_port,
          taking_over, two_clusters]


def main():
    if INSIDE not in os.environ:
        if os.geteuid() != 0 or not cluster.has_containers():
            print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay, nft)")
            return SKIPPED
        return subprocess.run(["unshare", "-n", MACHINE, "", sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: "1"})).returncode
    failed = on_machine(CHECKS, False)
    if os.path.exists(FILTERED):
        failed = on_machine([cluster_address, near_ones], True) or failed
    return 1 if failed else 0


def on_machine(checks, filtered):
    """Whether something failed."""
    world = World(filtered)
    failed = False
    try:
        world.start_pods()
        for check in checks:
            if len(sys.argv) > 1 and check.__name__ not in sys.argv[1:]:
                continue
            began = time.monotonic()
            try:
                check(world)
                print("ok      %s (%.1f s)" % (check.__name__, time.monotonic() - began), flush=True)
            except Failure as problem:
                failed = True
                print("FAILED  %s: %s\n%s" % (check.__name__, problem, world.server.log_tail(1500)), flush=True)
        left = world.left()
        if left:
            failed = True
            print("FAILED  packets left the machine: %s" % left[:10])
        world.delete("pods/a", "pods/b", "pods/client", "pods/client1")
    finally:
        world.close(check=not failed)
    return failed


if __name__ == "__main__":
    sys.exit(main())
