#!/usr/bin/env python3
"""What is cheap to send and dear to serve: each is refused with a word about its bound, or served in bounded memory."""
import sys
import threading
import time

from bodies import PATCHES, THINGS, make_definition
from rights import RBAC, robot, rule
from suite import CONFIGMAPS, Failure, cluster, run

MEGABYTE = 1 << 20


def quickly(began, what, seconds=5):
    took = time.monotonic() - began
    if took > seconds and not cluster.has_sanitizer():
        raise Failure("%s took %.1f s" % (what, took))


def grown(suite, before, bound, what):
    now = suite.server.resident_bytes()
    if now - before > bound and not cluster.has_sanitizer():
        raise Failure("%s: %d MB more in memory" % (what, (now - before) >> 20))


def roles_that_multiply(suite):
    """178 words in each of four lists are a thousand million rights."""
    words = ["x%d" % i for i in range(178)]
    rules = [{"apiGroups": words, "resources": words, "verbs": words, "resourceNames": words}]
    with robot(suite, "maker", [rule(["rbac.authorization.k8s.io"], ["roles", "clusterroles"], "create", "patch", "update")]) as client:
        before = suite.server.resident_bytes()
        for path in (RBAC + "/namespaces/default/roles", RBAC + "/clusterroles"):
            for asking in (client, suite.client):
                began = time.monotonic()
                refusal = suite.refused(asking.request("POST", path, {"metadata": {"name": "many"}, "rules": rules}), "a role of 10^9 rights", 422)
                if "rules: Too many" not in refusal["message"]:
                    raise Failure("a role of 10^9 rights: %s" % refusal["message"][:200])
                quickly(began, "a role of 10^9 rights")
        few = [{"apiGroups": words[:14], "resources": words[:14], "verbs": words[:14], "resourceNames": words[:14]}]
        began = time.monotonic()
        suite.refused(client.request("POST", RBAC + "/clusterroles", {"metadata": {"name": "many"}, "rules": few}), "a role of 38,416 rights", 403)
        quickly(began, "a role of 38,416 rights")
        grown(suite, before, 100 * MEGABYTE, "roles")


def roles_with_many_rules(suite):
    """Rules that are aggregated are compared with each other: that must not take the square of their number."""
    rules = [{"apiGroups": [""], "resources": ["r%d" % i], "verbs": ["get"]} for i in range(30000)]
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    began = time.monotonic()
    suite.client.expect(201, "POST", RBAC + "/clusterroles", {"metadata": {"name": "long", "labels": labels}, "rules": rules})
    suite.probe()
    quickly(began, "a role of 30,000 rules that is aggregated", 20)
    suite.client.expect(200, "DELETE", RBAC + "/clusterroles/long")


def deep_objects(suite):
    """What is noted of the fields of an object grows with the square of its depth."""
    make_definition(suite)
    before = suite.server.resident_bytes()
    deep = b'{"a":' * 9000 + b"1" + b"}" * 9000
    body = b'{"apiVersion":"abuse.example.com/v1","kind":"Thing","metadata":{"name":"deep"},"spec":%s}'
    refusal = suite.refused(suite.client.request("POST", THINGS, raw=body % deep), "9,000 levels", 400)
    if "max depth" not in refusal["message"]:
        raise Failure("9,000 levels: %s" % refusal["message"][:200])
    suite.client.expect(201, "POST", THINGS, raw=body % (b'{"a":' * 400 + b"1" + b"}" * 400))
    for kind in PATCHES:
        patch = body % deep if "json-patch" not in kind else b'[{"op":"add","path":"/spec","value":%s}]' % deep
        answer = suite.client.request("PATCH", THINGS + "/deep?fieldManager=t&force=true", raw=patch, headers={"Content-Type": kind})
        suite.refused(answer, "9,000 levels by %s" % kind, 400, 415, 422)
    suite.client.expect(200, "PATCH", THINGS + "/deep?fieldManager=other", {"metadata": {"labels": {"a": "b"}}},
                        headers={"Content-Type": "application/merge-patch+json"})
    grown(suite, before, 100 * MEGABYTE, "deep objects")
    suite.client.expect(200, "DELETE", THINGS + "/deep")


