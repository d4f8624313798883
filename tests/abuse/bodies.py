#!/usr/bin/env python3
"""Bad content: malformed, oversized, deep, wrong, truncated. Every request gets a sane answer, and no other client notices."""
import http.client
import json
import random
import sys
import time

from suite import CONFIGMAPS, Failure, run

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/abuse.example.com/v1/namespaces/default/things"
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
           "application/apply-patch+yaml")
http.client._MAXHEADERS = 100000  # of many warnings
PROTOBUF = "application/vnd.kubernetes.protobuf"

NOT_JSON = [b"{", b"}", b"[", b"nul", b"tru", b"{]", b"{\"a\"}", b"{\"a\":}", b"{\"a\":1,}", b"{a:1}", b"{'a':1}", b"{\"a\":1}}",
            b"{\"a\":1} x", b"\"", b"\"\\x\"", b"\"\\u12\"", b"\"\\ud800\"x", b"01", b"1.", b".5", b"+1", b"1e", b"--1", b"NaN",
            b"Infinity", b"0x10", b"{\"a\":NaN}", b"\x00", b"{\"a\":\"\x01\"}", b"{\"a\":\"\n\"}", b"\xff\xfe{\x00}\x00",
            b"<xml/>", b"// no\n{}", b"/**/{}", b"{\"metadata\":{\"name\":\"x\"", b"\xef\xbb\xbf{"]
NOT_OBJECTS = [b"", b"null", b"[]", b"1", b"\"text\"", b"true", b"[{}]"]


def malformed_json(suite):
    suite.client.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": "m"}, "data": {"k": "v"}})
    targets = [("POST", CONFIGMAPS, "application/json"), ("PUT", CONFIGMAPS + "/m", "application/json"),
               ("DELETE", CONFIGMAPS + "/m?dryRun=All", "application/json"), ("DELETE", CONFIGMAPS + "?dryRun=All", "application/json"),
               ("POST", DEPLOYMENTS, "application/json"), ("POST", CRDS, "application/json"),
               ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json"),
               ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "application/json"),
               ("POST", "/api/v1/namespaces/default/pods/none/eviction", "application/json"),
               ("POST", "/api/v1/namespaces/default/pods/none/binding", "application/json"),
               ("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", "application/json")]
    targets += [("PATCH", CONFIGMAPS + "/m?fieldManager=t", kind) for kind in PATCHES]
    for method, path, kind in targets:
        for body in NOT_JSON + NOT_OBJECTS:
            if method == "DELETE" and body == b"":
                continue  # lawful
            answer = suite.client.request(method, path, raw=body, headers={"Content-Type": kind})
            what = "%s %s %s %r" % (method, path, kind, body)
            if path.endswith("/binding") and answer.status == 500:
                continue  # as upstream: what its validation finds is no Status of its own
            if body in NOT_OBJECTS or "yaml" in kind or (method == "PATCH" and body == b"[]"):
                suite.sane(answer, what)
            elif method == "DELETE" and answer.status == 200:
                raise Failure("%s: deleted" % what)
            else:
                suite.refused(answer, what)
    suite.client.expect(200, "GET", CONFIGMAPS + "/m")
    suite.client.expect(200, "DELETE", CONFIGMAPS + "/m")


