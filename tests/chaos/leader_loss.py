#!/usr/bin/env python3
"""An etcd of three members loses its leader again and again under a steady stream of writes.

    leader_loss.py [--losses N] [--rate WRITES/S] [--least-rate WRITES/S] [--servers N] [--seed S]

By turns the leader is killed (SIGKILL) and comes back after a second, or hangs (SIGSTOP) for some. Every write that was acknowledged must be in
etcd's own history, at the version that was answered, and be what each server shows in the end. How long nothing could be written is reported, and with --least-rate it
fails where fewer writes than that were acknowledged in the three seconds before a loss: the load was not what was asked for.
"""
import argparse
import random
import sys
import time

sys.dont_write_bytecode = True
from parts import cluster, persist  # noqa: E402
import etcd  # noqa: E402
import shared  # noqa: E402
import verdict  # noqa: E402
from writer import NAMESPACE, PATH, Swarm  # noqa: E402

PROCESSES = 2
QUIET = 4.0  # seconds between the losses


def lose_leaders(store, disturber, args):
    """When each was lost, and how."""
    lost = []
    for number in range(args.losses):
        time.sleep(QUIET)
        leader = store.leader()
        lost.append((time.monotonic(), "hangs" if number % 3 == 2 else "is killed"))
        if number % 3 == 2:
            leader.pause()
            time.sleep(3)
            leader.resume()
        else:
            leader.kill()
            time.sleep(1)
            leader.start()
        leader.wait_ready()
        disturber.check()
    time.sleep(QUIET)
    return lost


def longest_gap(ends, begin, end):
    """The longest time without an acknowledged write in this span."""
    times = [begin] + [t for t in ends if begin <= t <= end] + [end]
    return max(b - a for a, b in zip(times, times[1:]))


def check(store, servers, acknowledged):
    folder = "/registry/configmaps/%s/" % NAMESPACE
    changes = store.history(folder)
    there = {(key[len(folder):], revision) for revision, key, value in changes if value is not None}
    problems = ["acknowledged, but not in etcd: %s number %d at version %d" % (name, number, version)
                for name, number, version, _, _ in acknowledged if (name, version) not in there]
    newest = {}
    for name, number, _, _, _ in acknowledged:
        newest[name] = max(newest.get(name, 0), number)
    for place, server in enumerate(servers):
        items = persist(server.client(), "GET", PATH).json["items"]
        shown = {item["metadata"]["name"]: int(item["data"]["number"]) for item in items}
        problems += ["server %d shows %s as number %s, acknowledged was %d" % (place, name, shown.get(name), number)
                     for name, number in newest.items() if shown.get(name, -1) < number]
        versions = {(item["metadata"]["name"], int(item["metadata"]["resourceVersion"])) for item in items}
        if not versions <= there:
            problems.append("server %d shows what etcd never had: %s" % (place, sorted(versions - there)[:3]))
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", type=int, default=3)
    parser.add_argument("--rate", type=float, default=300)
    parser.add_argument("--least-rate", type=float, default=0)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    args = parser.parse_args()
    if shared.missing():
        return 77
    with etcd.Etcd(3) as store, shared.servers(store, args.servers) as servers:
        persist(servers[0].client(), "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        disturber = shared.Disturber(store, servers, args.seed)
        swarms = [Swarm(servers, "p%d" % n, args.writers // PROCESSES, args.rate / PROCESSES, store.folder) for n in range(PROCESSES)]
        for swarm in swarms:
            swarm.start()
        lost = lose_leaders(store, disturber, args)
        results = [swarm.result() for swarm in swarms]
        disturber.settle()
        acknowledged = [a for result in results for a in result["acknowledged"]]
        broken = check(store, servers, acknowledged)
        problems = ["a writer gave up: %s" % error for result in results for error in result["errors"]]
    report(acknowledged, sum(r["failed"] for r in results), lost)
    problems += ["the leader %s under %.0f writes/s: --least-rate %.0f" % (how, rate, args.least_rate)
                 for how, rate in ((how, rate_before(acknowledged, when)) for when, how in lost) if rate < args.least_rate]
    verdict.judge(broken)
    if problems:
        raise cluster.Failure("\n".join(problems[:20]))
    return 0


def rate_before(acknowledged, when):
    return sum(1 for a in acknowledged if when - 3 < a[4] <= when) / 3


def report(acknowledged, failed, lost):
    ends = sorted(a[4] for a in acknowledged)
    quiet = sorted(a[4] - a[3] for a in acknowledged if not any(t - 0.1 < a[4] < t + 8 for t, _ in lost)) or [0]
    print("%d writes acknowledged in %.1f s (%.0f/s), %d without an answer or refused; away from losses the median took %.1f ms" %
          (len(ends), ends[-1] - ends[0], len(ends) / (ends[-1] - ends[0]), failed, 1000 * quiet[len(quiet) // 2]))
    for when, how in lost:
        print("the leader %s under %.0f writes/s: nothing acknowledged for %.2f s" %
              (how, rate_before(acknowledged, when), longest_gap(ends, when - 0.1, when + 8)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
