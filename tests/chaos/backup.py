#!/usr/bin/env python3
"""Kills dibs backup, restore and store copy at random moments (SIGKILL), and the server under a restore; then the same again must end what was begun.
On SQLite, and on an etcd where there is one.

    backup.py [--rounds N] [--keys N] [--seed N]

After each kill: a backup has its name only when it is whole; a store that is half filled is refused by servers and by other commands, and --resume
finishes it; a server that is half restored lets no writes in until the restore was run again. At the end of each round every key and value is compared.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402
from cluster import Failure  # noqa: E402

SKIPPED = 77
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
OTHERS = ("/registry/leases/", "/registry/events/", "/registry/masterleases/")


def config_map(number, text):
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "name": "m%06d" % number, "namespace": "default", "uid": "00000000-0000-0000-0000-%012d" % number,
        "creationTimestamp": "2030-01-01T00:00:00Z"}, "data": {"x": text * 20}}, separators=(",", ":"))


def write_backup(path, base, count, text):
    """What is in the backup `base`, and config maps beside it."""
    with open(base) as f:
        lines = [json.loads(line) for line in f]
    head, keys = lines[0], {one["key"]: one for one in lines[1:-1] if "key" in one}
    for i in range(count):
        key = "/registry/configmaps/default/m%06d" % i
        keys[key] = {"key": key, "created": 7, "modified": 8, "value": config_map(i, text)}
    body = "".join(json.dumps(one) + "\n" for one in [head] + [keys[key] for key in sorted(keys)]).encode()
    end = {"keys": len(keys), "files": 0, "sha256": hashlib.sha256(body).hexdigest()}
    with open(path, "wb") as f:
        f.write(body + json.dumps(end).encode() + b"\n")
    return read_backup(path)


def read_backup(path):
    """Keys and values, of a file that must be whole."""
    with open(path, "rb") as f:
        data = f.read()
    lines = data.splitlines(keepends=True)
    end = json.loads(lines[-1])
    if hashlib.sha256(b"".join(lines[:-1])).hexdigest() != end["sha256"]:
        raise Failure("%s is not whole" % path)
    out = {}
    for line in lines[1:-1]:
        one = json.loads(line)
        if "key" in one and not one["key"].startswith(OTHERS):
            out[one["key"]] = json.loads(one["value"])
    return out


def run(*arguments, fails=None):
    """Runs a command to its end, which must be a failure with these words where they are given."""
    done = subprocess.run([cluster.binary(), *arguments], capture_output=True, text=True, timeout=300)
    if (done.returncode != 0) != (fails is not None) or (fails and fails not in done.stderr):
        raise Failure("dibs %s: status %d, %s%s" % (" ".join(arguments), done.returncode, done.stdout, done.stderr))
    return done.stdout


def run_and_kill(after, *arguments):
    """True when it was killed before it ended."""
    process = subprocess.Popen([cluster.binary(), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=cluster.die_with_parent)
    try:
        return process.wait(after) != 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def timed(*arguments):
    began = time.monotonic()
    run(*arguments)
    return time.monotonic() - began


def compare(found, wanted, what):
    keys = [key for key in set(found) | set(wanted) if found.get(key) != wanted.get(key)]
    if keys:
        raise Failure("%s: %d keys differ, %s among them: %.300s, expected %.300s" % (
            what, len(keys), sorted(keys)[0], found.get(sorted(keys)[0]), wanted.get(sorted(keys)[0])))


class World:
    def __init__(self, folder, rounds, keys, chance):
        self.folder, self.rounds, self.keys, self.chance = folder, rounds, keys, chance
        self.killed = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def count(self, what, was_killed):
        killed, rounds = self.killed.get(what, (0, 0))
        self.killed[what] = (killed + was_killed, rounds + 1)

    def moments(self, whole):
        """Some after the beginning, all over its time."""
        return [whole * self.chance.random() for _ in range(self.rounds)]

    def prepare(self):
        for name in ("first", "live"):
            os.makedirs(self.path(name))
        with cluster.Server(folder=self.path("first")) as server:
            run("backup", "--to", self.path("empty"), "--kubeconfig", server.kubeconfig)
        self.wanted = write_backup(self.path("backup"), self.path("empty"), self.keys, "a")
        self.other = write_backup(self.path("other"), self.path("empty"), self.keys // 2, "b")

    def restores(self, place, begin_anew):
        """Into a place that is empty at first."""
        begin_anew()
        whole = timed("restore", "--from", self.path("backup"), "--to", place)
        for moment in self.moments(whole):
            begin_anew()
            killed = run_and_kill(moment, "restore", "--from", self.path("backup"), "--to", place)
            self.count("restore", killed)
            self.finish(place, "restore", "--from", self.path("backup"), "--to", place)

    def copies(self, source, place, begin_anew):
        begin_anew()
        whole = timed("store", "copy", "--from", source, "--to", place)
        for moment in self.moments(whole):
            begin_anew()
            self.count("copy", run_and_kill(moment, "store", "copy", "--from", source, "--to", place))
            self.finish(place, "store", "copy", "--from", source, "--to", place)

    def finish(self, place, *arguments):
        """What was killed is told from what is whole, and ends the second time, which may be killed as well."""
        check = subprocess.run([cluster.binary(), "store", "check", place], capture_output=True, text=True)
        if "was not filled to its end" in check.stderr:
            run(*arguments, fails="--resume")
            run("backup", "--to", self.path("half"), "--from", place, fails="was not filled to its end")
            if place.startswith("sqlite:"):
                run("apiserver", "--data-dir", place.split(":", 1)[1], "--bind", "127.0.0.1:0", fails="was not filled to its end")
            run_and_kill(self.chance.random() * 0.3, *arguments, "--resume")
        run(*arguments, "--resume", "--overwrite")
        run("backup", "--to", self.path("result"), "--from", place)
        compare(read_backup(self.path("result")), self.wanted, place)
        run("store", "check", place)

    def backups(self, server):
        out = self.path("kept")
        whole = timed("backup", "--to", out, "--kubeconfig", server.kubeconfig)
        before = read_backup(out)
        for moment in self.moments(whole):
            self.count("backup", run_and_kill(moment, "backup", "--to", out, "--kubeconfig", server.kubeconfig))
            compare(read_backup(out), before, "a backup under the name of another")

    def live_restores(self, server, kill_server):
        """Between two states, there and back. Nothing of one is left in the other."""
        arguments = {name: ("restore", "--from", self.path(name), "--kubeconfig", server.kubeconfig, "--overwrite") for name in ("backup", "other")}
        whole = timed(*arguments["backup"])
        for number, moment in enumerate(self.moments(whole)):
            name = ("other", "backup")[number % 2]
            if kill_server:
                process = subprocess.Popen([cluster.binary(), *arguments[name]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                           preexec_fn=cluster.die_with_parent)
                time.sleep(moment)
                self.count("server under a restore", process.poll() is None)
                server.restart(kill=True)
                said = process.communicate(timeout=120)[1]
                if process.returncode != 0 and "run it again" not in said:
                    raise Failure("a restore whose server was killed: %s" % said)
            else:
                self.count("live restore", run_and_kill(moment, *arguments[name]))
                with server.client() as client:
                    status = client.request("POST", CONFIGMAPS + "?dryRun=All", {"metadata": {"name": "probe"}}).status
                    if status not in (201, 503):
                        raise Failure("a write after a killed restore: %d" % status)
            run(*arguments[name])
            run("backup", "--to", self.path("result"), "--kubeconfig", server.kubeconfig)
            wanted = self.wanted if name == "backup" else self.other
            compare(strip(read_backup(self.path("result"))), strip(wanted), "a server after a restore")
            with server.client() as client:
                client.expect(201, "POST", CONFIGMAPS + "?dryRun=All", {"metadata": {"name": "probe"}})


def strip(state):
    """Without what is the server's own."""
    return {key: value for key, value in state.items() if not key.endswith("/default/kubernetes") and not key.startswith("/registry/namespaces/")}


