#!/usr/bin/env python3
"""Members of an etcd have slow disks, under writes from several clients to two servers.

    slow_disk.py [--seconds N] [--rate WRITES/S] [--writers N]

strace holds every fsync and fdatasync of a member up, so that its log is as slow as on a bad disk, while it goes on answering its peers. By
turns one follower has such a disk, the leader, all of them; then all have one that is slower than servers wait. Writes are slow or refused;
every one that was acknowledged is in etcd's own history, at its version, no write is there twice, and servers say that they cannot write on
/readyz, go on showing what they have, and write again by themselves.
"""
import argparse
import collections
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from parts import cluster, persist  # noqa: E402
import etcd  # noqa: E402
import shared  # noqa: E402
import verdict  # noqa: E402
from leader_loss import check, longest_gap  # noqa: E402
from writer import NAMESPACE, PATH, Swarm  # noqa: E402

REFUSED_AFTER = 20  # seconds that a server waits for a write, docs/etcd.md
STUCK = 60.0  # longer than that


@contextlib.contextmanager
def slow_disks(members, seconds):
    """Each sync of these takes so much longer."""
    tracers = [subprocess.Popen(["strace", "-f", "-qq", "-p", str(member.process.pid), "-e", "trace=fsync,fdatasync",
                                 "-e", "inject=fsync,fdatasync:delay_enter=%d" % (seconds * 1e6), "-o", "/dev/null"],
                                stderr=subprocess.PIPE, preexec_fn=cluster.die_with_parent) for member in members]
    try:
        time.sleep(0.5)
        for tracer in tracers:
            if tracer.poll() is not None:
                raise cluster.Failure("strace ended: %s" % tracer.stderr.read().decode())
        yield
    finally:
        for tracer in tracers:
            tracer.send_signal(signal.SIGINT)  # it lets go of the member
        for tracer in tracers:
            tracer.wait(30)
            tracer.stderr.close()


def can_trace():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-qq", "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=1", "-o", "/dev/null", "true"],
                          capture_output=True).returncode == 0


def expect_stuck(servers):
    """A write is refused clearly, /readyz is red, and what is in memory is shown."""
    with servers[0].client(timeout=60) as client:
        began = time.monotonic()
        answer = client.request("POST", PATH, {"metadata": {"name": "stuck"}, "data": {"number": "0"}})
        took = time.monotonic() - began
        if answer.status not in (503, 504) or "etcd" not in answer.json["message"] or took > REFUSED_AFTER + 5:
            raise cluster.Failure("a write on disks that are stuck, after %.1f s: %r" % (took, answer))
        print("on disks that are stuck a write was refused after %.1f s: %d %s" % (took, answer.status, answer.json["message"]))
    for server in servers:
        with server.client(timeout=60) as client:
            red = client.get("/readyz?verbose")
            if red.status != 500 or b"[-]etcd" not in red.data:
                raise cluster.Failure("/readyz while nothing can be written: %r" % red)
            began = time.monotonic()
            shown = client.expect(200, "GET", PATH + "?resourceVersion=0")["items"]
            if not shown or time.monotonic() - began > 5:
                raise cluster.Failure("%d objects were shown after %.1f s" % (len(shown), time.monotonic() - began))


def disturb(store, servers, seconds):
    """[(begin, end, what)] of the phases, by the clock of the writers."""
    phases = []

    def phase(what, members, delay, then=lambda: time.sleep(seconds)):
        with slow_disks(members, delay):
            begin = time.monotonic()
            then()
            phases.append((begin, time.monotonic(), what))
        store.leader()
        for server in servers:
            shared.wait_ready(server)

    begin = time.monotonic()
    time.sleep(seconds)
    phases.append((begin, time.monotonic(), "all disks are well"))
    phase("a follower's syncs take 0.5 s", store.followers()[:1], 0.5)
    phase("the leader's syncs take 0.3 s", [store.leader()], 0.3)
    phase("all syncs take 0.8 s", store.members, 0.8)
    phase("no sync ends", store.members, STUCK, lambda: expect_stuck(servers))
    time.sleep(seconds)
    return phases


def twice(store):
    """Writes that are in the history more than once."""
    folder = "/registry/configmaps/%s/" % NAMESPACE
    times = collections.Counter((key, json.loads(value).get("data", {}).get("number")) for _, key, value in store.history(folder))
    return ["%s number %s was written %d times" % (key, number, count) for (key, number), count in times.items() if count > 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="of each phase")
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--writers", type=int, default=16)
    args = parser.parse_args()
    if shared.missing():
        return 77
    if not can_trace():
        print("SKIPPED: no strace that can hold up system calls")
        return 77
    with etcd.Etcd(3) as store, shared.servers(store) as servers:
        persist(servers[0].client(), "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        swarm = Swarm(servers, "slow", args.writers, args.rate, store.folder)
        swarm.start()
        phases = disturb(store, servers, args.seconds)
        result = swarm.result()
        shared.Disturber(store, servers, "").check()
        acknowledged = result["acknowledged"]
        broken = check(store, servers, acknowledged) + twice(store)
        problems = ["a writer gave up: %s" % error for error in result["errors"]]
    ends = sorted(a[4] for a in acknowledged)
    print("%d writes acknowledged, %d without an answer or refused" % (len(ends), result["failed"]))
    for begin, end, what in phases:
        took = sorted(a[4] - a[3] for a in acknowledged if begin <= a[4] <= end)
        print("%s: %d writes in %.0f s, median %.0f ms, nothing acknowledged for at most %.1f s" %
              (what, len(took), end - begin, 1000 * took[len(took) // 2] if took else 0, longest_gap(ends, begin, end)))
        if not took and what != "no sync ends":
            problems.append("%s: nothing was acknowledged" % what)
    verdict.judge(broken)
    if problems:
        raise cluster.Failure("\n".join(problems[:20]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
