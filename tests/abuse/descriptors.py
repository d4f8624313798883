#!/usr/bin/env python3
"""File descriptors: a client that opens more connections than there are descriptors stops nobody."""
import resource
import socket
import sys
import time

from connections import HEAD, read_answer, status_of
from silent import silent_node
from suite import CONFIGMAPS, Failure, cluster, run

HARD = 600


def raises_its_limit(suite):
    """The soft limit it was started with is not the one it lives with."""
    with open("/proc/%d/limits" % suite.server.process.pid) as f:
        line = next(line for line in f if line.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    if soft != hard or int(hard) != HARD:
        raise Failure("open files: %s" % line.strip())


def idle_connections(suite):
    """More silent connections than one address may have: the oldest of them make room for whoever asks."""
    silent = []
    try:
        for i in range(500):
            try:
                silent.append(socket.create_connection((suite.server.host, suite.server.port), timeout=10))
            except OSError:
                time.sleep(0.1)  # the backlog is full; what follows must be served all the same
            if i in (200, 300, 499):
                time.sleep(2.5)  # longer than a handshake may take before it counts as slow
                suite.probe()
        for _ in range(10):
            suite.probe()
        if suite.server.open_files() > HARD * 3 // 4:
            raise Failure("%d descriptors are in use, a quarter was to stay free" % suite.server.open_files())
    finally:
        for sock in silent:
            sock.close()
    cluster.wait_for(lambda: suite.server.open_files() < 150, 60, "the connections to be given back")


def open_watches(suite):
    """Connections that do something are kept; over the bound new ones are turned away, and one that ends makes room."""
    watches = []
    try:
        refused = 0
        for _ in range(400):
            try:
                sock = suite.server.raw_socket(timeout=10)
                sock.sendall(("GET %s?watch=true HTTP/1.1\r\n%s\r\n" % (CONFIGMAPS, HEAD)).encode())
                if status_of(read_answer(sock, 10)) != 200:
                    raise OSError("turned away")
                watches.append(sock)
            except OSError:
                refused += 1
                if refused == 20:
                    break
        if refused < 20 or len(watches) < 100:
            raise Failure("%d watches are open, %d were turned away" % (len(watches), refused))
        if suite.server.open_files() > HARD * 3 // 4:
            raise Failure("%d descriptors are in use, a quarter was to stay free" % suite.server.open_files())
        for sock in watches[:50]:
            sock.close()
        del watches[:50]
        cluster.wait_for(lambda: suite.server.open_files() < 400, 30, "closed watches to be given back")
        suite.probe()
    finally:
        for sock in watches:
            sock.close()
    cluster.wait_for(lambda: suite.server.open_files() < 150, 60, "the watches to be given back")


def silent_openings(suite):
    """Requests that wait for a node take a second descriptor each: the last ones stay for the server, and who connects is served."""
    admin = suite.client
    admin.expect(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    listener = silent_node(admin)
    admin.expect(201, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": {
        "nodeName": "silent", "containers": [{"name": "c", "image": "i"}]}})
    held = []
    try:
        # From several addresses, since each may have a share of the connections only.
        for i in range(420):
            try:
                plain = socket.create_connection((suite.server.host, suite.server.port), timeout=10, source_address=("127.0.0.%d" % (2 + i % 3), 0))
                sock = suite.server.context().wrap_socket(plain, server_hostname="localhost")
            except OSError:
                continue
            sock.sendall(("GET /api/v1/namespaces/default/pods/p/log HTTP/1.1\r\n%s\r\n" % HEAD).encode())
            held.append(sock)
        for _ in range(5):
            suite.probe()
        if not 400 < suite.server.open_files() <= HARD * 15 // 16 + 20:
            raise Failure("%d of %d descriptors are in use" % (suite.server.open_files(), HARD))
    finally:
        for sock in held:
            sock.close()
        listener.close()
    cluster.wait_for(lambda: suite.server.open_files() < 150, 60, "what waited to be given up")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (HARD - 50, HARD))  # the server inherits it
    sys.exit(run([raises_its_limit, idle_connections, open_watches, silent_openings]))
