#!/usr/bin/env python3
"""Networks that pods name: what a user who may only create pods in one namespace can get by them, and what is left behind.

Runs in a network namespace of its own, so that no packet leaves the machine. Needs real containers (root, runc) and the kernel's
macvlan and veth devices; without them the test is skipped (exit status 77).
"""
import json
import os
import subprocess
import sys
import tempfile
import time

from suite import Failure, cluster, run

SKIPPED = 77
PATIENCE = 120  # seconds; the processors may be shared with other tests
TOKEN = "token-of-mallory"
PODS = "/api/v1/namespaces/guest/pods"
EVENTS = "/api/v1/namespaces/guest/events"
DEFAULT = "v1.multus-cni.io/default-network"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
STATUS = "k8s.v1.cni.cncf.io/network-status"
INSIDE = "DIBS_NETWORKS_TEST"  # set in the namespace: the folder for addresses


def sh(command):
    return subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def macvlan(name):
    """As the network driver makes it, but for addresses that need no driver."""
    ranges = [[{"subnet": "172.18.0.0/16", "rangeStart": "172.18.30.131", "rangeEnd": "172.18.30.140", "gateway": "172.18.0.1"}]]
    ipam = {"type": "host-local", "ranges": ranges, "dataDir": os.environ[INSIDE], "routes": [{"dst": "0.0.0.0/0"}]}
    return json.dumps({"cniVersion": "0.3.1", "name": name, "plugins": [
        {"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": ipam},
        {"type": "coordinator", "mode": "auto", "tunePodRoutes": True}]})


def define(suite, name_space, name, config):
    suite.client.expect(201, "POST", "/apis/k8s.cni.cncf.io/v1/namespaces/%s/network-attachment-definitions" % name_space, {
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": {"config": config}})


def prepare(suite):
    client = suite.client
    client.expect(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
        "spec": {"group": "k8s.cni.cncf.io", "scope": "Namespaced",
                 "names": {"plural": "network-attachment-definitions", "kind": "NetworkAttachmentDefinition"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "properties": {"spec": {"type": "object", "properties": {"config": {"type": "string"}}}}}}}]}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/"
    group = "rbac.authorization.k8s.io"
    client.expect(201, "POST", rbac + "clusterroles", {"metadata": {"name": "networks"}, "rules": [
        {"apiGroups": ["k8s.cni.cncf.io"], "resources": ["network-attachment-definitions"], "verbs": ["get"]}]})
    client.expect(201, "POST", rbac + "clusterrolebindings", {
        "metadata": {"name": "networks"}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "networks"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}]})
    for name in ("guest", "other"):
        client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    client.expect(201, "POST", rbac + "namespaces/guest/roles", {"metadata": {"name": "pods"}, "rules": [
        {"apiGroups": [""], "resources": ["pods", "pods/log", "pods/exec", "events"], "verbs": ["create", "get", "list", "delete"]}]})
    client.expect(201, "POST", rbac + "namespaces/guest/rolebindings", {
        "metadata": {"name": "pods"}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "pods"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "mallory"}]})
    cluster.wait_for(lambda: client.get("/api/v1/namespaces/guest/serviceaccounts/default").status == 200, PATIENCE, "an account")
    cluster.wait_for(lambda: client.get("/apis/k8s.cni.cncf.io/v1").status == 200, PATIENCE, "the kind")
    define(suite, "kube-system", "macvlan-conf", macvlan("macvlan-conf"))
    define(suite, "other", "secret", macvlan("secret"))
    define(suite, "guest", "program", json.dumps({"cniVersion": "1.0.0", "plugins": [{"type": "../../bin/sh"}]}))
    define(suite, "guest", "hidden", json.dumps({"cniVersion": "1.0.0", "plugins": [{"type": "macvlan", "ipam": {"type": "/bin/sh"}}]}))
    suite.prepared = True


def mallory(suite):
    if not getattr(suite, "prepared", False):
        prepare(suite)
    return suite.server.client(token=TOKEN, timeout=60)


