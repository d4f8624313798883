"""What a running cluster has open: its ports, its sockets and its files with keys are those that docs/security.md names, and no others.

A port of a part must be at the address that --bind says, although the machine has others. Keys are for their owner alone.
"""
import glob
import os
import re
import stat
import struct
import socket
import sys

import suite
from suite import cluster
from cluster import Failure, wait_for

DOCUMENT = os.path.join(suite.HERE, "..", "..", "docs", "security.md")
LISTEN = "0A"
ACCEPTS = 0x00010000  # __SO_ACCEPTCON
FLAGS = ["--nodes", "2", "--drivers", "gpu,net", "--runtime", "sim"]


def rows(heading):
    """The rows of the table whose first column has that heading, as lists of cells."""
    found, inside = [], False
    for line in open(DOCUMENT, encoding="utf-8"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells[0].startswith(heading):
            inside = True
        elif inside and not set(cells[0]) <= set("-"):
            found.append(cells)
    if not found:
        raise Failure("docs/security.md has no table of %s" % heading)
    return found


def pattern(cell, data):
    """A documented path as a regular expression: words of capitals stand for a part of it."""
    path = re.search(r"`([^`]+)`", cell).group(1)
    shape = "".join(r"[^/]+" if re.fullmatch(r"[A-Z]{2,}", word) else re.escape(word) for word in re.split(r"([A-Z]{2,})", path))
    return re.compile(("" if path.startswith("/") else re.escape(data) + "/") + shape + "$")


def inodes(pid):
    out = set()
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink("/proc/%d/fd/%s" % (pid, name)))
        except OSError:
            continue
        if found:
            out.add(found.group(1))
    return out


