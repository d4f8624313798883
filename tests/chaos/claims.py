#!/usr/bin/env python3
"""Two API servers on one etcd of three members, two schedulers on each, all of them killed while thousands of claims are allocated.

    claims.py [--claims N] [--phase N] [--elect] [--seed S]

In every phase so many claims and pods are made as there are devices, through both servers, while schedulers, servers and members of etcd are
killed (SIGKILL) and stopped by turns. All schedulers are at work at once, without leader election unless --elect, so they do give out the same
device at the same time: it is the servers that must not let it pass. After every phase it must hold that
  - by etcd's own history no device was in two claims at any revision, and both servers' watches say the same;
  - every claim is allocated, reserved for its pod alone, and the pod is bound to the node of its device.
Then all are deleted, and the next phase takes the same devices.
"""
import argparse
import concurrent.futures
import json
import os
import random
import sys
import time

sys.dont_write_bytecode = True
from ledger import SCHEDULER_CONFIG, Book, Ledger, make_node  # noqa: E402
from parts import Part, cluster, persist  # noqa: E402
from scheduler import CLAIMS, DRIVER, PODS, RESOURCE, devices_of  # noqa: E402
import etcd  # noqa: E402
import shared  # noqa: E402

PER_NODE, THREADS = 20, 16
PATIENCE = 600
LEAST = 5  # times that something is harmed in each phase
FOLDER = "/registry/resourceclaims/"


class EtcdBook(Book):
    """The same from etcd's own history."""

    def __init__(self, store):
        super().__init__()
        self.store, self.next, self.uids, self.changes = store, 1, {}, 0

    def read_on(self):
        for revision, key, value in self.store.history(FOLDER, self.next):
            self.next, self.changes = revision + 1, self.changes + 1
            if value is None:
                self.enter(self.uids.pop(key), key, [], revision)
                continue
            claim = json.loads(value)
            self.uids[key] = claim["metadata"]["uid"]
            self.enter(claim["metadata"]["uid"], key, devices_of(claim), revision)


def set_up(client, nodes):
    persist(client, "POST", RESOURCE + "/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "chaos"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == '%s'" % DRIVER}}]}})
    for n in range(nodes):
        name = "node-%d" % n
        make_node(client, name)
        persist(client, "POST", RESOURCE + "/resourceslices", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name + "-slice"},
            "spec": {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                     "devices": [{"name": "dev-%d" % d} for d in range(PER_NODE)]}}, also=(409,))


