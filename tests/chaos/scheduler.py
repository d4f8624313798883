#!/usr/bin/env python3
"""A scheduler and controllers in processes of their own, over HTTPS, that are killed again and again while pods come and go.

    scheduler.py [--seconds N] [--seed N]

An API server runs with NODES nodes of DEVICES devices. Two schedulers run beside each other, with leader election; one of them is killed
(SIGKILL) every second or so, sometimes the API server instead, and started again. Pods with claims from a template are created and deleted
meanwhile, never more than there are devices. A watch records every state of every claim. It must hold that
  - at no revision are two claims allocated the same device;
  - in the end, with nothing killed any more, every pod is bound to the node of its devices and its claim is reserved for it;
  - claims go with their pods.
"""
import argparse
import os
import random
import sys
import time

sys.dont_write_bytecode = True
from ledger import SCHEDULER_CONFIG, Ledger, make_node  # noqa: E402
from parts import Part, cluster, persist  # noqa: E402

NODES, DEVICES = 6, 4
DRIVER = "chaos.example.com"
RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = RESOURCE + "/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"


def devices_of(claim):
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [(r["driver"], r["pool"], r["device"]) for r in results]


def set_up(client):
    persist(client, "POST", RESOURCE + "/deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "chaos"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == '%s'" % DRIVER}}]}})
    persist(client, "POST", RESOURCE + "/namespaces/default/resourceclaimtemplates", {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "chaos"}}]}}}})
    for n in range(NODES):
        name = "node-%d" % n
        make_node(client, name)
        persist(client, "POST", RESOURCE + "/resourceslices", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name + "-slice"},
            "spec": {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                     "devices": [{"name": "dev-%d" % d} for d in range(DEVICES)]}})


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "resourceClaims": [{"name": "d", "resourceClaimTemplateName": "one"}],
        "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "d"}]}}]}}


def check_end(client, alive):
    """None, or what is not yet right."""
    pods = {p["metadata"]["name"]: p for p in persist(client, "GET", PODS).json["items"]}
    claims = {c["metadata"]["name"]: c for c in persist(client, "GET", CLAIMS).json["items"]}
    if set(pods) != set(alive):
        return "pods %s instead of %s" % (sorted(pods), sorted(alive))
    if len(claims) != len(pods):
        return "%d claims for %d pods" % (len(claims), len(pods))
    for name, p in pods.items():
        node = p["spec"].get("nodeName")
        if not node:
            return "pod %s is not bound: %s" % (name, p["status"].get("conditions"))
        statuses = p["status"].get("resourceClaimStatuses", [])
        claim = claims.get(statuses[0]["resourceClaimName"]) if statuses else None
        if not claim:
            return "pod %s has no claim" % name
        if [d[1] for d in devices_of(claim)] != [node]:
            return "pod %s is on %s and its device is %s" % (name, node, devices_of(claim))
        if [r["uid"] for r in claim["status"].get("reservedFor", [])] != [p["metadata"]["uid"]]:
            return "claim of pod %s is reserved for %s" % (name, claim["status"].get("reservedFor"))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with cluster.Server(["--disable-admission-plugins", "UniqueDevices"]) as server:
        client = server.client()
        config = os.path.join(server.folder, "scheduler.yaml")
        with open(config, "w") as f:
            f.write(SCHEDULER_CONFIG)
        parts = [Part(server, "scheduler", "--config", config) for _ in range(2)]
        controllers = Part(server, "controllers", "--node-monitor-grace-period", "24h")
        set_up(client)
        ledger = Ledger(server, RESOURCE, devices_of)
        alive, made, killed, restarted = [], 0, 0, 0
        end = time.monotonic() + args.seconds
        next_kill = time.monotonic() + 1
        while time.monotonic() < end:
            if len(alive) < NODES * DEVICES and (len(alive) < 4 or chance.random() < 0.6):
                name = "pod-%d" % made
                made += 1
                persist(client, "POST", PODS, pod(name), also=(409,))
                alive.append(name)
            else:
                name = alive.pop(chance.randrange(len(alive)))
                persist(client, "DELETE", PODS + "/" + name + "?gracePeriodSeconds=0", also=(404,))
            for part in parts:
                part.keep()
            if time.monotonic() > next_kill:
                next_kill = time.monotonic() + chance.uniform(0.1, 1.5)
                if chance.random() < 0.15:
                    server.restart(kill=True)
                    restarted += 1
                else:
                    part = chance.choice(parts)
                    part.kill()
                    part.start()
                    killed += 1
            time.sleep(chance.uniform(0, 0.03))
        problem = None
        deadline = time.monotonic() + 90
        while (problem := check_end(client, alive)) and time.monotonic() < deadline:
            for part in parts:
                part.keep()
            time.sleep(0.2)
        ledger.stop()
        for part in parts + [controllers]:
            part.stop()
        print("%d pods, %d allocations, %d parts killed, %d servers killed" % (made, ledger.allocations, killed, restarted))
        ledger.judge()
        if problem:
            raise cluster.Failure(problem)


if __name__ == "__main__":
    try:
        main()
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