def wrong_types(suite):
    values = [None, True, 0, -1, 1.5, 1e300, "text", [], ["x"], {}, {"x": 1}, [[]], [None]]
    fields = {
        CONFIGMAPS: ["metadata", "data", "binaryData", "immutable", "apiVersion", "kind"],
        DEPLOYMENTS: ["metadata", "spec", "status"],
        "/api/v1/namespaces/default/services": ["spec"],
        "/api/v1/nodes": ["spec", "status"],
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": ["spec", "status"],
        CRDS: ["spec"],
        "/apis/authorization.k8s.io/v1/subjectaccessreviews": ["spec"],
    }
    for path, names in fields.items():
        for name in names:
            for value in values:
                body = {"metadata": {"generateName": "wrong-"}}
                body[name] = value
                suite.sane(suite.client.request("POST", path + "?dryRun=All", body), "%s %s=%r" % (path, name, value))
    # One level deeper, under an object that is right otherwise.
    for name in ("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields",
                 "creationTimestamp", "deletionTimestamp", "generation", "resourceVersion", "uid", "deletionGracePeriodSeconds"):
        for value in values:
            body = {"metadata": {"name": "wrong", name: value}, "data": {}}
            suite.sane(suite.client.request("POST", CONFIGMAPS + "?dryRun=All", body), "metadata.%s=%r" % (name, value))
    for name in ("replicas", "selector", "template", "strategy", "minReadySeconds", "revisionHistoryLimit", "paused"):
        for value in values:
            body = {"metadata": {"name": "wrong"}, "spec": {name: value}}
            suite.sane(suite.client.request("POST", DEPLOYMENTS + "?dryRun=All", body), "spec.%s=%r" % (name, value))
    answer = suite.client.request("POST", CONFIGMAPS, {"metadata": {"name": "w"}, "data": {"k": 1}})
    suite.refused(answer, "a number where a string belongs", 400)


def unknown_fields(suite):
    body = {"metadata": {"name": "u", "unheardOf": 1}, "surplus": {"a": [1, 2]}, "data": {"k": "v"}}
    answer = suite.client.request("POST", CONFIGMAPS + "?fieldValidation=Strict", body)
    message = suite.refused(answer, "unknown fields", 400)["message"]
    for field in ("surplus", "metadata.unheardOf"):
        if 'unknown field "%s"' % field not in message:
            raise Failure("%s is not named in: %s" % (field, message))
    raw = b'{"metadata":{"name":"u"},"data":{"k":"1","k":"2"}}'
    suite.refused(suite.client.request("POST", CONFIGMAPS + "?fieldValidation=Strict", raw=raw), "a field twice", 400)
    answer = suite.client.request("POST", CONFIGMAPS + "?fieldValidation=Warn&dryRun=All", body)
    if answer.status != 201 or len(answer.headers.get_all("Warning") or []) != 2:
        raise Failure("unknown fields with a warning: %r %s" % (answer, answer.headers.get_all("Warning")))
    suite.refused(suite.client.request("POST", CONFIGMAPS + "?fieldValidation=Sometimes", body), "no such validation")
    # Ten thousand unknown fields make a bounded answer.
    many = dict({"metadata": {"name": "u"}}, **{"f%d" % i: 1 for i in range(10000)})
    answer = suite.client.request("POST", CONFIGMAPS + "?fieldValidation=Strict", many)
    suite.refused(answer, "10,000 unknown fields", 400)
    if len(answer.data) > 1 << 20:
        raise Failure("the answer to many unknown fields has %d bytes" % len(answer.data))
    answer = suite.client.request("POST", CONFIGMAPS + "?fieldValidation=Warn&dryRun=All", many)
    suite.sane(answer, "10,000 warnings")
    if len(str(answer.headers)) > 1 << 16:
        raise Failure("the headers of many warnings have %d bytes" % len(str(answer.headers)))


def deep_nesting(suite):
    make_definition(suite)
    for depth in (100, 1000, 9000, 20000, 100000, 1000000):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            body = opening * depth + (b"1" if opening != b"[" else b"") + closing * depth
            if len(body) > 2500000:
                continue
            for path, kind in ((CONFIGMAPS, "application/json"), (THINGS, "application/json"), (CRDS, "application/json")):
                raw = b'{"metadata":{"name":"deep"},"spec":' + body + b"}"
                answer = suite.client.request("POST", path + "?dryRun=All", raw=raw, headers={"Content-Type": kind})
                suite.sane(answer, "%d levels at %s" % (depth, path))
                unclosed = suite.client.request("POST", path, raw=opening * depth, headers={"Content-Type": kind})
                suite.refused(unclosed, "%d levels without an end at %s" % (depth, path))
            for kind in PATCHES:
                answer = suite.client.request("PATCH", THINGS + "/deep?fieldManager=t&dryRun=All", raw=raw, headers={"Content-Type": kind})
                suite.sane(answer, "%d levels, %s" % (depth, kind))
    # As deep as is accepted, it must come back, in every form.
    raw = b'{"apiVersion":"abuse.example.com/v1","kind":"Thing","metadata":{"name":"deep"},"spec":%s1%s}' % (b'{"a":' * 200, b"}" * 200)
    suite.client.expect(201, "POST", THINGS, raw=raw)
    for accept in ("application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"):
        suite.sane(suite.client.get(THINGS + "/deep", headers={"Accept": accept}), accept)
    suite.client.expect(200, "DELETE", THINGS + "/deep")


