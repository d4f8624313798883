"""Random operations from many clients at once on a few objects, recorded, with watches beside them; and what must be true of all of it.

Every request goes to a server picked by chance, where there are several; so does every watch, each time it begins again.
"""
import http.client
import json
import random
import threading
import time

import linear
from history import Checker, Event, Operation, check_stream
from parts import cluster
import verdict

NAMESPACE = "chaos"
NAMES = ["c0", "c1", "c2", "c3"]
PATH = "/api/v1/namespaces/%s/configmaps" % NAMESPACE
KINDS = ["create"] * 4 + ["update"] * 5 + ["update-at"] * 5 + ["patch"] * 5 + ["patch-test"] * 3 + ["delete", "delete-at"] + \
    ["get"] * 6 + ["get-any", "list", "list"]
BROKEN = (OSError, http.client.HTTPException, ValueError)
PATIENCE = 60


def is_ours(item):
    return item["metadata"]["name"] in NAMES


class Worker(threading.Thread):
    """One client: does operations until its share is done or it is told to stop."""

    def __init__(self, load, number):
        super().__init__(daemon=True)
        self.load, self.number = load, number
        self.random = random.Random("%s/%d" % (load.seed, number))
        self.operations, self.known, self.count = [], {}, 0
        self.error = None

    def run(self):
        try:
            clients = [server.client(timeout=PATIENCE) for server in self.load.servers]
            while self.load.wants_more():
                self.load.running.wait(PATIENCE)
                self.one(self.random.choice(clients))
            for client in clients:
                client.close()
        except Exception as error:  # reported by the main thread
            self.error = error

    def one(self, client):
        kind, name = self.random.choice(KINDS), self.random.choice(NAMES)
        version, token = self.known.get(name, (None, None))
        if version is None and kind in ("update-at", "delete-at", "patch-test"):
            kind = "get"
        self.count += 1
        basis = {"update-at": version, "delete-at": version, "patch-test": token}.get(kind)
        op = Operation(kind, name, "w%d-%d" % (self.number, self.count), basis, expected=token if basis else None)
        self.operations.append(op)
        self.send(op, client)

    def send(self, op, client):
        method, path, body, headers = self.request(op)
        op.start = time.monotonic()
        try:
            answer = client.request(method, path, body, headers=headers)
        except ConnectionRefusedError:
            self.operations.pop()  # nobody was there: it did not happen
            time.sleep(0.02)
            return
        except BROKEN:
            return  # the answer is lost: the operation may or may not have happened
        if answer.status == 503 and b"the server is starting" in answer.data:
            self.operations.pop()
            time.sleep(0.02)
            return
        if answer.status >= 500 and self.load.shared:
            op.failed = answer.status  # the store may have done it all the same, perhaps later
            time.sleep(0.02)
            return
        op.end, op.status = time.monotonic(), answer.status
        self.read(op, answer)

    def request(self, op):
        path, body = PATH + "/" + op.name, None
        meta = {"name": op.name, "labels": {"object": op.name}}
        if op.kind == "create":
            return "POST", PATH, {"metadata": meta, "data": {"token": op.token}}, None
        if op.kind in ("update", "update-at"):
            if op.basis:
                meta["resourceVersion"] = str(op.basis)
            return "PUT", path, {"metadata": meta, "data": {"token": op.token}}, None
        if op.kind == "patch":
            return "PATCH", path, {"data": {"token": op.token}}, {"Content-Type": "application/merge-patch+json"}
        if op.kind == "patch-test":
            body = [{"op": "test", "path": "/data/token", "value": op.basis},
                    {"op": "replace", "path": "/data/token", "value": op.token}]
            return "PATCH", path, body, {"Content-Type": "application/json-patch+json"}
        if op.kind == "delete-at":
            body = {"preconditions": {"resourceVersion": str(op.basis)}}
        if op.kind.startswith("delete"):
            return "DELETE", path, body, None
        if op.kind == "list":
            return "GET", PATH, None, None
        return "GET", path + ("?resourceVersion=0" if op.kind == "get-any" else ""), None, None

    def read(self, op, answer):
        if answer.status not in (200, 201):
            if answer.status == 404:
                self.known.pop(op.name, None)
            elif op.kind in ("update-at", "patch-test", "delete-at"):
                self.known.pop(op.name, None)
            return
        body = answer.json
        if op.kind == "list":
            op.version = int(body["metadata"]["resourceVersion"])
            op.items = {item["metadata"]["name"]: (int(item["metadata"]["resourceVersion"]), item["data"]["token"])
                        for item in body["items"] if is_ours(item)}
            self.known = dict(op.items)
        elif op.kind.startswith("delete"):
            op.uid = body["details"]["uid"]
            self.known.pop(op.name, None)
        else:
            op.version = int(body["metadata"]["resourceVersion"])
            op.seen = body["data"]["token"]
            if op.kind != "get-any":
                self.known[op.name] = (op.version, op.seen)


