#!/usr/bin/env python3
"""Admission webhooks by a real HTTPS server: what they allow, refuse and change holds, and one that is slow, dead, foreign or
talks nonsense harms nobody whom it does not concern."""
import base64
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from suite import CONFIGMAPS, Failure, run

GROUP = "/apis/admissionregistration.k8s.io/v1/"
PODS = "/api/v1/namespaces/default/pods"
SLOW, JANE = "token-of-the-slow", "token-of-jane"


def openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True)
    if done.returncode:
        raise Failure("openssl %s: %s" % (" ".join(arguments), done.stderr.decode("utf-8", "replace")))


class Authority:
    """A CA, and a certificate of it for 127.0.0.1."""

    def __init__(self, folder, name):
        self.ca, self.key, self.certificate = (os.path.join(folder, name + end) for end in ("-ca.pem", ".key", ".pem"))
        ca_key, request, names = (os.path.join(folder, name + end) for end in ("-ca.key", ".csr", ".ext"))
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *new_key, "-keyout", ca_key, "-out", self.ca, "-days", "2", "-subj", "/CN=" + name)
        openssl("req", *new_key, "-keyout", self.key, "-out", request, "-subj", "/CN=webhook")
        with open(names, "w") as f:
            f.write("subjectAltName=IP:127.0.0.1,DNS:hook.default.svc\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", names,
                "-out", self.certificate)

    @property
    def bundle(self):
        with open(self.ca, "rb") as f:
            return base64.b64encode(f.read()).decode()


class Hook(http.server.ThreadingHTTPServer):
    """Answers by its path; keeps the questions."""
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, authority, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.authority, self.asked, self.lock = authority, [], threading.Lock()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(authority.certificate, authority.key)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        try:
            with self.context.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, client_address)
        except OSError:
            pass  # the other side does not trust it, or has hung up

    @property
    def url(self):
        return "https://127.0.0.1:%d" % self.server_address[1]

    def questions(self, path):
        with self.lock:
            return [review for at, review in self.asked if at == path]

    def forget(self):
        with self.lock:
            self.asked = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.asked.append((path, review))
        getattr(self, "on_" + path.strip("/").replace("-", "_"))(review)

    def send(self, data, status=200, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, review, allowed=True, patch=None, **more):
        response = dict({"uid": review["request"]["uid"], "allowed": allowed}, **more)
        if patch is not None:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        self.send(json.dumps({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}).encode())

    def on_allow(self, review):
        self.answer(review, warnings=["mind the gap"])

    def on_deny(self, review):
        self.answer(review, False, status={"code": 418, "reason": "Teapot", "message": "not today",
                                           "details": {"causes": [{"field": "data", "message": "empty"}]}}, warnings=["really"])

    def on_mark(self, review):
        """Counts in an annotation how often it was asked."""
        marks = (review["request"]["object"]["metadata"].get("annotations") or {}).get("marks", "")
        self.answer(review, patch=[
            {"op": "add", "path": "/metadata/annotations", "value": dict(review["request"]["object"]["metadata"].get("annotations") or {},
                                                                         marks=marks + "m")}])

    def on_label(self, review):
        about = review["request"]["object"] or review["request"]["oldObject"]
        labels = dict(about["metadata"].get("labels") or {}, labelled="yes")
        self.answer(review, patch=[{"op": "add", "path": "/metadata/labels", "value": labels}])

    def on_sidecar(self, review):
        containers = [c["name"] for c in review["request"]["object"]["spec"]["containers"]]
        patch = [] if "added" in containers else [
            {"op": "add", "path": "/spec/containers/-", "value": {"name": "added", "image": "busybox", "unknown": 1}}]
        self.answer(review, patch=patch or None)

    def on_sleep(self, review):
        time.sleep(4)
        self.answer(review)

    def on_garbage(self, review):
        self.send(b"\x00\xff no json")

    def on_list(self, review):
        self.send(b"[1]")

    def on_empty(self, review):
        self.send(b"")

    def on_other_uid(self, review):
        review["request"]["uid"] = "other"
        self.answer(review)

    def on_no_response(self, review):
        self.send(json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}).encode())

    def on_bad_patch(self, review):
        self.answer(review, patch=[{"op": "replace", "path": "/no/such/place", "value": 1}])

    def on_wrong_patch(self, review):
        self.answer(review, patch={"not": "a list"})

    def on_error(self, review):
        self.send(b"on fire", 500, "text/plain")

    def on_deep(self, review):
        self.send(b'{"a":' * 100000)

    def on_huge(self, review):
        """Never stops."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        piece = b" " * 65536
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            pass
        self.close_connection = True

    def on_hang_up(self, review):
        self.close_connection = True
        self.connection.close()


class World:
    """The webhook's server and its certificates, for all checks."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="dibs-webhooks-")
        self.trusted = Authority(self.folder, "trusted")
        self.foreign = Authority(self.folder, "foreign")
        self.hook = Hook(self.trusted)