def long_selectors(suite):
    for query in ("labelSelector=" + ",".join("k%d!%%3Dv" % i for i in range(2000)),
                  "labelSelector=k%20in%20(" + ",".join("v%d" % i for i in range(5000)) + ")",
                  "fieldSelector=" + ",".join("metadata.name!%%3Dv%d" % i for i in range(2000))):
        for path in (CONFIGMAPS, CONFIGMAPS + "?watch=true&timeoutSeconds=1"):
            answer = suite.client.get(path + ("&" if "?" in path else "?") + query)
            refusal = suite.refused(answer, "a long selector", 400)
            if "at most" not in refusal["message"]:
                raise Failure("a long selector: %s" % refusal["message"][:200])
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"k%d" % i: "v" for i in range(2000)}}}}
    answer = suite.client.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    suite.refused(answer, "a selector of 2,000 labels", 422)


def regular_expressions(suite):
    """Patterns of definitions: the worst that is known of others is harmless or refused."""
    subject = "a" * 5000 + "!"
    patterns = ("^(a+)+$", "(a|aa)+$", "((a{1,1000}){1,1000}){1,1000}", "^(([a-z])+.)+[A-Z]([a-z])+$", "(" * 5000 + "a" + ")" * 5000)
    for index, pattern in enumerate(patterns):
        plural = "patterns%d" % index
        definition = {"metadata": {"name": plural + ".abuse.example.com"}, "spec": {
            "group": "abuse.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": "Pattern%d" % index},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "string", "pattern": pattern}}}}}]}}
        began = time.monotonic()
        answer = suite.client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        suite.sane(answer, "pattern %s" % pattern[:30])
        quickly(began, "pattern %s" % pattern[:30])
        if answer.status != 201:
            continue
        path = "/apis/abuse.example.com/v1/namespaces/default/" + plural
        cluster.wait_for(lambda: suite.client.get(path).status == 200, 20, path)
        began = time.monotonic()
        body = {"apiVersion": "abuse.example.com/v1", "kind": "Pattern%d" % index, "metadata": {"name": "x"}, "spec": subject}
        suite.sane(suite.client.request("POST", path, body), "an object under %s" % pattern[:30])
        quickly(began, "an object under %s" % pattern[:30])
        suite.client.expect(200, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural + ".abuse.example.com")


def long_lists(suite):
    """A list of 60 MB, in every form and by several at once, costs no more than the pieces of it that are on their way."""
    space = "/api/v1/namespaces/lists"
    suite.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "lists"}})
    path, count = space + "/configmaps", 300
    for i in range(count):
        suite.client.expect(201, "POST", path, {"metadata": {"name": "m%d" % i}, "data": {"k": "%d" % i * (200000 // len(str(i)))}})
    suite.client.get(path + "?limit=1")
    before, most = suite.server.resident_bytes(), [0]
    done = threading.Event()

    def watch_memory():
        while not done.is_set():
            most[0] = max(most[0], suite.server.resident_bytes())
            time.sleep(0.005)

    watcher = threading.Thread(target=watch_memory)
    watcher.start()
    try:
        def read(accept, encoding, member):
            with suite.server.client(timeout=120) as client:
                answer = client.get(path, headers={"Accept": accept, "Accept-Encoding": encoding})
            if answer.status != 200:
                raise Failure("a list of 60 MB: %r" % answer)
            if not encoding and len(answer.json[member]) != count:
                raise Failure("a list of 60 MB has %d items" % len(answer.json[member]))

        json, partial = "application/json", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        for accept, encoding, member in ((json, "", "items"), (json, "gzip", "items"), (partial, "", "items"),
                                         ("application/json;as=Table;v=v1;g=meta.k8s.io", "", "rows")):
            read(accept, encoding, member)
        readers = [threading.Thread(target=read, args=(json, "", "items")) for _ in range(6)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    finally:
        done.set()
        watcher.join()
    print("  %d MB before, %d MB at most" % (before >> 20, most[0] >> 20))
    if most[0] - before > 60 * MEGABYTE and not cluster.has_sanitizer():
        raise Failure("lists of 60 MB took %d MB" % ((most[0] - before) >> 20))
    suite.client.expect(200, "DELETE", path)


if __name__ == "__main__":
    sys.exit(run([roles_that_multiply, roles_with_many_rules, deep_objects, long_selectors, regular_expressions, long_lists]))
