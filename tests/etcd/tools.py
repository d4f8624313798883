#!/usr/bin/env python3
"""`dibs store copy` and `check`, `dibs backup` and `restore` with an etcd of three members, and with values that are encrypted.

A cluster with Secrets moves from an encrypted file to an encrypted etcd; gets a new key, with which every value is written anew; is backed up while it
runs; is half restored and abandoned; and is restored to another etcd, where it goes on. Hundreds of claims and slices, which lie in one of two places
of an etcd, are copied and restored. Servers and commands meet an etcd by certificates, and as a user with the rights that docs/etcd.md tells.
"""
import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402
from cluster import Failure  # noqa: E402

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
COUNT = 40
MANY = 3000  # of what a restore has to write: enough to be killed in its midst
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
OF_EACH = 200  # more than any transaction takes


def dibs(*arguments, fails=None):
    """Runs a command; where `fails` is given it must fail with these words on one of its outputs."""
    done = subprocess.run([cluster.binary(), *arguments], capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    if (done.returncode != 0) != (fails is not None) or (fails and fails not in said):
        raise Failure("dibs %s: exit status %d, expected %s\n%s" % (" ".join(arguments), done.returncode, fails or 0, said[-2000:]))
    return said


def encryption(folder, *keys):
    """A configuration whose first key writes."""
    path = os.path.join(folder, "-".join(keys) + ".json")
    with open(path, "w") as f:
        named = [{"name": key, "secret": base64.b64encode(key.encode().ljust(32, b".")).decode()} for key in keys]
        json.dump({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
                   "resources": [{"resources": ["secrets"], "providers": [{"aescbc": {"keys": named}}]}]}, f)
    return ["--encryption-provider-config", path]


def sealed_by(store):
    """The keys that the secrets on an etcd are encrypted with."""
    out = set()
    for key, value, _ in store.range("/registry/secrets/default/")[0]:
        if not value.startswith(b"k8s:enc:aescbc:v1:"):
            raise Failure("%s is not encrypted: %r" % (key, value[:40]))
        out.add(value.split(b":")[4].decode())
    return out


def expect_secrets(server):
    with server.client() as client:
        shown = {s["metadata"]["name"]: s["data"]["x"] for s in client.expect(200, "GET", SECRETS)["items"]}
    wanted = {"s%d" % i: base64.b64encode(b"hidden %d" % i).decode() for i in range(COUNT)}
    if shown != wanted:
        raise Failure("%d secrets are shown, expected %d: %s" % (len(shown), len(wanted), sorted(shown.items())[:3]))


def move(folder, store, place):
    """From an encrypted file."""
    old = encryption(folder, "old")
    with cluster.Server(old, folder=folder) as server:
        with server.client() as client:
            for i in range(COUNT):
                client.expect(201, "POST", SECRETS, {"metadata": {"name": "s%d" % i}, "data": {"x": base64.b64encode(b"hidden %d" % i).decode()}})
    source = "sqlite:" + server.data
    dibs("store", "copy", "--from", source, "--to", place, fails="is encrypted")
    dibs("store", "copy", "--from", source, "--to", place, *old)
    if sealed_by(store) != {"old"}:
        raise Failure("copied secrets are encrypted with %s" % sealed_by(store))
    dibs("store", "check", place, *old)
    for_each = dibs("store", "check", place, fails="%d faults" % COUNT)
    if "/registry/secrets/default/s0: cannot be read: " not in for_each:
        raise Failure("a check without the key says: %s" % for_each[:500])
    dibs("backup", "--to", os.path.join(folder, "none"), "--from", place, fails="cannot be read")
    dibs("store", "copy", "--from", place, "--to", "sqlite:" + os.path.join(folder, "none"), fails="cannot be read")


def renew(folder, store):
    """A new key comes first, then the old one goes."""
    with cluster.Server(store.server_flags() + encryption(folder, "new", "old"), folder=folder) as server:
        cluster.wait_for(lambda: sealed_by(store) == {"new"}, 30, "all secrets are encrypted with the new key")
        expect_secrets(server)
    with cluster.Server(store.server_flags() + encryption(folder, "new"), folder=folder) as server:
        expect_secrets(server)


def abandon(server, backup):
    """A restore that is killed in its midst, after which the cluster goes on as it is."""
    arguments = ("restore", "--from", backup, "--kubeconfig", server.kubeconfig)
    process = subprocess.Popen([cluster.binary(), *arguments, "--overwrite"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=cluster.die_with_parent)
    with server.client() as client:
        probe = {"metadata": {"name": "probe"}}
        cluster.wait_for(lambda: client.request("POST", MAPS + "?dryRun=All", probe).status == 503 or process.poll() is not None, 60,
                         "the restore keeps others from writing", interval=0)
        process.kill()
        if process.wait() == 0:
            raise Failure("the restore ended before it could be killed")
        refused = client.request("POST", MAPS, probe)
        if refused.status != 503 or not refused.headers.get("Retry-After"):
            raise Failure("a write after a killed restore: %r" % refused)
        dibs(*arguments, "--abandon")
        client.expect(201, "POST", MAPS, probe)
        client.expect(200, "DELETE", MAPS + "/probe")
    dibs(*arguments, "--overwrite")


def back_up(folder, store):
    """Of a cluster that runs, which then gets it back."""
    backup = os.path.join(folder, "backup")
    with cluster.Server(store.server_flags() + encryption(folder, "new"), folder=folder) as server:
        with server.client() as client:
            for i in range(MANY):
                client.expect(201, "POST", MAPS, {"metadata": {"name": "m%d" % i}})
            dibs("backup", "--to", backup, "--kubeconfig", server.kubeconfig)
            client.expect(200, "DELETE", MAPS)
            abandon(server, backup)
            maps = client.expect(200, "GET", MAPS)
            if len(maps["items"]) < MANY:
                raise Failure("%d of %d maps were restored" % (len(maps["items"]), MANY))
    return backup


def go_on_elsewhere(folder, backup):
    with etcd.Etcd(1) as other:
        place = "etcd:" + other.endpoints
        new = encryption(folder, "new")
        dibs("restore", "--from", backup, "--to", place, *new)
        if sealed_by(other) != {"new"}:
            raise Failure("restored secrets are encrypted with %s" % sealed_by(other))
        dibs("store", "check", place, *new)
        with cluster.Server(other.server_flags() + new, folder=folder) as server:
            expect_secrets(server)
            with server.client() as client:
                with open(backup) as f:
                    taken = json.loads(f.readline())["revision"]
                now = int(client.expect(200, "GET", MAPS)["metadata"]["resourceVersion"])
                if now <= taken:
                    raise Failure("the version is %d after a restore of one at %d" % (now, taken))


def make_claims_and_slices(client):
    for i in range(OF_EACH):
        client.expect(201, "POST", CLAIMS, {"metadata": {"name": "c%d" % i},
                                            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}}})
        client.expect(201, "POST", SLICES, {"metadata": {"name": "s%d" % i},
                                            "spec": {"driver": "d.example.com", "allNodes": True, "devices": [{"name": "d"}],
                                                     "pool": {"name": "p%d" % i, "generation": 1, "resourceSliceCount": 1}}})