WORLD = None


class Configuration:
    """A webhook configuration while it is entered."""

    def __init__(self, suite, path, kind="validating", name="test", **fields):
        self.suite, self.kind, self.name = suite, kind, name
        hook = {"name": "%s.hooks.example.com" % name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": WORLD.hook.url + path, "caBundle": WORLD.trusted.bundle},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}],
                "objectSelector": {"matchLabels": {"hooked": "yes"}}}
        hook.update(fields)
        self.hook = {key: value for key, value in hook.items() if value is not None}

    @property
    def path(self):
        return "%s%swebhookconfigurations" % (GROUP, self.kind)

    def __enter__(self):
        WORLD.hook.forget()
        self.suite.client.expect(201, "POST", self.path, {"metadata": {"name": self.name}, "webhooks": [self.hook]})
        return self

    def __exit__(self, *_):
        self.suite.client.expect(200, "DELETE", self.path + "/" + self.name)


COUNT = [0]


def hooked(**more):
    COUNT[0] += 1
    body = {"metadata": {"name": "cm-%d" % COUNT[0], "labels": {"hooked": "yes"}}, "data": {"k": "v"}}
    body.update(more)
    return body


def create(suite, body=None, query="", client=None):
    return (client or suite.client).request("POST", CONFIGMAPS + query, body or hooked())


def message(answer, status, *texts):
    body = answer.json
    if answer.status != status or body.get("kind") != "Status":
        raise Failure("%r, expected %d" % (answer, status))
    for text in texts:
        if text not in body["message"]:
            raise Failure("%r has no %r" % (body["message"], text))
    return body


def same(found, expected, what):
    if found != expected:
        raise Failure("%s: %r, expected %r" % (what, found, expected))


def created(answer):
    if answer.status != 201:
        raise Failure("%r, expected 201" % answer)
    return answer.json


def asks_and_warns(suite):
    with Configuration(suite, "/allow"):
        answer = create(suite)
        made = created(answer)
        same(answer.headers.get_all("Warning"), ['299 - "mind the gap"'], "warnings")
        review, = WORLD.hook.questions("/allow")
        request = review["request"]
        same((review["kind"], review["apiVersion"]), ("AdmissionReview", "admission.k8s.io/v1"), "kind")
        same(request["object"]["metadata"]["uid"], made["metadata"]["uid"], "what is asked about is what is stored")
        same((request["operation"], request["namespace"], request["name"], request["dryRun"], request["oldObject"]),
             ("CREATE", "default", made["metadata"]["name"], False, None), "request")
        same(request["resource"], {"group": "", "version": "v1", "resource": "configmaps"}, "resource")
        same(request["userInfo"]["username"], "admin", "user")
        same(request["options"]["kind"], "CreateOptions", "options")
        created(create(suite, {"metadata": {"name": "not-hooked"}}))
        same(len(WORLD.hook.questions("/allow")), 1, "questions")
        suite.client.expect(200, "DELETE", CONFIGMAPS + "/not-hooked")


def refuses_in_its_words(suite):
    with Configuration(suite, "/deny"):
        answer = create(suite)
        body = message(answer, 418)
        same(body["message"], 'admission webhook "test.hooks.example.com" denied the request: not today', "message")
        same((body["reason"], body["details"]), ("Teapot", {"causes": [{"field": "data", "message": "empty"}]}), "status")
        same(answer.headers.get_all("Warning"), ['299 - "really"'], "warnings")
        same(suite.client.get(CONFIGMAPS + "/cm-%d" % COUNT[0]).status, 404, "what was refused")
    # Configurations themselves are beyond reach.
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]
    with Configuration(suite, "/deny", rules=everything, objectSelector=None):
        message(create(suite), 418)
    created(create(suite))


