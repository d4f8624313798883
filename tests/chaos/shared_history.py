#!/usr/bin/env python3
"""Random operations from many clients on several API servers of one etcd, while members of etcd and servers are killed and stopped.

    shared_history.py [--harm N] [--members 1|3] [--servers N] [--clients N] [--seed S] [--only KIND]

Each request goes to a server picked by chance, and a watch that breaks goes on at whichever. The history must be linearizable (linear.py) and
strictly serializable by its versions (history.py), no watch may miss or repeat anything, every server must replay the same history, and that
must be etcd's own.
"""
import argparse
import random
import sys
import time

sys.dont_write_bytecode = True
from load import NAMES, NAMESPACE, PATIENCE, Load  # noqa: E402
from parts import cluster  # noqa: E402
import etcd  # noqa: E402
import shared  # noqa: E402


def disturb(load, disturber, args):
    for _ in range(args.harm):
        wanted = load.count() + disturber.chance.randint(10, 80)
        cluster.wait_for(lambda: load.count() >= wanted, PATIENCE, "%d operations after %s" % (wanted, disturber), interval=0.01)
        disturber.harm(args.only)
    disturber.settle()


def check_etcd(store, events):
    """What etcd itself has is what the servers showed."""
    folder = "/registry/configmaps/%s/" % NAMESPACE
    own = [(revision, key[len(folder):], value is None) for revision, key, value in store.history(folder) if key[len(folder):] in NAMES]
    shown = [(event.version, event.name, event.verb == "DELETED") for event in events]
    if own == shown:
        return []
    return ["etcd has %d changes, the servers showed %d; of one only: %s" %
            (len(own), len(shown), sorted(set(own) ^ set(shown))[:5])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harm", type=int, default=6)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--operations", type=int, default=10**9)
    parser.add_argument("--only", choices=sorted(shared.Disturber.HARM))
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    args = parser.parse_args()
    if shared.missing():
        return 77
    print("seed %s" % args.seed, flush=True)
    began = time.monotonic()
    with etcd.Etcd(args.members) as store, shared.servers(store, args.servers) as servers:
        disturber = shared.Disturber(store, servers, args.seed)
        load = Load(servers, args, shared=True)
        problems = load.run(lambda one: disturb(one, disturber, args))
        problems += check_etcd(store, load.watchers[0].events)
    print(disturber)
    load.report(time.monotonic() - began)
    load.judge(problems)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
