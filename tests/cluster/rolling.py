#!/usr/bin/env python3
"""Everything is restarted, one after another, under load, and no request is lost that a client retries as client-go does.

    rolling.py [--store etcd|sqlite] [--rounds N] [--clients N]

API servers (two on an etcd of three members, one on SQLite), two schedulers, two pairs of controllers, two agents and the members of etcd are ended
by SIGTERM and started again by turns, each when the one before is back. Meanwhile clients create, read, update and delete objects, each on a connection that it keeps. They do what client-go does, and no more:
  - a connection that is refused is tried again, at another server where there is one;
  - an answer of 429 or 5xx with Retry-After is waited for;
  - on a connection that breaks, a GET is sent again; anything else would be lost, and the test has failed.
A watch that ends goes on at another server from the last version it saw; it must see every object come exactly once. Pods that are created
meanwhile all run in the end. A server that ends says so on /readyz first, and goes on serving for --shutdown-delay-duration.

Beside them client-go itself does the same (../clients/go/roll.go), with an informer that must show every change once, where Go is installed.
"""
import argparse
import http.client
import json
import os
import random
import select
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../chaos", "../clients"):
    sys.path.insert(0, os.path.join(HERE, folder))
sys.dont_write_bytecode = True
import etcd  # noqa: E402
import run as clients  # noqa: E402
from parts import Part, cluster, persist  # noqa: E402

DELAY = 3  # seconds of --shutdown-delay-duration
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
RETRIES = 300


class Lost(Exception):
    """A request that client-go would have told its caller the failure of."""


class Goer:
    """One client, as client-go with one connection."""

    def __init__(self, servers, seed):
        self.servers, self.chance = servers, random.Random(seed)
        self.connection, self.retried = None, 0

    def connect(self):
        for server in self.chance.sample(self.servers, len(self.servers)):
            connection = http.client.HTTPSConnection(server.host, server.port, timeout=60, context=server.context())
            try:
                connection.connect()
            except (ConnectionRefusedError, ConnectionResetError):
                continue
            self.connection = connection
            return True
        return False

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def request(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + cluster.ADMIN_TOKEN, "Content-Type": "application/json"}
        for _ in range(RETRIES):
            # Go reads idle connections and so knows when the server has closed one.
            if self.connection and select.select([self.connection.sock], [], [], 0)[0]:
                self.close()
            if self.connection is None and not self.connect():
                self.retried += 1
                time.sleep(0.1)
                continue
            try:
                self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
                answer = self.connection.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if method != "GET":
                    raise Lost("%s %s: %r" % (method, path, error))
                self.retried += 1
                continue
            if answer.will_close:
                self.close()
            if (answer.status == 429 or answer.status >= 500) and answer.headers.get("Retry-After"):
                self.retried += 1
                self.close()  # client-go keeps it; another server is found sooner so
                time.sleep(min(0.2, float(answer.headers["Retry-After"])))
                continue
            return answer.status, json.loads(data)
        raise Lost("%s %s: no answer after %d tries" % (method, path, RETRIES))


