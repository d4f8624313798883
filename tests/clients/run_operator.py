#!/usr/bin/env python3
"""Runs an operator on client-go (go/operator) as a Deployment of two replicas in real containers of `dibs up`: in-cluster configuration,
leader election, an informer, Events. The leader is killed, and the other leads.

    run_operator.py service|slice    the API at the kubernetes Service's address, as pods are told, or at the one that its slice has

Runs on a machine of its own (support/underlay.sh), from which nothing leaves. Where root, containers, Go or the modules it needs cannot be
had, the test is skipped (exit status 77).
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import registry  # noqa: E402
import run  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

DEADLINE = 60
NAMESPACE = "operators"
CORE = "/api/v1/namespaces/%s" % NAMESPACE
LEASE = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/operator" % NAMESPACE
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/%s" % NAMESPACE


def build():
    return run.build_go("go", os.path.join(run.build_folder("operator"), "operator"), "-ldflags=-s -w", package="./operator")


class Story:
    def __init__(self, server, image, by_slice):
        self.server, self.image, self.by_slice, self.api = server, image, by_slice, server.client()

    def place(self):
        """Variables that lead past the Service; none: those that every pod has."""
        if not self.by_slice:
            return []
        found = self.api.expect(200, "GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
        return [{"name": "KUBERNETES_SERVICE_HOST", "value": found["endpoints"][0]["addresses"][0]},
                {"name": "KUBERNETES_SERVICE_PORT", "value": str(found["ports"][0]["port"])}]

    def deploy(self):
        self.api.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.api.expect(201, "POST", CORE + "/serviceaccounts", {"metadata": {"name": "operator"}})
        self.api.expect(201, "POST", RBAC + "/roles", {"metadata": {"name": "operator"}, "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch", "update"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]})
        self.api.expect(201, "POST", RBAC + "/rolebindings", {
            "metadata": {"name": "operator"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
            "subjects": [{"kind": "ServiceAccount", "name": "operator"}]})
        self.api.expect(201, "POST", "/apis/apps/v1/namespaces/%s/deployments" % NAMESPACE, {
            "metadata": {"name": "operator"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "operator"}}, "template": {
                "metadata": {"labels": {"app": "operator"}},
                "spec": {"serviceAccountName": "operator", "terminationGracePeriodSeconds": 1,
                         "containers": [{"name": "operator", "image": self.image, "env": self.place()}]}}}})

    def pods(self):
        return [pod["metadata"]["name"] for pod in self.api.expect(200, "GET", CORE + "/pods?labelSelector=app%3Doperator")["items"]
                if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]

    def log(self, pod):
        answer = self.api.get(CORE + "/pods/%s/log" % pod)
        return answer.data.decode("utf-8", "replace") if answer.status == 200 else ""

    def leader(self):
        answer = self.api.get(LEASE)
        return answer.json["spec"].get("holderIdentity") if answer.status == 200 else None

    def served(self, name):
        """By whom, once the operator has seen to an object that is made here."""
        self.api.expect(201, "POST", CORE + "/configmaps", {"metadata": {"name": name, "labels": {"wants": "service"}}})
        path = CORE + "/configmaps/" + name
        return wait_for(lambda: self.api.expect(200, "GET", path).get("data", {}).get("served-by"), DEADLINE, "%s to be served" % name)

    def told(self, name, by):
        def found():
            return [event for event in self.api.expect(200, "GET", CORE + "/events")["items"]
                    if event["involvedObject"]["name"] == name and event["reason"] == "Served" and event["message"] == "by " + by]
        wait_for(found, DEADLINE, "the event about %s" % name)

    def run(self):
        self.deploy()
        wait_for(lambda: len(self.pods()) == 2, DEADLINE, "two replicas to run")
        first = wait_for(self.leader, DEADLINE, "a leader")
        if first not in self.pods():
            raise Failure("%s leads, of %s" % (first, self.pods()))
        print("ok two replicas run, %s leads" % first)
        wait_for(lambda: "follows" in self.log(first), DEADLINE, "the leader's informer")
        if self.served("one") != first:
            raise Failure("somebody else than the leader served")
        self.told("one", first)
        print("ok the leader serves and tells of it")
        self.api.expect(200, "DELETE", CORE + "/pods/%s?gracePeriodSeconds=0" % first)
        second = wait_for(lambda: (lambda leader: leader if leader != first else None)(self.leader()), DEADLINE, "another leader")
        print("ok after it was killed, %s leads" % second)
        if self.served("two") != second:
            raise Failure("somebody else than the second leader served")
        self.told("two", second)
        for pod in self.pods():
            if "failed" in self.log(pod):
                raise Failure("%s says: %s" % (pod, self.log(pod)))
        print("ok it serves, too")

    def end(self):
        """Containers outlive their agent."""
        self.api.request("DELETE", "/api/v1/namespaces/" + NAMESPACE)
        wait_for(lambda: self.api.get("/api/v1/namespaces/" + NAMESPACE).status == 404, DEADLINE, "the namespace to go")

    def report(self):
        pods = self.api.expect(200, "GET", CORE + "/pods")["items"]
        return "\n".join("%s: %s\n%s" % (pod["metadata"]["name"], pod["status"], self.log(pod["metadata"]["name"])) for pod in pods)


def inside(which, program):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    with open(program, "rb") as f:
        files = registry.layer({"operator": (f.read(), 0o755)})
    with registry.Registry() as images:
        images.put("test/operator:1", [files], command=["/operator"])
        flags = ["--nodes", "2", "--insecure-registries", images.address]
        with cluster.Server(flags, command="up") as server:
            story = Story(server, images.address + "/test/operator:1", which == "slice")
            try:
                story.run()
            except Failure as failure:
                raise Failure("%s\n%s\n%s" % (failure, story.report(), server.log_tail()))
            finally:
                story.end()
    return 0


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("service", "slice"):
        sys.exit("usage: run_operator.py service|slice")
    if len(sys.argv) > 2:
        return inside(*sys.argv[1:])
    if os.geteuid() != 0:
        print("SKIPPED: wants root")
        return run.SKIPPED
    try:
        program = build()
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    return run.on_own_machine(__file__, sys.argv[1], program)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
