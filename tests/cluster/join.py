#!/usr/bin/env python3
"""`dibs node join`: another machine becomes a node of a running cluster by one command, and pods, logs, exec, Services and names work there.

The machines are network namespaces on one switch: `one` runs `dibs up` with a node of its own, `four` and `five` know nothing but the command that
`dibs token create` prints. With real containers where there are any, else with simulated ones, and without Services. Wrong tokens, a wrong hash,
nobody at the address, and a name that is taken leave nothing behind.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402
from namespaces import Machines  # noqa: E402

INSIDE = "DIBS_TEST_JOIN"
PATIENCE = 120  # seconds; the processors may be shared with other tests
ADDRESSES = {"one": "192.168.79.11", "four": "192.168.79.14", "five": "192.168.79.15"}
MARKS = {"four": "81004", "five": "81005"}  # how long a pod there sleeps: found among all processes
ASK = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
    s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    while data := s.recv(65536):
        print(data.decode())
except OSError as problem:
    print(problem)
"""
machines = Machines()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def lay_cables():
    """In a network of this test's own: a switch, and a cable from it to each machine."""
    os.makedirs("/run/netns", exist_ok=True)
    os.makedirs("/run/dibs", exist_ok=True)
    for folder in ("/run/netns", "/run/dibs"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "switch", "type", "bridge")
    ip("address", "add", "192.168.79.1/24", "dev", "switch")
    ip("link", "set", "switch", "up")
    for name, address in ADDRESSES.items():
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "to-" + name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", "to-" + name, "master", "switch", "up")
        ip("-n", name, "address", "add", address + "/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "route", "add", "default", "via", "192.168.79.1")
        machines.add(name)


class Process:
    """A program on a machine."""

    def __init__(self, world, machine, *arguments):
        self.machine, self.arguments = machine, arguments
        self.log = os.path.join(world.folder, "%s-%d.log" % (machine, len(world.processes)))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(machines.command(machine, cluster.binary(), *arguments), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)
        world.processes.append(self)

    def said(self):
        with open(self.log, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def await_(self, words):
        def there():
            if words in self.said():
                return True
            if self.process.poll() is not None:
                raise Failure("dibs %s on %s ended with %d:\n%s" % (" ".join(self.arguments), self.machine, self.process.returncode, self.said()))
            return False
        try:
            wait_for(there, PATIENCE, words)
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, self.said()[-4000:]))

    def stop(self):
        self.process.terminate()
        status = self.process.wait(cluster.STOP_DEADLINE)
        if status != 0 or cluster.SANITIZER.search(self.said()) or cluster.OWN_REFUSAL in self.said():
            raise Failure("dibs %s on %s ended with %d:\n%s" % (self.arguments[0], self.machine, status, self.said()[-4000:]))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class World:
    def __init__(self, folder):
        self.folder, self.processes, self.data = folder, [], os.path.join(folder, "data")
        self.kubeconfig = os.path.join(self.data, "kubeconfig")

    def root(self, machine):
        return os.path.join(self.folder, machine)

    def on(self, machine, *arguments):
        """A command that ends."""
        return subprocess.run(machines.command(machine, cluster.binary(), *arguments), capture_output=True, text=True, timeout=PATIENCE,
                              env=dict(os.environ, HOME=self.folder))

    def kubectl(self, *words, source=None, check=True):
        done = subprocess.run(machines.command("one", cluster.kubectl(), "--kubeconfig", self.kubeconfig, *words), input=source, capture_output=True,
                              text=True, timeout=PATIENCE + 30, env=dict(os.environ, HOME=self.folder))
        if check and done.returncode != 0:
            logs = "".join("\n--- %s\n%s" % (" ".join(p.arguments[:2]), p.said()[-2000:]) for p in self.processes)
            raise Failure("kubectl %s: %s%s%s" % (" ".join(words), done.stdout, done.stderr, logs))
        return done.stdout

    def up(self):
        server = Process(self, "one", "up", "--nodes", "1", "--node-prefix", "one-", "--data-dir", self.data, "--bind", "0.0.0.0:6443", "--wait",
                         "--advertise-address", ADDRESSES["one"], "--images", self.root("images"), "--log-level", "warn", *cluster.AGENT_FLAGS)
        server.await_("containers:")
        self.real = "real containers" in server.said()
        return server

    def token(self, *flags):
        done = self.on("one", "token", "create", "--kubeconfig", self.kubeconfig, *flags)
        if done.returncode:
            raise Failure("dibs token create: %s" % done.stderr)
        found = re.fullmatch(r"dibs node join (\S+) --token ([a-z0-9]{6}\.[a-z0-9]{16}) --ca-cert-hash (sha256:[0-9a-f]{64})\n", done.stdout)
        if not found:
            raise Failure("dibs token create: %r" % done.stdout)
        return found.groups()

    def join_flags(self, machine):
        """As a machine of its own would have them by itself: all share the files of this one."""
        root = self.root(machine)
        return ("--name", machine, "--root-dir", root, "--node-ip", ADDRESSES[machine], "--images", self.root("images"),
                "--cdi-dirs", os.path.join(root, "cdi"), "--log-level", "warn", *cluster.AGENT_FLAGS)

    def join(self, machine, *words):
        return Process(self, machine, "node", "join", *words, *self.join_flags(machine))

    def await_ready(self, node):
        wait_for(lambda: node in self.kubectl("get", "nodes", "-o", "name"), PATIENCE, "node " + node)
        self.kubectl("wait", "node/" + node, "--for=condition=Ready", "--timeout=%ds" % PATIENCE)

    def pod(self, name, node, *command, labels=None):
        self.kubectl("apply", "-f", "-", source=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
            "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "image": "busybox", "command": list(command)}]}}))
        self.kubectl("wait", "pod/" + name, "--for=condition=Ready", "--timeout=%ds" % PATIENCE)


def refusals(world, words):
    """Each is told in words of who joins, and leaves nothing."""
    server, token, digest = words
    good = ("--token", token, "--ca-cert-hash", digest)
    other = token[:-1] + ("a" if token[-1] != "a" else "b")
    expired = world.token("--ttl", "1s")[1]
    short = "bootstrap-token-" + expired.split(".")[0]
    wait_for(lambda: not world.kubectl("-n", "kube-system", "get", "secret", short, "--ignore-not-found"), PATIENCE, "the end of a token")
    cases = [
        ((), 2, "SERVER: is needed"),
        ((server,), 2, "--token: is needed"),
        ((server, "--token", token), 2, "--ca-cert-hash: is needed"),
        (("nowhere", *good), 2, "https://HOST:PORT"),
        ((server, "--token", "abc", "--ca-cert-hash", digest), 2, "abcdef.0123456789abcdef"),
        ((server, "--token", token, "--ca-cert-hash", "sha256:12"), 2, "64 hexadecimal digits"),
        ((server, "--token", other, "--ca-cert-hash", digest), 1, "the server does not know"),
        ((server, "--token", expired, "--ca-cert-hash", digest), 1, "the server does not know"),
        ((server, "--token", token, "--ca-cert-hash", "sha256:" + "0" * 64), 1, "the authority of"),
        (("https://192.168.79.11:1", *good), 1, "cannot reach"),
        (("https://192.168.79.15:6443", *good), 1, "cannot reach"),
        (("https://127.0.0.1:6443", *good), 1, "cannot reach"),
    ]
    for arguments, status, said in cases:
        done = world.on("four", "node", "join", *arguments, *world.join_flags("four"))
        if done.returncode != status or said not in done.stderr or done.stdout or os.path.exists(world.root("four")):
            raise Failure("dibs node join %s: status %d, %s%s" % (" ".join(arguments), done.returncode, done.stdout, done.stderr))
        if token.split(".")[1] in done.stderr:
            raise Failure("the token's secret is shown: " + done.stderr)


def works(world, node):
    """Whatever a node is for."""
    world.pod("on-" + node, node, "sh", "-c", "echo hello from $HOSTNAME; exec sleep " + MARKS[node])
    wait_for(lambda: "hello from on-" + node in world.kubectl("logs", "on-" + node), PATIENCE, "logs")
    if world.real:
        said = world.kubectl("exec", "on-" + node, "--", "sh", "-c", "echo $((6 * 7))")
        if said.strip() != "42":
            raise Failure("exec: " + said)
    else:
        world.kubectl("exec", "on-" + node, "--", "true")


def ask(node, address, port):
    """From the network of a pod there."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().decode().split("\0")
        except OSError:
            continue
        if words[:2] == ["sleep", MARKS[node]]:
            done = subprocess.run(["nsenter", "--target", pid, "--net", sys.executable, "-c", ASK, address, str(port)], capture_output=True, text=True,
                                  timeout=PATIENCE)
            return done.stdout + done.stderr
    raise Failure("no process sleeps for " + MARKS[node])


def services(world, node):
    """A Service with a backend there, by its name, and that of the API, which is elsewhere."""
    world.pod("web-" + node, node, "sh", "-c", "mkdir -p /www; echo web of %s > /www/index.html; exec httpd -f -p 8080 -h /www" % node, labels={"app": node})
    world.kubectl("apply", "-f", "-", source=json.dumps({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web-" + node},
        "spec": {"selector": {"app": node}, "ports": [{"port": 80, "targetPort": 8080}]}}))
    for name, port, wanted in (("web-" + node, 80, "web of " + node), ("kubernetes", 443, "400 Bad Request")):
        address = world.kubectl("get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
        questions = {"its name": lambda: world.kubectl("exec", "on-" + node, "--", "nslookup", name + ".default.svc.cluster.local", check=False),
                     "its address": lambda: ask(node, address, port)}
        for what, answer in (("its name", address), ("its address", wanted)):
            said = []
            try:
                wait_for(lambda: said.append(questions[what]()) or answer in said[-1], PATIENCE, what)
            except Failure:
                raise Failure("a pod on %s asks for %s of %s: %s" % (node, what, name, said[-1]))


def story(world):
    server = world.up()
    if world.on("one", "token", "create", "--kubeconfig", world.kubeconfig, "--server", "x").returncode != 2:
        raise Failure("a token for nowhere")
    words = world.token()
    address, token, digest = words
    refusals(world, words)
    command = (address, "--token", token, "--ca-cert-hash", digest)
    four = world.join("four", *command)
    four.await_("node four:")
    world.await_ready("four")
    kept = os.path.join(world.root("four"), "node.kubeconfig")
    if os.stat(kept).st_mode & 0o77 or token in open(kept).read():
        raise Failure("what is kept of joining: %o" % os.stat(kept).st_mode)
    works(world, "four")

    # Somebody else of that name.
    taken = world.on("five", "node", "join", *command, "--name", "four", "--root-dir", world.root("five"))
    if taken.returncode != 1 or "is alive in another process" not in taken.stderr or os.path.exists(world.root("five")):
        raise Failure("a name that is taken: status %d, %s" % (taken.returncode, taken.stderr))

    # It goes on with what it has: without a token, whatever happens.
    before = open(kept).read()
    world.kubectl("-n", "kube-system", "delete", "secret", "bootstrap-token-" + token.split(".")[0])
    four.kill()
    four = world.join("four")
    four.await_("node four:")
    if open(kept).read() != before:
        raise Failure("a second start wrote another kubeconfig")
    four.stop()
    for wrong, said in ((("--name", "other"), "the certificate is for system:node:four"),
                        (("--name", "four", "--ca-cert-hash", "sha256:" + "1" * 64), "is of another cluster")):
        done = world.on("four", "node", "join", "--root-dir", world.root("four"), *wrong)
        if done.returncode != 1 or said not in done.stderr or open(kept).read() != before:
            raise Failure("%s: status %d, %s" % (said, done.returncode, done.stderr))
    four = world.join("four", *command)
    four.await_("node four:")
    works(world, "four")

    address, token, digest = world.token("--server", "192.168.79.11:6443")
    five = world.join("five", address, "--token", token, "--ca-cert-hash", digest)
    five.await_("node five:")
    world.await_ready("five")
    works(world, "five")
    if world.real:
        services(world, "four")
        services(world, "five")
    for process in (five, four, server):
        process.stop()


def main():
    if not os.environ.get(INSIDE):
        if os.geteuid() != 0 or not cluster.kubectl():
            print("SKIPPED: needs root (namespaces) and kubectl")
            return 77
        inside = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        return subprocess.run(inside + [sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: "1"})).returncode
    lay_cables()
    folder = tempfile.mkdtemp(prefix="dibs-j-", dir="/tmp")
    world = World(folder)
    try:
        story(world)
    finally:
        for process in world.processes:
            process.kill()
        if not os.environ.get("DIBS_TEST_KEEP"):
            for machine in ADDRESSES:
                place = world.data if machine == "one" else world.root(machine)
                subprocess.run(machines.command(machine, cluster.binary(), "down", "--data-dir", place), capture_output=True, timeout=60)
            shutil.rmtree(folder, ignore_errors=True)
    print("ok, with %s containers" % ("real" if world.real else "simulated"))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
