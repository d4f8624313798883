"""Starts and stops a real kube-scheduler beside a server, for benchmarks.

Environment: DIBS_KUBE_SCHEDULER is the program (default: build/tools/kube-scheduler, which `tools/get-upstream kube-scheduler` builds).
Without one, `kube_scheduler.program()` is None.
"""
import json
import os
import ssl
import subprocess
import urllib.request

from cluster import Failure, die_with_parent, wait_for

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
START_DEADLINE = 120.0


def program():
    """Path of kube-scheduler, or None where there is none."""
    path = os.environ.get("DIBS_KUBE_SCHEDULER") or os.path.join(ROOT, "build", "tools", "kube-scheduler")
    return os.path.abspath(path) if os.access(path, os.X_OK) else None


class KubeScheduler:
    """One kube-scheduler with the rights of the server's administrator. Its files lie in the server's folder."""

    def __init__(self, server, host, port):
        self.server, self.host, self.port, self.process = server, host, port, None
        self.log = os.path.join(server.folder, "kube-scheduler.log")

    def __enter__(self):
        config = os.path.join(self.server.folder, "kube-scheduler.json")
        with open(config, "w") as f:
            # Requests a second as in upstream's own benchmark: its default of 50 would be what is measured.
            json.dump({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                       "clientConnection": {"kubeconfig": self.server.kubeconfig, "qps": 5000, "burst": 5000},
                       "leaderElection": {"leaderElect": False}}, f)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([program(), "--config", config, "--bind-address", self.host, "--secure-port", str(self.port)],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.server.folder,
                                            preexec_fn=die_with_parent)
        try:
            wait_for(self.ready, START_DEADLINE, "kube-scheduler is ready", interval=0.1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ready(self):
        """Whether it has read the cluster."""
        if self.process.poll() is not None:
            with open(self.log, errors="replace") as f:
                raise Failure("kube-scheduler ended by itself, exit status %d\n%s" % (self.process.returncode, f.read()[-3000:]))
        trusting = ssl._create_unverified_context()  # the certificate is made by itself for itself
        try:
            with urllib.request.urlopen("https://%s:%d/readyz" % (self.host, self.port), timeout=5, context=trusting) as answer:
                return answer.status == 200
        except OSError:
            return False
