#!/usr/bin/env python3
"""Somebody with one namespace asks for thousands of logs of a pod whose node takes connections and never answers: the logs of others come as
quickly as before, and what he asked for ends when he hangs up."""
import socket
import sys
import time

from suite import Failure, cluster, raise_file_limit, run

MALLORY, JANE = "token-of-mallory", "token-of-jane"
OPENINGS = 3000
PATIENCE = 10.0
PODS = "/api/v1/namespaces/%s/pods"
LOG = "/api/v1/namespaces/%s/pods/p/log"


def may_read_logs(admin, namespace, user):
    admin.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/" % namespace
    admin.expect(201, "POST", rbac + "roles", {
        "metadata": {"name": "logs"}, "rules": [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]})
    admin.expect(201, "POST", rbac + "rolebindings", {
        "metadata": {"name": "logs"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "logs"},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]})


def pod_on(admin, namespace, node):
    cluster.wait_for(lambda: admin.get("/api/v1/namespaces/%s/serviceaccounts/default" % namespace).status == 200, 20, "an account for pods")
    admin.expect(201, "POST", PODS % namespace, {"metadata": {"name": "p"}, "spec": {
        "nodeName": node, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "echo begun; sleep 9999"]}]}})


def silent_node(admin):
    """A node whose port nobody serves: connections wait in the queue of the socket."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    admin.expect(201, "POST", "/api/v1/nodes", {"metadata": {"name": "silent"}})
    admin.expect(200, "PATCH", "/api/v1/nodes/silent/status", {"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": listener.getsockname()[1]}}}},
                 headers={"Content-Type": "application/merge-patch+json"})
    return listener


def ask(server):
    sock = server.raw_socket()
    sock.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % (LOG % "m", MALLORY)).encode())
    return sock


def log_of_jane(suite):
    began = time.monotonic()
    with suite.server.client(token=JANE, timeout=60) as jane:
        answer = jane.get(LOG % "j")
    if answer.status != 200:
        raise Failure("a log: %r" % answer)
    return time.monotonic() - began


def silent_openings(suite):
    admin = suite.client
    may_read_logs(admin, "m", "mallory")
    may_read_logs(admin, "j", "jane")
    listener = silent_node(admin)
    pod_on(admin, "m", "silent")
    pod_on(admin, "j", "node-0")
    cluster.wait_for(lambda: admin.get(PODS % "j" + "/p").json["status"]["phase"] == "Running", 60, "a pod that runs")
    log_of_jane(suite)

    held = [ask(suite.server) for _ in range(OPENINGS)]
    for attempt in range(5):
        took = log_of_jane(suite)
        if took > PATIENCE:
            raise Failure("a log came after %.1f s" % took)
        suite.probe()
    for sock in held:
        sock.close()

    # Nothing of it is left: each connection that waited has ended.
    listener.settimeout(1)
    taken = []
    try:
        while True:
            taken.append(listener.accept()[0])
    except TimeoutError:
        pass
    if not taken:
        raise Failure("the silent node was never asked")
    end = time.monotonic() + PATIENCE
    for sock in taken:
        sock.settimeout(max(0.1, end - time.monotonic()))
        try:
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            raise Failure("a request goes on that nobody waits for")
        sock.close()


if __name__ == "__main__":
    raise_file_limit()
    sys.exit(run([silent_openings], flags=["--nodes", "1", "--runtime", "sim"], command="up",
                 tokens=[(MALLORY, "mallory", []), (JANE, "jane", [])]))