def address(text):
    """The numeric address of a line of /proc/net/tcp or tcp6."""
    host = text.split(":")[0]
    words = struct.pack("=%dI" % (len(host) // 8), *[int(host[i:i + 8], 16) for i in range(0, len(host), 8)])
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)


def ports(pid):
    """(address, port) of every TCP or UDP socket that takes what comes from others."""
    own, out = inodes(pid), []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in list(open("/proc/%d/net/%s" % (pid, name)))[1:]:
            fields = line.split()
            if fields[9] in own and (fields[3] == LISTEN or name.startswith("udp")):
                out.append((address(fields[1]), int(fields[1].split(":")[1], 16)))
    return out


def sockets(pid):
    """Paths of listening Unix sockets; an abstract one begins with @. The network driver's is known by the path it was bound at, in
    a folder that only root could enter, before it was closed to others and got its name."""
    own, out = inodes(pid), []
    for line in list(open("/proc/%d/net/unix" % pid))[1:]:
        fields = line.split()
        if fields[6] in own and int(fields[3], 16) & ACCEPTS:
            path = fields[7] if len(fields) > 7 else "(without a name)"
            out.append(re.sub(r"/\.new-\w+/s$", "/spiderpool.sock", path))
    return out


def settled(suite):
    """Nodes are ready and their drivers are there."""
    def ready():
        items = suite.client.expect(200, "GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
        nodes = [item["spec"]["nodeName"] for item in items if item["spec"]["driver"] == "gpu.example.com"]
        return len(nodes) == 2 and all(os.path.exists(os.path.join(suite.server.data, "nodes", node, "spiderpool.sock")) for node in nodes)
    wait_for(ready, 60, "drivers of both nodes")


def ports_are_those_of_the_document(suite):
    settled(suite)
    found = ports(suite.server.process.pid)
    outside = [one for one in found if one[0] != "127.0.0.1"]
    if outside:
        raise Failure("--bind is 127.0.0.1, but others can reach %r" % outside)
    documented = rows("port")
    if len(documented) != 3:  # the second is there with real containers only
        raise Failure("a port more, or less, than this test knows: %r" % documented)
    nodes = [node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
             for node in suite.client.expect(200, "GET", "/api/v1/nodes")["items"]]
    if sorted(port for _, port in found) != sorted([suite.server.port] + nodes):
        raise Failure("open: %r; of the API server and its nodes: %r" % (found, [suite.server.port] + nodes))


def sockets_are_those_of_the_document(suite):
    settled(suite)
    data = os.path.realpath(suite.server.data)
    patterns = {row[0]: pattern(row[0], data) for row in rows("socket") if row[1] == "dibs"}
    paths = [os.path.realpath(path) for path in sockets(suite.server.process.pid)]
    for path in paths:
        if not any(one.match(path) for one in patterns.values()):
            raise Failure("not in docs/security.md: socket %s" % path)
    for row, one in patterns.items():
        if not any(one.match(path) for path in paths):
            raise Failure("in docs/security.md, but not open: %s; open are %r" % (row, paths))


def keys_are_those_of_the_document(suite):
    data = os.path.realpath(suite.server.data)
    names = {re.search(r"`([^`]+)`", row[0]).group(1) for row in rows("key")}
    keys = {os.path.join("pki", name if name.endswith(".key") else name + ".key") for name in names} | {"kubeconfig"}
    if stat.S_IMODE(os.stat(data).st_mode) != 0o700 or stat.S_IMODE(os.stat(os.path.join(data, "pki")).st_mode) != 0o700:
        raise Failure("the data folder or its pki/ is open to others")
    found = set()
    for folder, _, files in os.walk(data):
        for name in files:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as f:
                    content = f.read(1 << 20)
            except OSError:
                continue
            if b"PRIVATE KEY" not in content and b"client-key-data" not in content:
                continue
            found.add(os.path.relpath(path, data))
            if stat.S_IMODE(os.stat(path).st_mode) != 0o600:
                raise Failure("%s has a key and mode %o" % (path, stat.S_IMODE(os.stat(path).st_mode)))
    found = {path for path in found if not path.startswith("store.db")}
    if not found <= keys:
        raise Failure("keys that docs/security.md does not name: %r" % sorted(found - keys))
    missing = {path for path in keys if path.startswith("pki/")} - found
    if missing:
        raise Failure("keys that docs/security.md names and that are not there: %r" % sorted(missing))


def a_log_is_read_through_the_loopback_port(suite):
    """The server finds its nodes where they listen, whatever address they tell."""
    settled(suite)
    suite.client.expect(201, "POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": "talks"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1.36", "command": ["echo", "hello"]}]}})
    wait_for(lambda: suite.client.expect(200, "GET", "/api/v1/namespaces/default/pods/talks")["status"].get("phase") == "Succeeded",
             60, "the pod's end")
    answer = suite.client.get("/api/v1/namespaces/default/pods/talks/log")
    if answer.status != 200:
        raise Failure("its log: %r" % answer)


def streams_of_containers_are_for_root(suite):
    """The socket that conmon has for each container, where this machine runs real ones: at the documented place, and for its owner."""
    shape = [re.search(r"`([^`]+)`", row[0]).group(1) for row in rows("socket") if row[1] == "conmon"]
    if len(shape) != 1:
        raise Failure("a socket of conmon more, or less, than this test knows: %r" % shape)
    with cluster.Server(["--nodes", "1"], command="up") as server, server.client() as client:
        wait_for(lambda: "containers:" in server.said(), 20, "what runs containers")
        if "real containers" not in server.said():
            print("without real containers: nothing to see of conmon", flush=True)
            return
        pods = "/api/v1/namespaces/default/pods"
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "999"]}]}}
        wait_for(lambda: client.request("POST", pods, pod).status == 201, 30, "an account for the pod")
        try:
            wait_for(lambda: client.expect(200, "GET", pods + "/p")["status"].get("phase") == "Running", 60, "a pod that runs", 0.2)
            container = client.expect(200, "GET", pods + "/p")["status"]["containerStatuses"][0]["containerID"].split("://")[1]
            found = glob.glob(shape[0].replace("CONTAINER", container).replace("RUN", "*"))
            if len(found) != 1:
                raise Failure("%s: there is %r" % (shape[0], found))
            if os.stat(found[0]).st_mode & 0o077:
                raise Failure("%s has mode %o" % (found[0], stat.S_IMODE(os.stat(found[0]).st_mode)))
        finally:
            client.request("DELETE", pods + "/p?gracePeriodSeconds=0")
        wait_for(lambda: client.get(pods + "/p").status == 404, 60, "the pod's end", 0.2)


if __name__ == "__main__":
    sys.exit(suite.run([ports_are_those_of_the_document, sockets_are_those_of_the_document, keys_are_those_of_the_document,
                        a_log_is_read_through_the_loopback_port, streams_of_containers_are_for_root], flags=FLAGS, command="up"))
