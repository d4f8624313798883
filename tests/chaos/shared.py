"""Several API servers on one etcd, for tests that kill all of them by turns."""
import contextlib
import os
import random
import shutil
import time

from parts import cluster
import etcd


@contextlib.contextmanager
def servers(store, count=2, flags=()):
    """So many servers with one authority and the same keys, running."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(cluster.Server(store.server_flags() + list(flags)))
        all_of_them = [first]
        for _ in range(count - 1):
            other = cluster.Server(store.server_flags() + list(flags))
            os.makedirs(other.data, mode=0o700)
            shutil.copytree(os.path.join(first.data, "pki"), os.path.join(other.data, "pki"))
            all_of_them.append(stack.enter_context(other))
        yield all_of_them


def wait_ready(one, seconds=60):
    """Until the server says that it can write."""
    def ready():
        try:
            with one.client(timeout=5) as client:
                return client.get("/readyz").status == 200
        except OSError:
            return False
    cluster.wait_for(ready, seconds, "the server at %s is ready" % one.url, interval=0.05)


def start_again(server, tries=5):
    """As a supervisor does: a server that finds no etcd at its start ends, and etcd may be without a leader at that moment."""
    for left in reversed(range(tries)):
        try:
            return server.start()
        except cluster.Failure:
            if not left:
                raise
            time.sleep(1)


class Disturber:
    """Does harm to members of etcd and to servers, and mends it again. All from the main thread: what a thread started ends with it."""

    def __init__(self, store, servers, seed):
        self.store, self.servers, self.chance = store, servers, random.Random(seed)
        self.done = {}

    # What happens how often. The leader comes first: its loss is what costs something.
    HARM = {"leader killed": 5, "leader stopped": 3, "follower killed": 2, "follower stopped": 1, "two members killed": 1,
            "all members killed": 1, "server killed": 4, "all servers killed": 1, "member replaced": 1}

    def kinds(self):
        alone = len(self.store.members) == 1
        return {kind: weight for kind, weight in self.HARM.items()
                if not alone or kind in ("leader killed", "leader stopped", "server killed", "all servers killed")}

    def pause(self, least, most):
        time.sleep(self.chance.uniform(least, most))

    def kill_members(self, members):
        for member in members:
            member.kill()
        self.pause(0.05, 2)
        for member in members:
            member.start()

    def stop_member(self, member):
        member.pause()
        self.pause(0.5, 4)
        member.resume()

    def kill_servers(self, some):
        for server in some:
            server.kill()
        self.store.leader()
        for server in some:
            server.flags[:len(self.store.server_flags())] = self.store.server_flags()
            start_again(server)

    def harm(self, kind=None):
        """One of them, by chance where it is not told; returns what it was. Whatever was harmed is back after it."""
        kinds = self.kinds()
        kind = kind or self.chance.choices(list(kinds), weights=kinds.values())[0]
        self.done[kind] = self.done.get(kind, 0) + 1
        whom, how = kind.rsplit(" ", 1)
        if whom == "server":
            self.kill_servers([self.chance.choice(self.servers)])
        elif whom == "all servers":
            self.kill_servers(self.servers)
        elif kind == "member replaced":
            # A server goes on as long as it knows one that is still there; it learns of the new one when it starts again.
            self.store.replace(self.chance.choice(self.store.members))
            self.kill_servers([self.chance.choice(self.servers)])
        elif how == "killed":
            leader = self.store.leader()
            others = [m for m in self.store.members if m is not leader]
            some = {"leader": [leader], "follower": others[:1], "two members": [leader] + others[:1],
                    "all members": self.store.members}[whom]
            self.kill_members(some)
        else:
            leader = self.store.leader()
            self.stop_member(leader if whom == "leader" else next(m for m in self.store.members if m is not leader))
        self.check()
        return kind

    def check(self):
        """Nothing ends by itself, whatever else is down."""
        for server in self.servers:
            if not server.alive():
                raise cluster.Failure("a server ended by itself after %s:\n%s" % (self.done, server.log_tail()))
        for member in self.store.members:
            if not member.alive():
                raise cluster.Failure("a member of etcd ended by itself after %s:\n%s" % (self.done, member.log_tail()))

    def settle(self):
        """Until all are well again."""
        self.store.leader()
        for server in self.servers:
            wait_ready(server)

    def __str__(self):
        return ", ".join("%d x %s" % (count, kind) for kind, count in sorted(self.done.items())) or "nothing disturbed"


def missing():
    """Whether there is no etcd to test with; says so."""
    if not etcd.program():
        print(etcd.MISSING)
        return True
    return False
