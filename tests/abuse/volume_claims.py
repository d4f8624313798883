#!/usr/bin/env python3
"""Volumes: an account that may write claims and pods of its namespace, and nothing else, tries to get at other storage and at claims of others."""
import sys

from rights import robot, rule
from suite import Failure, run

import cluster

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PODS = "/api/v1/namespaces/default/pods"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def claim(name, storage, annotations=None):
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": dict(SPEC, storageClassName=storage)}


def pod(name, volume):
    return {"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0, "volumes": [dict(volume, name="v")],
                                                 "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"]}]}}


def writer(suite, name):
    cluster.wait_for(lambda: suite.client.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, 60, "an account", 0.1)
    return robot(suite, name, [rule([""], ["persistentvolumeclaims", "pods"], "create", "get", "patch", "update", "delete")])


def storage_of_other_classes(suite):
    """Annotations are the user's: they turn no class into another, and name no volume."""
    suite.client.expect(201, "POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": "fast.example.com",
                                               "volumeBindingMode": "WaitForFirstConsumer"})
    with writer(suite, "sly") as client:
        for i, node in enumerate(("node-0", "nowhere", "../node-0", "")):
            client.expect(201, "POST", CLAIMS, claim("sly-%d" % i, "fast", {
                "volume.kubernetes.io/storage-provisioner": "dibs.io/local-path", "volume.kubernetes.io/selected-node": node,
                "pv.kubernetes.io/bound-by-controller": "yes"}))
        client.expect(201, "POST", CLAIMS, claim("honest", "standard"))
        client.expect(201, "POST", PODS, pod("honest", {"persistentVolumeClaim": {"claimName": "honest"}}))
        cluster.wait_for(lambda: client.get(CLAIMS + "/honest").json["status"].get("phase") == "Bound", 60, "the honest claim", 0.1)
        found = suite.client.expect(200, "GET", VOLUMES)["items"]
        if [item["spec"]["claimRef"]["name"] for item in found] != ["honest"]:
            raise Failure("volumes were made for claims of another class: %r" % found)
        suite.refused(client.request("POST", VOLUMES, {"metadata": {"name": "pvc-mine"}, "spec": {}}), "a volume of one's own", 403)
        suite.refused(client.request("DELETE", VOLUMES + "/" + found[0]["metadata"]["name"]), "the end of a volume", 403)


def claims_of_others(suite):
    """An ephemeral volume has a claim of its own, or none."""
    suite.client.expect(201, "POST", CLAIMS, claim("thief-v", "standard"))
    with writer(suite, "thief") as client:
        client.expect(201, "POST", PODS, pod("thief", {"ephemeral": {"volumeClaimTemplate": {"spec": dict(SPEC, storageClassName="standard")}}}))

        def told():
            conditions = client.get(PODS + "/thief").json.get("status", {}).get("conditions", [])
            return [c for c in conditions if "PVC default/thief-v was not created for pod default/thief" in c.get("message", "")]
        cluster.wait_for(told, 60, "a word about the claim", 0.1)
        if client.expect(200, "GET", PODS + "/thief")["spec"].get("nodeName"):
            raise Failure("the pod has the claim of somebody else")


def claims_in_use(suite):
    """A claim that a pod has stays while it has it, whoever deletes it."""
    with writer(suite, "keeper") as client:
        client.expect(201, "POST", CLAIMS, claim("kept", "standard"))
        client.expect(201, "POST", PODS, pod("keeper", {"persistentVolumeClaim": {"claimName": "kept"}}))
        cluster.wait_for(lambda: client.get(PODS + "/keeper").json["spec"].get("nodeName"), 60, "a node", 0.1)
        client.expect(200, "DELETE", CLAIMS + "/kept")
        client.expect(200, "GET", CLAIMS + "/kept")
        client.expect(200, "DELETE", PODS + "/keeper?gracePeriodSeconds=0")
        cluster.wait_for(lambda: client.get(CLAIMS + "/kept").status == 404, 60, "the end of the claim", 0.1)


if __name__ == "__main__":
    sys.exit(run((storage_of_other_classes, claims_of_others, claims_in_use), ("--nodes", "1", "--runtime", "sim"), "up"))
