#!/usr/bin/env python3
"""Many streams to one pod: forwarded ports, commands and logs that stay open must hold up nobody else."""
import base64
import os
import sys

from suite import Failure, cluster, raise_file_limit, run

POD = "/api/v1/namespaces/default/pods/listener"
PORTS, COMMANDS, LOGS = 300, 20, 60
OPEN_DEADLINE = 60


def listener(client):
    """A pod that takes every connection and says nothing."""
    client.expect(201, "POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": "listener"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
            "name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "echo begun; exec nc -ll -p 8080 -e sleep 9999"]}]}})

    def ready():
        statuses = client.get(POD).json["status"].get("containerStatuses") or [{}]
        return statuses[0].get("ready")
    cluster.wait_for(ready, 60, "a pod that listens")


def websocket(server, path):
    """An upgraded connection, held open by whoever has it."""
    sock = server.raw_socket()
    sock.settimeout(OPEN_DEADLINE)
    sock.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n"
                  % (path, cluster.ADMIN_TOKEN, base64.b64encode(os.urandom(16)).decode())).encode())
    head = b""
    while b"\r\n" not in head:
        more = sock.recv(1)
        if not more:
            raise Failure("%s: the connection ended" % path)
        head += more
    if b" 101 " not in head:
        raise Failure("%s: %s" % (path, head))
    return sock


def silent_backends(suite):
    """Requests that a pod takes and never answers wait by themselves."""
    listener(suite.client)
    held = []
    for _ in range(PORTS):
        sock = suite.server.raw_socket()
        sock.sendall(("GET %s:8080/proxy/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % (POD, cluster.ADMIN_TOKEN)).encode())
        held.append(sock)
    suite.probe()
    for sock in held:
        sock.close()


def many_streams(suite):
    """Each is a connection, not a thread."""
    held = [websocket(suite.server, POD + "/portforward?ports=8080") for _ in range(PORTS)]
    held += [websocket(suite.server, POD + "/exec?stdout=true&stdin=true&command=sleep&command=9999") for _ in range(COMMANDS)]
    logs = [suite.client.stream(POD + "/log?follow=true") for _ in range(LOGS)]
    for log in logs:
        if log.readline() != b"begun\n":
            raise Failure("a log does not begin with its first line")
    suite.probe()
    # The node, too, has threads for other things: another pod starts and goes.
    pods = "/api/v1/namespaces/default/pods"
    suite.client.expect(201, "POST", pods, {"metadata": {"name": "other"}, "spec": {
        "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"]}]}})
    cluster.wait_for(lambda: suite.client.get(pods + "/other").json["status"]["phase"] == "Running", 60, "another pod that runs")
    for name in ("other", "listener"):
        suite.client.expect(200, "DELETE", pods + "/" + name)
        cluster.wait_for(lambda: suite.client.get(pods + "/" + name).status == 404, 60, "the end of pod %s" % name)
    for sock in held:
        sock.close()
    for log in logs:
        log.hang_up()


if __name__ == "__main__":
    if not cluster.has_containers():
        print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay)")
        sys.exit(77)
    raise_file_limit()
    sys.exit(run([silent_backends, many_streams], flags=["--nodes", "1"], command="up"))