class Watcher(threading.Thread):
    """A watch that begins again, where it was, whenever it breaks."""

    def __init__(self, load, path, start, selects, servers=None):
        super().__init__(daemon=True)
        self.servers = servers or load.servers
        self.load, self.path, self.version, self.selects = load, path, start, selects
        self.events, self.problems, self.resumed = [], [], 0
        self.ending = False

    def run(self):
        while not self.ending:
            self.load.running.wait(PATIENCE)
            try:
                client = random.choice(self.servers).client(timeout=PATIENCE)
                answer = client.stream("%s%swatch=true&allowWatchBookmarks=true&resourceVersion=%d" %
                                       (self.path, "&" if "?" in self.path else "?", self.version))
                if answer.status != 200:
                    if answer.status < 500:
                        self.problems.append("watch %s was refused: %d" % (self.path, answer.status))
                        return
                    answer.hang_up()
                    time.sleep(0.05)
                    continue
                self.resumed += 1
                for line in answer:
                    if not line.endswith(b"\n"):
                        break  # cut off by a crash
                    self.take(json.loads(line))
                    if self.ending:
                        break
                answer.hang_up()
            except BROKEN:
                time.sleep(0.02)

    def take(self, event):
        if event["type"] == "ERROR":
            self.problems.append("watch %s got an error: %s" % (self.path, event["object"]))
            self.ending = True
            return
        meta = event["object"]["metadata"]
        version = int(meta["resourceVersion"])
        if event["type"] != "BOOKMARK" and meta.get("namespace") == NAMESPACE and meta["name"] in NAMES:
            self.events.append(Event(event["type"], meta["name"], version, event["object"]["data"]["token"], meta["uid"]))
        elif version < self.version:
            self.problems.append("watch %s went back from %d to %d" % (self.path, self.version, version))
        self.version = max(self.version, version)


