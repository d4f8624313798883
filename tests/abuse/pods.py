"""Pods of a user who may do nothing but make them, and what becomes of them."""
from suite import Failure, cluster

PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
USER = "maker-of-pods"


def need(condition, what):
    if not condition:
        raise Failure(what)


class Pods:
    """The server has the token of USER (write_tokens) and runs already."""

    def __init__(self, server):
        self.server = server
        self.admin = server.client()
        self.user = server.client(token=USER)
        cluster.wait_for(lambda: self.admin.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, 30, "an account")
        self.admin.expect(201, "POST", RBAC + "/roles", {"metadata": {"name": USER}, "rules": [
            {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["create", "get", "list", "delete"]}]})
        self.admin.expect(201, "POST", RBAC + "/rolebindings", {
            "metadata": {"name": USER}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]})

    def make(self, name, image="busybox:1.36", command=None, volumes=(), container=None, **spec):
        """A pod with one container, c; `container` has more fields of it, volumes are mounted at /NAME."""
        container = dict({"name": "c", "image": image}, **(container or {}))
        if command:
            container["command"] = command
        if volumes:
            container["volumeMounts"] = [{"name": volume["name"], "mountPath": "/" + volume["name"]} for volume in volumes]
        self.user.expect(201, "POST", PODS, {"metadata": {"name": name}, "spec": dict({
            "terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "automountServiceAccountToken": False, "volumes": list(volumes),
            "containers": [container]}, **spec)})

    def status(self, name):
        return self.user.expect(200, "GET", PODS + "/" + name)["status"]

    def container(self, name):
        return (self.status(name).get("containerStatuses") or [{}])[0]

    def runs(self, name):
        cluster.wait_for(lambda: "running" in self.container(name).get("state", {}), 60, "that pod %s runs: %s" % (name, self.status(name)))

    def ended(self, name, seconds=60):
        def over():
            status = self.status(name)
            return status if status.get("phase") in ("Succeeded", "Failed") else None
        try:
            return cluster.wait_for(over, seconds, "the end of pod " + name)
        except Failure as failure:
            raise Failure("%s: %s, %s" % (failure, self.status(name), self.events(name)))

    def said(self, name):
        """What the pod's container wrote."""
        self.ended(name)
        return self.server.kubectl("logs", name)

    def events(self, name):
        found = self.user.expect(200, "GET", "/api/v1/namespaces/default/events")["items"]
        return ["%s: %s" % (e["reason"], e["message"]) for e in found if e["involvedObject"].get("name") == name]

    def has_event(self, name, *texts):
        def seen():
            return all(any(text in event for event in self.events(name)) for text in texts)
        try:
            cluster.wait_for(seen, 10, "")
        except Failure:
            raise Failure("pod %s: no event with %s: %s" % (name, " and ".join(texts), self.events(name)))

    def remove_all(self):
        for pod in self.user.expect(200, "GET", PODS)["items"]:
            self.user.request("DELETE", PODS + "/" + pod["metadata"]["name"])
        cluster.wait_for(lambda: not self.user.expect(200, "GET", PODS)["items"], 60, "that all pods are gone")


def run_checks(checks, world, only):
    """The number of those that failed."""
    failed = 0
    for check in checks:
        if only and check.__name__ not in only:
            continue
        try:
            check(world)
            print("ok %s" % check.__name__, flush=True)
        except Failure as problem:
            failed += 1
            print("FAILED %s: %s" % (check.__name__, problem), flush=True)
    return failed