class Maker:
    """Makes claims and their pods, through whichever server."""

    def __init__(self, servers, names):
        self.servers = servers
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        self.futures = [self.pool.submit(self.make, names[n::THREADS], random.Random(n)) for n in range(THREADS)]

    def make(self, names, chance):
        clients = [server.client() for server in self.servers]
        for name in names:
            self.post(clients, chance, CLAIMS, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {
                "devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "chaos"}}]}}})
            self.post(clients, chance, PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
                "resourceClaims": [{"name": "d", "resourceClaimName": name}],
                "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "d"}]}}]}})

    @staticmethod
    def post(clients, chance, path, body):
        persist(chance.choice(clients), "POST", path, body, also=(409,))

    def done(self):
        return all(f.done() and (f.result() or True) for f in self.futures)


def not_right(client, names):
    """None, or what is not yet right."""
    pods = {p["metadata"]["name"]: p for p in persist(client, "GET", PODS).json["items"]}
    claims = {c["metadata"]["name"]: c for c in persist(client, "GET", CLAIMS).json["items"]}
    if set(pods) != set(names) or set(claims) != set(names):
        return "%d pods and %d claims instead of %d" % (len(pods), len(claims), len(names))
    waiting = [n for n in names if not devices_of(claims[n]) or not pods[n]["spec"].get("nodeName")]
    if waiting:
        one = waiting[0]
        return "%d of %d wait, among them %s: %s, claim %s" % (len(waiting), len(names), one, pods[one]["status"].get("conditions"),
                                                               json.dumps(claims[one].get("status")))
    for name in names:
        node, claim = pods[name]["spec"]["nodeName"], claims[name]
        if [d[1] for d in devices_of(claim)] != [node]:
            return "pod %s is on %s and its device is %s" % (name, node, devices_of(claim))
        if [r["uid"] for r in claim["status"].get("reservedFor", [])] != [pods[name]["metadata"]["uid"]]:
            return "the claim of pod %s is reserved for %s" % (name, claim["status"].get("reservedFor"))
    return None


def settle(parts, condition, what):
    """Until there is no problem any more, with nothing killed."""
    end = time.monotonic() + PATIENCE
    while problem := condition():
        if time.monotonic() > end:
            raise cluster.Failure("%s: %s" % (what, problem))
        for part in parts:
            part.keep()
        time.sleep(0.3)


def remove_all(servers, parts, names):
    def remove(some, client):
        for name in some:
            for path in (PODS + "/" + name + "?gracePeriodSeconds=0", CLAIMS + "/" + name):
                persist(client, "DELETE", path, also=(404,))
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(remove, names[n::THREADS], servers[n % len(servers)].client()) for n in range(THREADS)]:
            future.result()
    client = servers[0].client()

    def left():
        counts = [len(persist(client, "GET", path).json["items"]) for path in (PODS, CLAIMS)]
        return any(counts) and "%d pods and %d claims are left" % tuple(counts)
    settle(parts, left, "after deleting all")


def disturb(maker, ledger, wanted, disturber, schedulers, chance):
    """Harms something again and again, some times at least, until all are made and most are allocated."""
    killed, harmed, end = 0, 0, time.monotonic() + PATIENCE
    while not (maker.done() and harmed >= LEAST and ledger.holders() >= 0.9 * wanted):
        harmed += 1
        if time.monotonic() > end:
            raise cluster.Failure("only %d of %d claims were allocated after %d s with %s" % (ledger.holders(), wanted, PATIENCE, disturber))
        if chance.random() < 0.5:
            part = chance.choice(schedulers)
            part.kill()
            part.start()
            killed += 1
        else:
            disturber.harm()
        for part in schedulers:
            part.keep()
        time.sleep(chance.uniform(0.5, 3))
    return killed


class Holders(Ledger):
    def holders(self):
        return len(self.owner)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=int, default=120)
    parser.add_argument("--phase", type=int, default=60, help="claims of a phase; so many devices there are")
    parser.add_argument("--elect", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if shared.missing():
        return 77
    chance, began = random.Random(args.seed), time.monotonic()
    with etcd.Etcd(3) as store, shared.servers(store) as servers:
        config = os.path.join(store.folder, "scheduler.yaml")
        with open(config, "w") as f:
            f.write(SCHEDULER_CONFIG)
        set_up(servers[0].client(), args.phase // PER_NODE)
        schedulers = [Part(server, "scheduler", *(("--config", config) if args.elect else ("--leader-elect", "false")),
                           name="scheduler-%d" % n) for server in servers for n in range(2)]
        controllers = Part(servers[0], "controllers", "--node-monitor-grace-period", "24h")
        parts = schedulers + [controllers]
        with servers[0].client() as client:
            cluster.wait_for(lambda: client.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, PATIENCE,
                             "the namespace is set up")
        disturber = shared.Disturber(store, servers, args.seed)
        book, ledgers = EtcdBook(store), [Holders(server, RESOURCE, devices_of) for server in servers]
        killed, made = 0, 0
        try:
            while made < args.claims:
                names = ["c%d" % n for n in range(made, made + args.phase)]
                killed += disturb(Maker(servers, names), ledgers[0], len(names), disturber, schedulers, chance)
                disturber.settle()
                settle(parts, lambda: not_right(servers[0].client(), names), "phase from %d on" % made)
                made += len(names)
                book.read_on()
                report(made, book, killed, disturber, began)
                check(book, ledgers)
                remove_all(servers, parts, names)
            book.read_on()
            check(book, ledgers)
        finally:
            for ledger in ledgers:
                ledger.stop()
        for part in parts:
            part.stop()
    return 0


def report(made, book, killed, disturber, began):
    print("%d claims allocated after %.0f s, %d changes of claims, %d allocations, %d schedulers killed, %s" %
          (made, time.monotonic() - began, book.changes, book.allocations, killed, disturber), flush=True)


def check(book, ledgers):
    for one in [book] + ledgers:
        one.judge()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
