#!/usr/bin/env python3
"""Pods that take more of a node's disk than they may: they go, with the kubelet's words, and their neighbours stay.

Real containers, and a small tmpfs for the node, which only root may mount; without them the test is skipped (exit status 77). Pods are made
by a user who may do nothing but that.
"""
import glob
import os
import subprocess
import sys
import tempfile

from suite import Failure, cluster
from pods import USER, Pods, need, run_checks

SKIPPED = 77
SIZE = 400 << 20
LOG_FLAGS = ["--container-log-max-size", "1Mi", "--container-log-max-files", "3"]
DISK_FLAGS = ["--eviction-hard", "nodefs.available<64Mi", "--eviction-pressure-transition-period", "5s"]
FOREVER = "while :; do sleep 1; done"


def shell(script):
    return ["sh", "-c", script]


def limit(amount):
    return {"resources": {"limits": {"ephemeral-storage": amount}}}


def evicted(world, name, message):
    status = world.ended(name, 60)
    need((status["phase"], status.get("reason"), status.get("message")) == ("Failed", "Evicted", message), "pod %s: %s" % (name, status))
    world.has_event(name, "Evicted: " + message.strip())


def an_empty_dir_has_a_limit(world):
    volume = {"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}
    world.make("within", command=shell("dd if=/dev/zero of=/v/x bs=1k count=512; " + FOREVER), volumes=[volume])
    world.make("beyond", command=shell("dd if=/dev/zero of=/v/x bs=1k count=4096; " + FOREVER), volumes=[volume])
    # Where a path is too long to be said.
    world.make("hidden", command=shell("cd /v; d=$(printf %0200d 0); for i in $(seq 40); do mkdir $d; cd $d; done; "
                                       "dd if=/dev/zero of=x bs=1k count=4096; " + FOREVER), volumes=[volume])
    for name in ("beyond", "hidden"):
        evicted(world, name, 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ')
    need("running" in world.container("within")["state"], "the pod within its limit: %s" % world.status("within"))


def containers_have_limits(world):
    world.make("layer", command=shell("dd if=/dev/zero of=/x bs=1M count=8; " + FOREVER), container=limit("4Mi"))
    world.make("logs", command=shell("yes 0123456789012345678901234567890123456789 | head -c 8000000; " + FOREVER), container=limit("1Mi"))
    # Files that are no volume's and not of the container's own root.
    paths = {"hosts": "/etc/hosts", "message": "/dev/termination-log", "resolver": "/etc/resolv.conf"}
    for name, path in paths.items():
        world.make(name, command=shell("dd if=/dev/zero of=%s bs=1M count=8; %s" % (path, FOREVER)), container=limit("4Mi"))
    world.make("unlinked", command=shell("exec 3>/x; rm /x; dd if=/dev/zero bs=1M count=8 >&3; " + FOREVER), container=limit("4Mi"))
    for name in ("layer", "logs", "unlinked", *paths):
        amount = "1Mi" if name == "logs" else "4Mi"
        evicted(world, name, "Pod ephemeral local storage usage exceeds the total limit of containers %s. " % amount)


def logs_rotate_and_can_be_followed(world):
    """Numbers in order, without a gap, over several files."""
    count = 60000
    world.make("talks", command=shell("i=0; while [ $i -lt %d ]; do echo $i 0123456789012345678901234567890123456789; i=$((i+1)); "
                                      "[ $((i %% 2000)) = 0 ] && sleep 1; done; sleep 12" % count))
    world.runs("talks")
    said = subprocess.run([cluster.kubectl(), "logs", "-f", "talks"], capture_output=True, text=True, timeout=120,
                          env=world.server.kubectl_environment()).stdout
    numbers = [int(line.split()[0]) for line in said.splitlines()]
    gaps = [(a, b) for a, b in zip(numbers, numbers[1:]) if b != a + 1]
    need(not gaps and numbers and numbers[-1] == count - 1, "followed %d lines to %s, with gaps at %s" % (len(numbers), numbers[-1:], gaps[:3]))
    files = glob.glob(os.path.join(world.server.data, "nodes", "node-0", "logs", "default_talks_*", "c", "*"))
    need(2 <= len(files) <= 3, "log files: %s" % files)


def node(world):
    return world.admin.expect(200, "GET", "/api/v1/nodes/node-0")


def pressure(world):
    found = node(world)
    condition = [c["status"] for c in found["status"]["conditions"] if c["type"] == "DiskPressure"][0]
    taints = [taint["key"] for taint in found["spec"].get("taints", [])]
    return condition, "node.kubernetes.io/disk-pressure" in taints


def a_full_disk(world):
    world.make("small", command=shell(FOREVER))
    world.runs("small")
    room = os.statvfs(world.server.data)
    # All but 40 MiB: the server's store is on this disk, too, and shall be able to write.
    world.make("fills", command=shell("dd if=/dev/zero of=/x bs=1M count=%d; %s" % ((room.f_bavail * room.f_frsize >> 20) - 40, FOREVER)))
    cluster.wait_for(lambda: pressure(world) == ("True", True), 60, "that the node has DiskPressure and its taint: %s" % (pressure(world),))
    status = world.ended("fills", 60)
    need(status.get("reason") == "Evicted" and status["message"].startswith("The node was low on resource: ephemeral-storage. Threshold quantity: 64Mi"),
         "the pod that filled the disk: %s" % status)
    need(any(c["type"] == "DisruptionTarget" and c["reason"] == "TerminationByKubelet" for c in status["conditions"]), "conditions: %s" % status)
    cluster.wait_for(lambda: pressure(world) == ("False", False), 90, "that the node has room again: %s" % (pressure(world),))
    need("running" in world.container("small")["state"], "the pod beside it: %s" % world.status("small"))


CHECKS = (an_empty_dir_has_a_limit, containers_have_limits, logs_rotate_and_can_be_followed, a_full_disk)


def check(folder):
    server = cluster.Server(["--nodes", "1", *LOG_FLAGS, *DISK_FLAGS], data=os.path.join(folder, "data"), command="up")
    server.write_tokens([(USER, USER, [])])
    with server:
        world = Pods(server)
        failed = run_checks(CHECKS, world, sys.argv[1:])
        world.remove_all()
    return 1 if failed else 0


def main():
    if not cluster.kubectl() or not cluster.has_containers():
        print("SKIPPED: no real containers or no kubectl on this machine")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="dibs-disk-") as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d,mode=700" % SIZE, "dibs-test", folder], capture_output=True, text=True)
        if done.returncode:
            print("SKIPPED: cannot mount a small disk: %s" % (done.stderr.strip() or "not root"))
            return SKIPPED
        try:
            return check(folder)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