def remover(folder):
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def sqlite(world):
    target = world.path("target")
    world.restores("sqlite:" + target, remover(target))
    source = world.path("source")
    run("restore", "--from", world.path("backup"), "--data-dir", source)
    world.copies("sqlite:" + source, "sqlite:" + target, remover(target))
    with cluster.Server(folder=world.path("live")) as server:
        world.live_restores(server, kill_server=False)
        world.live_restores(server, kill_server=True)
        world.backups(server)


def on_etcd(world):
    """Copied there and back, restored there, and served from there by two servers."""
    with etcd.Etcd(1) as store:
        place = "etcd:" + store.endpoints

        def begin_anew():
            for prefix in ("/registry/", "/registry.dibs/"):
                store.call("kv/deleterange", {"key": etcd.encoded(prefix), "range_end": etcd.encoded(etcd.after(prefix))})

        world.copies("sqlite:" + world.path("source"), place, begin_anew)
        world.restores(place, begin_anew)
        back = world.path("back")
        run("store", "copy", "--from", place, "--to", "sqlite:" + back)
        run("backup", "--to", world.path("result"), "--from", "sqlite:" + back)
        compare(read_backup(world.path("result")), world.wanted, "copied from an etcd")
        # Versions of the first cluster are below all that are here, and its watches must list again.
        revision = head_of(world.path("backup"))["revision"]
        pki = world.path("second/data/pki")
        shutil.copytree(world.path("live/data/pki"), pki)
        with cluster.Server(store.server_flags(), folder=world.path("live")) as one, \
                cluster.Server(store.server_flags(), folder=world.path("second")) as two:
            with one.client() as client:
                answer = client.get("%s?watch=true&timeoutSeconds=1&resourceVersion=%d" % (CONFIGMAPS, revision))
                if b'"code":410' not in answer.data:
                    raise Failure("a watch from before the copy: %r" % answer)
            world.live_restores(two, kill_server=False)
            world.live_restores(one, kill_server=True)
            world.backups(two)


def head_of(path):
    with open(path) as f:
        return json.loads(f.readline())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print("seed %d" % arguments.seed, flush=True)
    with tempfile.TemporaryDirectory(prefix="dibs-backup-") as folder:
        world = World(folder, arguments.rounds, arguments.keys, random.Random(arguments.seed))
        try:
            world.prepare()
            sqlite(world)
            if etcd.program():
                on_etcd(world)
            else:
                print("no etcd on PATH: that part is left out")
        except Failure as failure:
            print("FAILED %s" % failure)
            return 1
    for what, (killed, rounds) in sorted(world.killed.items()):
        print("ok %s: killed in the middle %d of %d times" % (what, killed, rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
