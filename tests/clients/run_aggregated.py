#!/usr/bin/env python3
"""Runs the sample API server of Kubernetes (go-aggregated, with an etcd of its own) behind `dibs up`, by an APIService with a Service and a
slice made by hand: what kubectl, watches, controllers and strangers see of it, and what is left when it dies.

Where Go, its modules, etcd, openssl or kubectl cannot be had, or this machine has no address but the loopback, the test is skipped (exit
status 77).
"""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402
import run  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

DEADLINE = 90
GROUP = "wardle.example.com"
JANE = "token-of-jane"
FLUNDERS = "/apis/%s/v1alpha1/namespaces/%%s/flunders" % GROUP
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/%s." + GROUP
RBAC = "/apis/rbac.authorization.k8s.io/v1/"


def build():
    return run.build_go("go-aggregated", os.path.join(run.build_folder("aggregated"), "sample-apiserver"), "-ldflags=-s -w")


def own_address():
    """One of this machine that slices may have: not of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        found = probe.getsockname()[0]
        return None if found.startswith("127.") else found


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class Certificate:
    """Of an authority of its own, for the name that the front proxy looks for."""

    def __init__(self, folder, name):
        self.ca, self.key, self.certificate = (os.path.join(folder, "serving" + end) for end in ("-ca.pem", ".key", ".pem"))
        ca_key, request, names = (os.path.join(folder, "serving" + end) for end in ("-ca.key", ".csr", ".ext"))
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        with open(names, "w") as f:
            f.write("subjectAltName=DNS:%s\n" % name)
        for words in (["req", "-x509"] + new_key + ["-keyout", ca_key, "-out", self.ca, "-days", "2", "-subj", "/CN=serving-ca"],
                      ["req"] + new_key + ["-keyout", self.key, "-out", request, "-subj", "/CN=serving"],
                      ["x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", names,
                       "-out", self.certificate]):
            run.shell(["openssl"] + words, folder, missing=False)

    @property
    def bundle(self):
        with open(self.ca, "rb") as f:
            return base64.b64encode(f.read()).decode()


class Sample:
    """The sample API server as a process of this machine."""

    def __init__(self, program, server, store, address, folder):
        self.program, self.server, self.store, self.address, self.folder = program, server, store, address, folder
        self.port, self.process = free_port(address), None
        self.certificate = Certificate(folder, "api.wardle.svc")
        self.log = os.path.join(folder, "sample.log")

    def start(self):
        kubeconfig = self.server.kubeconfig
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--bind-address", self.address, "--secure-port", str(self.port), "--etcd-servers", self.store,
                 "--tls-cert-file", self.certificate.certificate, "--tls-private-key-file", self.certificate.key, "--kubeconfig", kubeconfig,
                 "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent, cwd=self.folder)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def tail(self):
        with open(self.log, "rb") as f:
            return f.read()[-3000:].decode("utf-8", "replace")


class Story:
    def __init__(self, server, sample):
        self.server, self.sample, self.api = server, sample, server.client()

    def kubectl(self, *words, status=0, stdin=None):
        done = subprocess.run([cluster.one_kubectl(), *words], capture_output=True, text=True, input=stdin, timeout=60,
                              env=dict(os.environ, KUBECONFIG=self.server.kubeconfig, HOME=self.sample.folder))
        if done.returncode != status:
            raise Failure("kubectl %s: exit status %d\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def holds(self, what, condition):
        if not condition:
            raise Failure("does not hold: " + what)
        print("ok " + what)

    def condition(self, version="v1alpha1"):
        found = self.api.expect(200, "GET", APISERVICE % version)
        return next((c for c in found.get("status", {}).get("conditions", []) if c["type"] == "Available"), {})

    def available(self, reason, version="v1alpha1"):
        return wait_for(lambda: self.condition(version).get("reason") == reason and self.condition(version), DEADLINE,
                        "APIService %s to be %s, it is %s" % (version, reason, self.condition(version)), interval=0.5)

    def flunder(self, namespace, name, **metadata):
        return {"apiVersion": GROUP + "/v1alpha1", "kind": "Flunder", "metadata": dict(metadata, name=name, namespace=namespace)}

    def register(self):
        self.api.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "wardle"}})
        for version in ("v1alpha1", "v1beta1"):
            self.api.expect(201, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {
                "metadata": {"name": "%s.%s" % (version, GROUP)},
                "spec": {"group": GROUP, "version": version, "groupPriorityMinimum": 2000, "versionPriority": 200,
                         "caBundle": self.sample.certificate.bundle, "service": {"namespace": "wardle", "name": "api"}}})
        self.available("ServiceNotFound")
        self.api.expect(201, "POST", "/api/v1/namespaces/wardle/services",
                        {"metadata": {"name": "api"}, "spec": {"ports": [{"port": 443, "targetPort": self.sample.port}]}})
        self.available("EndpointsNotFound")
        self.api.expect(201, "POST", "/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices", {
            "metadata": {"name": "api-by-hand", "labels": {"kubernetes.io/service-name": "api"}}, "addressType": "IPv4",
            "ports": [{"name": "", "port": self.sample.port}],
            "endpoints": [{"addresses": [self.sample.address], "conditions": {"ready": True}}]})
        found = self.available("FailedDiscoveryCheck")
        self.holds("the condition says step by step what is missing", "connection refused" in found["message"])
        answer = self.api.get(FLUNDERS % "default")
        self.holds("until then it is 503", answer.status == 503 and answer.data == b"service unavailable\n")
        self.sample.start()
        for version in ("v1alpha1", "v1beta1"):
            self.available("Passed", version)
        print("ok both versions are available")

    def look(self):
        table = self.kubectl("get", "apiservices", "v1alpha1." + GROUP)
        self.holds("kubectl get apiservices", table.split()[:4] == ["NAME", "SERVICE", "AVAILABLE", "AGE"] and "wardle/api" in table)
        table = self.kubectl("api-resources", "--api-group", GROUP)
        self.holds("kubectl api-resources", "flunders" in table and "fischers" in table)
        self.holds("legacy discovery", self.api.expect(200, "GET", "/apis/" + GROUP)["preferredVersion"]["version"] == "v1beta1")
        self.holds("kubectl explain", "FlunderSpec" in self.kubectl("explain", "flunder.spec"))
        paths = self.api.expect(200, "GET", "/openapi/v2")["paths"]
        self.holds("OpenAPI v2", "/apis/%s/v1alpha1/namespaces/{namespace}/flunders" % GROUP in paths)

    def use(self):
        events = []
        stream = self.api.stream((FLUNDERS % "default") + "?watch=true")

        def follow():
            try:
                for line in stream:
                    event = json.loads(line)
                    events.append((event["type"], event["object"]["metadata"]["name"]))
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                pass  # hung up
        threading.Thread(target=follow, daemon=True).start()
        self.kubectl("create", "-f", "-", stdin=json.dumps(self.flunder("default", "one")))
        self.holds("kubectl get", "one" in self.kubectl("get", "flunders"))
        self.kubectl("label", "flunder", "one", "colour=blue")
        self.kubectl("patch", "flunder", "one", "--type=merge", "-p", '{"metadata":{"annotations":{"a":"b"}}}')
        self.kubectl("apply", "--server-side", "--field-manager=me", "-f", "-",
                     stdin=json.dumps(self.flunder("default", "one", labels={"size": "small"})))
        labels = self.api.expect(200, "GET", (FLUNDERS % "default") + "/one")["metadata"]["labels"]
        self.holds("patched, labelled and applied", labels == {"colour": "blue", "size": "small"})
        self.holds("the other version", self.api.expect(
            200, "GET", ("/apis/%s/v1beta1/namespaces/default/flunders/one" % GROUP))["apiVersion"] == GROUP + "/v1beta1")
        self.kubectl("delete", "flunder", "one")
        wait_for(lambda: ("DELETED", "one") in events, DEADLINE, "the watch to tell of the end, it told %s" % events)
        self.holds("a watch tells all of it", events[0] == ("ADDED", "one") and events.count(("MODIFIED", "one")) == 3)
        stream.hang_up()

    def admission(self):
        self.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": GROUP + "/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"},
                                                            "disallowedFlunders": ["banned"]}))
        refused = wait_for(lambda: (lambda answer: answer if answer.status == 403 else None)(
            self.api.request("POST", FLUNDERS % "default", self.flunder("default", "banned"))), DEADLINE, "its admission to refuse")
        self.holds("its own admission", "this name may not be used" in refused.json["message"])
        self.kubectl("delete", "fischer", "f")

    def strangers(self):
        jane = self.server.client(token=JANE)
        self.holds("who may not is refused here", jane.get(FLUNDERS % "default").status == 403)
        forged = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
        self.holds("forged headers change nothing", jane.get(FLUNDERS % "default", headers=forged).status == 403)
        self.api.expect(201, "POST", RBAC + "clusterroles", {"metadata": {"name": "flunders"}, "rules": [
            {"apiGroups": [GROUP], "resources": ["flunders"], "verbs": ["list"]}]})
        self.api.expect(201, "POST", RBAC + "clusterrolebindings", {
            "metadata": {"name": "flunders"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flunders"},
            "subjects": [{"kind": "User", "name": "jane"}]})
        answer = wait_for(lambda: (lambda got: got if got.status == 200 else None)(jane.get(FLUNDERS % "default", headers=forged)),
                          DEADLINE, "jane to be allowed by both servers")
        self.holds("who may is known there by her own name", answer.json["kind"] == "FlunderList")
        self.holds("and no more than that", jane.request("POST", FLUNDERS % "default", self.flunder("default", "x")).status == 403)

    def controllers(self):
        self.api.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "going"}})
        self.api.expect(201, "POST", FLUNDERS % "going", self.flunder("going", "inside"))
        self.api.expect(200, "DELETE", "/api/v1/namespaces/going")
        wait_for(lambda: self.api.get("/api/v1/namespaces/going").status == 404, DEADLINE, "the namespace to go", interval=0.3)
        self.holds("a namespace takes them with it", self.api.get((FLUNDERS % "going") + "/inside").status == 404)
        owner = self.api.expect(201, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "owner"}})
        self.api.expect(201, "POST", FLUNDERS % "default", self.flunder("default", "owned", ownerReferences=[
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]))
        self.api.expect(200, "DELETE", "/api/v1/namespaces/default/configmaps/owner")
        wait_for(lambda: self.api.get((FLUNDERS % "default") + "/owned").status == 404, DEADLINE, "what was owned to go", interval=0.3)
        print("ok the garbage collector sees them")

    def death(self):
        self.sample.kill()
        for version in ("v1alpha1", "v1beta1"):
            self.available("FailedDiscoveryCheck", version)
        self.holds("a dead server is 503", self.api.get(FLUNDERS % "default").status == 503)
        self.holds("and nobody else is", self.api.get("/api/v1/namespaces/default/configmaps").status == 200)
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        items = self.api.expect(200, "GET", "/apis", headers={"Accept": accept})["items"]
        group = next(item for item in items if item["metadata"]["name"] == GROUP)
        self.holds("discovery calls it stale", all(version["freshness"] == "Stale" for version in group["versions"]))
        self.sample.start()
        self.available("Passed")
        self.holds("and it comes back", self.api.get(FLUNDERS % "default").status == 200)

    def run(self):
        for step in (self.register, self.look, self.use, self.admission, self.strangers, self.controllers, self.death):
            step()
        for version in ("v1alpha1", "v1beta1"):
            self.api.expect(200, "DELETE", APISERVICE % version)
        wait_for(lambda: self.api.get("/apis/" + GROUP).status == 404, DEADLINE, "the group to go")
        print("ok the group goes with its APIServices")


def main():
    address = own_address()
    if not etcd.program():
        print(etcd.MISSING)
        return run.SKIPPED
    if not cluster.one_kubectl() or not shutil.which("openssl") or not address:
        print("SKIPPED: no kubectl, no openssl, or no address of this machine")
        return run.SKIPPED
    try:
        program = build()
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    folder = tempfile.mkdtemp(prefix="dibs-aggregated-")
    sample = None
    try:
        plain = cluster.Server(["--nodes", "0"], command="up")
        plain.write_tokens([(JANE, "jane", [])])
        with etcd.Etcd(1) as store, plain as server:
            sample = Sample(program, server, store.endpoints.split(",")[0], address, folder)
            try:
                Story(server, sample).run()
            except (Failure, OSError):
                print(server.log_tail() + "\n" + (sample.tail() if sample.process else ""), file=sys.stderr)
                raise
            finally:
                sample.kill()
    except Failure as failure:
        print("FAILED: %s" % failure, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
