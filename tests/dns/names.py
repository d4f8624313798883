#!/usr/bin/env python3
"""Names in pods: what glibc and musl find through the cluster's DNS, and names of others through a make-believe server of the machine.

Runs in namespaces of its own (network, mounts), so that no packet leaves the machine and /etc/resolv.conf is the test's. Needs real
containers (root, runc); without them the test is skipped (exit status 77). Without musl-gcc the part with musl is.
"""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "abuse"))
sys.dont_write_bytecode = True
from suite import Failure, cluster, run  # noqa: E402

SKIPPED = 77
PATIENCE = 120  # seconds; the processors may be shared with other tests
INSIDE = "DIBS_DNS_TEST"  # set in the namespaces: a folder
PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
OTHERS = "127.0.0.9"  # the machine's name server

MUSL = r"""
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = 0;
    int code = getaddrinfo(argv[i], 0, &hints, &found);
    printf("%s", argv[i]);
    if (code) printf(" %s", code == EAI_NONAME ? "none" : gai_strerror(code));
    for (; found; found = found->ai_next) {
      char text[64];
      inet_ntop(AF_INET, &((struct sockaddr_in*)found->ai_addr)->sin_addr, text, sizeof text);
      printf(" %s", text);
    }
    printf("\n");
  }
  printf("done\n");
}
"""

GLIBC = r"""
import socket, struct, sys
KINDS = {"aaaa": 28, "srv": 33}

def name_at(data, at):
    labels, end = [], None
    while data[at]:
        if data[at] >= 192:
            end, at = end or at + 2, struct.unpack(">H", data[at:at + 2])[0] & 0x3fff
            continue
        labels.append(data[at + 1:at + 1 + data[at]].decode())
        at += 1 + data[at]
    return ".".join(labels), end or at + 1

def ask(name, kind):
    "What the server of resolv.conf answers, record by record; glibc has no call for it."
    server = [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")][0]
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(10)
    question = b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
    s.sendto(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + question, (server, 53))
    data = s.recv(4096)
    at, found = 12 + len(question), []
    for _ in range(struct.unpack(">H", data[6:8])[0]):
        _, at = name_at(data, at)
        is_of, _, _, size = struct.unpack(">HHIH", data[at:at + 10])
        at += 10
        if is_of == 28:
            found.append(socket.inet_ntop(socket.AF_INET6, data[at:at + size]))
        elif is_of == 33:
            found.append("%d:%s" % (struct.unpack(">H", data[at + 4:at + 6])[0], name_at(data, at + 6)[0]))
        at += size
    return sorted(found) or ["code %d" % (data[3] & 15)]

for name in sys.argv[1:]:
    try:
        if name.startswith("ptr:"):
            found = [socket.gethostbyaddr(name[4:])[0]]
        elif name.split(":")[0] in KINDS:
            found = ask(name.split(":")[1], KINDS[name.split(":")[0]])
        else:
            found = sorted({one[4][0] for one in socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)})
    except (socket.gaierror, socket.herror) as problem:
        found = ["none" if problem.args[0] in (socket.EAI_NONAME, socket.EAI_NODATA, 1) else str(problem)]
    print(name, *found)
print("done")
"""


def wire(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


class Others(threading.Thread):
    """A name server for example.test; the answer for `big` does not fit into a datagram."""

    def __init__(self):
        super().__init__(daemon=True)
        self.asked = []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((OTHERS, 53))
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((OTHERS, 53))
        self.tcp.listen()
        threading.Thread(target=self.serve_tcp, daemon=True).start()

    def answer(self, query, tcp):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        name = ".".join(labels).lower()
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        self.asked.append((name, kind, tcp))
        question = query[12:at + 5]
        addresses = {"www.example.test": ["192.0.2.7"], "big.example.test": ["192.0.2.%d" % i for i in range(200)]}.get(name)
        code = 0 if addresses else 3
        records = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(a) for a in addresses or [] if kind == 1]
        cut = not tcp and len(records) > 20
        if cut:
            records = []
        flags = 0x8180 | code | (0x200 if cut else 0)
        return query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + question + b"".join(records)

    def run(self):
        while True:
            query, sender = self.udp.recvfrom(4096)
            self.udp.sendto(self.answer(query, False), sender)

    def serve_tcp(self):
        while True:
            peer, _ = self.tcp.accept()
            with peer:
                size = struct.unpack(">H", peer.recv(2, socket.MSG_WAITALL))[0]
                answer = self.answer(peer.recv(size, socket.MSG_WAITALL), True)
                peer.sendall(struct.pack(">H", len(answer)) + answer)


