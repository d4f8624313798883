#!/usr/bin/env python3
"""Backups and restores: for those who may everything and for nobody else, whatever they send. What is broken or huge changes nothing and costs little."""
import gzip
import json
import os
import subprocess
import sys
import tempfile

from credentials import account_token
from rights import robot, rule
from suite import CONFIGMAPS, Failure, cluster, run

BACKUP = "/dibs/backup"
RESTORE = "/dibs/restore?id=abuse&step="
BEGIN = RESTORE + "begin&overwrite=true"
MARK = "xyzzy-the-password"
USERS = [("node-token", "system:node:n1", ["system:nodes"]), ("nobody-token", "nobody", []),
         ("viewer-token", "viewer", [])]
AUDIT = tempfile.mkdtemp(prefix="dibs-backup-")


def path(name, content):
    out = os.path.join(AUDIT, name)
    with open(out, "w") as f:
        json.dump(content, f)
    return out


POLICY = path("policy", {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                         "rules": [{"level": "RequestResponse", "nonResourceURLs": ["/dibs/*"]}, {"level": "None"}]})
LOG = os.path.join(AUDIT, "audit.log")


def lines(*changes):
    return "".join(json.dumps(change) + "\n" for change in changes).encode()


def put(name, value=None):
    stored = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%s","namespace":"default"}}' % name
    return {"key": "/registry/configmaps/default/" + name, "value": stored if value is None else value}


def state(suite):
    """Everything but what changes by itself, as the administrator reads it."""
    answer = suite.client.get(BACKUP)
    if answer.status != 200:
        raise Failure("the administrator's backup: %r" % answer)
    keys = [json.loads(line) for line in answer.data.splitlines()[1:-1]]
    return {one["key"]: one.get("value") for one in keys if not one["key"].startswith(("/registry/leases/", "/registry/events/"))}