def body(name, annotations, command="sleep 9999", **container):
    first = dict({"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", command]}, **container)
    return {"metadata": {"name": name, "annotations": annotations},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [first]}}


def gone(client, *names):
    for name in names:
        client.request("DELETE", PODS + "/" + name)
    for name in names:
        cluster.wait_for(lambda: client.get(PODS + "/" + name).status == 404, PATIENCE, "pod %s to be gone" % name)


def waits(suite, name, annotations, *words):
    """The pod must not run, and its event must say why."""
    with mallory(suite) as client:
        client.expect(201, "POST", PODS, body(name, annotations))
        try:
            def told():
                events = client.expect(200, "GET", EVENTS)["items"]
                mine = [e for e in events if e["involvedObject"]["name"] == name and e["reason"] == "FailedCreatePodSandBox"]
                return mine[0]["message"] if mine else None
            message = cluster.wait_for(told, PATIENCE, "an event about pod " + name, interval=0.1)
            for word in words:
                if word not in message:
                    raise Failure("%s: the event does not say %r: %s" % (name, word, message))
            if client.expect(200, "GET", PODS + "/" + name)["status"].get("phase") != "Pending":
                raise Failure("%s runs" % name)
        finally:
            gone(client, name)


def running(suite, client, name):
    def ready():
        pod = client.expect(200, "GET", PODS + "/" + name)
        return pod if pod["status"].get("containerStatuses", [{}])[0].get("ready") else None
    try:
        return cluster.wait_for(ready, PATIENCE, "pod %s to be ready" % name, interval=0.1)
    except Failure as problem:
        raise Failure("%s: %s\n%s" % (problem, client.get(PODS + "/" + name).json["status"],
                                      [e["message"] for e in client.get(EVENTS).json["items"]]))


def left_behind():
    links = [line for line in sh("ip -o link").stdout.splitlines() if ": veth" in line]
    addresses = [f for _, _, files in os.walk(os.environ[INSIDE]) for f in files if f.startswith("172.")]
    rules = [line for line in sh("ip rule").stdout.splitlines() if "lookup 500" in line]
    return links + addresses + rules


def nothing_left(when):
    """What a pod had is taken down after its object is gone."""
    try:
        cluster.wait_for(lambda: not left_behind(), PATIENCE, "an end")
    except Failure:
        raise Failure("%s there is left: %s" % (when, left_behind()))


def networks_of_others(suite):
    waits(suite, "of-others", {NETWORKS: "other/secret"}, "other/secret", "of their own namespace", "--network-namespaces")
    waits(suite, "default-of-others", {DEFAULT: "other/secret"}, "other/secret", "of their own namespace")
    waits(suite, "by-json", {NETWORKS: '[{"name": "secret", "namespace": "other"}]'}, "other/secret")
    waits(suite, "by-path", {NETWORKS: "../other/secret"}, "annotation")


def names_of_interfaces(suite):
    for i, interface in enumerate(("eth0", "lo", "veth0", "a/b", "..", "far-too-long-to-be-one")):
        waits(suite, "interface-%d" % i, {NETWORKS: "kube-system/macvlan-conf@" + interface}, "annotation " + NETWORKS)
    waits(suite, "interface-twice", {NETWORKS: "kube-system/macvlan-conf@a,kube-system/macvlan-conf@a"}, "is there already")


def what_nobody_would_do(suite):
    one = {"name": "macvlan-conf", "namespace": "kube-system"}
    waits(suite, "mac", {NETWORKS: json.dumps([dict(one, mac="0a:00:00:00:00:01")])}, "capability")
    waits(suite, "ips", {NETWORKS: json.dumps([dict(one, ips=["172.18.30.135/16"])])}, "capability")
    waits(suite, "args", {NETWORKS: json.dumps([dict(one, **{"cni-args": {"x": "y"}})])}, "cni-args")
    waits(suite, "many", {NETWORKS: ",".join(["kube-system/macvlan-conf"] * 1000)}, "are the most")
    waits(suite, "missing", {NETWORKS: "nothing"}, "cannot find a network-attachment-definition (nothing) in namespace (guest)")