def pod(name, command, labels=None, volumes=(), **spec):
    mounts = [{"name": "v%d" % i, "mountPath": inside, "readOnly": True} for i, (_, inside) in enumerate(volumes)]
    container = {"name": "c", "image": "busybox:1.36", "command": command, "volumeMounts": mounts}
    return {"metadata": {"name": name, "labels": labels or {}},
            "spec": dict({"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container],
                          "volumes": [{"name": "v%d" % i, "hostPath": {"path": path}} for i, (path, _) in enumerate(volumes)]}, **spec)}


# The machine's own C library and Python: what a Debian image would have.
DEBIAN = [("/usr", "/usr"), (os.path.realpath("/lib"), "/lib"), (os.path.realpath("/lib64"), "/lib64")]


def output(client, body):
    """What the pod printed, when it has ended."""
    name = body["metadata"]["name"]
    client.expect(201, "POST", PODS, body)
    try:
        def ended():
            return client.expect(200, "GET", PODS + "/" + name)["status"].get("phase") in ("Succeeded", "Failed")
        try:
            cluster.wait_for(ended, PATIENCE, "pod %s to end" % name, interval=0.1)
        except Failure as problem:
            raise Failure("%s: %s" % (problem, client.get(PODS + "/" + name).json["status"]))
        return client.get(PODS + "/" + name + "/log").data.decode()
    finally:
        client.request("DELETE", PODS + "/" + name)


def expect_lines(text, wanted):
    found = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    for name, answer in wanted.items():
        if found.get(name) != answer:
            raise Failure("%s is %r, expected %r; all that was said:\n%s" % (name, found.get(name), answer, text))
    if "done" not in text.splitlines():
        raise Failure("it did not come to its end:\n" + text)