class Load:
    def __init__(self, servers, clients):
        self.servers, self.ending = servers, False
        self.created, self.problems, self.requests, self.retried = set(), [], 0, 0
        self.seen, self.watches = set(), 0
        self.mutex = threading.Lock()
        _, first = Goer(servers, 0).request("GET", MAPS)
        self.version = first["metadata"]["resourceVersion"]
        self.threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(clients)]
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        for thread in self.threads + [self.watcher]:
            thread.start()

    def work(self, number):
        client, turn = Goer(self.servers, number), 0
        try:
            while not self.ending:
                name = "c%d-%d" % (number, turn)
                turn += 1
                thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"turn": "1"}}
                self.expect(client, (201,), "POST", MAPS, thing)
                with self.mutex:
                    self.created.add(name)
                read = self.expect(client, (200,), "GET", MAPS + "/" + name)
                read["data"]["turn"] = "2"
                self.expect(client, (200,), "PUT", MAPS + "/" + name, read)
                again = self.expect(client, (200,), "GET", MAPS + "/" + name)
                if again["data"]["turn"] != "2":
                    raise Lost("%s: an older state was read than was written" % name)
                if turn % 2:
                    self.expect(client, (200,), "DELETE", MAPS + "/" + name)
        except Lost as lost:
            self.problems.append("client %d: %s" % (number, lost))
        with self.mutex:
            self.retried += client.retried

    def expect(self, client, good, method, path, body=None):
        status, answer = client.request(method, path, body)
        with self.mutex:
            self.requests += 1
        if status not in good:
            raise Lost("%s %s: %d %s" % (method, path, status, answer.get("message")))
        return answer

    def watch(self):
        turn = 0
        while not (self.ending and self.created <= self.seen):
            server = self.servers[turn % len(self.servers)]
            turn += 1
            connection = http.client.HTTPSConnection(server.host, server.port, timeout=20, context=server.context())
            opened = False
            try:
                connection.request("GET", "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=10&resourceVersion=%s" % (MAPS, self.version),
                                   headers={"Authorization": "Bearer " + cluster.ADMIN_TOKEN})
                answer = connection.getresponse()
                if answer.status != 200:
                    answer.read()
                    time.sleep(0.1)
                    continue
                self.watches += 1
                opened = True
                for line in answer:
                    self.take(json.loads(line))
            except (OSError, http.client.HTTPException) as error:
                # Refused while it restarts, or closed before the request was read, as idle connections are; but a watch that was open must end, not break.
                if opened or not isinstance(error, (ConnectionRefusedError, ConnectionResetError, http.client.RemoteDisconnected)):
                    self.problems.append("a watch broke: %r" % error)
                time.sleep(0.05)
            finally:
                connection.close()

    def take(self, event):
        if event["type"] == "ERROR":
            self.problems.append("watch: %s" % event["object"])
            return
        self.version = event["object"]["metadata"]["resourceVersion"]
        name = event["object"]["metadata"].get("name")
        if event["type"] == "ADDED":
            if name in self.seen:
                self.problems.append("%s came twice" % name)
            self.seen.add(name)

    def end(self):
        self.ending = True
        for thread in self.threads:
            thread.join(60)
        self.watcher.join(60)
        unseen = self.created - self.seen
        if unseen:
            self.problems.append("the watch missed %s" % sorted(unseen)[:5])


class ClientGo:
    """client-go at work on all servers until end()."""

    def __init__(self, program, servers):
        with servers[0].client() as client:
            client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "client-go"}})
        self.process = subprocess.Popen(program + ["roll", "client-go", ",".join("%s:%d" % (s.host, s.port) for s in servers)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr,
                                        env=dict(os.environ, KUBECONFIG=servers[0].kubeconfig), preexec_fn=cluster.die_with_parent)
        if self.process.stdout.readline() != b"ready\n":
            raise cluster.Failure("client-go did not begin")

    def end(self):
        text = self.process.communicate(timeout=120)[0]
        done = json.loads(text or b"null")
        if self.process.returncode or not done:
            raise cluster.Failure("client-go did not come to its end: exit status %d" % self.process.returncode)
        if done["Problems"] or not done["Deleted"]:
            raise cluster.Failure("client-go: %s" % "\n".join((done["Problems"] or ["it did nothing"])[:20]))
        print("client-go: %d requests, %d of them sent again by itself, %d connections refused; %d objects came and %d went, each seen once" %
              (done["Requests"], done["Sent"] - done["Requests"], done["Refused"], done["Added"], done["Deleted"]))


def end_server(server):
    """SIGTERM; it must say that it ends, and still serve, before it does."""
    server.signal(15)
    red = served = 0
    deadline = time.monotonic() + cluster.STOP_DEADLINE
    while server.alive() and time.monotonic() < deadline:
        try:
            with server.client(timeout=5) as client:
                answer = client.get("/readyz")
                if answer.status == 500 and b"shutdown failed: process is shutting down" in answer.data:
                    red += 1
                    if answer.headers.get("Connection") != "close":
                        raise cluster.Failure("an answer of a server that ends keeps the connection")
                if red and client.get("/api/v1/namespaces/default").status == 200:
                    served += 1
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.02)
    if not red or not served:
        raise cluster.Failure("a server that ended said so %d times and served %d times" % (red, served))
    if server.process.wait(10) != 0:
        raise cluster.Failure("the server ended with status %d\n%s" % (server.process.returncode, server.log_tail()))
    server.process.stdout.close()
    server.process = None
    server.check_log()
    server.start()


def end_member(member):
    """SIGTERM; the others go on without it until it is a member in good health again."""
    member.end()
    member.start()
    member.wait_ready()


