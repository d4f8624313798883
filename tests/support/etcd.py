"""Starts, kills, stops, restarts and replaces members of a real etcd for tests. Python 3 standard library only.

    with etcd.Etcd(3) as store:
        with cluster.Server(store.server_flags()) as server: ...
        store.leader().kill()

All members listen on one loopback address that is the cluster's alone (127.x.y.z): no outgoing connection of another program can take the
port of a member that is down. Data lies in a temporary folder and is synced as in earnest. Members die with the thread that started them, so
start and restart them from the main thread.

Environment: DIBS_ETCD is the program (default: etcd on PATH). Without one, `etcd.program()` is None and a test is to be skipped.
"""
import base64
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from cluster import Failure, die_with_parent, wait_for

START_DEADLINE = 180.0
MISSING = "SKIPPED: no etcd on PATH, or DIBS_ETCD names none that is there"


def program():
    """Path of etcd, or None where there is none."""
    path = os.environ.get("DIBS_ETCD")
    if path:
        return os.path.abspath(path) if os.access(path, os.X_OK) else None
    return shutil.which("etcd")


def version():
    """As numbers: (3, 4, 23)."""
    said = subprocess.run([program(), "--version"], capture_output=True, text=True).stdout
    return tuple(int(n) for n in re.search(r"etcd Version: (\d+)\.(\d+)\.(\d+)", said).groups())


def text_of(encoded):
    """Keys and values come as base64."""
    return base64.b64decode(encoded or "")


def encoded(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def after(prefix):
    """The end of the range of all keys with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


class Unavailable(Exception):
    """A member gave no answer, or that it cannot do it."""


class Member:
    """One process of etcd, on ports that it keeps over restarts."""

    def __init__(self, etcd, name):
        self.etcd, self.name, self.process, self.paused, self.id = etcd, name, None, False, None
        self.data = os.path.join(etcd.folder, name)
        self.log = os.path.join(etcd.folder, name + ".log")
        self.client_url = "%s://%s:%d" % (etcd.scheme, etcd.host, etcd.free_port())
        self.peer_url = "http://%s:%d" % (etcd.host, etcd.free_port())
        self.flags = []

    def __str__(self):
        return self.name

    def start(self):
        """Starts the process, without waiting for its readiness."""
        assert self.process is None
        arguments = [program(), "--name", self.name, "--data-dir", self.data,
                     "--listen-client-urls", self.client_url, "--advertise-client-urls", self.client_url,
                     "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                     "--initial-cluster-token", os.path.basename(self.etcd.folder)] + self.flags + self.etcd.flags
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.etcd.folder,
                                            preexec_fn=die_with_parent)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def running(self):
        return self.alive() and not self.paused

    def kill(self):
        """As a power cut would, SIGKILL."""
        process, self.process, self.paused = self.process, None, False
        if process:
            process.kill()
            process.wait()

    def end(self):
        """As an update would, SIGTERM: it leads no more, answers what is under way, and ends."""
        process, self.process = self.process, None
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failure("member %s of etcd did not end\n%s" % (self.name, self.log_tail()))

    def pause(self):
        """Stops it without ending its connections: a machine that hangs (SIGSTOP)."""
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def restart(self, wait=True):
        self.kill()
        self.start()
        if wait:
            self.wait_ready()

    def call(self, path, body=None, timeout=2.0):
        """One call by JSON, see the table of etcd's gateway: "kv/range", "maintenance/status". Numbers of 64 bits come as text."""
        request = urllib.request.Request("%s/v3/%s" % (self.client_url, path), json.dumps(body or {}).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self.etcd.context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Unavailable("%s of %s: %d %s" % (path, self.name, error.code, error.read(500).decode("utf-8", "replace")))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable("%s of %s: %s" % (path, self.name, error))

    def status(self):
        """What it says of itself, or None."""
        if not self.running():
            return None
        try:
            said = self.call("maintenance/status", timeout=1.0)
        except Unavailable:
            return None
        self.id = said["header"]["member_id"]
        return said

    def wait_ready(self):
        """Until it serves linearizable reads."""
        def ready():
            if not self.alive():
                raise Failure("member %s of etcd ended by itself\n%s" % (self.name, self.log_tail()))
            try:
                return self.call("kv/range", {"key": encoded("none")}, timeout=10.0)
            except Unavailable:
                return None
        try:
            wait_for(ready, START_DEADLINE, "member %s of etcd serves" % self.name)
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, self.log_tail()))
        self.status()

    def log_tail(self, size=3000):
        try:
            with open(self.log, "rb") as f:
                return f.read()[-size:].decode("utf-8", "replace")
        except OSError:
            return ""