def make_definition(suite):
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.abuse.example.com"},
            "spec": {"group": "abuse.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    answer = suite.client.request("POST", CRDS, body)
    if answer.status not in (201, 409):
        raise Failure("the definition: %r" % answer)
    end = time.monotonic() + 20
    while suite.client.get(THINGS).status != 200:
        if time.monotonic() > end:
            raise Failure("the definition is not served")
        time.sleep(0.02)


def yaml(suite):
    headers = {"Content-Type": "application/yaml"}
    bodies = {
        "deep flow": b"metadata: {name: y}\nspec: " + b"{a: " * 20000 + b"1" + b"}" * 20000,
        "deep flow without an end": b"{a: " * 100000,
        "deep lists": b"[" * 200000,
        "deep blocks": b"".join(b" " * i + b"a:\n" for i in range(1500)),
        "deep dashes": b"- " * 20000 + b"x",
        "aliases upon aliases": b"metadata: {name: y}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
            b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 12)),
        "an alias of itself": b"&a [*a]",
        "an unknown alias": b"a: *nothing",
        "a tab": b"a:\n\tb: 1",
        "two documents": b"metadata: {name: y}\n---\nmetadata: {name: z}\n",
        "a tag": b"!!python/object:os.system {a: b}",
        "a binary": b"data: {k: !!binary ////}",
        "garbage": bytes(range(256)),
        "a key of a map": b"? {a: b}\n: c",
        "not a number": b"metadata: {name: y}\nspec: {x: .nan, y: .inf}",
        "a merge": b"metadata: {name: y}\nbase: &b {x: 1}\ndata: {<<: *b}",
    }
    for what, body in bodies.items():
        for path in (CONFIGMAPS, DEPLOYMENTS):
            began = time.monotonic()
            answer = suite.client.request("POST", path + "?dryRun=All", raw=body, headers=headers)
            suite.sane(answer, what)
            if time.monotonic() - began > 30:
                raise Failure("%s took %.1f s" % (what, time.monotonic() - began))
        answer = suite.client.request("PATCH", CONFIGMAPS + "/y?fieldManager=t&dryRun=All", raw=body,
                                      headers={"Content-Type": "application/apply-patch+yaml"})
        suite.sane(answer, "applied: " + what)


def invalid_utf8(suite):
    for text in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x80"):
        for raw in (b'{"metadata":{"name":"utf"},"data":{"k":"%s"}}' % text, b'{"metadata":{"name":"utf"},"data":{"%s":"v"}}' % text,
                    b'{"metadata":{"name":"utf","labels":{"k":"%s"}}}' % text, b'{"metadata":{"name":"%s"}}' % text):
            for kind in ("application/json", "application/yaml"):
                answer = suite.client.request("POST", CONFIGMAPS, raw=raw, headers={"Content-Type": kind})
                suite.sane(answer, repr(raw))
                if answer.status == 201:
                    suite.sane(suite.client.get(CONFIGMAPS + "/utf"), "read back " + repr(raw))
                    suite.client.expect(200, "DELETE", CONFIGMAPS + "/utf")
    answer = suite.client.request("POST", CONFIGMAPS, {"metadata": {"name": "utf"}, "data": {"k": "\U0001f600\u0000\ud83d"}})
    suite.sane(answer, "emoji, NUL and half a pair")
    suite.client.request("DELETE", CONFIGMAPS + "/utf")