def programs(suite):
    waits(suite, "program", {NETWORKS: "program"}, "is not the name of a plugin")
    waits(suite, "hidden", {NETWORKS: "hidden"}, "is not the name of a plugin")


def status_of_networks(suite):
    """The pod's author cannot keep a status of his own."""
    with mallory(suite) as client:
        client.expect(201, "POST", PODS, body("liar", {DEFAULT: "kube-system/macvlan-conf", STATUS: "[]"}))
        try:
            pod = running(suite, client, "liar")
            status = json.loads(pod["metadata"]["annotations"][STATUS])
            if status[0]["name"] != "kube-system/macvlan-conf" or status[0]["ips"] != [pod["status"]["podIP"]]:
                raise Failure("network-status is %s, podIP %s" % (status, pod["status"]["podIP"]))
        finally:
            gone(client, "liar")
    nothing_left("after a pod")


def pods_reach_each_other(suite):
    serve = "mkdir /www && echo hello > /www/index.html && httpd -f -p 80 -h /www"
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    with mallory(suite) as client:
        for name in ("one", "two"):
            client.expect(201, "POST", PODS, body(name, {DEFAULT: "kube-system/macvlan-conf"}, serve,
                                                  readinessProbe=probe))
        try:
            # The probe comes from the host, by veth0.
            addresses = [running(suite, client, name)["status"]["podIP"] for name in ("one", "two")]
            if len(set(addresses)) != 2 or not all(address.startswith("172.18.30.13") for address in addresses):
                raise Failure("the addresses are %s" % addresses)
            client.expect(201, "POST", PODS, body("three", {DEFAULT: "kube-system/macvlan-conf", NETWORKS: "kube-system/macvlan-conf"},
                                                  "wget -q -O - http://%s/ && sleep 9999" % addresses[1]))
            pod = running(suite, client, "three")
            status = json.loads(pod["metadata"]["annotations"][STATUS])
            if [s["interface"] for s in status] != ["eth0", "net1"] or not status[1]["ips"]:
                raise Failure("network-status is %s" % status)
            cluster.wait_for(lambda: "hello" in client.get(PODS + "/three/log").data.decode(), PATIENCE, "what the other pod says")
            # A new agent takes away what the old one made.
            client.close()
            suite.server.restart(kill=True)
            suite.client = suite.server.client(timeout=120)
        finally:
            with mallory(suite) as again:
                gone(again, "one", "two", "three")
    nothing_left("after pods of an agent that was killed")


def killed_while_it_works(suite):
    """At many moments between the creation of a pod and its end."""
    for i in range(6):
        with mallory(suite) as client:
            client.expect(201, "POST", PODS, body("victim", {DEFAULT: "kube-system/macvlan-conf", NETWORKS: "kube-system/macvlan-conf"}))
            client.close()
        time.sleep(0.15 * i)
        suite.server.restart(kill=True)
        suite.client = suite.server.client(timeout=120)
        with mallory(suite) as again:
            gone(again, "victim")
        nothing_left("after kill %d" % i)


def main():
    if INSIDE not in os.environ:
        if os.geteuid() != 0 or not cluster.has_containers():
            print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay)")
            return SKIPPED
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(["unshare", "-n", sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: folder})).returncode
    made = sh("ip link set lo up && ip link add eth0 type veth peer name sw0 && ip link add link eth0 name probe type macvlan "
              "&& ip link del probe && ip addr add 172.18.0.11/16 dev eth0 && ip link set eth0 up && ip link set sw0 up")
    if made.returncode != 0:
        print("SKIPPED: this kernel has no veth or no macvlan devices: " + made.stdout)
        return SKIPPED
    return run([networks_of_others, names_of_interfaces, what_nobody_would_do, programs, status_of_networks, pods_reach_each_other,
                killed_while_it_works],
               flags=["--nodes", "1"], command="up", tokens=[(TOKEN, "mallory", ["system:authenticated"])])


if __name__ == "__main__":
    sys.exit(main())