class Etcd:
    """A cluster of members. Use as a context manager: it starts on entry, all is gone on exit.

    `flags` go to every member. With `scheme` "https" they have to name the certificates, and `context` is what trusts them."""

    def __init__(self, members=1, flags=(), scheme="http", context=None, host=None):
        self.folder = tempfile.mkdtemp(prefix="dibs-etcd-")
        self.flags, self.scheme, self.context = list(flags), scheme, context
        self.host = host or "127.%d.%d.%d" % (random.randint(2, 250), random.randint(1, 250), random.randint(1, 250))
        self.taken, self.made = set(), 0
        self.members = [self.new_member() for _ in range(members)]
        initial = ",".join("%s=%s" % (m.name, m.peer_url) for m in self.members)
        for member in self.members:
            member.flags = ["--initial-cluster", initial, "--initial-cluster-state", "new"]

    def new_member(self):
        self.made += 1
        return Member(self, "etcd-%d" % self.made)

    def free_port(self):
        """Not of those that the system gives to whoever asks for any: a member that is started again must find its own free still."""
        while True:
            port = random.randrange(12000, 30000)
            with socket.socket() as probe:
                try:
                    probe.bind((self.host, port))
                except OSError:
                    continue
            if port not in self.taken:
                self.taken.add(port)
                return port

    def __enter__(self):
        try:
            for member in self.members:
                member.start()
            for member in self.members:
                member.wait_ready()
            return self
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        for member in self.members:
            member.kill()
        if not os.environ.get("DIBS_TEST_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def endpoints(self):
        return ",".join(member.client_url for member in self.members)

    def server_flags(self, prefix=None):
        """What makes a dibs apiserver keep its objects here."""
        return ["--store", "etcd", "--etcd-endpoints", self.endpoints] + (["--etcd-prefix", prefix] if prefix else [])

    def current_leader(self):
        """The member that leads by the newest term that anybody knows of; None where there is none now."""
        said = [(int(s.get("raftTerm", 0)), s.get("leader", "0")) for s in (m.status() for m in self.members) if s]
        if not said:
            return None
        leader = max(said)[1]
        return next((m for m in self.members if m.id == leader and m.running()), None)

    def leader(self, seconds=30):
        return wait_for(self.current_leader, seconds, "etcd has a leader")

    def followers(self):
        leader = self.leader()
        return [m for m in self.members if m is not leader]

    def call(self, path, body=None, timeout=5.0):
        """The answer of the first member that gives one."""
        error = Unavailable("no member runs")
        for member in self.members:
            if member.running():
                try:
                    return member.call(path, body, timeout)
                except Unavailable as one:
                    error = one
        raise error

    def range(self, prefix, **more):
        """[(key, value, mod revision)] of all keys with this prefix, and the revision of the answer."""
        answer = self.call("kv/range", dict(more, key=encoded(prefix), range_end=encoded(after(prefix))))
        return ([(text_of(kv["key"]).decode(), text_of(kv.get("value")), int(kv["mod_revision"])) for kv in answer.get("kvs", [])],
                int(answer["header"]["revision"]))

    def history(self, prefix, start=1, end=None):
        """Every change under the prefix from one revision to another (default: the newest), as (revision, key, value or None where deleted)."""
        # A change of a key that is nobody else's shows that all before it has come.
        mark = int(self.call("kv/put", {"key": encoded("end-of-history")})["header"]["revision"])
        end = min(end or mark, mark)
        member = next(m for m in self.members if m.running())
        body = json.dumps({"create_request": {"key": encoded("\0"), "range_end": encoded("\0"), "start_revision": str(start)}})
        request = urllib.request.Request(member.client_url + "/v3/watch", body.encode(), {"Content-Type": "application/json"})
        changes = []
        with urllib.request.urlopen(request, timeout=60, context=self.context) as answer:
            for line in answer:
                said = json.loads(line)
                result = said.get("result")
                if result is None or result.get("canceled"):
                    raise Failure("the history of etcd ended: %s" % said)
                for event in result.get("events", []):
                    kv = event["kv"]
                    revision = int(kv["mod_revision"])
                    key = text_of(kv["key"]).decode()
                    if revision <= end and key.startswith(prefix):
                        changes.append((revision, key, None if event.get("type") == "DELETE" else text_of(kv.get("value"))))
                    if revision >= mark:
                        return changes
        raise Failure("the history of etcd was cut off")

    def replace(self, member):
        """A machine is lost for good and another takes its place: removes the member, adds a new one with an empty disk. Returns that one."""
        others = [m for m in self.members if m is not member]
        if member.id is None:
            member.status()
        member.kill()
        shutil.rmtree(member.data, ignore_errors=True)
        self.members = others
        self.leader()

        def changed(path, body):
            def attempt():
                try:
                    return self.call(path, body)
                except Unavailable as error:
                    return None if "unhealthy" in str(error) or "timed out" in str(error) else self.refuse(path, error)
            return wait_for(attempt, 60, path, interval=0.2)
        changed("cluster/member/remove", {"ID": member.id})
        new = self.new_member()
        changed("cluster/member/add", {"peerURLs": [new.peer_url]})
        initial = ",".join("%s=%s" % (m.name, m.peer_url) for m in others + [new])
        new.flags = ["--initial-cluster", initial, "--initial-cluster-state", "existing"]
        self.members = others + [new]
        new.start()
        new.wait_ready()
        return new

    @staticmethod
    def refuse(path, error):
        raise Failure("%s: %s" % (path, error))