def huge_metadata(suite):
    def attempt(metadata, what, *statuses):
        suite.refused(suite.client.request("POST", CONFIGMAPS, {"metadata": dict({"name": "huge"}, **metadata)}), what, *statuses)

    attempt({"labels": {"k": "v" * 64}}, "a label value of 64", 422)
    attempt({"labels": {"k": "v" * 1000000}}, "a label value of 1 MB", 422)
    attempt({"labels": {"k" * 64: "v"}}, "a label key of 64", 422)
    attempt({"labels": {"%s/k" % ("d" * 254): "v"}}, "a label prefix of 254", 422)
    attempt({"annotations": {"k": "v" * (256 * 1024)}}, "annotations of 256 KiB", 422)
    attempt({"name": "n" * 254}, "a name of 254", 422)
    attempt({"name": "n" * 1000000}, "a name of 1 MB", 422)
    attempt({"generateName": "g" * 1000000, "name": ""}, "a generateName of 1 MB")
    attempt({"finalizers": ["no-prefix"]}, "a finalizer without a prefix", 422)
    attempt({"finalizers": ["x" * 1000000]}, "a finalizer of 1 MB", 422)
    body = {"metadata": {"name": "huge"}, "data": {"k": "v" * (1024 * 1024 + 1)}}
    suite.refused(suite.client.request("POST", CONFIGMAPS, body), "data over 1 MiB", 422)
    labels = {"k%d" % i: "v" for i in range(20000)}
    suite.sane(suite.client.request("POST", CONFIGMAPS, {"metadata": {"name": "huge", "labels": labels}}), "20,000 labels")
    suite.client.request("DELETE", CONFIGMAPS + "/huge")


def names_and_paths(suite):
    for name in ("a%2Fb", "..", ".", "%2e%2e", "..%2f..%2fsecrets%2fx", "a%00b", "a%0d%0ab", "%ff", "a;b", "a b".replace(" ", "%20"), "%25",
                 "n" * 5000, "~", "*", "-", "A", "a_b", "%E2%82%AC"):
        for method in ("GET", "DELETE", "PUT", "PATCH"):
            headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None
            body = None if method in ("GET", "DELETE") else {"metadata": {}}
            answer = suite.client.request(method, CONFIGMAPS + "/" + name, body, headers=headers)
            # "." and ".." are cleaned out of paths by some servers: then it is another resource, but still no fault.
            if name in ("..", ".", "%2e%2e") and method == "GET":
                suite.sane(answer, name)
            elif not 300 <= answer.status < 500:
                raise Failure("%s %s: %r" % (method, name, answer))
    for name in ("a/b", "..", ".", "a..b", "-a", "a-", "A", "a_b", "a b", "a%2Fb", "", "ü", "a\nb", "a\u0000b"):
        answer = suite.client.request("POST", CONFIGMAPS, {"metadata": {"name": name}})
        suite.refused(answer, "the name %r" % name, 422, 400)
        answer = suite.client.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        suite.refused(answer, "the namespace %r" % name, 422, 400)
    for path in ("//api//v1//namespaces", "/api/v1/namespaces/", "/api/v1/../v1/pods", "/api/%2e%2e/api", "/apis/%2F/v1", "/api/v1/namespaces//pods",
                 "/api/v1/namespaces/x/y/z/w/v/u", "/" + "a/" * 2000, "/api/v1/namespaces/default/configmaps/x/status/y", "/*", "/%",
                 "/api/v1/pods?%", "/api/v1/pods?=&&=&x", "/api/v1/pods?labelSelector=%zz", "/api/v1/pods?limit=1;x=2"):
        answer = suite.client.request("GET", path)
        suite.sane(answer, path)
    selector = "labelSelector=" + "%2C".join("k%d%%3Dv" % i for i in range(5000))
    suite.sane(suite.client.get(CONFIGMAPS + "?" + selector), "a long selector")


