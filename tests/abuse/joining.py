#!/usr/bin/env python3
"""Machines that join: keys go to nobody but where they are piped, nothing foreign is taken, and a node's file opens what a node may."""
import os
import pty
import stat
import subprocess
import sys

from suite import Failure, cluster, run


def dibs(*arguments, source=None, **more):
    return subprocess.run([cluster.binary(), "pki", *arguments], input=source, capture_output=True, timeout=60, **more)


def refused(done, what, *words):
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode == 0 or b"PRIVATE KEY" in done.stdout or any(word not in text for word in words):
        raise Failure("%s: exit status %d: %s" % (what, done.returncode, text))


def keys_are_not_shown(suite):
    """To a terminal nothing secret is written."""
    for command in (["export"], ["kubeconfig", "node/n"]):
        owner, terminal = pty.openpty()
        done = subprocess.run([cluster.binary(), "pki", *command, "--data-dir", suite.server.data], stdout=terminal, stderr=subprocess.PIPE, timeout=60)
        os.close(terminal)
        try:
            shown = os.read(owner, 65536)
        except OSError:
            shown = b""
        os.close(owner)
        if done.returncode == 0 or shown or b"terminal" not in done.stderr:
            raise Failure("dibs pki %s on a terminal: %d %r %r" % (command, done.returncode, shown[:80], done.stderr))


def modes(suite):
    """What is written is its owner's alone, whatever the umask."""
    before = os.umask(0)
    try:
        folder = os.path.join(suite.server.folder, "second")
        bundle = dibs("export", "--data-dir", suite.server.data).stdout
        done = dibs("import", "--data-dir", folder, source=bundle)
        config = os.path.join(suite.server.folder, "node.kubeconfig")
        made = dibs("kubeconfig", "node/n", "--data-dir", folder, "--server", suite.server.url, "--out", config)
    finally:
        os.umask(before)
    if done.returncode or made.returncode:
        raise Failure("%r %r" % (done.stderr, made.stderr))
    for path in (config, os.path.join(folder, "pki"), os.path.join(folder, "pki", "ca.key"), os.path.join(folder, "pki", "sa.key")):
        if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            raise Failure("%s has mode %o" % (path, os.stat(path).st_mode))


def foreign_keys(suite):
    """Nothing that is not a whole bundle is taken, and nothing that is there is overwritten."""
    folder = os.path.join(suite.server.folder, "third")
    bundle = dibs("export", "--data-dir", suite.server.data).stdout
    blocks = bundle.split(b"-----BEGIN ")
    for what, source in (("nothing", b""), ("text", b"hello\n" * 1000), ("half", bundle[:len(bundle) // 2]), ("no account key", b"-----BEGIN ".join(blocks[:3])),
                         ("keys in the wrong places", b"-----BEGIN ".join([blocks[0], blocks[1], blocks[3], blocks[2]])), ("zeros", b"\0" * (3 << 20))):
        refused(dibs("import", "--data-dir", folder, source=source), what, "standard input")
        if os.path.exists(os.path.join(folder, "pki", "ca.crt")) or os.path.exists(os.path.join(folder, "pki", "sa.key")):
            raise Failure("%s left something" % what)
    with cluster.Server() as other:
        refused(dibs("import", "--data-dir", other.data, source=bundle), "another cluster", "another cluster")
        with other.client() as client:
            client.expect(200, "GET", "/api/v1/namespaces/default")


def identities(suite):
    """Only nodes, schedulers and controllers are made, and a node is that node."""
    for who in ("admin", "node/", "node/a b", "node/../x", "system:masters", "node/UP", "node/x,O=system:masters", ""):
        refused(dibs("kubeconfig", who, "--data-dir", suite.server.data), who)
    config = os.path.join(suite.server.folder, "m.kubeconfig")
    dibs("kubeconfig", "node/m", "--data-dir", suite.server.data, "--out", config)
    if not cluster.kubectl():
        return
    for command in (["get", "secrets", "-A"], ["create", "configmap", "x"], ["delete", "node", "other"], ["get", "--raw", "/metrics"]):
        done = subprocess.run([cluster.kubectl(), "--kubeconfig", config, *command], capture_output=True, text=True, timeout=60)
        if done.returncode == 0 or "orbidden" not in done.stderr:
            raise Failure("kubectl %s as a node: %d %s%s" % (command, done.returncode, done.stdout, done.stderr))


def addresses(suite):
    """A server is not told of by what is no address, and shows its certificate for what it is called."""
    folder = os.path.join(suite.server.folder, "fourth")
    for flags in (["--advertise-address", "0.0.0.0"], ["--advertise-address", "host"], ["--tls-san", "a b"], ["--tls-san", "x,-y"],
                  ["--shutdown-delay-duration", "-1s"]):
        done = subprocess.run([cluster.binary(), "apiserver", "--data-dir", folder, "--bind", "127.0.0.1:0", *flags], capture_output=True, timeout=60)
        refused(done, " ".join(flags), flags[0])
    with cluster.Server(["--tls-san", "dibs.test,10.9.8.7", "--advertise-address", "127.0.0.1"]) as server:
        names = subprocess.run(["openssl", "x509", "-noout", "-text", "-in", os.path.join(server.data, "pki", "server.crt")], capture_output=True, text=True)
        if names.returncode == 0 and not all(word in names.stdout for word in ("DNS:dibs.test", "IP Address:10.9.8.7", "IP Address:10.0.0.1")):
            raise Failure(names.stdout)


if __name__ == "__main__":
    sys.exit(run([keys_are_not_shown, modes, foreign_keys, identities, addresses]))