def may_not(suite):
    """Few rights, many rights, the rights of a node, no name at all: none of them is enough."""
    suite.client.expect(201, "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"p": MARK}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    admin_here = {"metadata": {"name": "here"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
                  "subjects": [{"kind": "ServiceAccount", "name": "here", "namespace": "default"}]}
    here = account_token(suite, "here")
    suite.client.expect(201, "POST", rbac + "/namespaces/default/rolebindings", admin_here)
    everywhere = {"metadata": {"name": "viewer"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                  "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "viewer"}]}
    suite.client.expect(201, "POST", rbac + "/clusterrolebindings", everywhere)
    clients = {"admin of a namespace": suite.server.client(token=here), "viewer": suite.server.client(token="viewer-token"),
               "node": suite.server.client(token="node-token"), "user": suite.server.client(token="nobody-token"),
               "anonymous": suite.server.client(token=None)}
    paths = {"nonResourceURLs": ["*"], "verbs": ["*"]}
    clients["all paths"] = robot(suite, "paths", [paths])
    clients["reader of all"] = robot(suite, "reads", [rule(["*"], ["*"], "get", "list", "watch"), paths])
    clients["writer of all"] = robot(suite, "writes", [rule(["*"], ["*"], "*")])
    before = state(suite)
    for who, client in clients.items():
        for method, target in (("GET", BACKUP), ("GET", BACKUP + "?x"), ("POST", BEGIN), ("POST", RESTORE + "change"), ("POST", RESTORE + "end"),
                               ("HEAD", BACKUP), ("PUT", "/dibs/restore"), ("GET", "/dibs/restore")):
            answer = client.request(method, target, raw=lines(put("sneaked")) if method == "POST" else None)
            if answer.status != 403 or MARK.encode() in answer.data:
                raise Failure("%s, %s %s: %r" % (who, method, target, answer))
        # Ways around the path.
        for target in ("//dibs/backup", "/dibs//backup", "/dibs/backup/", "/dibs/%62ackup", "/dibs/./backup", "/x/../dibs/backup", "/DIBS/backup"):
            answer = client.get(target)
            if answer.status < 400 or MARK.encode() in answer.data:
                raise Failure("%s, %s: %r" % (who, target, answer))
        client.close()
    if state(suite) != before:
        raise Failure("something has changed")


def broken_bodies(suite):
    suite.client.expect(200, "POST", BEGIN, raw=b"")
    before = state(suite)
    good = lines(put("good"))
    bodies = [b"", b"\n", b"\0" * 1000, b"{" * 100000 + b"\n", good[:-1], good + good, good + b"{}\n", good + b"[1]\n",
              good + lines(put("x", "{")), good + lines(put("x", "null")), good + lines(put("x", "[]")),
              good + lines({"key": "/registry.dibs/unfinished", "deleted": True}), good + lines({"key": "", "deleted": True}),
              good + lines({"key": "/registry/configmaps/default/y", "value": put("x")["value"]}),
              good + lines({"key": "/registry/configmaps/default/x", "base64": "!"}), good + lines({"key": "/registry/leases/a/b", "deleted": True}),
              lines(*[put("n%d" % i) for i in range(500)]), good + lines(put("x", json.dumps({"a": "b" * 2000000})))]
    for body in bodies:
        for headers in ({}, {"Content-Encoding": "gzip"}):
            sent = gzip.compress(body) if headers else body
            answer = suite.client.request("POST", RESTORE + "change", raw=sent, headers=headers)
            suite.refused(answer, "a change with %r" % body[:60])
    suite.refused(suite.client.request("POST", RESTORE + "change", raw=b"no gzip", headers={"Content-Encoding": "gzip"}), "no gzip")
    for query in ("?step=begin&overwrite=true", "?id=a", "?id=a&step=begin", "?id=A%00&step=begin&overwrite=true", "?id=%s&step=end" % ("a" * 1000)):
        suite.refused(suite.client.request("POST", "/dibs/restore" + query, raw=b""), query)
    if state(suite) != before:
        raise Failure("something has changed")
    suite.client.expect(200, "POST", RESTORE + "end", raw=b"")


def memory_of(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) // 1024 for line in f if line.startswith("VmHWM"))


def huge_bodies(suite):
    """More than a request may have, and what unpacks to far more."""
    suite.client.expect(200, "POST", BEGIN, raw=b"")
    before, used = state(suite), memory_of(suite.server.process.pid)
    bomb = gzip.compress(b" " * (200 << 20), 1)
    for _ in range(3):
        suite.refused(suite.client.request("POST", RESTORE + "change", raw=bomb, headers={"Content-Encoding": "gzip"}), "200 MiB of blanks", 413)
    try:
        suite.refused(suite.client.request("POST", RESTORE + "change", raw=b" " * (32 << 20)), "32 MiB", 413)
    except OSError:
        suite.client.close()  # it need not be read to its end
    grown = memory_of(suite.server.process.pid) - used
    if not cluster.has_sanitizer() and grown > 200:
        raise Failure("%d MiB more were used" % grown)
    if state(suite) != before:
        raise Failure("something has changed")
    suite.client.expect(200, "POST", RESTORE + "end", raw=b"")


def writes_wait(suite):
    """Who writes meanwhile is told to come again, and nothing of it is lost or half there."""
    suite.client.expect(200, "POST", BEGIN, raw=b"")
    answer = suite.client.request("POST", CONFIGMAPS, {"metadata": {"name": "meanwhile"}})
    suite.refused(answer, "a write meanwhile", 503)
    if answer.headers.get("Retry-After") != "1":
        raise Failure("when to come again: %s" % dict(answer.headers))
    suite.client.expect(200, "GET", CONFIGMAPS)
    suite.server.restart(kill=True)
    suite.client = suite.server.client(timeout=120)
    suite.refused(suite.client.request("POST", CONFIGMAPS, {"metadata": {"name": "meanwhile"}}), "a write after a restart", 503)
    suite.client.expect(200, "POST", RESTORE + "change", raw=lines(put("restored")))
    suite.refused(suite.client.request("POST", "/dibs/restore?id=other&step=change", raw=lines(put("x"))), "another restore", 409)
    suite.client.expect(200, "POST", RESTORE + "end", raw=b"")
    suite.client.expect(200, "GET", CONFIGMAPS + "/restored")
    suite.client.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": "meanwhile"}})


def slow_reader(suite):
    """Who takes a backup slowly holds no writer up, and gets the state of when he asked."""
    big = {"data": {"x": "y" * 500000}}
    for i in range(40):
        suite.client.expect(201, "POST", CONFIGMAPS, dict(big, metadata={"name": "big-%d" % i}))
    answer = suite.client.stream(BACKUP)
    head = json.loads(answer.readline())
    for i in range(40):
        suite.client.expect(200, "DELETE", CONFIGMAPS + "/big-%d" % i)
    suite.probe()
    text = answer.read()
    if text.count(b'"/registry/configmaps/default/big-') != 40 or json.loads(text.splitlines()[-1])["keys"] != len(text.splitlines()) - 1:
        raise Failure("the backup at %d is not what was there" % head["revision"])
    answer.hang_up()


def cluster_admin_may(suite):
    """By role, not by group; and a copy of the file is of use to nobody else, because it is for its owner alone."""
    with robot(suite, "boss", [rule(["*"], ["*"], "*"), {"nonResourceURLs": ["*"], "verbs": ["*"]}]) as client:
        if client.get(BACKUP).status != 200:
            raise Failure("who may everything may not back it up")
    out = os.path.join(AUDIT, "backup")
    subprocess.run([cluster.binary(), "backup", "--to", out, "--kubeconfig", suite.server.kubeconfig], check=True, stdout=subprocess.DEVNULL)
    if os.stat(out).st_mode & 0o777 != 0o600:
        raise Failure("mode %o" % os.stat(out).st_mode)


def audited(suite):
    """Each of them is in the audit log, with who it was, and no value is."""
    with open(LOG) as f:
        text = f.read()
    events = [json.loads(line) for line in text.splitlines()]
    seen = {(e["user"]["username"], e["verb"], e["requestURI"].split("?")[0], e["responseStatus"]["code"]) for e in events}
    for expected in (("viewer", "get", BACKUP, 403), ("system:anonymous", "post", "/dibs/restore", 403), ("admin", "get", BACKUP, 200),
                     ("admin", "post", "/dibs/restore", 200), ("system:node:n1", "get", BACKUP, 403)):
        if expected not in seen:
            raise Failure("the audit log does not tell of %s" % (expected,))
    if MARK in text or "eHl6enkt" in text:
        raise Failure("a value is in the audit log")


if __name__ == "__main__":
    sys.exit(run([may_not, broken_bodies, huge_bodies, writes_wait, slow_reader, cluster_admin_may, audited],
                 flags=["--audit-policy-file", POLICY, "--audit-log-path", LOG], tokens=USERS))
