#!/usr/bin/env python3
"""Two processes with nodes of the same names on one etcd: the second ends with an error, and with names of its own it starts. One that was killed
is taken over by itself, under the same names, at once.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402

NODES = ["--nodes", "2", "--runtime", "sim"]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0"


def share_authority(first, second):
    keys = subprocess.run([cluster.binary(), "pki", "export", "--data-dir", first.data], capture_output=True, check=True)
    subprocess.run([cluster.binary(), "pki", "import", "--data-dir", second.data], input=keys.stdout, check=True, stdout=subprocess.DEVNULL)


def holder(server):
    with server.client() as client:
        answer = client.get(LEASE)
        return answer.status == 200 and answer.json["metadata"].get("annotations", {}).get("dibs.dev/agent")


def run(store):
    flags = store.server_flags() + NODES
    with cluster.Server(flags, command="up") as first:
        agent = cluster.wait_for(lambda: holder(first), 60, "the lease of a node says whose it is")
        second = cluster.Server(flags, command="up")
        try:
            share_authority(first, second)
            began = time.monotonic()
            try:
                second.start()
                raise cluster.Failure("two processes have nodes of one name")
            except cluster.Failure as failure:
                if 'node "node-0" is alive in another process, %s' % agent not in str(failure) or "--node-prefix" not in str(failure):
                    raise
            refused = time.monotonic() - began
            second.flags += ["--node-prefix", "other-"]
            second.start()
            second.stop()
        finally:
            second.remove()
        began = time.monotonic()
        first.restart(kill=True)
        if holder(first) != agent:
            raise cluster.Failure("after a kill the lease is of %s, before it was of %s" % (holder(first), agent))
        print("refused after %.1f s; started again %.1f s after a kill" % (refused, time.monotonic() - began))


def main():
    if not etcd.program():
        print(etcd.MISSING)
        return 77
    with etcd.Etcd(1) as store:
        run(store)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
