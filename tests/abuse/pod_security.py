#!/usr/bin/env python3
"""Someone who may make pods and workloads in a namespace that enforces a Pod Security Standard, and nothing else, tries to get around it."""
import sys

from suite import Failure, run

TOKEN, USER = "token-of-a-tenant", "tenant"
RULES = [{"apiGroups": ["", "apps", "batch"], "verbs": ["*"],
          "resources": ["pods", "pods/ephemeralcontainers", "pods/resize", "pods/status", "podtemplates", "deployments", "jobs", "cronjobs"]}]
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def pod(name, container=None, **spec):
    first = dict({"name": "c", "image": "i", "securityContext": SAFE}, **(container or {}))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": dict({"containers": [first]}, **spec)}


def tenant(suite, level):
    """A namespace of that level and a client of its tenant."""
    name = "tenant-" + level
    if suite.client.get("/api/v1/namespaces/" + name).status == 404:
        suite.client.expect(201, "POST", "/api/v1/namespaces",
                            {"metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}})
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/" % name
        suite.client.expect(201, "POST", rbac + "roles", {"metadata": {"name": "tenant"}, "rules": RULES})
        suite.client.expect(201, "POST", rbac + "rolebindings", {
            "metadata": {"name": "tenant"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}]})
    return suite.server.client(token=TOKEN), "/api/v1/namespaces/%s/pods" % name


def violates(answer, what):
    if answer.status != 403 or "violates PodSecurity" not in answer.json.get("message", ""):
        raise Failure("%s: %r" % (what, answer))


def ways_out_of_the_container(suite):
    client, pods = tenant(suite, "baseline")
    unsafe = {
        "the network of the machine": pod("x", hostNetwork=True),
        "its processes": pod("x", hostPID=True),
        "its files": pod("x", volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        "privileges": pod("x", {"securityContext": {"privileged": True}}),
        "capabilities": pod("x", {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}),
        "its kernel": pod("x", securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        "no seccomp": pod("x", {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
        "an init container": pod("x", initContainers=[{"name": "i", "image": "i", "securityContext": {"privileged": True}}]),
        "one port of it": pod("x", {"ports": [{"containerPort": 80, "hostPort": 80}]}),
    }
    for what, body in unsafe.items():
        violates(client.request("POST", pods, body), what)
        violates(client.request("POST", pods + "?dryRun=All", body), what + ", tried first")
    apply = {"Content-Type": "application/apply-patch+yaml"}
    violates(client.request("PATCH", pods + "/x?fieldManager=t&force=true", unsafe["privileges"], headers=apply), "a pod by apply")
    if client.get(pods + "/x").status != 404:
        raise Failure("a refused pod is there")


def later_changes(suite):
    client, pods = tenant(suite, "restricted")
    client.expect(201, "POST", pods, pod("x"))
    patch = {"Content-Type": "application/strategic-merge-patch+json"}
    bad = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "securityContext": {"privileged": True}}]}}
    violates(client.request("PATCH", pods + "/x/ephemeralcontainers", bad, headers=patch), "an ephemeral container")
    answer = client.request("PATCH", pods + "/x/ephemeralcontainers", bad,
                            headers={"Content-Type": "application/merge-patch+json"})
    violates(answer, "an ephemeral container by another patch")
    bad = {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}
    violates(client.request("PATCH", pods + "/x/ephemeralcontainers", bad, headers=patch), "a plain ephemeral container")
    for body in ({"spec": {"hostNetwork": True}}, {"spec": {"containers": [{"name": "c", "securityContext": {"privileged": True}}]}}):
        for path in ("/x", "/x/status", "/x/resize"):
            client.request("PATCH", pods + path, body, headers=patch)
            spec = client.expect(200, "GET", pods + "/x")["spec"]
            if spec.get("hostNetwork") or spec["containers"][0]["securityContext"] != SAFE:
                raise Failure("%s through %s changed the pod" % (body, path))


def labels_of_the_namespace(suite):
    client, pods = tenant(suite, "restricted")
    namespace = pods.rsplit("/", 1)[0]
    for label in ("enforce", "enforce-version"):
        body = {"metadata": {"labels": {"pod-security.kubernetes.io/" + label: None}}}
        answer = client.request("PATCH", namespace, body, headers={"Content-Type": "application/merge-patch+json"})
        suite.refused(answer, "the tenant takes a label away", 403)
    for value in ("none", "", "Restricted", "v1.35"):
        body = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": value}}}
        answer = suite.client.request("PATCH", namespace, body, headers={"Content-Type": "application/merge-patch+json"})
        suite.refused(answer, "the level %r" % value, 422)
    # One of an older version is as strict as that version was, and no version is newer than the newest.
    violates(client.request("POST", pods, pod("y", {"securityContext": {}})), "a plain pod")


def workloads_are_warned_of(suite):
    client, pods = tenant(suite, "baseline")
    namespace = pods.split("/")[4]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": dict(pod("x", hostPID=True)["spec"], restartPolicy="Never")}
    bodies = {
        "/apis/batch/v1/namespaces/%s/jobs": {"spec": {"template": template}},
        "/apis/batch/v1/namespaces/%s/cronjobs": {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}},
        "/api/v1/namespaces/%s/podtemplates": {"template": template},
    }
    for path, body in bodies.items():
        answer = client.request("POST", path % namespace, dict(body, metadata={"name": "w"}))
        if answer.status != 201 or "would violate PodSecurity" not in str(answer.headers.get_all("Warning")):
            raise Failure("%s: %r %s" % (path, answer, answer.headers.get_all("Warning")))


if __name__ == "__main__":
    sys.exit(run([ways_out_of_the_container, later_changes, labels_of_the_namespace, workloads_are_warned_of],
                 flags=["--disable-admission-plugins", "ServiceAccount"], tokens=[(TOKEN, USER, ["tenants"])]))
