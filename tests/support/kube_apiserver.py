"""Starts and stops a real kube-apiserver over an etcd, for tests. The interface is that of cluster.Server.

Environment: DIBS_KUBE_APISERVER is the program (default: build/tools/kube-apiserver, which `tools/get-upstream kube-apiserver` builds).
Without one, `kube_apiserver.program()` is None and a test is to be skipped.
"""
import base64
import os
import ssl
import subprocess
import time

import cluster
from cluster import Failure, die_with_parent

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
START_DEADLINE = 180.0
MISSING = "SKIPPED: no kube-apiserver: tools/get-upstream kube-apiserver builds it"

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: admin
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: test
  context:
    cluster: test
    user: admin
"""


def program():
    """Path of kube-apiserver, or None where there is none."""
    path = os.environ.get("DIBS_KUBE_APISERVER") or os.path.join(ROOT, "build", "tools", "kube-apiserver")
    return os.path.abspath(path) if os.access(path, os.X_OK) else None


class KubeApiserver(cluster.Server):
    """One kube-apiserver on loopback, with certificates, tokens and keys of its own."""

    def __init__(self, etcd, flags=(), service_range="10.96.0.0/16"):
        super().__init__(flags=flags)
        self.etcd, self.service_range = etcd, service_range
        self.port = etcd.free_port()
        self.url = "https://%s:%d" % (self.host, self.port)
        self.certificate, self.key = self.made("server.crt"), self.made("server.key")
        self.accounts = self.made("accounts.key")
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kube-apiserver", "-addext",
                     "subjectAltName=IP:%s" % self.host, "-keyout", self.key, "-out", self.certificate)
        self.openssl("genrsa", "-out", self.accounts, "2048")
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/O=system:masters/CN=admin", "-keyout", self.made("admin.key"),
                     "-out", self.made("admin.csr"))
        self.openssl("x509", "-req", "-in", self.made("admin.csr"), "-CA", self.certificate, "-CAkey", self.key, "-set_serial", "2",
                     "-days", "2", "-out", self.made("admin.crt"))
        self.kubeconfig = self.made("kubeconfig")
        with open(self.kubeconfig, "w") as f:
            f.write(KUBECONFIG % (self.url, self.encoded(self.certificate), self.encoded(self.made("admin.crt")),
                                  self.encoded(self.made("admin.key"))))

    @staticmethod
    def encoded(path):
        with open(path, "rb") as f:
            return base64.b64encode(f.read()).decode()

    def made(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def start(self):
        assert self.process is None
        arguments = [program(), "--etcd-servers", self.etcd.endpoints, "--bind-address", self.host, "--secure-port", str(self.port),
                     "--advertise-address", self.host, "--endpoint-reconciler-type", "none", "--cert-dir", self.made("certs"),
                     "--tls-cert-file", self.certificate, "--tls-private-key-file", self.key,
                     "--client-ca-file", self.certificate,
                     "--token-auth-file", self.tokens, "--authorization-mode", "RBAC",
                     "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", self.accounts,
                     "--service-account-signing-key-file", self.accounts, "--service-cluster-ip-range", self.service_range,
                     "--allow-privileged"] + self.flags
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                                            preexec_fn=die_with_parent)
        end = time.monotonic() + START_DEADLINE
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > end:
                code = self.process.poll()
                self.kill()
                raise Failure("kube-apiserver did not become ready (exit status %s)\n%s" % (code, self.log_tail()))
            time.sleep(0.1)
        return self

    def ready(self):
        try:
            with self.client(timeout=5) as client:
                return client.get("/readyz").status == 200
        except (OSError, ssl.SSLError):
            return False
