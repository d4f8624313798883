"""Many writes a second from processes of their own, with a record of every one that was acknowledged. Lean: bare HTTP over kept connections."""
import json
import multiprocessing
import os
import random
import re
import socket
import threading
import time

from parts import cluster

NAMESPACE = "written"
PATH = "/api/v1/namespaces/%s/configmaps" % NAMESPACE
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.I)
VERSION = re.compile(rb'"resourceVersion": *"(\d+)"')
TIMEOUT = 30.0


class Broken(Exception):
    pass


class Connection:
    def __init__(self, server, context):
        plain = socket.create_connection((server.host, server.port), timeout=TIMEOUT)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = context.wrap_socket(plain, server_hostname=server.host)

    def request(self, method, path, body):
        """(status, body)"""
        self.sock.sendall(b"%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (method, path, cluster.ADMIN_TOKEN.encode(), len(body), body))
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.receive()
        found = LENGTH.search(data[:end + 2])
        if not found:
            raise Broken("an answer without a length")
        while len(data) < end + 4 + int(found.group(1)):
            data += self.receive()
        return int(data[9:12]), data[end + 4:]

    def receive(self):
        more = self.sock.recv(65536)
        if not more:
            raise Broken("the connection was closed")
        return more

    def close(self):
        self.sock.close()


class Writer(threading.Thread):
    """Creates objects of its own and updates them; each value says which write of this object it is."""

    def __init__(self, swarm, label):
        super().__init__(daemon=True)
        self.swarm, self.label, self.chance = swarm, label, random.Random(label)
        self.acknowledged, self.failed, self.newest = [], 0, {}
        self.connection = self.error = None

    def run(self):
        try:
            self.work()
        except Exception as error:  # reported by whoever reads the result
            self.error = repr(error)

    def work(self):
        due, made = time.monotonic() + self.chance.uniform(0, self.swarm.interval), 0
        while not self.swarm.ending.is_set():
            pause = due - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            due = max(due + self.swarm.interval, time.monotonic() - 1)  # what was missed is made up for, a second of it at most
            if not self.newest or self.chance.random() < 0.3:
                made += 1
                self.write("%s-%d" % (self.label, made), 0)
            else:
                name = self.chance.choice(list(self.newest)[-20:])
                self.write(name, self.newest[name] + 1)

    def write(self, name, number):
        body = json.dumps({"metadata": {"name": name}, "data": {"number": str(number)}}).encode()
        began = time.monotonic()
        try:
            if not self.connection:
                self.connection = Connection(self.chance.choice(self.swarm.servers), self.swarm.context)
            if number:
                status, answer = self.connection.request(b"PUT", ("%s/%s" % (PATH, name)).encode(), body)
            else:
                status, answer = self.connection.request(b"POST", PATH.encode(), body)
        except (OSError, Broken):
            self.failed += 1
            if self.connection:
                self.connection.close()
            self.connection = None
            self.newest.pop(name, None)  # nobody knows which write it is at
            time.sleep(0.02)
            return
        if status in (200, 201):
            self.newest[name] = number
            self.acknowledged.append((name, number, int(VERSION.search(answer).group(1)), began, time.monotonic()))
        else:
            self.failed += 1
            self.newest.pop(name, None)
            if status < 429:
                raise cluster.Failure("%s %d: %d %s" % (name, number, status, answer[:300]))
            time.sleep(0.02)


class Swarm(multiprocessing.Process):
    """One process of several writers; what they were told lies in a file at the end."""

    def __init__(self, servers, label, threads, rate, folder):
        super().__init__(daemon=True)
        self.servers, self.label, self.threads = servers, label, threads
        self.interval, self.context = threads / rate, servers[0].context()
        self.ending, self.path = multiprocessing.Event(), os.path.join(folder, "acknowledged-%s" % label)

    def run(self):
        writers = [Writer(self, "%s-%d" % (self.label, n)) for n in range(self.threads)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        with open(self.path + ".new", "w") as f:
            json.dump({"acknowledged": [a for w in writers for a in w.acknowledged], "failed": sum(w.failed for w in writers),
                       "errors": [w.error for w in writers if w.error]}, f)
        os.rename(self.path + ".new", self.path)

    def result(self):
        self.ending.set()
        self.join(TIMEOUT + 30)
        try:
            with open(self.path) as f:
                return json.load(f)
        except OSError:
            raise cluster.Failure("the writers of %s did not end" % self.label)
