#!/usr/bin/env python3
"""Addresses of pods and Services that this machine has no network for: simulated nodes, and an API server without nodes. No packet to
one of them leaves the machine, whoever asks for it: probes and hooks, the API server's proxy, webhooks, APIServices.

Runs in a network namespace of its own with a default route to a veth, behind which a stranger counts what comes. Needs root.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure  # noqa: E402
from stranger import ADDRESS as STRANGER, Stranger, sh  # noqa: E402

SKIPPED = 77
MACHINE = os.path.join(HERE, "..", "support", "machine.sh")
PATIENCE = 120  # seconds; the processors may be shared with other tests
INSIDE = "DIBS_UNREACHABLE_TEST"
ROOT = "/api/v1/namespaces/default/"
POD = "10.203.0.7"  # nobody has a route to it
REFUSED = "connect: connection refused"
NO_ROUTE = "only the default route leads to %s"


def equal(what, got, expected):
    if got != expected:
        raise Failure("%s: %r, expected %r" % (what, got, expected))


def contains(what, text, part):
    if part not in text:
        raise Failure("%s: %r does not say %r" % (what, text, part))


def write(client, path, body, status=201):
    return client.expect(status, "POST", path, body)


def patch(client, path, body):
    return client.expect(200, "PATCH", path, body, headers={"Content-Type": "application/merge-patch+json"})


def message(client, path):
    answer = client.get(path)
    equal("the code of " + path, answer.status, 503)
    return json.loads(answer.data)["message"]


def simulated_nodes(stranger):
    with cluster.Server(["--nodes", "2", "--runtime", "sim"], command="up") as server, server.client(timeout=PATIENCE) as client:
        probe = {"periodSeconds": 1, "initialDelaySeconds": 0}
        asks = [{"httpGet": {"port": 8080}}, {"httpGet": {"host": STRANGER, "port": 9}}, {"tcpSocket": {"port": 8080}}, {"grpc": {"port": 8080}}]
        for number, ask in enumerate(asks):
            hook = {} if "grpc" in ask else {"lifecycle": {"postStart": ask, "preStop": ask}}
            write(client, ROOT + "pods", {"metadata": {"name": "p%d" % number, "labels": {"app": "web"}}, "spec": {
                "nodeName": "node-%d" % (number % 2), "terminationGracePeriodSeconds": 2, "containers": [dict({
                    "name": "c", "image": "i", "startupProbe": dict(probe, **ask), "livenessProbe": dict(probe, **ask),
                    "readinessProbe": dict(probe, **ask)}, **hook)]}})
        write(client, ROOT + "services", {"metadata": {"name": "web"}, "spec": {
            "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})
        addresses = []
        for number in range(len(asks)):
            def ready():
                status = client.expect(200, "GET", ROOT + "pods/p%d" % number)["status"]
                return status.get("containerStatuses", [{}])[0].get("ready") and status
            addresses.append(cluster.wait_for(ready, PATIENCE, "pod p%d to be ready" % number)["podIP"])
        contains("a pod's own server", message(client, ROOT + "pods/p0:8080/proxy/"), "dial tcp %s:8080: %s" % (addresses[0], REFUSED))
        contains("a Service's", message(client, ROOT + "services/web/proxy/"), REFUSED)
        for number in range(len(asks)):
            client.expect(200, "DELETE", ROOT + "pods/p%d" % number)
        for number in range(len(asks)):
            cluster.wait_for(lambda: client.get(ROOT + "pods/p%d" % number).status == 404, PATIENCE, "pod p%d to be gone" % number)
    equal("packets that left", stranger.heard("0.0.0.0/0"), [])


def api_server_alone(stranger):
    with cluster.Server(["--disable-admission-plugins", "ServiceAccount"]) as server, server.client(timeout=PATIENCE) as client:
        write(client, "/api/v1/nodes", {"metadata": {"name": "far"}})
        write(client, ROOT + "pods", {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {
            "nodeName": "far", "containers": [{"name": "c", "image": "i"}]}})
        patch(client, ROOT + "pods/p/status", {"status": {"podIP": POD, "podIPs": [{"ip": POD}],
                                                          "conditions": [{"type": "Ready", "status": "True"}]}})
        web = write(client, ROOT + "services", {"metadata": {"name": "web"}, "spec": {
            "selector": {"app": "web"}, "ports": [{"port": 443, "targetPort": 8080}]}})["spec"]["clusterIP"]
        write(client, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
            "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4", "ports": [{"port": 8080}],
            "endpoints": [{"addresses": [POD], "nodeName": "far", "conditions": {"ready": True}}]})
        refusal = NO_ROUTE % POD
        contains("a pod's own server", message(client, ROOT + "pods/p:8080/proxy/"), refusal)
        contains("a Service's", message(client, ROOT + "services/web/proxy/"), refusal)
        write(client, "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.far.example.com"}, "spec": {
            "group": "far.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True,
            "service": {"namespace": "default", "name": "web"}}})

        def judged():
            status = client.expect(200, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.far.example.com").get("status", {})
            return [c["message"] for c in status.get("conditions", []) if c["reason"] == "FailedDiscoveryCheck"]
        contains("an APIService", cluster.wait_for(judged, PATIENCE, "its check")[0], refusal)
        write(client, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": "hook"}, "webhooks": [{
            "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 2,
            "clientConfig": {"service": {"namespace": "default", "name": "web"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}]}]})
        contains("a webhook", write(client, ROOT + "secrets", {"metadata": {"name": "s"}}, status=500)["message"], NO_ROUTE % web)
        # With a route of its own it is nobody's but this machine's.
        sh("ip route add unreachable %s/32" % POD)
        contains("with a route", message(client, ROOT + "pods/p:8080/proxy/"), "no route to host")
        sh("ip route del unreachable %s/32" % POD)
    equal("packets that left", stranger.heard("0.0.0.0/0"), [])


def the_stranger_hears(stranger):
    """Else the rest would tell nothing."""
    sh("timeout 2 %s -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"%s\", 9))'" % (sys.executable, POD))
    cluster.wait_for(lambda: stranger.heard(POD + "/32"), 10, "a packet that the stranger hears")


def main():
    if INSIDE not in os.environ:
        if os.geteuid() != 0 or subprocess.run(["unshare", "-n", "true"]).returncode != 0:
            print("SKIPPED: needs root and network namespaces")
            return SKIPPED
        return subprocess.run(["unshare", "-n", MACHINE, "", sys.executable, "-B"] + sys.argv, env=dict(os.environ, **{INSIDE: "1"})).returncode
    sh("ip link set lo up")
    stranger = Stranger()
    failed = False
    try:
        for check in (the_stranger_hears, simulated_nodes, api_server_alone):
            try:
                check(stranger)
                print("ok      " + check.__name__, flush=True)
            except Failure as problem:
                failed = True
                print("FAILED  %s: %s" % (check.__name__, problem), flush=True)
                stranger.hear()
    finally:
        stranger.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
