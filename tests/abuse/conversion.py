#!/usr/bin/env python3
"""Conversion webhooks by a real HTTPS server: one that talks nonsense, answers without end, is slow or dead stops the versions that need it
and nobody else."""
import json
import shutil
import sys
import tempfile
import threading
import time

from suite import Failure, run
from webhooks import Authority, Handler, Hook

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SLOW, JANE = "token-of-the-slow", "token-of-jane"
WORLD = None


class Converter(Handler):
    def answer(self, review, change=None, **more):
        wanted = review["request"]["desiredAPIVersion"]
        objects = [dict(one, apiVersion=wanted) for one in review["request"]["objects"]]
        for one in objects:
            if change:
                change(one)
        response = dict({"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": objects}, **more)
        self.send(json.dumps({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}).encode())

    def on_good(self, review):
        self.answer(review)

    def on_sleep(self, review):
        time.sleep(6)
        self.answer(review)

    def on_garbage(self, _):
        self.send(b"\x00\xff no json")

    def on_deep(self, _):
        self.send(b"[" * 1000000)

    def on_huge(self, _):
        self.send(b'{"a":"' + b"x" * (20 << 20) + b'"}')

    def on_none(self, review):
        self.answer(review, convertedObjects=[])

    def on_thief(self, review):
        def rename(one):
            one["metadata"]["name"] = "other"
        self.answer(review, rename)


class Kind:
    """A definition whose v2 is converted at a path of the webhook, with one object stored as v1."""

    def __init__(self, suite, path):
        self.suite, self.plural = suite, "things" + path.strip("/")
        self.name = self.plural + ".example.com"
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        suite.client.expect(201, "POST", DEFINITIONS, {"metadata": {"name": self.name}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": self.plural, "kind": "Thing" + self.plural},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                "url": WORLD.url + path, "caBundle": WORLD.authority.bundle}}},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema},
                         {"name": "v2", "served": True, "storage": False, "schema": schema}]}})
        body = {"apiVersion": "example.com/v1", "kind": "Thing" + self.plural, "metadata": {"name": "a"}}
        deadline = time.monotonic() + 20
        while suite.client.request("POST", self.path("v1", ""), body).status != 201:
            if time.monotonic() > deadline:
                raise Failure("the definition is not served")
            time.sleep(0.05)

    def path(self, version, name="/a"):
        return "/apis/example.com/%s/namespaces/default/%s%s" % (version, self.plural, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.suite.client.expect(200, "DELETE", DEFINITIONS + "/" + self.name)


def converts(suite):
    with Kind(suite, "/good") as kind:
        for name in ("/a", ""):
            got = suite.client.expect(200, "GET", kind.path("v2", name))
            if got["apiVersion"] != "example.com/v2":
                raise Failure("not converted: %s" % got)


def nonsense(suite):
    for path, words in (("/garbage", "json parse error"), ("/deep", "json parse error"), ("/huge", "failed"),
                        ("/none", "returned 0 objects, expected 1"), ("/thief", "must have the same name: a != other")):
        with Kind(suite, path) as kind:
            for name in ("/a", ""):
                answer = suite.client.get(kind.path("v2", name))
                if answer.status != 500 or words not in answer.json["message"]:
                    raise Failure("%s: %r" % (path, answer))
            suite.client.expect(200, "GET", kind.path("v1"))
            lines = list(suite.client.stream(kind.path("v2", "?watch=true&timeoutSeconds=5")))
            if len(lines) != 1 or json.loads(lines[0])["type"] != "ERROR":
                raise Failure("%s: a watch saw %s" % (path, lines))


def slow_beside_healthy(suite):
    """By the hundreds: they are told 429, and somebody else is served meanwhile."""
    statuses = []
    with Kind(suite, "/sleep") as kind:
        def ask():
            with suite.server.client(token=SLOW, timeout=60) as client:
                statuses.append(client.get(kind.path("v2")).status)
        suite.client.expect(201, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "conversion"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                                            "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": "slow"}, {"kind": "User", "name": "jane"}]})
        threads = [threading.Thread(target=ask) for _ in range(200)]
        for thread in threads:
            thread.start()
        slowest, began = 0, time.monotonic()
        with suite.server.client(token=JANE, timeout=60) as jane:
            while time.monotonic() - began < 3:
                at = time.monotonic()
                jane.expect(200, "GET", kind.path("v1"))
                jane.expect(200, "GET", "/api/v1/namespaces/default/configmaps")
                slowest = max(slowest, time.monotonic() - at)
        for thread in threads:
            thread.join()
    seen = {status: statuses.count(status) for status in set(statuses)}
    print("  the slowest round of an innocent user %.2f s; answers to the others: %s" % (slowest, seen))
    if slowest > 2.5 or set(seen) - {200, 429} or not seen.get(200) or not seen.get(429):
        raise Failure("slowest %.2f s, answers %s" % (slowest, seen))


def main():
    global WORLD
    if not shutil.which("openssl"):
        print("SKIPPED: no openssl")
        return 77
    folder = tempfile.mkdtemp(prefix="dibs-conversion-")
    WORLD = Hook(Authority(folder, "trusted"), Converter)
    try:
        return run([converts, nonsense, slow_beside_healthy], tokens=[(SLOW, "slow", []), (JANE, "jane", [])])
    finally:
        WORLD.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