class Load:
    """The clients and watches. `shared`: other servers write to the same store, and it may be out of reach."""

    def __init__(self, servers, args, shared=False):
        self.servers, self.shared, self.args, self.seed = servers, shared, args, args.seed
        self.running = threading.Event()  # clear while the server is down
        self.running.set()
        self.stopping = False
        self.workers = [Worker(self, n) for n in range(args.clients)]
        self.watchers = []

    def wants_more(self):
        return not self.stopping and self.count() < self.args.operations

    def operations(self):
        return [op for worker in self.workers for op in worker.operations]

    def begin(self):
        client = self.servers[0].client()
        client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.first = int(client.expect(200, "GET", PATH)["metadata"]["resourceVersion"])
        for path, selects in ((PATH, None), ("/api/v1/configmaps", None), (PATH + "?labelSelector=object%3Dc1", "c1"),
                              (PATH + "?fieldSelector=metadata.name%3Dc0", "c0")):
            for _ in range(2):
                self.watchers.append(Watcher(self, path, self.first, selects))
        for thread in self.watchers + self.workers:
            thread.start()

    def count(self):
        return sum(w.count for w in self.workers)

    def finish(self):
        deadline = time.monotonic() + 300
        for worker in self.workers:
            worker.join(max(0.1, deadline - time.monotonic()))
            if worker.is_alive():
                raise cluster.Failure("a client hangs: %s" % worker.operations[-1])
            if worker.error:
                raise cluster.Failure("a client failed: %r after %s" % (worker.error, worker.operations[-1] if worker.operations else "nothing"))
        # A last write that every watch must come to; it is one of the history too.
        last = Worker(self, len(self.workers))
        self.workers.append(last)
        client = self.servers[0].client()
        for name in NAMES:
            for kind in ("create", "update"):
                op = Operation(kind, name, "last-%s-%s" % (kind, name))
                last.operations.append(op)
                last.send(op, client)
                if op.status is None:
                    raise cluster.Failure("nothing is disturbed any more, but there is no answer to %s" % op)
        self.final = client.expect(200, "GET", PATH)
        for watcher in self.watchers:
            token = "last-update-" + (watcher.selects or NAMES[-1])
            try:
                cluster.wait_for(lambda: any(e.token == token for e in watcher.events[-1:]) or watcher.problems, PATIENCE, token)
            except cluster.Failure:
                watcher.problems.append("watch %s never came to %s; its last: %s" % (watcher.path, token, watcher.events[-1:]))
            watcher.ending = True

    def replay(self, server):
        """The whole history again, by a watch from the beginning."""
        watcher = Watcher(self, PATH, self.first, None, [server])
        watcher.start()
        cluster.wait_for(lambda: watcher.problems or (watcher.events and watcher.events[-1].token == "last-update-" + NAMES[-1]),
                         PATIENCE, "the replay of the history")
        watcher.ending = True
        return watcher

    def check(self):
        problems = []
        replay, *more = [self.replay(server) for server in self.servers]
        problems += replay.problems
        for watcher in self.watchers + more:
            problems += watcher.problems
            want = [e for e in replay.events if watcher.selects in (None, e.name)]
            for problem in check_stream(watcher.events)[:3]:
                problems.append("watch %s: %s" % (watcher.path, problem))
            if watcher.events != want:
                place = next((i for i, (a, b) in enumerate(zip(watcher.events, want)) if a != b), min(len(watcher.events), len(want)))
                problems.append("watch %s has %d events, the history %d; the first that differs: %s, expected %s" %
                                (watcher.path, len(watcher.events), len(want), watcher.events[place:place + 1], want[place:place + 1]))
        problems += Checker(self.operations(), replay.events).check()
        problems += linear.check(self.operations(), NAMES)
        items = {i["metadata"]["name"]: int(i["metadata"]["resourceVersion"]) for i in self.final["items"] if is_ours(i)}
        newest = {}
        for event in replay.events:
            newest[event.name] = event.version
        if items != newest:
            problems.append("at the end there is %s, expected %s" % (items, newest))
        problems += self.check_exact(replay.events)
        return problems

    def check_exact(self, events):
        """Lists at versions of the past show the past."""
        problems, client = [], self.servers[0].client()
        chance = random.Random(self.seed)
        for version in sorted(chance.sample([e.version for e in events], min(10, len(events)))):
            answer = client.get("%s?resourceVersion=%d&resourceVersionMatch=Exact&limit=500" % (PATH, version))
            want = {}
            for event in events:
                if event.version <= version:
                    if event.verb == "DELETED":
                        want.pop(event.name, None)
                    else:
                        want[event.name] = event.version
            got = {i["metadata"]["name"]: int(i["metadata"]["resourceVersion"]) for i in answer.json.get("items", []) if is_ours(i)}
            if answer.status != 200 or got != want:
                problems.append("a list at version %d shows %s, expected %s (%d)" % (version, got, want, answer.status))
        return problems

    def run(self, disturb=None):
        """Begins, disturbs until that is done (without it: until the operations are), ends. The problems."""
        self.begin()
        try:
            if disturb:
                disturb(self)
                self.stopping = True
            self.finish()
            return self.check()
        finally:
            self.stopping = True
            self.running.set()
            for watcher in self.watchers:
                watcher.ending = True

    def judge(self, problems):
        verdict.judge(problems, "; run again with --seed %s" % self.seed)

    def report(self, seconds):
        operations, events = self.operations(), self.watchers[0].events
        lost = [op for op in operations if op.status is None]
        tokens = {event.token for event in events}
        print("%d operations of %d clients in %.1f s: %d events, %d refused, %d answers lost (%d took effect), watches resumed %d times" %
              (len(operations), self.args.clients, seconds, len(events), sum(1 for op in operations if op.status in (404, 409, 422)),
               len(lost), sum(1 for op in lost if op.token in tokens), sum(w.resumed - 1 for w in self.watchers)), flush=True)