def roll(servers, parts, members, load, rounds):
    made = []
    admin = Goer(servers, 99)
    for _ in range(rounds):
        for thing in servers + parts + members:
            name = "pod-%d" % len(made)
            made.append(name)
            status, answer = admin.request("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
                "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"]}]}})
            if status != 201:
                raise cluster.Failure("%s: %d %s" % (name, status, answer))
            if isinstance(thing, cluster.Server):
                end_server(thing)
            elif isinstance(thing, etcd.Member):
                end_member(thing)
            else:
                thing.stop()
                thing.start()
            time.sleep(0.3)
            if load.problems:
                raise cluster.Failure("\n".join(load.problems[:5]))
    return made


def run(store_flags, members, count, args, client_go):
    servers, parts, goes = [], [], None
    first = None
    flags = ["--shutdown-delay-duration", "%ds" % DELAY] + store_flags
    try:
        for number in range(count):
            server = cluster.Server(flags)
            server.write_tokens([("node-" + n, "system:node:" + n, ["system:nodes"]) for n in ("a", "b")])
            if first:
                keys = cluster.subprocess.run([cluster.binary(), "pki", "export", "--data-dir", first.data], capture_output=True, check=True)
                cluster.subprocess.run([cluster.binary(), "pki", "import", "--data-dir", server.data], input=keys.stdout, check=True,
                                       stdout=cluster.subprocess.DEVNULL)
            first = first or server
            servers.append(server)
            server.start()
        for number in range(2):
            at = servers[number % count]
            # Who leads must outlast the end of its server, and what that has under way at a member of etcd that has just ended.
            fast = ["--leader-elect-lease-duration", "12s", "--leader-elect-renew-deadline", "10s", "--leader-elect-retry-period", "500ms"]
            parts.append(Part(at, "scheduler", *fast, name="scheduler-%d" % number))
            parts.append(Part(at, "controllers", *fast, name="controllers-%d" % number))
            node = "ab"[number]
            root = os.path.join(at.folder, "n" + node)
            parts.append(Part(at, "node", "--name", node, "--root-dir", root, "--runtime", "sim", "--port", "0", "--address", "127.0.0.1", "--eviction-hard", "",
                              "--node-ip", "127.0.0.1", "--image-alias", cluster.ALIASES, "--cdi-dirs", os.path.join(root, "cdi"), name="node-" + node))
        with first.client() as client:
            cluster.wait_for(lambda: len(persist(client, "GET", "/api/v1/nodes").json["items"]) == 2, 60, "nodes")
            cluster.wait_for(lambda: persist(client, "GET", "/api/v1/namespaces/default/serviceaccounts/default", also=(404,)).status == 200, 60, "account")
        goes = ClientGo(client_go, servers) if client_go else None
        load = Load(servers, args.clients)
        began = time.monotonic()
        made = roll(servers, parts, members, load, args.rounds)
        seconds = time.monotonic() - began

        def all_run():
            with first.client() as client:
                phases = {p["metadata"]["name"]: p["status"].get("phase") for p in persist(client, "GET", PODS).json["items"]}
            return all(phases.get(name) == "Running" for name in made)
        cluster.wait_for(all_run, 90, "all pods run", interval=0.3)
        load.end()
        if load.problems:
            raise cluster.Failure("\n".join(load.problems[:20]))
        if goes:
            goes.end()
        print("%d servers, %d parts, %d members of etcd, %d rounds in %.0f s: %d requests, %d retried, none lost; %d objects in %d watches; %d pods" %
              (count, len(parts), len(members), args.rounds, seconds, load.requests, load.retried, len(load.seen), load.watches, len(made)))
        for part in reversed(parts):
            part.stop()
        for server in servers:
            server.stop()
    except BaseException:
        for part in parts:
            sys.stderr.write("--- %s\n%s\n" % (part.log, part.said()[-1500:]))
        for server in servers:
            sys.stderr.write("--- server\n%s\n" % server.log_tail())
        raise
    finally:
        if goes and goes.process.poll() is None:
            goes.process.kill()
            goes.process.wait()
        for part in parts:
            part.kill()
        for server in servers:
            server.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="etcd", choices=("etcd", "sqlite"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--clients", type=int, default=6)
    args = parser.parse_args()
    if args.store == "etcd" and not etcd.program():
        print(etcd.MISSING)
        return 77
    try:
        client_go = clients.prepare_go("go-" + args.store)
    except clients.Missing as missing:
        print("client-go: left out, %s" % missing)
        client_go = None
    if args.store == "sqlite":
        run([], [], 1, args, client_go)
        return 0
    with etcd.Etcd(3) as store:
        run(store.server_flags(), store.members, 2, args, client_go)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
