#!/usr/bin/env python3
"""NetworkPolicies on a machine with real containers: who reaches whom, under policies for both directions, and after a crash.

Runs in a network namespace of its own, so that no packet leaves the machine. Needs real containers (root, runc), nft and kubectl;
without them the test is skipped (exit status 77).
"""
import os
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "abuse"))
sys.dont_write_bytecode = True
from suite import Failure, cluster, run  # noqa: E402

SKIPPED = 77
PATIENCE = 120  # seconds; the processors may be shared with other tests
INSIDE = "DIBS_POLICIES_TEST"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies"
SERVE = "mkdir /www && echo hello > /www/index.html && httpd -p 80 -h /www && httpd -f -p 8080 -h /www"


def add_pod(client, name, labels, space="default", **container):
    first = dict({"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", SERVE]}, **container)
    client.expect(201, "POST", "/api/v1/namespaces/%s/pods" % space, {
        "metadata": {"name": name, "labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [first]}})


def address_of(client, name, space="default"):
    path = "/api/v1/namespaces/%s/pods/%s" % (space, name)

    def ready():
        status = client.expect(200, "GET", path)["status"]
        conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
        return status["podIP"] if conditions.get("Ready") == "True" else None
    try:
        return cluster.wait_for(ready, PATIENCE, "pod %s to be ready" % name, interval=0.1)
    except Failure as problem:
        raise Failure("%s: %s" % (problem, client.get(path).json["status"]))


def prepare(suite):
    if getattr(suite, "at", None):
        return
    client = suite.client
    client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "other", "labels": {"team": "other"}}})
    for space in ("default", "other"):
        path = "/api/v1/namespaces/%s/serviceaccounts/default" % space
        cluster.wait_for(lambda: client.get(path).status == 200, PATIENCE, "an account")
    # The probe is the host's own traffic, which no policy stops.
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    add_pod(client, "web", {"app": "web"}, ports=[{"name": "http", "containerPort": 8080}], readinessProbe=probe)
    add_pod(client, "friend", {"role": "friend"})
    add_pod(client, "foe", {})
    add_pod(client, "stranger", {"role": "friend"}, space="other")
    suite.at = {"web": address_of(client, "web"), "friend": address_of(client, "friend"), "foe": address_of(client, "foe"),
                "stranger": address_of(client, "stranger", "other")}


def policy(suite, name, spec, space="default"):
    suite.client.expect(201, "POST", POLICIES % space, {"metadata": {"name": name}, "spec": spec})


def reaches(suite, sender, address, port=80):
    space = "other" if sender == "stranger" else "default"
    ask = "nc -w 2 %s %d < /dev/null > /dev/null && echo reached" % (address, port)
    return "reached" in suite.server.kubectl("-n", space, "exec", sender, "--", "sh", "-c", ask, check=False)


def expect(suite, wanted):
    """{(sender, receiver, port): whether it is reached}, soon."""
    def wrong():
        return {key: not value for key, value in wanted.items()
                if reaches(suite, key[0], suite.at.get(key[1], key[1]), key[2]) != value}
    last = {}

    def right():
        last.clear()
        last.update(wrong())
        return not last
    try:
        cluster.wait_for(right, PATIENCE / 4, "policies to take effect", interval=0.1)
    except Failure:
        rules = subprocess.run(["nft", "list", "ruleset"], stdout=subprocess.PIPE, text=True).stdout
        raise Failure("reached or not, in place of what was expected: %s\n%s\n%s" % (last, suite.at, rules[-6000:]))


def clear(suite):
    for space in ("default", "other"):
        suite.client.expect(200, "DELETE", POLICIES % space)


def all_reach_all_without_policies(suite):
    prepare(suite)
    expect(suite, {(s, "web", p): True for s in ("friend", "foe", "stranger") for p in (80, 8080)})


def ingress_is_denied_but_for_the_host_and_itself(suite):
    prepare(suite)
    policy(suite, "deny", {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]})
    expect(suite, {("friend", "web", 80): False, ("stranger", "web", 80): False, ("web", "web", 80): True, ("web", "foe", 80): True,
                   ("friend", "foe", 80): True})
    with socket.create_connection((suite.at["web"], 80), 10):
        pass
    if address_of(suite.client, "web") != suite.at["web"]:
        raise Failure("the pod is not ready any more")
    clear(suite)
    expect(suite, {("friend", "web", 80): True})


