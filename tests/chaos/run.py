#!/usr/bin/env python3
"""Random operations from many clients at once on a few objects, recorded and checked: history.py and linear.py say against what.

    run.py load  [--operations N] [--clients N] [--seed S]
    run.py crash [--kills N] ...     the same while the process is killed (SIGKILL) and restarted on the same data again and again

Beside the operations run watches, which reconnect from the last version they saw: over all objects, over one, over a label. Each must
show every write once, in order, across all crashes; a watch opened at the end must replay the same history.
"""
import argparse
import os
import random
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
from load import PATIENCE, Load  # noqa: E402
from parts import cluster  # noqa: E402
import verdict  # noqa: E402


def crash(load):
    """Kills and restarts; between kills, clients get some operations done."""
    chance, server = random.Random(load.seed), load.servers[0]
    for _ in range(load.args.kills):
        wanted = load.count() + chance.randint(20, 120)
        cluster.wait_for(lambda: load.count() >= wanted, PATIENCE, "%d operations after a restart" % wanted, interval=0.005)
        load.running.clear()
        server.kill()
        check_disk(server)
        server.start()
        load.running.set()


def check_disk(server):
    """What a crash leaves on the disk is a sound database."""
    path = os.path.join(server.data, "store.db")
    if os.path.exists(path):
        base = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        try:
            result = base.execute("PRAGMA quick_check").fetchone()[0]
        finally:
            base.close()
        if result != "ok":
            verdict.judge(["the database after a kill: %s" % result])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["load", "crash"])
    parser.add_argument("--operations", type=int)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    args = parser.parse_args()
    args.operations = args.operations or (2000 if args.mode == "load" else 10**9)
    print("%s with seed %s" % (args.mode, args.seed), flush=True)
    began = time.monotonic()
    with cluster.Server() as server:
        load = Load([server], args)
        problems = load.run(crash if args.mode == "crash" else None)
    load.report(time.monotonic() - began)
    load.judge(problems)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