def query_parameters(suite):
    for query in ("resourceVersion=x", "resourceVersion=-1", "resourceVersion=99999999999999999999999", "limit=x", "limit=-1",
                  "limit=99999999999999999999", "continue=x", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIvLi4vIn0",
                  "watch=maybe&timeoutSeconds=1", "watch=true&timeoutSeconds=1&limit=1", "timeoutSeconds=-1", "labelSelector=(((", "labelSelector=a%20in%20(",
                  "fieldSelector=%3D%3D%3D", "fieldSelector=spec.nothing%3Dx", "resourceVersionMatch=Sometimes&resourceVersion=1", "resourceVersionMatch=Exact",
                  "sendInitialEvents=true", "pretty=perhaps", "dryRun=Some", "gracePeriodSeconds=x", "fieldManager=" + "m" * 200,
                  "fieldManager=%01", "propagationPolicy=Never"):
        answer = suite.client.get(CONFIGMAPS + "?" + query)
        suite.sane(answer, query)
        answer = suite.client.request("POST", CONFIGMAPS + "?dryRun=All&" + query, {"metadata": {"generateName": "q-"}})
        suite.sane(answer, "POST " + query)
        answer = suite.client.request("DELETE", CONFIGMAPS + "/none?" + query)
        suite.refused(answer, "DELETE " + query)
    for query in ("resourceVersion=x", "limit=x", "continue=x", "labelSelector=((("):
        suite.refused(suite.client.get(CONFIGMAPS + "?" + query), query, 400)


def patch_bombs(suite):
    suite.client.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": "bomb"}, "data": {"k": "v" * 1000}})
    path = CONFIGMAPS + "/bomb"
    headers = {"Content-Type": "application/json-patch+json"}
    doubling = [{"op": "copy", "from": "/data", "path": "/data/d%d" % i} for i in range(40)]
    began = time.monotonic()
    suite.refused(suite.client.request("PATCH", path, doubling, headers=headers), "copies of copies")
    if time.monotonic() - began > 20:
        raise Failure("copies of copies took %.1f s" % (time.monotonic() - began))
    many = [{"op": "add", "path": "/data/k%d" % i, "value": "x"} for i in range(10001)]
    suite.refused(suite.client.request("PATCH", path, many, headers=headers), "10,001 operations", 413)
    for patch in ([{"op": "add"}], [{"op": "add", "path": "data"}], [{"op": "explode", "path": "/data"}], [{"op": "move", "from": "/data", "path": "/data/x"}],
                  [{"op": "remove", "path": ""}], [{"op": "replace", "path": "", "value": None}], [{"op": "replace", "path": "", "value": 1}],
                  [{"op": "add", "path": "/metadata/finalizers/99", "value": "x"}], [{"op": "test", "path": "/x~2", "value": 1}], [1], [None],
                  [{"op": "replace", "path": "/metadata/name", "value": "other"}], [{"op": "remove", "path": "/metadata"}]):
        suite.refused(suite.client.request("PATCH", path, patch, headers=headers), json.dumps(patch))
    for kind in PATCHES[1:]:
        for patch in ({"metadata": None}, {"metadata": {"name": None}}, {"data": []}, {"data": {"k": {}}}, {"$patch": "delete"}, {"$patch": "x"},
                      {"$setElementOrder/data": []}, {"data": {"$retainKeys": 1}}, {"metadata": {"ownerReferences": [{"$patch": "delete"}]}},
                      {"metadata": {"ownerReferences": [{"uid": 1}]}}, {"metadata": {"managedFields": [{"manager": 1}]}},
                      {"metadata": {"managedFields": [{"fieldsV1": {"k:{": {}}, "operation": "Apply", "apiVersion": "v1"}]}}):
            answer = suite.client.request("PATCH", path + "?fieldManager=t&dryRun=All", patch, headers={"Content-Type": kind})
            if "strategic" in kind and answer.status == 500 and answer.json["message"]:
                continue  # as upstream: an error of the merge has no status of its own
            suite.sane(answer, "%s %s" % (kind, json.dumps(patch)))
    got = suite.client.expect(200, "GET", path)
    if got["data"] != {"k": "v" * 1000}:
        raise Failure("refused patches have left a mark")
    suite.client.expect(200, "DELETE", path)


