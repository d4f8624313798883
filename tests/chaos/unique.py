#!/usr/bin/env python3
"""What only one object may have, given out by several API servers of one etcd at once: addresses and ports of Services, and room in a quota.

    unique.py [--requests N] [--harm N] [--clients N] [--seed S]

Clients create and delete Services on both servers at once, with addresses picked by the server out of a small range, and with addresses and
ports that they pick themselves out of a few, so that two ask for the same again and again; and they fill a namespace with a quota. Servers and
members of etcd are killed meanwhile. By etcd's own history, at no revision may two Services have the same address or port, nor the namespace
hold more than its quota allows; and what was freed can be had again.
"""
import argparse
import json
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
from load import BROKEN  # noqa: E402
from parts import Part, cluster, persist  # noqa: E402
import etcd  # noqa: E402
import shared  # noqa: E402
import verdict  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
ROOM = "/api/v1/namespaces/room"
RANGE = "10.0.0.0/26"
PORTS = range(31000, 31006)
PICKED = ["10.0.0.%d" % n for n in range(50, 56)]
QUOTA = 25


class Client(threading.Thread):
    def __init__(self, servers, number, requests, seed):
        super().__init__(daemon=True)
        self.servers, self.number, self.requests = servers, number, requests
        self.chance = random.Random("%s/%d" % (seed, number))
        self.mine, self.made, self.refused, self.lost, self.error = [], 0, 0, 0, None

    def run(self):
        try:
            clients = [server.client() for server in self.servers]
            for n in range(self.requests):
                self.one(self.chance.choice(clients), n)
        except Exception as error:  # reported by the main thread
            self.error = error

    def one(self, client, n):
        name = "s%d-%d" % (self.number, n)
        try:
            if self.chance.random() < 0.2:
                answer = client.request("POST", ROOM + "/configmaps", {"metadata": {"name": name}})
                fine = (201, 403, 409)
            elif len(self.mine) > 2 or (self.mine and self.chance.random() < 0.3):
                answer = client.request("DELETE", SERVICES + "/" + self.mine.pop(self.chance.randrange(len(self.mine))))
                fine = (200, 404)
            else:
                self.mine.append(name)
                answer = client.request("POST", SERVICES, self.service(name))
                fine = (201, 409, 422, 500)  # 500: all addresses are taken
                if answer.status != 201:
                    self.mine.pop()
        except BROKEN:
            self.lost += 1
            time.sleep(0.02)
            return
        self.made += answer.status == 201
        self.refused += answer.status in (403, 409, 422)
        if answer.status not in fine and answer.status not in (429, 500, 503, 504):
            raise cluster.Failure("request %s: %r" % (name, answer))
        if answer.status in (429, 503, 504):
            time.sleep(0.02)

    def service(self, name):
        spec = {"ports": [{"name": "p", "port": 80}], "selector": {"app": name}}
        if self.chance.random() < 0.4:
            spec["clusterIP"] = self.chance.choice(PICKED)
        if self.chance.random() < 0.5:
            spec["type"] = "NodePort"
            spec["ports"][0]["nodePort"] = self.chance.choice(PORTS)
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def takes(value):
    """What of which there is only one an object has."""
    spec = json.loads(value).get("spec", {})
    found = [("address", address) for address in spec.get("clusterIPs", []) or [spec.get("clusterIP")] if address not in (None, "", "None")]
    return found + [("port", port["nodePort"]) for port in spec.get("ports", []) if port.get("nodePort")]


def check(store):
    """Problems, and how many changes were looked at."""
    problems, owner, held, room, changes = [], {}, {}, set(), 0
    for revision, key, value in store.history("/registry/"):
        if "/configmaps/room/" in key:
            (room.discard if value is None else room.add)(key)
            if len([k for k in room if not k.endswith("kube-root-ca.crt")]) > QUOTA:
                problems.append("%d configmaps at revision %d, the quota is %d" % (len(room), revision, QUOTA))
        elif "/services/specs/" in key:
            changes += 1
            for thing in held.pop(key, []):
                owner.pop(thing, None)
            held[key] = takes(value) if value is not None else []
            for thing in held[key]:
                if thing in owner:
                    problems.append("%s at revision %d: %s is of %s already" % (key, revision, thing, owner[thing]))
                owner[thing] = key
    return problems, changes


