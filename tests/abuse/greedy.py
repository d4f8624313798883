#!/usr/bin/env python3
"""One client with hundreds of connections: he waits behind himself and is told to come back later; everybody else is served."""
import multiprocessing
import selectors
import socket
import ssl
import sys
import threading
import time

from suite import Failure, raise_file_limit, run

CONNECTIONS = 500
OBJECTS = 1000
SECONDS = 6
# On a machine that others use too; without fairness an innocent client waits for all lists before his.
SLOWEST = 2.5
GREEDY, JANE, NODE = "token-of-the-greedy", "token-of-jane", "token-of-a-node"
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "delete"]}]
MAPS = "/api/v1/namespaces/shared/configmaps"


def prepare(suite):
    suite.client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "shared"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/shared/"
    suite.client.expect(201, "POST", rbac + "roles", {"metadata": {"name": "user"}, "rules": RULES})
    suite.client.expect(201, "POST", rbac + "rolebindings", {
        "metadata": {"name": "user"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name} for name in ("greedy", "jane")]})
    for number in range(OBJECTS):
        suite.client.expect(201, "POST", MAPS, {"metadata": {"name": "m-%d" % number}, "data": {"k": "x" * 1000}})


class Greedy:
    """Connections that send a list again as soon as the last one is answered."""

    def __init__(self, server):
        self.statuses, self.retry_after, self.soonest = {}, 0, 60
        # All objects are looked at, and none is sent: costly for the server, cheap for the client.
        request = "GET %s?labelSelector=no=such HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n\r\n" % (MAPS, GREEDY)
        self.request = request.encode()
        self.selector = selectors.DefaultSelector()
        self.sockets = []
        for _ in range(CONNECTIONS):
            plain = socket.create_connection((server.host, server.port), timeout=60)
            self.sockets.append(server.context().wrap_socket(plain, server_hostname="localhost"))

    def run(self, ending):
        """Until somebody sets the event."""
        for one in self.sockets:
            one.sendall(self.request)
            one.setblocking(False)
            self.selector.register(one, selectors.EVENT_READ, {"left": 0, "head": b"", "sent": time.monotonic()})
        while not ending.is_set():
            for key, _ in self.selector.select(0.1):
                try:
                    self.read(key.fileobj, key.data)
                except ssl.SSLWantReadError:
                    pass
                except OSError:
                    self.selector.unregister(key.fileobj)
        return self.statuses, self.retry_after, self.soonest

    def read(self, sock, state):
        while True:
            data = sock.recv(1 << 16)
            if not data:
                raise ConnectionError("closed")
            if state["left"] == 0:
                state["head"] += data
                head, found, rest = state["head"].partition(b"\r\n\r\n")
                if not found:
                    continue
                status = int(head.split(b" ", 2)[1])
                self.statuses[status] = self.statuses.get(status, 0) + 1
                lower = head.lower()
                if status == 429:
                    self.retry_after += b"\r\nretry-after: " in lower
                    self.soonest = min(self.soonest, time.monotonic() - state["sent"])
                state["left"] = int(lower.split(b"content-length: ")[1].split(b"\r\n")[0]) - len(rest)
                state["head"] = b""
            else:
                state["left"] -= len(data)
            if state["left"] == 0:
                # At once, whatever the server asked for.
                sock.sendall(self.request)
                state["sent"] = time.monotonic()


def be_greedy(server, ending, pipe):
    greedy = Greedy(server)
    pipe.send("connected")
    pipe.send(greedy.run(ending))


def slowest(server, token, seconds, work):
    """The worst of many requests, one after the other, and how many there were."""
    times = []
    with server.client(token=token, timeout=60) as client:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            work(client, len(times))
            times.append(time.monotonic() - began)
            time.sleep(0.02)
    times.sort()
    return times[int(len(times) * 0.99)] if len(times) > 100 else times[-1], len(times)


def one_client_with_many_connections(suite):
    prepare(suite)
    raise_file_limit()
    # In a process of its own, so that only the server is shared.
    ending, (pipe, other_end) = multiprocessing.Event(), multiprocessing.Pipe()
    process = multiprocessing.Process(target=be_greedy, args=(suite.server, ending, other_end), daemon=True)
    process.start()
    pipe.recv()
    time.sleep(0.5)
    found = {}

    def create(client, number):
        client.expect(201, "POST", MAPS, {"metadata": {"name": "jane-%d" % number}})

    def get(client, _):
        client.expect(200, "GET", MAPS + "/m-1")

    def lease(client, number):
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        body = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n", "leaseDurationSeconds": 40 + number}}
        if number == 0:
            client.expect(201, "POST", path, body)
        else:
            client.expect(200, "PATCH", path + "/n", body, headers={"Content-Type": "application/merge-patch+json"})

    def admin(client, _):
        client.expect(200, "GET", "/api/v1/namespaces?limit=5")

    innocents = {"a create of jane": (JANE, create), "a get of jane": (JANE, get), "a lease of a node": (NODE, lease), "the administrator": (None, admin)}

    def measure(name, token, work):
        try:
            found[name] = slowest(suite.server, token or suite.client.token, SECONDS, work)
        except Exception as problem:
            found[name] = problem
    threads = [threading.Thread(target=measure, args=(name,) + what) for name, what in innocents.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ending.set()
    statuses, told_when, soonest = pipe.recv()
    process.join(10)
    print("  the greedy client: %s" % statuses)
    for name, outcome in found.items():
        if isinstance(outcome, Exception):
            raise Failure("%s: %s" % (name, outcome))
        print("  %s: p99 %.0f ms of %d" % (name, outcome[0] * 1000, outcome[1]))
        if outcome[0] > SLOWEST:
            raise Failure("%s took %.1f s beside %d greedy connections" % (name, outcome[0], CONNECTIONS))
    if not statuses.get(429) or told_when != statuses[429]:
        raise Failure("nobody told the greedy client to come back later: %s" % statuses)
    if soonest < 0.2:
        raise Failure("a refusal came after %.0f ms: who asks again at once keeps the server busy with them" % (soonest * 1000))
    if not statuses.get(200):
        raise Failure("the greedy client got nothing at all: %s" % statuses)


if __name__ == "__main__":
    sys.exit(run([one_client_with_many_connections],
                 tokens=[(GREEDY, "greedy", []), (JANE, "jane", []), (NODE, "system:node:n", ["system:nodes"])]))
