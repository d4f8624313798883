"""What is written down of strangers and of users with least rights: the audit log tells of each of them, a Secret's value is neither in it nor
readable in the store's files, and a client can neither forge a line nor keep one out.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile
import shutil

import suite
from suite import cluster
from cluster import Failure

SECRETS = "/api/v1/namespaces/default/secrets"
MARK = "correct-horse-battery-staple"
KEYS = {"old": base64.b64encode(b"0123456789abcdef0123456789abcdef").decode(),
        "new": base64.b64encode(b"abcdefghijklmnopabcdefghijklmnop").decode()}
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
          "rules": [{"level": "None", "users": ["system:kube-scheduler"]},
                    {"level": "Metadata", "resources": [{"resources": ["secrets"]}]},
                    {"level": "Request"}]}
FOLDER = tempfile.mkdtemp(prefix="dibs-audit-")


def path(name, content=None):
    out = os.path.join(FOLDER, name)
    if content is not None:
        with open(out, "w") as f:
            json.dump(content, f)
    return out


def encryption(*names, identity=False):
    """A configuration whose first key writes."""
    providers = [{"aescbc": {"keys": [{"name": name, "secret": KEYS[name]} for name in names]}}] + ([{"identity": {}}] if identity else [])
    return path("encryption.json", {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
                                    "resources": [{"resources": ["secrets"], "providers": providers}]})


def events(server):
    """All lines so far; each must be an object."""
    found = []
    for line in open(path("audit.log")):
        event = json.loads(line)
        if event.get("kind") != "Event" or event.get("apiVersion") != "audit.k8s.io/v1":
            raise Failure("no event: %r" % line[:200])
        found.append(event)
    return found


def stored(server):
    """The bytes of the store's files."""
    out = b""
    for name in os.listdir(server.data):
        if name.startswith("store.db"):
            with open(os.path.join(server.data, name), "rb") as f:
                out += f.read()
    return out


def everybody_is_told_of(suite):
    """Who is nobody, who may nothing, and who asks for what is not there."""
    server = suite.server
    with server.client(token="no-such-token") as client:
        suite.refused(client.get(SECRETS), "a wrong token", 401)
    with server.client(token=None) as client:
        suite.refused(client.get(SECRETS), "nobody", 403)
    suite.client.get("/apis/no.such.group/v1/things")
    with server.client() as client:
        client.get(SECRETS, headers={"Impersonate-User": "ann"})

    def told():
        seen = {(event["user"].get("username", ""), event.get("impersonatedUser", {}).get("username", ""), event["responseStatus"]["code"])
                for event in events(server) if event["stage"] in ("ResponseComplete", "ResponseStarted")}
        return {("", "", 401), ("system:anonymous", "", 403), ("admin", "", 404), ("admin", "ann", 403)} <= seen
    cluster.wait_for(told, 20, "lines about all of them")


def lines_cannot_be_forged(suite):
    """Line breaks and quotes in whatever a client chooses stay inside of their line."""
    evil = "x%22%7D%0A%7B%22kind%22:%22Event%22,%22user%22:%7B%22username%22:%22forged%22%7D%7D%0A"
    suite.client.get(SECRETS + "/" + evil)
    suite.client.get(SECRETS, headers={"User-Agent": 'a"}\\n{"kind":"Event","user":{"username":"forged"}}', "Audit-ID": '"}' * 50})
    suite.client.get(SECRETS, headers={"User-Agent": "u" * 5000})
    suite.client.request("POST", "/api/v1/namespaces/default/configmaps", raw=b'{"metadata":{"name":"x\n{\\"kind\\":1}')
    cluster.wait_for(lambda: any("TRUNCATED" in event.get("userAgent", "") for event in events(suite.server)), 20, "the last request's line")
    if any(event["user"].get("username") == "forged" for event in events(suite.server)):
        raise Failure("a client wrote a line of its own")


def secrets_are_in_neither(suite):
    suite.client.expect(201, "POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"password": MARK}})
    suite.client.expect(200, "GET", SECRETS + "/s")
    cluster.wait_for(lambda: any(event.get("objectRef", {}).get("name") == "s" and event["verb"] == "create" for event in events(suite.server)),
                     20, "the line of the secret")
    value = base64.b64encode(MARK.encode())
    for what, content in (("the audit log", open(path("audit.log"), "rb").read()), ("the store", stored(suite.server))):
        if value in content or MARK.encode() in content:
            raise Failure("the secret is in %s" % what)
    if b"k8s:enc:aescbc:v1:old:" not in stored(suite.server):
        raise Failure("the store does not say what it is encrypted with")


def keys_can_be_changed(suite):
    """A start with another first key encrypts all anew; without the key nothing starts, and nothing is lost by trying."""
    server = suite.server
    encryption("new", "old")
    server.restart()
    if server.client().expect(200, "GET", SECRETS + "/s")["data"]["password"] != base64.b64encode(MARK.encode()).decode():
        raise Failure("the secret is another")
    if b"k8s:enc:aescbc:v1:old:" in stored(server) or b"k8s:enc:aescbc:v1:new:" not in stored(server):
        raise Failure("what was there is not encrypted anew")
    encryption("old")
    server.stop()
    try:
        server.start()
    except Failure as refusal:
        if "k8s:enc:aescbc:v1:new:" not in str(refusal) or MARK in str(refusal):
            raise
    else:
        raise Failure("it started without the key")
    server.process = None
    encryption("new")
    server.start()
    server.client().expect(200, "GET", SECRETS + "/s")
    suite.client = server.client(timeout=120)


def nothing_told_is_lost_at_the_end(suite):
    """Each request that was answered before SIGTERM has its line."""
    names = ["last-%d" % i for i in range(200)]
    for name in names:
        suite.client.expect(201, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    suite.server.restart()
    told = {event.get("objectRef", {}).get("name") for event in events(suite.server) if event["stage"] == "ResponseComplete"}
    if not set(names) <= told:
        raise Failure("answered, but not told: %r" % sorted(set(names) - told)[:5])
    suite.client = suite.server.client(timeout=120)


def bad_files_are_refused(suite):
    """With the flag and what is wrong, before anything is changed."""
    for flags, words in (
            (["--audit-log-path", path("other.log")], "needs --audit-policy-file"),
            (["--audit-policy-file", path("bad.json", {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "All"}]}),
              "--audit-log-path", path("other.log")], "rules[0].level"),
            (["--encryption-provider-config", path("bad.json.missing")], "--encryption-provider-config"),
            (["--encryption-provider-config", path("kms.json", {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
                "resources": [{"resources": ["secrets"], "providers": [{"kms": {"name": "k"}}]}]})], "supported values: \"aescbc\"")):
        data = tempfile.mkdtemp(dir=FOLDER)
        done = subprocess.run([cluster.binary(), "apiserver", "--bind", "127.0.0.1:0", "--data-dir", data] + flags, capture_output=True,
                              text=True, timeout=60)
        if done.returncode not in (1, 2) or words not in done.stderr:
            raise Failure("%s: exit status %d, %s" % (flags, done.returncode, done.stderr))
        if os.path.exists(os.path.join(data, "store.db")):
            raise Failure("%s: refused, but the store was made" % flags)


if __name__ == "__main__":
    try:
        sys.exit(suite.run([everybody_is_told_of, lines_cannot_be_forged, secrets_are_in_neither, keys_can_be_changed,
                            nothing_told_is_lost_at_the_end, bad_files_are_refused],
                           flags=["--audit-policy-file", path("policy.json", POLICY), "--audit-log-path", path("audit.log"),
                                  "--encryption-provider-config", encryption("old", identity=True)]))
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