def fill(client, controllers):
    """Whatever is still free can be had: the quota's room by configmaps, the rest of the addresses by Services."""
    count = [0]

    def full():
        controllers.keep()  # whoever lost the lease has ended
        count[0] += 1
        answer = client.request("POST", ROOM + "/configmaps", {"metadata": {"name": "last-%d" % count[0]}})
        there = [i for i in persist(client, "GET", ROOM + "/configmaps").json["items"] if i["metadata"]["name"] != "kube-root-ca.crt"]
        return answer.status == 403 and len(there) == QUOTA
    try:
        cluster.wait_for(full, 90, "the namespace is as full as its quota allows", interval=0.1)
    except cluster.Failure as problem:
        quota = persist(client, "GET", ROOM + "/resourcequotas/quota").json["status"]
        there = len(persist(client, "GET", ROOM + "/configmaps").json["items"])
        raise cluster.Failure("%s: %s with %d there; controllers:\n%s" % (problem, json.dumps(quota), there, controllers.said()[-2000:]))
    for item in persist(client, "GET", SERVICES).json["items"]:
        if item["metadata"]["name"] != "kubernetes":
            persist(client, "DELETE", SERVICES + "/" + item["metadata"]["name"], also=(404,))
    for address, port in zip(PICKED, PORTS):
        persist(client, "POST", SERVICES, {"metadata": {"name": "last-%d" % port}, "spec": {
            "type": "NodePort", "clusterIP": address, "ports": [{"port": 80, "nodePort": port}]}}, also=(409,))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=60, help="of each client")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--harm", type=int, default=3)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    args = parser.parse_args()
    if shared.missing():
        return 77
    print("seed %s" % args.seed, flush=True)
    with etcd.Etcd(3) as store, shared.servers(store, flags=["--service-cluster-ip-range", RANGE]) as servers:
        client = servers[0].client()
        persist(client, "POST", "/api/v1/namespaces", {"metadata": {"name": "room"}})
        persist(client, "POST", ROOM + "/resourcequotas", {"metadata": {"name": "quota"}, "spec": {"hard": {"count/configmaps": str(QUOTA + 1)}}})
        controllers = Part(servers[0], "controllers", "--node-monitor-grace-period", "24h")
        # One of the quota's is the authority's certificate that every namespace gets.
        cluster.wait_for(lambda: client.get(ROOM + "/configmaps/kube-root-ca.crt").status == 200, 60, "the namespace is set up")
        quota = ROOM + "/resourcequotas/quota"
        cluster.wait_for(lambda: client.get(quota).json.get("status", {}).get("used", {}).get("count/configmaps") == "1", 60, "the quota counts")
        disturber = shared.Disturber(store, servers, args.seed)
        clients = [Client(servers, n, args.requests, args.seed) for n in range(args.clients)]
        for one in clients:
            one.start()
        for _ in range(args.harm):
            disturber.pause(0.5, 3)
            disturber.harm()
        for one in clients:
            one.join(300)
            if one.is_alive() or one.error:
                raise cluster.Failure("a client %s" % ("hangs" if one.is_alive() else "failed: %s" % one.error))
        disturber.settle()
        controllers.keep()
        fill(servers[-1].client(), controllers)
        problems, changes = check(store)
        controllers.stop()
    print("%d created, %d refused, %d answers lost, %d changes of Services; %s" %
          (sum(c.made for c in clients), sum(c.refused for c in clients), sum(c.lost for c in clients), changes, disturber))
    verdict.judge(problems, "; run again with --seed %s" % args.seed)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