def expect_claims_and_slices(client, what):
    for path in (CLAIMS, SLICES):
        there = len(client.expect(200, "GET", path)["items"])
        if there != OF_EACH:
            raise Failure("%d of %d are there after %s: %s" % (there, OF_EACH, what, path))


def fill_with_claims(folder):
    """By all ways that fill an etcd."""
    backup = os.path.join(folder, "claims")
    with cluster.Server(folder=folder) as server, server.client() as client:
        make_claims_and_slices(client)
        dibs("backup", "--to", backup, "--kubeconfig", server.kubeconfig)
    for command in (("store", "copy", "--from", "sqlite:" + server.data), ("restore", "--from", backup)):
        with etcd.Etcd(1) as store:
            place = "etcd:" + store.endpoints
            dibs(*command, "--to", place)
            dibs("store", "check", place)
            with cluster.Server(store.server_flags(), folder=folder) as server, server.client() as client:
                expect_claims_and_slices(client, command[0])
                client.expect(200, "DELETE", CLAIMS)
                client.expect(200, "DELETE", SLICES)
                dibs("restore", "--from", backup, "--kubeconfig", server.kubeconfig, "--overwrite")
                expect_claims_and_slices(client, "a restore on a running server")


def expect_to_be_met(store, flags, folder):
    """By a server and by a command."""
    with cluster.Server(store.server_flags() + flags, folder=folder) as server, server.client() as client:
        client.expect(201, "POST", MAPS, {"metadata": {"name": "m"}})
    dibs("store", "check", "etcd:" + store.endpoints, *flags)


