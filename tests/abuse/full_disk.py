#!/usr/bin/env python3
"""A full disk: writes are refused with a clear error, readiness says so, reads and deletions go on, and when there is room again writes work;
nothing acknowledged is lost.

The data folder lies on a small tmpfs, which only root may mount; without it the test is skipped (exit status 77).
"""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from suite import CONFIGMAPS, Failure, cluster

SIZE = 160 << 20
SKIPPED = 77


class Disk:
    """A tmpfs and a file on it that takes what room there is."""

    def __init__(self, folder):
        self.folder = folder
        self.filler = os.path.join(folder, "filler")

    def fill(self):
        with open(self.filler, "ab", buffering=0) as f:
            for piece in (1 << 20, 4096):
                try:
                    while True:
                        f.write(b"\x00" * piece)
                except OSError:
                    pass

    def free(self):
        os.unlink(self.filler)


def write(client, name, size):
    return client.request("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"k": "x" * size}})


def listed(client):
    return {item["metadata"]["name"] for item in client.expect(200, "GET", CONFIGMAPS)["items"]}


def refused_writes(server, client, acknowledged):
    """Writes until the disk is full for good; returns the last refusal."""
    refusals = []
    for number in range(400):
        began = time.monotonic()
        answer = write(client, "full-%d" % number, 200000)
        if time.monotonic() - began > 30:
            raise Failure("a write on the full disk took %.1f s" % (time.monotonic() - began))
        if answer.status == 201:
            acknowledged.add("full-%d" % number)
            continue
        body = answer.json
        if answer.status not in (500, 503, 507) or body.get("kind") != "Status" or not body.get("message"):
            raise Failure("a write on the full disk: %r" % answer)
        refusals.append(body["message"])
        if len(refusals) == 5:
            return refusals[-1]
    raise Failure("the disk of %d MB never was full" % (SIZE >> 20))


def health(client, path):
    answer = client.get(path)
    return answer.status, answer.data.decode()


def deletions(client, acknowledged):
    """On the full disk: what is deleted goes, at once or when its finalizer does, and nothing grows by way of that."""
    for number in range(10):
        client.expect(200, "DELETE", CONFIGMAPS + "/early-%d" % number)
        acknowledged.discard("early-%d" % number)
    held = client.expect(200, "DELETE", CONFIGMAPS + "/held")
    if not held["metadata"].get("deletionTimestamp"):
        raise Failure("an object with a finalizer does not wait: %s" % held)
    merge = {"Content-Type": "application/merge-patch+json"}
    answer = client.request("PATCH", CONFIGMAPS + "/held", {"data": {"k": "x" * 100000}}, headers=merge)
    if answer.status != 503:
        raise Failure("a deleted object grew on the full disk: %r" % answer)
    client.expect(200, "PATCH", CONFIGMAPS + "/held", {"metadata": {"finalizers": None}}, headers=merge)
    acknowledged.discard("held")
    if client.get(CONFIGMAPS + "/held").status != 404:
        raise Failure("an object whose last finalizer went is still there")
    answer = write(client, "small", 1)
    if answer.status != 503 or "only deletions are taken" not in answer.json["message"]:
        raise Failure("a small write after deletions on the full disk: %r" % answer)


def check(disk):
    with cluster.Server(data=os.path.join(disk.folder, "data")) as server:
        client = server.client()
        acknowledged = set()
        for number in range(20):
            if write(client, "early-%d" % number, 1000).status == 201:
                acknowledged.add("early-%d" % number)
        client.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": "held", "finalizers": ["example.com/held"]}})
        acknowledged.add("held")
        start = client.expect(200, "GET", CONFIGMAPS)["metadata"]["resourceVersion"]
        watch = client.stream("%s?watch=true&resourceVersion=%s" % (CONFIGMAPS, start))
        seen = []
        threading.Thread(target=lambda: collect(watch, seen), daemon=True).start()

        disk.fill()
        message = refused_writes(server, client, acknowledged)
        print("ok refused: %s" % message)
        if not any(word in message.lower() for word in ("space", "full", "disk", "storage")):
            raise Failure("the refusal does not say what is wrong: %s" % message)

        for _ in range(20):
            if listed(client) != acknowledged:
                raise Failure("on the full disk the list shows %s" % (listed(client) ^ acknowledged))
            client.expect(200, "GET", CONFIGMAPS + "/early-1")
        print("ok reads go on")
        status, text = health(client, "/readyz")
        if status != 500 or "the disk is full" not in text:
            raise Failure("/readyz on the full disk: %d %s" % (status, text))
        if health(client, "/livez")[0] != 200:
            raise Failure("/livez on the full disk: %d %s" % health(client, "/livez"))
        print("ok readiness says so")
        deletions(client, acknowledged)
        if listed(client) != acknowledged:
            raise Failure("after deletions on the full disk the list differs: %s" % (listed(client) ^ acknowledged))
        print("ok deletions go on")

        disk.free()
        cluster.wait_for(lambda: write(client, "later", 1000).status in (201, 409), 60, "a write after room was made")
        acknowledged.add("later")
        if health(client, "/readyz")[0] != 200:
            raise Failure("/readyz with room again: %d %s" % health(client, "/readyz"))
        for number in range(50):
            answer = write(client, "after-%d" % number, 20000)
            if answer.status != 201:
                raise Failure("with room again: %r" % answer)
            acknowledged.add("after-%d" % number)
        if listed(client) != acknowledged:
            raise Failure("with room again the list differs: %s" % (listed(client) ^ acknowledged))
        want = sorted(acknowledged - {"early-%d" % n for n in range(20)} - {"held"})
        cluster.wait_for(lambda: sorted(seen) == want, 30, "the watch to show %d writes; it shows %d" % (len(want), len(seen)))
        watch.hang_up()
        print("ok writes go on when there is room")

        # Full again, killed, and started on the full disk: it starts, and deletions go on.
        disk.fill()
        server.kill()
        server.start()
        if listed(server.client()) != acknowledged:
            raise Failure("after a kill on the full disk the list differs")
        server.client().expect(200, "DELETE", CONFIGMAPS + "/later")
        acknowledged.discard("later")
        server.kill()
        print("ok started on the full disk")
        disk.free()
        server.start()
        got = listed(server.client())
        if got != acknowledged:
            raise Failure("after the restart: lost %s, unknown %s" % (sorted(acknowledged - got), sorted(got - acknowledged)))
        answer = write(server.client(), "at-last", 1000)
        if answer.status != 201:
            raise Failure("after the restart: %r" % answer)
        print("ok nothing acknowledged is lost")


def collect(watch, seen):
    try:
        for line in watch:
            event = json.loads(line)
            if event["type"] == "ADDED":
                seen.append(event["object"]["metadata"]["name"])
    except Exception:  # the connection was closed
        pass


def main():
    with tempfile.TemporaryDirectory(prefix="dibs-disk-") as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d,mode=700" % SIZE, "dibs-test", folder], capture_output=True, text=True)
        if done.returncode:
            print("SKIPPED: cannot mount a small disk: %s" % (done.stderr.strip() or "not root"))
            return SKIPPED
        try:
            check(Disk(folder))
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
