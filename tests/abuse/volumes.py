#!/usr/bin/env python3
"""Volumes that outlive their pods, in the hands of a user who may create pods and claims in one namespace: no way out of a volume, nobody
else's volume, and no data lost or mount left, whatever is killed.

Needs real containers (root, runc); without them the test is skipped (exit status 77).
"""
import os
import stat
import sys
import tempfile

from pods import PODS, USER, Pods, need
from suite import Failure, cluster, run

SKIPPED = 77
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"


class Volume:
    """A folder of the machine, a local volume of it, and a claim that is bound to it."""

    def __init__(self, suite, name):
        self.suite, self.name = suite, name
        self.folder = tempfile.mkdtemp(prefix="dibs-volume-", dir=suite.server.folder)
        made = suite.client.expect(201, "POST", CLAIMS, claim(name, name))
        suite.client.expect(201, "POST", VOLUMES, {"metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": self.folder}, "claimRef": {"namespace": "default", "name": name, "uid": made["metadata"]["uid"]},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}}}})
        # By hand: who binds is not what is tried here.
        suite.client.expect(200, "PATCH", CLAIMS + "/%s/status" % name, {"status": {"phase": "Bound"}},
                            headers={"Content-Type": "application/merge-patch+json"})

    def source(self):
        return {"name": "v", "persistentVolumeClaim": {"claimName": self.name}}


def claim(name, volume):
    return {"metadata": {"name": name}, "spec": {"storageClassName": "", "volumeName": volume, "accessModes": ["ReadWriteOnce"],
                                                 "resources": {"requests": {"storage": "1Gi"}}}}


def pods_of(suite):
    if not hasattr(suite, "pods"):
        suite.pods = Pods(suite.server)
    return suite.pods


def gone(suite, name):
    suite.client.expect(200, "DELETE", PODS + "/" + name)
    cluster.wait_for(lambda: suite.client.get(PODS + "/" + name).status == 404, 60, "the end of pod " + name)


def restart(suite):
    suite.server.restart(kill=True)
    suite.client = suite.server.client(timeout=120)


def mounts(suite):
    with open("/proc/self/mounts") as f:
        return [line.split()[1] for line in f if "volume" in line.split()[1] and line.split()[1].startswith(suite.server.data)]


def links_lead_nowhere(suite):
    """Links in a volume give neither a file of the machine to a pod nor the machine's files to a group."""
    pods, volume = pods_of(suite), Volume(suite, "links")
    secret = os.path.join(suite.server.folder, "secret-of-the-machine")
    with open(secret, "w") as f:
        f.write("42")
    os.chmod(secret, 0o600)
    pods.make("linker", command=["sh", "-c", "ln -s %s /v/file && ln -s %s /v/folder && mkdir /v/own" % (secret, suite.server.folder)],
              volumes=[volume.source()])
    need(pods.ended("linker")["phase"] == "Succeeded", "the volume could not be written to")
    gone(suite, "linker")
    for part in ("file", "folder/secret-of-the-machine"):
        pods.user.expect(201, "POST", PODS, {"metadata": {"name": "reader"}, "spec": {
            "terminationGracePeriodSeconds": 0, "volumes": [volume.source()], "containers": [{
                "name": "c", "image": "busybox", "command": ["cat", "/v"],
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": part}]}]}})
        waits = cluster.wait_for(lambda: pods.container("reader").get("state", {}).get("waiting", {}).get("reason") not in (
            None, "ContainerCreating", "PodInitializing") and pods.container("reader")["state"]["waiting"], 60, "a refused subPath")
        need("failed to prepare subPath" in waits.get("message", ""), "subPath %s: %s" % (part, waits))
        gone(suite, "reader")
    pods.make("grouped", command=["true"], volumes=[volume.source()], securityContext={"fsGroup": 4711})
    pods.ended("grouped")
    gone(suite, "grouped")
    info = os.stat(secret)
    need(info.st_gid != 4711 and stat.S_IMODE(info.st_mode) == 0o600, "the machine's file is now %o of group %d" % (info.st_mode, info.st_gid))
    need(os.stat(os.path.join(volume.folder, "own")).st_gid == 4711, "the volume's own folder has not got its group")


def nobody_else_s_volume(suite):
    """A claim that names a volume of somebody else gets nothing, not even where its pod goes past the scheduler."""
    pods, volume = pods_of(suite), Volume(suite, "mine")
    with open(os.path.join(volume.folder, "file"), "w") as f:
        f.write("42")
    suite.client.expect(201, "POST", CLAIMS, claim("thief", "mine"))
    pods.make("thief", command=["cat", "/v/file"], volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "thief"}}], nodeName="node-0")
    pods.has_event("thief", "FailedMount", "error processing PVC default/thief: PVC is not bound")
    need(pods.status("thief")["phase"] == "Pending", "the pod runs: %s" % pods.status("thief"))
    gone(suite, "thief")


def killed_at_any_time(suite):
    """Kills of everything leave the data where it is, and no mount once the pods are gone."""
    pods, volume = pods_of(suite), Volume(suite, "kept")
    pods.make("writer", command=["sh", "-c", "echo 42 > /v/file; sleep 9999"], volumes=[volume.source()])
    pods.runs("writer")
    restart(suite)
    suite.client.expect(200, "DELETE", PODS + "/writer")
    restart(suite)
    cluster.wait_for(lambda: suite.client.get(PODS + "/writer").status == 404, 60, "the end of the pod")
    cluster.wait_for(lambda: not mounts(suite), 30, "no mount of a volume: %s" % mounts(suite))
    with open(os.path.join(volume.folder, "file")) as f:
        need(f.read().strip() == "42", "the data is another")


def main():
    if os.geteuid() != 0 or not cluster.has_containers():
        print("skipped: no real containers here")
        return SKIPPED
    return run([links_lead_nowhere, nobody_else_s_volume, killed_at_any_time], flags=["--nodes", "1"], command="up", tokens=[(USER, USER, [])])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(failure)
        sys.exit(1)
