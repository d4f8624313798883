#!/usr/bin/env python3
"""Upstream's scheduling workloads, the smallest of each test case ("fast"): `dibs bench scheduler-perf` places all pods that it measures.

The files lie with the recordings, in scheduler_perf/RELEASE (DIBS_CONFORMANCE, or ../shared/conformance from the project's root); without
them the test is skipped (exit status 77).
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

SKIPPED = 77
DEADLINE = 170
WORKLOAD = "/fast"
# Pods in groups that share claims: so many are bound, whatever else a file holds.
SHARED = {"SharedPodGroupResourceClaim/fast": 10, "SharedPodGroupResourceClaimTemplate/fast": 10}


def folder():
    return os.environ.get("DIBS_CONFORMANCE") or os.path.join(HERE, "..", "..", "..", "shared", "conformance")


def place(release, file):
    """What the workloads of a file came to: name, and pods or why there are none."""
    with tempfile.TemporaryDirectory(prefix="dibs-test-") as store:
        done = subprocess.run([cluster.binary(), "bench", "scheduler-perf", file, "--workload", WORKLOAD, "--emulate-release", release],
                              capture_output=True, text=True, timeout=DEADLINE, env={**os.environ, "DIBS_BENCH_DIR": store})
    if done.returncode:
        raise cluster.Failure("%s: exit status %d\n%s%s" % (file, done.returncode, done.stdout, done.stderr))
    found = {}
    for line in done.stdout.splitlines():
        name, said = line.split(": ", 1)
        measured = re.search(r"\((\d+) pods, \d+ attempts in ", said)
        found[name] = int(measured.group(1)) if measured else said
    return found


def main():
    files = sorted(glob.glob(os.path.join(folder(), "scheduler_perf", "*", "**", "performance-config.yaml"), recursive=True))
    if not files:
        print("SKIPPED: the workloads are not there: %s" % os.path.normpath(folder()))
        return SKIPPED
    top = os.path.join(folder(), "scheduler_perf")
    found, faults = {}, []
    for file in files:
        release = os.path.relpath(file, top).split(os.sep)[0]
        for name, came in place(release, file).items():
            print("%s %s: %s" % (release, name, came), flush=True)
            found[release, name] = came
            if not isinstance(came, int) or came == 0:
                faults.append("%s of %s: %s" % (name, release, came))
    for name, wanted in SHARED.items():
        if found.get(("1.37", name)) != wanted:
            faults.append("%s: %s pods, expected %d" % (name, found.get(("1.37", name), "no"), wanted))
    if faults:
        raise cluster.Failure("\n".join(faults))
    print("%d workloads of %d files" % (len(found), len(files)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
