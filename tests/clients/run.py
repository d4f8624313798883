#!/usr/bin/env python3
"""Runs a client library of Kubernetes against the dibs binary: single requests, then informers and watches across restarts.

    run.py js|go

The client program is built in $DIBS_BUILD/clients (default: build/clients of the project). Where its tools or the packages it needs
cannot be had, the test is skipped (exit status 77).

Across restarts: while the client follows the configmaps of a namespace, objects are written and the server is stopped, killed and
restarted on the same data and port. Each of the client's streams must then have seen every write once, in the order of versions.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

SKIPPED = 77
FOLLOW_DEADLINE = 120
ROUNDS = ("stop", "kill", "stop", "kill", "kill")


class Missing(Exception):
    """A tool or a package that is not to be had here."""


def build_folder(name):
    root = os.environ.get("DIBS_BUILD") or os.path.join(HERE, "..", "..", "build")
    folder = os.path.abspath(os.path.join(root, "clients", name))
    os.makedirs(folder, exist_ok=True)
    return folder


def shell(arguments, folder, missing, environment=None):
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, **(environment or {})))
    if done.returncode:
        text = "%s: exit status %d\n%s" % (" ".join(arguments), done.returncode, (done.stdout + done.stderr)[-2000:])
        raise Missing(text) if missing else cluster.Failure(text)


def find_go():
    """Path of Go, or Missing."""
    go = cluster.go()
    if not go:
        raise Missing("Go is not installed")
    return go


def build_go(folder, program, *flags, package="."):
    """Builds the program of a module that is a folder beside this file; Missing where Go or what it needs cannot be had."""
    go, source = find_go(), os.path.join(HERE, folder)
    shell([go, "mod", "download"], source, missing=True)
    shell([go, "build", "-mod=readonly", *flags, "-o", program, package], source, missing=False, environment={"CGO_ENABLED": "0"})
    return program


def on_own_machine(script, *words):
    """Runs a test again, with these arguments, on a machine of its own (support/underlay.sh); its exit status."""
    underlay = os.path.join(HERE, "..", "support", "underlay.sh")
    return subprocess.run([underlay, sys.executable, "-B", os.path.abspath(script), *words]).returncode


def prepare_js():
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("node or npm is not installed")
    folder = build_folder("js")
    wanted = os.path.join(HERE, "js", "package-lock.json")
    stamp = os.path.join(folder, "node_modules", ".stamp")
    with open(wanted) as f:
        lock = f.read()
    for name in ("package.json", "package-lock.json", "client.js"):
        shutil.copy(os.path.join(HERE, "js", name), folder)
    if not os.path.exists(stamp) or open(stamp).read() != lock:
        shell(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], folder, missing=True)
        with open(stamp, "w") as f:
            f.write(lock)
    return ["node", os.path.join(folder, "client.js")]


def prepare_go(name="go"):
    """In a folder of that name, since tests run side by side."""
    return [build_go("go", os.path.join(build_folder(name), "client"))]


def basics(server, program, encoding):
    namespace = "basics"
    server.client().expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    done = subprocess.run(program + ["basics", namespace] + encoding, capture_output=True, text=True, timeout=180,
                          env=dict(os.environ, KUBECONFIG=server.kubeconfig))
    print(done.stdout, end="")
    if done.returncode or "failed" in done.stdout or "ok" not in done.stdout:
        raise cluster.Failure("the client reports failures, exit status %d\n%s" % (done.returncode, done.stderr[-3000:]))


class Follower:
    """The client program in its following mode; its lines are collected as they come."""

    def __init__(self, server, program, namespace, encoding):
        self.lines = []
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(program + ["follow", namespace] + encoding, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, env=dict(os.environ, KUBECONFIG=server.kubeconfig))
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def has(self, *words):
        return any(line[:len(words)] == list(words) for line in self.lines)

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read()[-3000:]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.thread.join(5)


class Writer:
    """Writes configmaps and remembers each event that a watch of them must show."""

    def __init__(self, server, namespace):
        self.server, self.path = server, "/api/v1/namespaces/%s/configmaps" % namespace
        self.events, self.objects = [], {}

    def write(self, method, name, body=None):
        client = self.server.client()
        path = self.path if method == "POST" else self.path + "/" + name
        got = client.expect(201 if method == "POST" else 200, method, path, body)
        client.close()
        if method == "DELETE":
            del self.objects[name]
            self.events.append(("DELETED", name, None))  # the answer has no version of its own
        else:
            self.objects[name] = got["metadata"]["resourceVersion"]
            self.events.append(("ADDED" if method == "POST" else "MODIFIED", name, self.objects[name]))

    def batch(self, number):
        for i in range(8):
            name = "r%d-%d" % (number, i)
            self.write("POST", name, {"metadata": {"name": name}, "data": {"step": "made"}})
            self.write("PUT", name, {"metadata": {"name": name}, "data": {"step": "changed"}})
            if i % 2:
                self.write("DELETE", name)
        self.write("PUT", "lasting", {"metadata": {"name": "lasting"}, "data": {"round": str(number)}})


def compare(who, lines, writer, first):
    got = [(verb, name, version if verb != "DELETED" else None) for source, verb, name, version in lines if source == who]
    want = ([("ADDED", name, version) for name, version in first.items()] if who != "watch" else []) + writer.events
    if got == want:
        return []
    problems = ["%s saw %d events, expected %d:" % (who, len(got), len(want))]
    for event in want:
        if event not in got:
            problems.append("  missing   %s %s %s" % event)
    for event in got:
        if event not in want:
            problems.append("  unexpected %s %s %s" % event)
    if len(problems) == 1:
        problems.append("  the same events in another order, or twice")
    return problems[:12]


def follow(server, program, encoding, streams):
    namespace = "follow"
    server.client().expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    writer = Writer(server, namespace)
    writer.write("POST", "lasting", {"metadata": {"name": "lasting"}})
    writer.events.clear()
    first = {item["metadata"]["name"]: item["metadata"]["resourceVersion"]
             for item in server.client().expect(200, "GET", writer.path)["items"]}
    follower = Follower(server, program, namespace, encoding)
    try:
        cluster.wait_for(lambda: follower.has("ready") or follower.process.poll() is not None, FOLLOW_DEADLINE, "the client to be ready")
        for number, end in enumerate(ROUNDS):
            writer.batch(number)
            server.restart(kill=end == "kill")
        writer.batch(len(ROUNDS))
        writer.write("POST", "end", {"metadata": {"name": "end"}})
        try:
            follower.process.wait(FOLLOW_DEADLINE)
        except subprocess.TimeoutExpired:
            pass
        follower.thread.join(5 if follower.process.poll() is not None else 0)
        problems = []
        if follower.process.poll() != 0:
            problems.append("the client did not come to its end: exit status %s" % follower.process.poll())
        lines = [line for line in follower.lines if len(line) == 4]
        for who in streams:
            problems += compare(who, lines, writer, first)
        cached = {line[1]: line[2] for line in follower.lines if line[0] == "cache"}
        writer.objects = {**{n: v for n, v in first.items() if n not in writer.objects}, **writer.objects}
        if cached != writer.objects:
            problems.append("the cache holds %s, expected %s" % (cached, writer.objects))
        if "metadata" in streams and not any(line[0] == "streamed-lists" and line[1] != "0" for line in follower.lines):
            problems.append("the informers did not list by streaming")
        if problems:
            raise cluster.Failure("\n".join(problems) + "\n" + follower.error_text())
        print("ok informers and watches across %d restarts: %d events each" % (len(ROUNDS), len(writer.events)))
    finally:
        follower.close()


def main():
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    if which not in ("js", "go"):
        sys.exit("usage: run.py js|go")
    try:
        program = prepare_js() if which == "js" else prepare_go()
    except Missing as missing:
        print("SKIPPED: %s" % missing)
        return SKIPPED
    for encoding in [[]] if which == "js" else [[], ["protobuf"]]:
        print("%s:" % (encoding[0] if encoding else "json"))
        with cluster.Server() as server:
            basics(server, program, encoding)
        with cluster.Server() as server:
            follow(server, program, encoding, ("informer", "watch") if which == "js" else ("informer", "metadata", "watch"))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