def deletions_and_subresources(suite):
    rules = [{"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps", "namespaces/status", "serviceaccounts/token"],
              "operations": ["DELETE", "UPDATE", "CREATE"]}]
    body = hooked()
    created(create(suite, body))
    place = CONFIGMAPS + "/" + body["metadata"]["name"]
    with Configuration(suite, "/deny", rules=rules, objectSelector=None, matchConditions=[
            {"name": "not-the-probe", "expression": "request.operation != 'CREATE' || request.resource.resource != 'configmaps'"}]):
        message(suite.client.request("DELETE", place), 418)
        review = WORLD.hook.questions("/deny")[-1]["request"]
        same((review["operation"], review["object"], review["oldObject"]["metadata"]["name"]),
             ("DELETE", None, body["metadata"]["name"]), "request")
        message(suite.client.request("DELETE", CONFIGMAPS + "?labelSelector=hooked"), 418)
        space = suite.client.expect(200, "GET", "/api/v1/namespaces/default")
        message(suite.client.request("PUT", "/api/v1/namespaces/default/status", space), 418)
        suite.client.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        message(suite.client.request("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}}), 418)
        same(WORLD.hook.questions("/deny")[-1]["request"]["kind"]["kind"], "TokenRequest", "kind")
    with Configuration(suite, "/label", "mutating", rules=[dict(rules[0], operations=["DELETE"])]):
        message(suite.client.request("DELETE", place), 500, "attempted to modify the object, which is not supported for this operation")
    suite.client.expect(200, "DELETE", place)


def connects(suite):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec", "pods/attach"], "operations": ["CONNECT"]}]
    with Configuration(suite, "/deny", rules=rules, objectSelector=None):
        message(suite.client.request("POST", PODS + "/none/exec?command=true"), 418)
        review = WORLD.hook.questions("/deny")[-1]["request"]
        same((review["operation"], review["kind"]["kind"], review["object"]["command"], review["name"]),
             ("CONNECT", "PodExecOptions", ["true"], "none"), "request")


def patches_and_asks_again(suite):
    suite.client.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    with Configuration(suite, "/mark", "mutating", name="a", reinvocationPolicy="IfNeeded"), \
            Configuration(suite, "/label", "mutating", name="b"):
        made = created(create(suite))
        same(made["metadata"]["labels"], {"hooked": "yes", "labelled": "yes"}, "labels")
        same(made["metadata"]["annotations"], {"marks": "mm"}, "asked again after the label")
    with Configuration(suite, "/mark", "mutating", name="a"), Configuration(suite, "/label", "mutating", name="b"):
        same(created(create(suite))["metadata"]["annotations"], {"marks": "m"}, "never asked again")
    pods = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
    with Configuration(suite, "/sidecar", "mutating", rules=pods, objectSelector=None):
        pod = suite.client.expect(201, "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}})
        added = pod["spec"]["containers"][1]
        same((added["name"], added["terminationMessagePath"], "unknown" in added), ("added", "/dev/termination-log", False), "sidecar")
        # What the server puts into pods it puts into those of webhooks, too.
        same([m["mountPath"] for m in added["volumeMounts"]], ["/var/run/secrets/kubernetes.io/serviceaccount"], "mounts")
        same(len(pod["spec"]["volumes"]), 1, "volumes")
        suite.client.expect(200, "DELETE", PODS + "/p?gracePeriodSeconds=0")


def custom_resources(suite):
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "default": 3}, "color": {"type": "string"}}}}}}
    suite.client.expect(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "things.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": schema}, {"name": "v2", "served": True, "storage": False, "schema": schema}]}})
    things = "/apis/example.com/v2/namespaces/default/things"
    end = time.monotonic() + 10
    while suite.client.get(things).status != 200 and time.monotonic() < end:
        time.sleep(0.05)
    rules = [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["*"]}]
    with Configuration(suite, "/label", "mutating", rules=rules, objectSelector=None):
        made = suite.client.expect(201, "POST", things, {"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}})
        same((made["apiVersion"], made["metadata"]["labels"], made["spec"]), ("example.com/v2", {"labelled": "yes"}, {"size": 3}), "thing")
        review, = WORLD.hook.questions("/label")
        same((review["request"]["object"]["apiVersion"], review["request"]["kind"]["version"], review["request"]["requestKind"]["version"]),
             ("example.com/v1", "v1", "v2"), "versions")
    with Configuration(suite, "/deny", rules=rules, matchPolicy="Exact", objectSelector=None):
        suite.client.expect(200, "DELETE", things + "/t")
    suite.client.expect(200, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com")


def conditions(suite):
    wants_more = [{"name": "more", "expression": "object.data.k == 'more'"}]
    with Configuration(suite, "/deny", matchConditions=wants_more):
        created(create(suite))
        message(create(suite, hooked(data={"k": "more"})), 418)
        body = message(create(suite, hooked(data={"other": "x"})), 403, "expression 'object.data.k == 'more'' resulted in error")
        same(body["reason"], "Forbidden", "reason")
    with Configuration(suite, "/deny", matchConditions=wants_more, failurePolicy="Ignore"):
        created(create(suite, hooked(data={"other": "x"})))


def dry_run(suite):
    with Configuration(suite, "/allow", sideEffects="NoneOnDryRun"):
        created(create(suite, query="?dryRun=All"))
        same(WORLD.hook.questions("/allow")[0]["request"]["dryRun"], True, "dryRun")


def dead_ends(suite):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = "https://127.0.0.1:%d/x" % closed.getsockname()[1]
        config = {"url": nobody, "caBundle": WORLD.trusted.bundle}
        with Configuration(suite, "", clientConfig=config):
            same(message(create(suite), 500)["message"],
                 'Internal error occurred: failed calling webhook "test.hooks.example.com": failed to call webhook: Post '
                 '"%s?timeout=10s": dial tcp %s: connect: connection refused' % (nobody, nobody[8:-2]), "message")
        for kind in "validating", "mutating":
            with Configuration(suite, "", kind, clientConfig=config, failurePolicy="Ignore"):
                created(create(suite))
    for service, text in (
            ({"name": "none", "namespace": "default", "path": "/x"},
             'Post "https://none.default.svc:443/x?timeout=10s": service "none" not found'),
            ({"name": "kubernetes", "namespace": "default", "port": 8443}, 'no service port 8443 found for service "kubernetes"')):
        with Configuration(suite, "", clientConfig={"service": service, "caBundle": WORLD.trusted.bundle}):
            message(create(suite), 500, text)


def services_by_name(suite):
    """The name is the certificate's, the address that of the Service: here the machine's own, by an external name."""
    port = WORLD.hook.server_address[1]
    services = "/api/v1/namespaces/default/services"
    suite.client.expect(201, "POST", services, {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
    suite.client.expect(201, "POST", services, {"metadata": {"name": "unnamed"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
    where = {"name": "hook", "namespace": "default", "path": "/deny", "port": port}
    with Configuration(suite, "", clientConfig={"service": where, "caBundle": WORLD.trusted.bundle}):
        message(create(suite), 418)
    where = dict(where, name="unnamed")
    with Configuration(suite, "", clientConfig={"service": where, "caBundle": WORLD.trusted.bundle}):
        message(create(suite), 500, "https://unnamed.default.svc:%d/deny" % port, "x509")
    for name in "hook", "unnamed":
        suite.client.expect(200, "DELETE", services + "/" + name)


def foreign_certificates(suite):
    with Configuration(suite, "", clientConfig={"url": WORLD.hook.url + "/allow", "caBundle": WORLD.foreign.bundle}):
        message(create(suite), 500, "x509: certificate signed by unknown authority")
    with Configuration(suite, "", clientConfig={"url": WORLD.hook.url + "/allow"}):
        message(create(suite), 500, "x509: certificate signed by unknown authority")
    same(WORLD.hook.questions("/allow"), [], "nothing is told to strangers")


def nonsense(suite):
    for path, text in (("/garbage", "couldn't get version/kind; json parse error"), ("/list", "cannot unmarshal array"),
                       ("/empty", "0-length response"), ("/other-uid", 'received invalid webhook response: expected response.uid="'),
                       ("/no-response", "webhook response was absent"), ("/error", 'an error on the server ("on fire")'),
                       ("/hang-up", "EOF"), ("/deep", "json parse error"),
                       ("/label", "validating webhook may not return response.patch")):
        with Configuration(suite, path):
            message(create(suite), 500, 'failed calling webhook "test.hooks.example.com"', text)
        with Configuration(suite, path, failurePolicy="Ignore"):
            created(create(suite))
    with Configuration(suite, "/wrong-patch", "mutating"):
        message(create(suite), 500, "received undecodable patch in webhook response")
    with Configuration(suite, "/bad-patch", "mutating", failurePolicy="Ignore"):
        message(create(suite), 500, "Internal error occurred")


def huge(suite):
    before = suite.server.resident_bytes()
    with Configuration(suite, "/huge", timeoutSeconds=30):
        began = time.monotonic()
        message(create(suite), 500, "too large")
        if time.monotonic() - began > 20:
            raise Failure("it was read for %.0f s" % (time.monotonic() - began))
    grown = suite.server.resident_bytes() - before
    if grown > 256 << 20:
        raise Failure("%d MiB more" % (grown >> 20))


def timeouts(suite):
    with Configuration(suite, "/sleep", timeoutSeconds=1):
        began = time.monotonic()
        message(create(suite), 500, "/sleep?timeout=1s", "context deadline exceeded")
        took = time.monotonic() - began
        if not 0.9 < took < 2.5:
            raise Failure("after %.1f s" % took)
    with Configuration(suite, "/sleep", timeoutSeconds=1, failurePolicy="Ignore"):
        created(create(suite))
    # All at once.
    with Configuration(suite, "/sleep", timeoutSeconds=10, name="a"), Configuration(suite, "/sleep", timeoutSeconds=10, name="b"):
        began = time.monotonic()
        created(create(suite))
        if time.monotonic() - began > 7:
            raise Failure("one after the other: %.1f s" % (time.monotonic() - began))


def slow_beside_healthy(suite):
    """Hundreds of requests wait for a slow webhook; whoever it does not concern does not notice."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
    suite.client.expect(201, "POST", rbac + "roles", {"metadata": {"name": "user"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]})
    suite.client.expect(201, "POST", rbac + "rolebindings", {
        "metadata": {"name": "user"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name} for name in ("slow", "jane")]})
    statuses, lock, names = [], threading.Lock(), iter(range(100000, 101000))

    def wait_for_it():
        with lock:
            body = {"metadata": {"name": "slow-%d" % next(names), "labels": {"hooked": "yes"}}}
        with suite.server.client(token=SLOW, timeout=60) as client:
            answer = client.request("POST", CONFIGMAPS, body)
        with lock:
            statuses.append(answer.status)

    with Configuration(suite, "/sleep", timeoutSeconds=3):
        threads = [threading.Thread(target=wait_for_it) for _ in range(300)]
        for thread in threads:
            thread.start()
        slowest, count = 0, 0
        with suite.server.client(token=JANE, timeout=30) as jane:
            while any(thread.is_alive() for thread in threads):
                began = time.monotonic()
                name = "jane-%d" % count
                jane.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": name}})
                jane.expect(200, "GET", CONFIGMAPS + "/" + name)
                jane.expect(200, "DELETE", CONFIGMAPS + "/" + name)
                slowest, count = max(slowest, time.monotonic() - began), count + 1
    seen = {status: statuses.count(status) for status in set(statuses)}
    print("  %d rounds of an innocent user, the slowest %.2f s; answers to the others: %s" % (count, slowest, seen))
    if slowest > 2.5 or count < 5:
        raise Failure("an innocent user waited")
    if set(seen) - {500, 429} or 500 not in seen:
        raise Failure("answers %s" % seen)


def metrics(suite):
    with Configuration(suite, "/deny", name="counted"):
        message(create(suite), 418)
    text = suite.client.get("/metrics").data.decode()
    labels = 'name="counted.hooks.example.com",type="validating",operation="CREATE"'
    for line in ('apiserver_admission_webhook_rejection_count{%s,error_type="no_error",rejection_code="418"} 1' % labels,
                 'apiserver_admission_webhook_request_total{%s,code="418",rejected="true"} 1' % labels,
                 'apiserver_admission_webhook_admission_duration_seconds_count{%s,rejected="true"} 1' % labels,
                 'apiserver_admission_webhook_fail_open_count{name="test.hooks.example.com",type="admit"}'):
        if line not in text:
            raise Failure("no %s in %s" % (line, [l for l in text.splitlines() if "webhook" in l]))


def restart(suite):
    """They hold from the first request on, and the server comes up whatever they would refuse."""
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]
    suite.client.expect(201, "POST", GROUP + "validatingwebhookconfigurations", {"metadata": {"name": "test"}, "webhooks": [{
        "name": "test.hooks.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": everything,
        "clientConfig": {"url": WORLD.hook.url + "/deny", "caBundle": WORLD.trusted.bundle}}]})
    suite.server.restart()
    suite.client = suite.server.client(timeout=120)
    message(create(suite), 418)
    suite.server.restart(kill=True)
    suite.client = suite.server.client(timeout=120)
    message(create(suite), 418)
    suite.client.expect(200, "DELETE", GROUP + "validatingwebhookconfigurations/test")
    created(create(suite))


CHECKS = [asks_and_warns, refuses_in_its_words, deletions_and_subresources, connects, patches_and_asks_again, custom_resources, conditions,
          dry_run, dead_ends, services_by_name, foreign_certificates, nonsense, huge, timeouts, slow_beside_healthy, metrics, restart]


def main():
    global WORLD
    if not shutil.which("openssl"):
        print("SKIPPED: no openssl")
        return 77
    WORLD = World()
    try:
        return run(CHECKS, tokens=[(SLOW, "slow", []), (JANE, "jane", [])])
    finally:
        WORLD.hook.shutdown()
        shutil.rmtree(WORLD.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
