#!/usr/bin/env python3
"""Pods that ask for so much that it cannot be added up: they wait, nobody else's room changes, and whoever counts goes on."""
import sys

from suite import cluster, run

PODS = "/api/v1/namespaces/default/pods"


def pod(name, resource, *amounts, **spec):
    containers = [{"name": "c%d" % i, "image": "busybox", "resources": {"requests": {resource: amount}, "limits": {resource: amount}}}
                  for i, amount in enumerate(amounts)]
    return {"metadata": {"name": name}, "spec": dict({"terminationGracePeriodSeconds": 0, "containers": containers}, **spec)}


def state(client, name):
    found = client.expect(200, "GET", PODS + "/" + name)
    conditions = {c["type"]: c.get("reason") for c in found["status"].get("conditions", [])}
    return found["spec"].get("nodeName"), conditions.get("PodScheduled"), found["status"].get("phase"), found["status"].get("reason")


def wait_for(client, name, what, test):
    return cluster.wait_for(lambda: test(*state(client, name)), 60, "%s: %s" % (what, state(client, name)), 0.1)


def sums_beyond_numbers(suite):
    """A scheduler that adds them up to a negative number would place them, and then everything else."""
    client = suite.client
    cluster.wait_for(lambda: any(c["type"] == "Ready" and c["status"] == "True" for node in client.get("/api/v1/nodes").json["items"]
                                 for c in node["status"].get("conditions", [])), 60, "a node", 0.1)
    for resource, amount in (("memory", "7Ei"), ("cpu", "8000P"), ("ephemeral-storage", "9000P")):
        name = "beyond-" + resource
        client.expect(201, "POST", PODS, pod(name, resource, amount, amount))
        wait_for(client, name, "no node for a pod with two of " + amount, lambda node, why, *_: why == "Unschedulable" and not node)
        large = "large-" + resource
        client.expect(201, "POST", PODS, pod(large, resource, "100Ti" if resource != "cpu" else "100k"))
        wait_for(client, large, "no node for a large pod", lambda node, why, *_: why == "Unschedulable" and not node)


def sums_on_a_node(suite):
    """Who names the node himself is told by its agent, and takes nothing from nobody."""
    client = suite.client
    node = client.expect(200, "GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    client.expect(201, "POST", PODS, pod("direct", "memory", "7Ei", "7Ei", nodeName=node))
    wait_for(client, "direct", "a refusal", lambda _, __, phase, why: phase == "Failed" and why == "OutOfmemory")
    client.expect(201, "POST", PODS, pod("small", "memory", "1Mi"))
    wait_for(client, "small", "a place for a small pod", lambda node, *_: node)


if __name__ == "__main__":
    sys.exit(run((sums_beyond_numbers, sums_on_a_node), ("--nodes", "1", "--runtime", "sim"), "up"))