def prepare(suite):
    if getattr(suite, "wanted", None):
        return suite.wanted
    client = suite.client
    cluster.wait_for(lambda: client.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, PATIENCE, "an account")
    web = client.expect(201, "POST", SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}})
    client.expect(201, "POST", SERVICES, {"metadata": {"name": "db"}, "spec": {"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]}})
    client.expect(201, "POST", SERVICES, {"metadata": {"name": "out"}, "spec": {"type": "ExternalName", "externalName": "www.example.test"}})
    client.expect(201, "POST", SERVICES, {"metadata": {"name": "same"}, "spec": {
        "type": "ExternalName", "externalName": "web.default.svc.cluster.local"}})
    client.expect(201, "POST", SLICES, {
        "metadata": {"name": "db-1", "labels": {"kubernetes.io/service-name": "db"}}, "addressType": "IPv4",
        "ports": [{"name": "sql", "port": 5432}],
        "endpoints": [{"addresses": ["10.99.0.1"], "hostname": "db-0", "conditions": {"ready": True}},
                      {"addresses": ["10.99.0.2"], "hostname": "db-1", "conditions": {"ready": False}},
                      {"addresses": ["10.99.0.3"], "conditions": {"ready": True}}]})
    client.expect(201, "POST", SLICES, {
        "metadata": {"name": "db-2", "labels": {"kubernetes.io/service-name": "db"}}, "addressType": "IPv6",
        "ports": [{"name": "sql", "port": 5432}], "endpoints": [{"addresses": ["fd00::7"], "hostname": "db-0", "conditions": {"ready": True}}]})
    address = web["spec"]["clusterIP"]
    api = client.expect(200, "GET", SERVICES + "/kubernetes")["spec"]["clusterIP"]
    dns = client.expect(200, "GET", "/api/v1/namespaces/kube-system/services/kube-dns")["spec"]
    if dns["clusterIP"] != api.rsplit(".", 1)[0] + ".10" or [(p["name"], p["protocol"], p["port"]) for p in dns["ports"]] != [
            ("dns", "UDP", 53), ("dns-tcp", "TCP", 53)]:
        raise Failure("the Service kube-dns is %s" % json.dumps(dns))
    suite.wanted = {
        "web": address, "web.default": address, "web.default.svc": address, "web.default.svc.cluster.local": address,
        "WEB.Default.svc.cluster.local.": address, "kubernetes.default.svc": api, "kube-dns.kube-system": dns["clusterIP"],
        "db-0.db": "10.99.0.1", "db-1.db": "none", "10-99-0-3.db.default.svc": "10.99.0.3", "same": address, "out": "192.0.2.7",
        "10-130-0-9.default.pod": "10.130.0.9", "10-130-0-9.default.pod.cluster.local": "10.130.0.9",
        "web.other": "none", "nobody": "none", "www.example.test": "192.0.2.7", "www": "192.0.2.7", "gone.example.test": "none"}
    suite.dns, suite.address = dns["clusterIP"], address
    return suite.wanted


def names_by_glibc(suite):
    wanted = prepare(suite)
    db = "db.default.svc.cluster.local"
    records = {
        "srv:_http._tcp.web.default.svc.cluster.local": "80:web.default.svc.cluster.local",
        "srv:_sql._tcp." + db: "5432:10-99-0-3.%s 5432:db-0.%s" % (db, db), "srv:_sql._udp." + db: "code 3",
        "aaaa:" + db: "fd00::7", "aaaa:db-0." + db: "fd00::7", "aaaa:10-99-0-3." + db: "code 0",
        "aaaa:web.default.svc.cluster.local": "code 0", "aaaa:nobody.default.svc.cluster.local": "code 3"}
    names = list(wanted) + ["db", "big.example.test", "ptr:" + suite.address, "ptr:10.99.0.1"] + list(records)
    text = output(suite.client, pod("glibc", ["/usr/bin/python3", "-c", GLIBC] + names, volumes=DEBIAN))
    expect_lines(text, dict(wanted, db="10.99.0.1 10.99.0.3", **{
        "ptr:" + suite.address: "web.default.svc.cluster.local", "ptr:10.99.0.1": "db-0.db.default.svc.cluster.local"}, **records))
    big = [line for line in text.splitlines() if line.startswith("big.example.test ")][0].split()
    if len(big) != 201:
        raise Failure("of 200 addresses %d came" % (len(big) - 1))


def names_by_musl(suite):
    if shutil.which("musl-gcc") is None:
        print("SKIPPED names_by_musl: no musl-gcc")
        return
    wanted = prepare(suite)
    folder = os.environ[INSIDE]
    with open(folder + "/lookup.c", "w") as f:
        f.write(MUSL)
    subprocess.run(["musl-gcc", "-static", "-o", folder + "/lookup", folder + "/lookup.c"], check=True)
    text = output(suite.client, pod("musl", ["/test/lookup"] + list(wanted), volumes=[(folder, "/test")]))
    expect_lines(text, wanted)


def policies_of_dns(suite):
    """What pods are told, by their dnsPolicy."""
    prepare(suite)
    read = ["sh", "-c", "cat /etc/resolv.conf"]
    cluster_first = ("search default.svc.cluster.local svc.cluster.local cluster.local example.test", "nameserver %s" % suite.dns,
                     "options ndots:5")
    host = ("search example.test", "nameserver " + OTHERS)
    given = {"nameservers": ["10.1.2.3"], "searches": ["my.test"], "options": [{"name": "ndots", "value": "2"}]}
    cases = {
        "first": ({}, cluster_first),
        "first-on-host": ({"hostNetwork": True}, host),
        "with-host-net": ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, cluster_first),
        "default": ({"dnsPolicy": "Default"}, host),
        "none": ({"dnsPolicy": "None", "dnsConfig": given}, ("search my.test", "nameserver 10.1.2.3", "options ndots:2"))}
    for name, (spec, lines) in cases.items():
        text = output(suite.client, pod(name, read, **spec))
        if text.split("\n") != list(lines) + [""]:
            raise Failure("resolv.conf of %s: %s, expected %s" % (name, text.split("\n"), lines))


def names_of_stateful_pods(suite):
    """Pods of a StatefulSet find each other by name once they are ready."""
    prepare(suite)
    client = suite.client
    labels = {"app": "peers"}
    client.expect(201, "POST", SERVICES, {"metadata": {"name": "peers"}, "spec": {"clusterIP": "None", "selector": labels}})
    client.expect(201, "POST", "/apis/apps/v1/namespaces/default/statefulsets", {
        "metadata": {"name": "peer"}, "spec": {"serviceName": "peers", "replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"]}]}}}})

    def ready():
        pods = [client.get(PODS + "/peer-%d" % i).json for i in range(2)]
        conditions = [{c["type"]: c["status"] for c in p["status"].get("conditions", [])} for p in pods if p["kind"] == "Pod"]
        return [p["status"]["podIP"] for p in pods] if [c.get("Ready") for c in conditions] == ["True", "True"] else None
    addresses = cluster.wait_for(ready, PATIENCE, "the pods of a StatefulSet", interval=0.1)

    def told():
        slices = client.expect(200, "GET", SLICES + "?labelSelector=kubernetes.io/service-name%3Dpeers")["items"]
        return {a for s in slices for e in s["endpoints"] or [] if e["conditions"].get("ready") for a in e["addresses"]} == set(addresses)
    cluster.wait_for(told, PATIENCE, "their endpoints", interval=0.1)
    text = output(client, pod("asks", ["/usr/bin/python3", "-c", GLIBC, "peer-0.peers", "peer-1.peers.default.svc.cluster.local"],
                              volumes=DEBIAN))
    expect_lines(text, {"peer-0.peers": addresses[0], "peer-1.peers.default.svc.cluster.local": addresses[1]})


