"""What the abuse tests share: a server, checks by name, and the probe that must succeed after each of them.

A check is a function that takes the Suite and raises a Failure. After each check the process must be alive and an innocent client must be
served at once: it creates, reads, lists and deletes an object. At the end the server must stop cleanly, with no word from a sanitizer.
"""
import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure  # noqa: E402

PROBE_DEADLINE = 20.0
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Suite:
    def __init__(self, server):
        self.server = server
        self.client = server.client(timeout=120)
        self.count = 0

    def probe(self):
        """An innocent client is served."""
        began = time.monotonic()
        self.count += 1
        name = "probe-%d" % self.count
        with self.server.client(timeout=PROBE_DEADLINE) as client:
            client.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": name}})
            client.expect(200, "GET", CONFIGMAPS + "/" + name)
            client.expect(200, "GET", CONFIGMAPS + "?limit=5")
            client.expect(200, "DELETE", CONFIGMAPS + "/" + name)
        took = time.monotonic() - began
        if took > PROBE_DEADLINE:
            raise Failure("an innocent client was served only after %.1f s" % took)

    def refused(self, answer, what, *statuses):
        """The answer must be a Status of 4xx (or one of the statuses) whose code is that of the answer."""
        allowed = answer.status in statuses if statuses else 400 <= answer.status < 500
        if not allowed:
            raise Failure("%s: %r, expected %s" % (what, answer, statuses or "4xx"))
        body = answer.json
        if body.get("kind") != "Status" or body.get("code") != answer.status or not body.get("message"):
            raise Failure("%s: the answer is no Status: %r" % (what, answer))
        return body

    def sane(self, answer, what):
        """Success or a refusal, but no fault of the server's."""
        if answer.status >= 500:
            raise Failure("%s: %r" % (what, answer))
        answer.data.decode("utf-8")


def raise_file_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def run(checks, flags=(), command="apiserver", tokens=()):
    """Runs the checks on one server, which knows more tokens, and returns the exit status of the test."""
    failed = 0
    only = sys.argv[1:]
    checks = [check for check in checks if not only or check.__name__ in only]
    try:
        server = cluster.Server(flags=flags, command=command)
        server.write_tokens(tokens)
        with server:
            suite = Suite(server)
            suite.probe()
            for check in checks:
                began = time.monotonic()
                try:
                    check(suite)
                    if not server.alive():
                        raise Failure("the server is gone\n" + server.log_tail())
                    suite.probe()
                    print("ok %s (%.1f s)" % (check.__name__, time.monotonic() - began), flush=True)
                except Exception as problem:  # a broken connection is a finding too
                    failed += 1
                    text = str(problem) if isinstance(problem, Failure) else "%s: %s" % (type(problem).__name__, problem)
                    print("FAILED %s: %s" % (check.__name__, text), flush=True)
                    if not server.alive():
                        print(server.log_tail(8000))
                        server.process = None
                        server.start()
                    suite.client = server.client(timeout=120)
    except Failure as failure:
        failed += 1
        print("FAILED %s" % failure)
    print("%d of %d checks passed" % (len(checks) - failed, len(checks)))
    return 1 if failed else 0
