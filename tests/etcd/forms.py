#!/usr/bin/env python3
"""dibs over an etcd whose values others have written: something of every kind, in the protobuf that upstream's own encoder makes of it, and as
JSON in another order and with blanks, is shown the same as before, in every version; and what cannot be read is told and harms nothing else.

Needs etcd, kubectl, and Go for the protobuf; without them it is skipped (exit status 77).
"""
import base64
import copy
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("clients", "support"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import cluster  # noqa: E402
import etcd  # noqa: E402
import run as clients  # noqa: E402
import takeover  # noqa: E402
from cluster import Failure  # noqa: E402

SKIPPED = 77


def unversioned(seen):
    """What was written again has another resourceVersion."""
    out = copy.deepcopy(seen)
    for item in out.values():
        # What is made up on the spot, a ComponentStatus say, has none.
        item["metadata"].pop("resourceVersion", None)
    return out


def as_protobuf(program, values):
    done = subprocess.run(program + ["encode"], input="".join(base64.b64encode(value).decode() + "\n" for value in values), capture_output=True,
                          text=True)
    if done.returncode:
        raise Failure("the encoder: %s" % done.stderr[-2000:])
    return [base64.b64decode(line) for line in done.stdout.splitlines()]


def rewritten(store, rows, values):
    """How many values were put in place of others."""
    count = 0
    for (key, _, _), value in zip(rows, values):
        if value:
            store.call("kv/put", {"key": etcd.encoded(key), "value": etcd.encoded(value)})
            count += 1
    return count


def broken(store, key):
    """One value of rubbish: its own kind cannot be listed, everything else is as before."""
    store.call("kv/put", {"key": etcd.encoded(key), "value": etcd.encoded(b"k8s\0\xff\xff\xff")})
    with takeover.dibs(store) as server, server.client() as client:
        answer = client.get(takeover.CORE + "configmaps/map")
        if answer.status != 500 or key not in answer.json["message"]:
            raise Failure("a broken value: %r" % answer)
        for path in ("pods", "secrets", "services"):
            client.expect(200, "GET", takeover.CORE + path)
        if key not in server.log_tail():
            raise Failure("nothing was said of %s: %s" % (key, server.log_tail()))


def main():
    if etcd.program() is None or cluster.kubectl() is None:
        print(etcd.MISSING if etcd.program() is None else "SKIPPED: no kubectl")
        return SKIPPED
    try:
        program = clients.prepare_go("encode")
    except clients.Missing as missing:
        print("SKIPPED: %s" % missing)
        return SKIPPED
    with etcd.Etcd() as store:
        with takeover.dibs(store) as server:
            takeover.fill(server)
            before = unversioned(takeover.seen(server))
        rows = [row for row in store.range("/registry/")[0] if row[1].startswith(b"{")]
        forms = {"protobuf": as_protobuf(program, [value for _, value, _ in rows]),
                 "other JSON": [(json.dumps(json.loads(value), indent=2, sort_keys=True) + "\n").encode() for _, value, _ in rows]}
        for name, values in forms.items():
            count = rewritten(store, rows, values)
            with takeover.dibs(store) as server:
                takeover.compare("%s, %d values" % (name, count), before, unversioned(takeover.seen(server)))
        broken(store, "/registry/configmaps/%s/map" % takeover.SPACE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
