#!/usr/bin/env python3
"""The API from a pod, on a machine of its own (support/underlay.sh) whose server listens on the loopback address alone.

    api_from_pods.py [--store sqlite|etcd]

A pod reaches it by the kubernetes Service, its names, the address in the Service's slice and that of its node, with the certificate and token
that it was given; still so after a restart on another port. A stranger on the machine's network, who knows the way to all of these addresses,
gets nowhere. Wants root and real containers.
"""
import argparse
import itertools
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

SKIPPED = 77
MACHINE, STRANGER = "172.18.0.11", "172.18.0.1"
PODS = "/api/v1/namespaces/default/pods"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
MARK = "sleep %d" % (80000 + os.getpid() % 6000)  # found among all processes of the machine

# Asks, as a pod would: HOST PORT NAME-IN-THE-CERTIFICATE CA TOKEN. Prints the status, or why there is none.
ASK = r"""
import socket, ssl, sys
host, port, name, ca, token = sys.argv[1:]
try:
    context = ssl.create_default_context(cadata=ca)
    raw = socket.create_connection((host, int(port)), timeout=5)
    with context.wrap_socket(raw, server_hostname=name) as s:
        s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n" % ("/api/v1/namespaces/default/pods", token)).encode())
        data = b""
        while chunk := s.recv(65536):
            data += chunk
    text = data.decode()
    print(text.split()[1], "system:serviceaccount:default:default" in text)
except Exception as error:
    print(type(error).__name__, error)
"""


def pod_process():
    """The process of the pod that runs MARK."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().rstrip(b"\0").replace(b"\0", b" ").decode()
        except OSError:
            continue
        if words.endswith(MARK) and "sh -c" not in words and os.path.isdir("/proc/%s/root%s" % (pid, SECRETS)):
            return pid
    return None


class Story:
    def __init__(self, server):
        self.server, self.api = server, server.client()

    def pod(self):
        wait_for(lambda: self.api.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, 20, "the account")
        self.api.expect(201, "POST", PODS, {"metadata": {"name": "p"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "c", "image": "busybox", "command": MARK.split()}]}})
        wait_for(lambda: self.api.expect(200, "GET", PODS + "/p")["status"].get("phase") == "Running", 60, "the pod to run")
        self.pid = wait_for(pod_process, 10, "the pod's process")
        read = lambda name: open("/proc/%s/root%s/%s" % (self.pid, SECRETS, name), encoding="utf-8").read()  # noqa: E731
        self.ca, self.token = read("ca.crt"), read("token")
        with open("/proc/%s/root/etc/resolv.conf" % self.pid, encoding="utf-8") as f:
            self.resolver = f.read()

    def ask(self, words, host, port, name=None):
        done = subprocess.run([*words, sys.executable, "-c", ASK, host, str(port), name or host, self.ca, self.token],
                              capture_output=True, text=True, timeout=30)
        return done.stdout.strip() or done.stderr.strip()

    def from_pod(self, host, port, name=None):
        return self.ask(["nsenter", "--target", self.pid, "--net"], host, port, name)

    def from_pod_by_name(self, name):
        """As a program of the pod would find it: by the DNS server and the search path that the pod was given."""
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(self.resolver)
            f.flush()
            its_own = ["sh", "-c", 'mount --bind %s /etc/resolv.conf && exec "$@"' % f.name, "-"]
            return self.ask(["nsenter", "--target", self.pid, "--net", "unshare", "--mount", *its_own], name, 443)

    def place(self):
        slice_ = self.api.expect(200, "GET", SLICE)
        found = [(e["addresses"][0], slice_["ports"][0]["port"]) for e in slice_["endpoints"]]
        endpoints = self.api.expect(200, "GET", "/api/v1/namespaces/default/endpoints/kubernetes")["subsets"][0]
        if found != [(endpoints["addresses"][0]["ip"], endpoints["ports"][0]["port"])]:
            raise Failure("Endpoints %s and slice %s differ" % (endpoints, found))
        return found[0]

    def reached(self, what, got):
        # It is known, and may not list pods.
        if got != "403 True":
            raise Failure("%s: %s" % (what, got))
        print("ok %s" % what)

    def check(self):
        host, port = self.place()
        if port != self.server.port or host.startswith("127."):
            raise Failure("the kubernetes Service leads to %s:%d, the server listens on port %d" % (host, port, self.server.port))
        self.reached("a pod at the address of the slice", self.from_pod(host, port))
        node = self.api.expect(200, "GET", "/api/v1/nodes/node-0")["status"]["addresses"][0]["address"]
        if node != MACHINE:
            raise Failure("the node's address is %s" % node)
        self.reached("a pod at its node's address", self.from_pod(node, port))
        service = self.api.expect(200, "GET", "/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"]
        for name in (service, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"):
            self.reached("the certificate has %s" % name, self.from_pod(host, port, name))
        wait_for(lambda: self.from_pod(service, 443) == "403 True", 20, "an answer at the Service's address")
        print("ok a pod at the Service's address")
        for name in ("kubernetes.default.svc", "kubernetes"):
            self.reached("a pod at https://%s" % name, self.from_pod_by_name(name))
        self.reached("the machine itself at the address of the slice", self.ask([], host, port))
        self.reached("the machine itself at the Service's address", self.ask([], service, 443))
        self.strangers({host, MACHINE, service}, {port, 443})

    def strangers(self, hosts, ports):
        for host, port in itertools.product(hosts, ports):
            got = self.ask(["ip", "netns", "exec", "switch"], host, port)
            if got[:1].isdigit() or "SSL" in got:
                raise Failure("a stranger reached %s:%d: %s" % (host, port, got))
        print("ok a stranger reaches none of them")

    def end(self):
        """Containers outlive their agent."""
        self.api.request("DELETE", PODS + "/p")
        wait_for(lambda: self.api.get(PODS + "/p").status == 404 and not pod_process(), 30, "the pod to end")


def inside(store):
    subprocess.run(["ip", "route", "add", "default", "via", STRANGER], check=True)
    # The stranger knows the way to every address of the machine.
    subprocess.run(["ip", "-n", "switch", "route", "add", "10.0.0.0/8", "via", MACHINE], check=True)
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return SKIPPED
    flags = ["--nodes", "1"]
    if store == "sqlite":
        return run(flags)
    if not etcd.program():
        print("SKIPPED: no etcd")
        return SKIPPED
    with etcd.Etcd() as members:
        return run(flags + members.server_flags())


def run(flags):
    with cluster.Server(flags, command="up") as server:
        story = Story(server)
        try:
            story.pod()
            story.check()
            before = server.port
            for kill in (False, True):
                server.kill() if kill else server.stop()
                server.host, server.port = "127.0.0.1", 0
                server.start()
                story.api = server.client()
                if server.port == before:
                    raise Failure("the port is the same")
                print("restarted on another port%s" % (", killed" if kill else ""))
                story.check()
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, server.log_tail()))
        finally:
            story.end()
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", default="sqlite", choices=("sqlite", "etcd"))
    parser.add_argument("--inside", action="store_true")
    options = parser.parse_args()
    if options.inside:
        return inside(options.store)
    if os.geteuid() != 0:
        print("SKIPPED: wants root")
        return SKIPPED
    script = os.path.join(HERE, "..", "support", "underlay.sh")
    return subprocess.run([script, sys.executable, "-B", os.path.abspath(__file__), "--inside", "--store", options.store]).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