def encoded_configmap(name):
    """A ConfigMap in the API's protobuf encoding: the envelope's type in field 1, the object in field 2."""
    def field(number, content):
        assert len(content) < 128
        return bytes([number << 3 | 2, len(content)]) + content

    def entry(key, value):
        return field(1, key) + field(2, value)

    metadata = field(1, name.encode()) + field(3, b"default") + field(11, entry(b"a", b"b"))
    return b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, field(1, metadata) + field(2, entry(b"k", b"v")))


def protobuf(suite):
    chance = random.Random(7)
    good = encoded_configmap("proto")
    headers = {"Content-Type": PROTOBUF}
    made = suite.client.expect(201, "POST", CONFIGMAPS, raw=good, headers=headers)
    if made["data"] != {"k": "v"} or made["metadata"]["labels"] != {"a": "b"}:
        raise Failure("what was sent in protobuf came out as %s" % made)
    bodies = [good[:n] for n in range(len(good))]
    for _ in range(400):
        broken = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(4, len(broken))] = chance.randrange(256)
        bodies.append(bytes(broken))
    bodies += [good + b"\xff" * 10, b"k8s\x00" + b"\x0a" * 1000, b"k8s\x00" + b"\x12\xff\xff\xff\xff\x0f", b"k8s\x00" + b"\x0b" * 5000,
               b"k8s\x01" + good[4:], b"k8s\x00" + bytes(chance.randrange(256) for _ in range(1000))]
    for body in bodies:
        suite.sane(suite.client.request("POST", CONFIGMAPS + "?dryRun=All", raw=body, headers=headers), "protobuf %r" % body[:40])
        suite.sane(suite.client.request("PUT", CONFIGMAPS + "/proto?dryRun=All", raw=body, headers=headers), "protobuf PUT %r" % body[:40])
    for body in (b"", b"k8s\x00", b"k8s", b"{}", good[4:]):
        suite.refused(suite.client.request("POST", CONFIGMAPS, raw=body, headers=headers), "protobuf %r" % body[:10])
    suite.client.expect(200, "DELETE", CONFIGMAPS + "/proto")


def media_types(suite):
    body = json.dumps({"metadata": {"generateName": "m-"}}).encode()
    for kind in ("", "/", "text/html", "application/json; charset=latin-1", "application/json;;;", "application/jso\xf1".encode("latin-1").decode("latin-1"),
                 "application/cbor", "application/xml", "a" * 10000, "application/json, text/plain", "multipart/form-data; boundary=x"):
        suite.sane(suite.client.request("POST", CONFIGMAPS + "?dryRun=All", raw=body, headers={"Content-Type": kind}), "Content-Type " + kind[:50])
    for accept in ("", "*", "*/*", "a/b", "application/json;as=Nothing", "application/json;as=Table;v=v9;g=meta.k8s.io", ",,,", "application/json;q=x",
                   ";".join(["application/json"] * 3000), "application/json;as=PartialObjectMetadata;g=x;v=y"):
        suite.sane(suite.client.get(CONFIGMAPS, headers={"Accept": accept}), "Accept " + accept[:50])
    compressed = b"\x1f\x8b\x08\x00" + b"\x00" * 100
    suite.sane(suite.client.request("POST", CONFIGMAPS, raw=compressed, headers={"Content-Encoding": "gzip"}), "gzip garbage")


if __name__ == "__main__":
    sys.exit(run([malformed_json, wrong_types, unknown_fields, deep_nesting, yaml, invalid_utf8, huge_metadata, names_and_paths,
                  query_parameters, patch_bombs, protobuf, media_types]))