def ingress_is_allowed_by_pods_namespaces_ports_and_blocks(suite):
    prepare(suite)
    to_web = {"matchLabels": {"app": "web"}}
    policy(suite, "friends", {"podSelector": to_web, "ingress": [
        {"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}], "ports": [{"port": 80}]}]})
    expect(suite, {("friend", "web", 80): True, ("friend", "web", 8080): False, ("foe", "web", 80): False, ("stranger", "web", 80): False})
    policy(suite, "others", {"podSelector": to_web, "ingress": [
        {"from": [{"namespaceSelector": {"matchLabels": {"team": "other"}}}], "ports": [{"port": "http"}]}]})
    expect(suite, {("friend", "web", 80): True, ("stranger", "web", 8080): True, ("stranger", "web", 80): False})
    policy(suite, "block", {"podSelector": to_web, "ingress": [
        {"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [suite.at["foe"] + "/32"]}}], "ports": [{"port": 8000, "endPort": 8100}]}]})
    expect(suite, {("friend", "web", 8080): True, ("foe", "web", 8080): False})
    # One that changes counts as it is now; a pod that comes later is subject as well.
    suite.client.expect(200, "PATCH", (POLICIES % "default") + "/friends", raw=b'{"spec":{"ingress":[]}}',
                        headers={"Content-Type": "application/merge-patch+json"})
    expect(suite, {("friend", "web", 80): False, ("friend", "web", 8080): True})
    add_pod(suite.client, "late", {"app": "web"})
    suite.at["late"] = address_of(suite.client, "late")
    expect(suite, {("friend", "late", 80): False, ("friend", "late", 8080): True})
    suite.client.request("DELETE", "/api/v1/namespaces/default/pods/late")
    clear(suite)
    expect(suite, {("foe", "web", 80): True})


def egress_is_denied_and_allowed(suite):
    prepare(suite)
    friend = {"matchLabels": {"role": "friend"}}
    policy(suite, "deny", {"podSelector": friend, "policyTypes": ["Egress"]})
    api = suite.client.expect(200, "GET", "/api/v1/namespaces/default/endpoints/kubernetes")["subsets"][0]
    host = (api["addresses"][0]["ip"], api["ports"][0]["port"])
    expect(suite, {("friend", "web", 80): False, ("friend",) + host: False, ("foe", "friend", 80): True, ("stranger", "web", 80): True})
    policy(suite, "web", {"podSelector": friend, "policyTypes": ["Egress"], "egress": [
        {"to": [{"podSelector": {"matchLabels": {"app": "web"}}}], "ports": [{"port": "http"}, {"port": 79, "endPort": 80}]}]})
    expect(suite, {("friend", "web", 80): True, ("friend", "web", 8080): True, ("friend", "foe", 80): False})
    policy(suite, "host", {"podSelector": friend, "policyTypes": ["Egress"], "egress": [
        {"to": [{"ipBlock": {"cidr": host[0] + "/32"}}], "ports": [{"port": host[1]}]}]})
    expect(suite, {("friend",) + host: True, ("friend", "foe", 80): False})


def names_are_asked_for_by_who_may(suite):
    prepare(suite)
    address = suite.client.expect(200, "GET", "/api/v1/namespaces/kube-system/services/kube-dns")["spec"]["clusterIP"]
    friend = {"matchLabels": {"role": "friend"}}
    # Nothing of an earlier check: who may reach the machine itself reaches its DNS.
    clear(suite)
    policy(suite, "deny", {"podSelector": friend, "policyTypes": ["Egress"]})
    expect(suite, {("friend", "web", 80): False})

    def asks(sender):
        ask = "nslookup kubernetes.default.svc.cluster.local %s > /dev/null && echo answered" % address
        return "answered" in suite.server.kubectl("exec", sender, "--", "sh", "-c", ask, check=False)
    cluster.wait_for(lambda: asks("foe"), PATIENCE, "an answer of DNS")
    if asks("friend"):
        raise Failure("a pod that may reach nothing reaches DNS")
    policy(suite, "dns", {"podSelector": friend, "policyTypes": ["Egress"], "egress": [{
        "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}],
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]}]})
    cluster.wait_for(lambda: asks("friend"), PATIENCE, "an answer that the policy allows")
    expect(suite, {("friend", "web", 80): False})
    clear(suite)


def policies_outlive_a_crash(suite):
    prepare(suite)
    policy(suite, "again", {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]})
    expect(suite, {("foe", "web", 80): False})
    suite.server.restart(kill=True)
    suite.client = suite.server.client(timeout=120)
    address_of(suite.client, "web")
    expect(suite, {("foe", "web", 80): False, ("web", "foe", 80): True})
    clear(suite)
    expect(suite, {("foe", "web", 80): True, ("friend", "foe", 80): True})


def pods_end(suite):
    """Containers outlive the server: none may be left to whoever comes next."""
    for space in ("default", "other"):
        path = "/api/v1/namespaces/%s/pods" % space
        suite.client.expect(200, "DELETE", path)
        cluster.wait_for(lambda: not suite.client.expect(200, "GET", path)["items"], PATIENCE, "the end of pods", interval=0.1)
    cluster.wait_for(lambda: not cluster.containers_of(suite.server.folder), PATIENCE, "the end of containers", interval=0.1)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: only root has real containers")
        return SKIPPED
    if shutil.which("nft") is None or cluster.one_kubectl() is None:
        print("SKIPPED: nft and kubectl are needed")
        return SKIPPED
    if INSIDE not in os.environ:
        return subprocess.run(["unshare", "-n", sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: "1"})).returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if not cluster.has_containers():
        print("SKIPPED: no real containers on this machine (runc, namespaces, overlay)")
        return SKIPPED
    return run([all_reach_all_without_policies, ingress_is_denied_but_for_the_host_and_itself,
                ingress_is_allowed_by_pods_namespaces_ports_and_blocks, egress_is_denied_and_allowed, names_are_asked_for_by_who_may,
                policies_outlive_a_crash, pods_end], flags=["--nodes", "1"], command="up")


if __name__ == "__main__":
    sys.exit(main())
