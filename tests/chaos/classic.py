#!/usr/bin/env python3
"""Classic claims (resource.k8s.io/v1alpha2) while every part that writes them is killed again and again.

    classic.py [--release 1.27|1.30] [--seconds N] [--seed N]

An API server of that release runs with NODES nodes. Controllers, scheduler and the controller of the example driver (examples/cats) are
processes of their own; by turns one of them, or the server, is killed (SIGKILL) and started again. Pods come and go meanwhile, with one or two
claims from a template, never more of them than there are cats. A watch records every state of every claim. It must hold that
  - at no revision are two claims allocated the same cat;
  - in the end, with nothing killed any more, every pod is bound to the node of its cats, its claims are allocated and reserved for it alone,
    and no PodSchedulingContext is left;
  - after the last pod is deleted no claim is left, and all cats can be had again.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from ledger import SCHEDULER_CONFIG, Ledger, make_node  # noqa: E402
from parts import Part, cluster, persist  # noqa: E402

NODES, CATS = 3, 4
DRIVER, CLASS = "resource-driver.example.com", "resource.example.com"
RESOURCE = "/apis/resource.k8s.io/v1alpha2"
CLAIMS = RESOURCE + "/namespaces/default/resourceclaims"
CONTEXTS = RESOURCE + "/namespaces/default/podschedulingcontexts"
PODS = "/api/v1/namespaces/default/pods"
SETTLE = 120  # seconds; the processors may be shared with other tests


def cats_of(claim):
    """What the driver gave to the claim."""
    allocation = claim.get("status", {}).get("allocation") or {}
    return [handle["data"] for handle in allocation.get("resourceHandles", []) if handle.get("data")]


def node_of(claim):
    """The only node where the claim can be used."""
    terms = claim["status"]["allocation"]["availableOnNodes"]["nodeSelectorTerms"]
    values = [v for t in terms for e in t.get("matchExpressions", []) + t.get("matchFields", []) for v in e["values"]]
    return values[0] if len(values) == 1 else values


class Driver(Part):
    """The controller of the example driver."""

    def __init__(self, server, program, *arguments):
        self.program = program
        super().__init__(server, "cats", *arguments)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.program, *self.arguments[1:], "--kubeconfig", self.kubeconfig], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)


def set_up(client):
    persist(client, "POST", RESOURCE + "/resourceclasses", {
        "apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClass", "metadata": {"name": CLASS}, "driverName": DRIVER})
    persist(client, "POST", RESOURCE + "/namespaces/default/resourceclaimtemplates", {
        "apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClaimTemplate", "metadata": {"name": "cat"},
        "spec": {"spec": {"resourceClassName": CLASS}}})
    for n in range(NODES):
        make_node(client, "node-%d" % n)


def pod(name, claims):
    entries = ["cat-%d" % n for n in range(claims)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "resourceClaims": [{"name": entry, "source": {"resourceClaimTemplateName": "cat"}} for entry in entries],
        "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": entry} for entry in entries]}}]}}


def check_end(client, alive):
    """None, or what is not yet right. `alive`: how many claims each pod has, by name."""
    pods = {p["metadata"]["name"]: p for p in persist(client, "GET", PODS).json["items"]}
    claims = persist(client, "GET", CLAIMS).json["items"]
    if set(pods) != set(alive):
        return "pods %s instead of %s" % (sorted(pods), sorted(alive))
    if len(claims) != sum(alive.values()):
        return "%d claims for %d entries: %s" % (len(claims), sum(alive.values()), [c["metadata"]["name"] for c in claims])
    for name, p in pods.items():
        node = p["spec"].get("nodeName")
        if not node:
            return "pod %s is not bound: %s" % (name, p["status"].get("conditions"))
        uid = p["metadata"]["uid"]
        own = [c for c in claims if any(o["uid"] == uid for o in c["metadata"].get("ownerReferences", []))]
        if len(own) != alive[name]:
            return "pod %s has %d claims instead of %d" % (name, len(own), alive[name])
        for claim in own:
            text = claim["metadata"]["name"]
            if len(cats_of(claim)) != 1 or node_of(claim) != node:
                return "pod %s is on %s, and %s is %s" % (name, node, text, json.dumps(claim.get("status")))
            if [r["uid"] for r in claim["status"].get("reservedFor", [])] != [uid]:
                return "claim %s is reserved for %s" % (text, claim["status"].get("reservedFor"))
            if claim["status"].get("deallocationRequested"):
                return "claim %s is about to be taken back" % text
    contexts = [c["metadata"]["name"] for c in persist(client, "GET", CONTEXTS).json["items"]]
    return "contexts are left: %s" % contexts if contexts else None


def settle(client, alive, what):
    problem = None
    deadline = time.monotonic() + SETTLE
    while (problem := check_end(client, alive)) and time.monotonic() < deadline:
        time.sleep(0.2)
    if problem:
        raise cluster.Failure("%s: %s" % (what, problem))


def remove(client, name):
    persist(client, "DELETE", PODS + "/" + name + "?gracePeriodSeconds=0", also=(404,))


def disturb(args, server, client, parts):
    """Pods come and go, parts die. The pods that are left, with how many claims each has, and what happened."""
    chance = random.Random(args.seed)
    alive, made, killed, restarted = {}, 0, 0, 0
    end = time.monotonic() + args.seconds
    next_kill = time.monotonic() + 1
    while time.monotonic() < end:
        wanted = chance.choice((1, 1, 2))
        if sum(alive.values()) + wanted <= NODES * CATS - 2 and (len(alive) < 3 or chance.random() < 0.55):
            name = "pod-%d" % made
            made += 1
            persist(client, "POST", PODS, pod(name, wanted), also=(409,))
            alive[name] = wanted
        elif alive:
            name = chance.choice(sorted(alive))
            del alive[name]
            remove(client, name)
        for part in parts:
            part.keep()
        if time.monotonic() > next_kill:
            next_kill = time.monotonic() + chance.uniform(0.3, 3)
            if chance.random() < 0.2:
                server.restart(kill=True)
                restarted += 1
            else:
                # Whoever follows killed controllers waits long for their lease: without them there are no claims.
                part = chance.choices(parts, weights=(4, 1, 4))[0]
                part.kill()
                part.start()
                killed += 1
        time.sleep(chance.uniform(0.05, 0.6))
    print("%d pods, %d parts killed, %d servers killed" % (made, killed, restarted))
    return alive


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="1.30")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    program = cluster.example("cats")
    with cluster.Server(["--emulate-release", args.release]) as server:
        client = server.client()
        config = os.path.join(server.folder, "scheduler.yaml")
        with open(config, "w") as f:
            f.write(SCHEDULER_CONFIG)
        parts = [Part(server, "scheduler", "--release", args.release, "--config", config),
                 Part(server, "controllers", "--node-monitor-grace-period", "24h"),
                 Driver(server, program, "controller", "--cats", "*=" + ",".join(["black/large"] * CATS))]
        set_up(client)
        ledger = Ledger(server, RESOURCE, cats_of)
        try:
            alive = disturb(args, server, client, parts)
            for part in parts:
                part.keep()
            settle(client, alive, "after the kills")
            for name in list(alive):
                remove(client, name)
            settle(client, {}, "after the last pod")
            # Whatever a kill might have lost would be missing now.
            again = {"again-%d" % n: 1 for n in range(NODES * CATS)}
            for name, claims in again.items():
                persist(client, "POST", PODS, pod(name, claims), also=(409,))
            settle(client, again, "with all cats in use")
            for name in again:
                remove(client, name)
            settle(client, {}, "in the end")
        finally:
            ledger.stop()
        ledger.judge()
        for part in parts:
            part.stop()
        print("%d allocations, none of them twice" % ledger.allocations)


if __name__ == "__main__":
    try:
        main()
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