def certificates(folder, host):
    """As docs/several-machines.md makes them: ca.crt, etcd.crt and etcd.key."""
    def openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise Failure("openssl %s: %s" % (arguments[0], done.stderr))
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-days", "3650", "-subj", "/CN=etcd", "-keyout", "ca.key", "-out", "ca.crt")
    openssl("req", *key, "-subj", "/CN=etcd", "-keyout", "etcd.key", "-out", "etcd.csr")
    with open(os.path.join(folder, "names"), "w") as f:
        f.write("subjectAltName=IP:%s\n" % host)
    openssl("x509", "-req", "-in", "etcd.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650", "-extfile", "names",
            "-out", "etcd.crt")
    return [os.path.join(folder, name) for name in ("ca.crt", "etcd.crt", "etcd.key")]


def meet_by_certificate(folder):
    host = "127.0.0.1"
    authority, certificate, key = certificates(folder, host)
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    with etcd.Etcd(1, ["--client-cert-auth", "--trusted-ca-file", authority, "--cert-file", certificate, "--key-file", key],
                   scheme="https", context=context, host=host) as store:
        expect_to_be_met(store, ["--etcd-cafile", authority, "--etcd-certfile", certificate, "--etcd-keyfile", key], folder)
        dibs("store", "check", "etcd:" + store.endpoints, "--etcd-cafile", authority, fails="certificate")
        dibs("store", "check", "etcd:" + store.endpoints, "--etcd-certfile", certificate, "--etcd-keyfile", key, fails="certificate")


def meet_as_user(folder):
    with etcd.Etcd(1) as store:
        for name in ("root", "dibs"):
            store.call("auth/user/add", {"name": name, "password": "a word"})
            store.call("auth/role/add", {"name": name})
            store.call("auth/user/grant", {"user": name, "role": name})
        for first, end in (("/registry.dibs/", "/registry0"), ("compact_rev_key", "")):
            store.call("auth/role/grant", {"name": "dibs", "perm": {"permType": "READWRITE", "key": etcd.encoded(first),
                                                                    "range_end": etcd.encoded(end)}})
        store.call("auth/enable")
        passwords = [os.path.join(folder, name) for name in ("right", "wrong")]
        for path, word in zip(passwords, ("a word", "another")):
            with open(path, "w") as f:
                f.write(word + "\n")
        expect_to_be_met(store, ["--etcd-user", "dibs", "--etcd-password-file", passwords[0]], folder)
        dibs("store", "check", "etcd:" + store.endpoints, "--etcd-user", "dibs", "--etcd-password-file", passwords[1],
             fails="invalid user ID or password")
        dibs("store", "check", "etcd:" + store.endpoints, fails="user name is empty")


def main():
    if not etcd.program():
        print(etcd.MISSING)
        return 77
    with etcd.Etcd(3) as store, tempfile.TemporaryDirectory(prefix="dibs-tools-") as folder:
        move(folder, store, "etcd:" + store.endpoints)
        renew(folder, store)
        go_on_elsewhere(folder, back_up(folder, store))
    for tried in (fill_with_claims, meet_by_certificate, meet_as_user):
        with tempfile.TemporaryDirectory(prefix="dibs-tools-") as folder:
            tried(folder)
    print("etcd %d.%d.%d: copied, renewed, backed up, abandoned, restored, met by certificate and as a user" % etcd.version())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