def other_names_go_to_the_machines_servers(suite):
    prepare(suite)
    asked = {name for name, _, _ in suite.others.asked}
    leaked = {name for name in asked if name.endswith("cluster.local") or name.endswith(".10.in-addr.arpa")}
    if leaked:
        raise Failure("names of the cluster were asked for outside: %s" % leaked)
    if ("big.example.test", 1, True) not in suite.others.asked:
        raise Failure("what was cut off was not asked for over TCP")


def a_flood_leaves_the_api_alone(suite):
    """One pod asks as fast as it can; the API and another pod's questions are answered."""
    prepare(suite)
    flood = ("import socket\nq=bytes.fromhex('%s')\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
             "while True: s.sendto(q, ('%s', 53))" % ((b"\0\1\1\0\0\1\0\0\0\0\0\0" + wire("web.default.svc.cluster.local") + b"\0\1\0\1").hex(),
                                                      suite.dns))
    suite.client.expect(201, "POST", PODS, pod("flood", ["/usr/bin/python3", "-c", flood], volumes=DEBIAN))
    try:
        cluster.wait_for(lambda: suite.client.get(PODS + "/flood").json["status"].get("phase") == "Running", PATIENCE, "the flood")
        suite.probe()
        text = output(suite.client, pod("thirsty", ["/usr/bin/python3", "-c", GLIBC, "web"], volumes=DEBIAN))
        expect_lines(text, {"web": suite.address})
    finally:
        suite.client.request("DELETE", PODS + "/flood")


def pods_end(suite):
    """Containers outlive the server: none may be left to whoever comes next."""
    suite.client.request("DELETE", "/apis/apps/v1/namespaces/default/statefulsets/peer")
    suite.client.expect(200, "DELETE", PODS)
    cluster.wait_for(lambda: not suite.client.expect(200, "GET", PODS)["items"], PATIENCE, "the end of pods", interval=0.1)
    cluster.wait_for(lambda: not cluster.containers_of(suite.server.folder), PATIENCE, "the end of containers", interval=0.1)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: only root has real containers")
        return SKIPPED
    if INSIDE not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(["unshare", "-n", "-m", sys.executable, "-B"] + sys.argv,
                                  env=dict(os.environ, **{INSIDE: folder})).returncode
    folder = os.environ[INSIDE]
    os.chmod(folder, 0o755)
    with open(folder + "/resolv.conf", "w") as f:
        f.write("nameserver %s\nsearch example.test\n" % OTHERS)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--bind", folder + "/resolv.conf", "/etc/resolv.conf"], check=True)
    if not cluster.has_containers():
        print("SKIPPED: no real containers on this machine (runc, namespaces, overlay)")
        return SKIPPED
    others = Others()
    others.start()

    def begin(suite):
        suite.others = others
    return run([begin, names_by_glibc, names_by_musl, policies_of_dns, names_of_stateful_pods, other_names_go_to_the_machines_servers,
                a_flood_leaves_the_api_alone, pods_end], flags=["--nodes", "1"], command="up")


if __name__ == "__main__":
    sys.exit(main())
