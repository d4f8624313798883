"""Parts of a cluster in processes of their own, for tests that kill them."""
import http.client
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402


class Part:
    """A part of the cluster in a process of its own."""

    def __init__(self, server, *arguments, kubeconfig=None, name=None):
        self.server, self.arguments, self.process = server, arguments, None
        self.kubeconfig = kubeconfig or server.token_kubeconfig()
        self.log = os.path.join(server.folder, (name or arguments[0]) + ".log")
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([cluster.binary(), *self.arguments, "--kubeconfig", self.kubeconfig],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)

    def keep(self):
        """Starts it again where it ended by itself."""
        if self.process.poll() is not None:
            self.start()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def said(self):
        with open(self.log, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def stop(self):
        self.process.terminate()
        status = self.process.wait(cluster.STOP_DEADLINE)
        text = self.said()
        if status != 0 or cluster.SANITIZER.search(text):
            raise cluster.Failure("%s ended with status %d:\n%s" % (self.arguments[0], status, text[-4000:]))


def persist(client, method, path, body=None, good=(200, 201), also=()):
    """Repeats a request over restarts of the server; `also` are statuses that mean that an earlier try went through."""
    end = time.monotonic() + 60
    while True:
        try:
            answer = client.request(method, path, body)
            if answer.status in good or answer.status in also:
                return answer
            if answer.status not in (429, 500, 503, 504):
                raise cluster.Failure("%s %s: %r" % (method, path, answer))
        except (OSError, http.client.HTTPException):
            pass
        if time.monotonic() > end:
            raise cluster.Failure("%s %s: no answer for a minute" % (method, path))
        time.sleep(0.05)
