#!/usr/bin/env python3
"""Few rights: a service account that may do one thing tries to make more of it. Nothing it does not hold comes of that."""
import sys

from credentials import account_token
from suite import CONFIGMAPS, Failure, run

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
GROUP = "rbac.authorization.k8s.io"


def pod(name, **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": dict({"containers": [{"name": "c", "image": "i"}]}, **more)}


def robot(suite, name, rules):
    """A client of an account with a role of the cluster with these rules and no other."""
    token = account_token(suite, name)
    suite.client.expect(201, "POST", RBAC + "/clusterroles", {"metadata": {"name": name}, "rules": rules})
    suite.client.expect(201, "POST", RBAC + "/clusterrolebindings", {
        "metadata": {"name": name}, "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
    return suite.server.client(token=token)


def rule(groups, resources, *verbs):
    return {"apiGroups": groups, "resources": resources, "verbs": list(verbs)}


def default_account(suite):
    """Without one no pod can be made; nobody else makes it here."""
    suite.client.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})


def creates_by_update(suite):
    """The right to patch or update is none to create."""
    default_account(suite)
    with robot(suite, "patcher", [rule([""], ["pods", "configmaps"], "patch", "update", "get"),
                                  rule([""], ["limitranges"], "update")]) as client:
        for path, body in ((PODS + "/sneaked", pod("sneaked")),
                           (CONFIGMAPS + "/sneaked", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sneaked"}})):
            for query in ("?fieldManager=x", "?fieldManager=x&force=true", "?fieldManager=x&dryRun=All"):
                refusal = suite.refused(client.request("PATCH", path + query, body, headers=APPLY), "apply of " + path, 403)
                if "cannot create resource" not in refusal["message"]:
                    raise Failure("apply of %s was refused with %r" % (path, refusal["message"]))
            suite.refused(client.request("PUT", path, body), "PUT of " + path, 404)
            suite.refused(suite.client.get(path), path, 404)
        limits = "/api/v1/namespaces/default/limitranges/sneaked"
        body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sneaked"}, "spec": {"limits": []}}
        suite.refused(client.request("PUT", limits, body), "PUT of a limit range", 403)
        suite.refused(suite.client.get(limits), limits, 404)


def escalates(suite):
    """Who may write roles and bindings grants nothing he does not hold, by whatever field."""
    with robot(suite, "writer", [rule([GROUP], ["clusterroles", "roles", "clusterrolebindings", "rolebindings"],
                                      "create", "patch", "update", "get")]) as client:
        def refused(method, path, body, what, headers=None):
            answer = client.request(method, RBAC + path, body, headers=headers)
            suite.refused(answer, what, 403, 404)

        label = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}
        for name in ("cluster-admin", "system:kube-scheduler"):
            refused("PATCH", "/clusterroles/" + name, label, "a label that aggregates %s" % name, MERGE)
            role = suite.client.expect(200, "GET", RBAC + "/clusterroles/" + name)
            role["metadata"].setdefault("labels", {})["rbac.authorization.k8s.io/aggregate-to-view"] = "true"
            refused("PUT", "/clusterroles/" + name, role, "a PUT with a label that aggregates %s" % name)
        refused("PATCH", "/clusterroles/writer", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {}}]}},
                "an aggregation rule", MERGE)
        refused("PATCH", "/clusterroles/view", {"aggregationRule": None}, "the end of an aggregation rule", MERGE)
        everything = {"rules": [rule(["*"], ["*"], "*")]}
        refused("PATCH", "/clusterroles/writer", everything, "more rules", MERGE)
        refused("PATCH", "/clusterroles/fresh?fieldManager=x",
                dict(everything, apiVersion=GROUP + "/v1", kind="ClusterRole", metadata={"name": "fresh"}), "an applied role", APPLY)
        me = [{"kind": "ServiceAccount", "name": "writer", "namespace": "default"}]
        refused("PATCH", "/clusterrolebindings/cluster-admin", {"subjects": me}, "a subject of a binding", MERGE)
        for where in ("/clusterrolebindings", "/namespaces/kube-system/rolebindings"):
            refused("POST", where, {"metadata": {"name": "fresh"}, "subjects": me,
                                    "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}}, "a binding in " + where)
        suite.refused(client.get("/api/v1/namespaces/kube-system/secrets"), "secrets after all of that", 403)


def leads_requests_astray(suite):
    """What a user names goes into requests to nodes and pods as it is meant, or not at all."""
    default_account(suite)
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    node = {"metadata": {"name": "lure"}}
    suite.client.expect(201, "POST", "/api/v1/nodes", node)
    suite.client.expect(200, "PATCH", "/api/v1/nodes/lure/status", {"status": {"addresses": [
        {"type": "InternalIP", "address": suite.server.host}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": suite.server.port}}}}, headers=headers)
    injected = "c HTTP/1.1\r\nX: y\r\n\r\nGET /api/v1/namespaces/kube-system/secrets"
    body = pod("lure", nodeName="lure", containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}])
    body["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": injected}
    suite.client.expect(201, "POST", PODS, body)
    with robot(suite, "reader", [rule([""], ["pods/log", "pods/exec", "pods/proxy", "nodes/proxy"], "get", "create")]) as client:
        refusal = suite.refused(client.get(PODS + "/lure/log"), "a container by annotation", 400)
        if "a container name must be specified" not in refusal["message"]:
            raise Failure("a container by annotation: %r" % refusal["message"])
        # The node poses as this very server, which must not be reached by its own certificate.
        for path in ("/api/v1/nodes/lure/proxy/api/v1/namespaces/kube-system/secrets", "/api/v1/nodes/lure/proxy/api/v1/secrets",
                     "/api/v1/nodes/lure/proxy/apis/rbac.authorization.k8s.io/v1/clusterroles"):
            answer = client.get(path)
            if answer.status < 400:
                raise Failure("%s went through the server's own certificate: %r" % (path, answer))
        suite.refused(client.get("/api/v1/nodes/lure:%d/proxy/" % suite.server.port), "the agent's port by number", 400)
        suite.refused(client.get("/api/v1/nodes/https:lure:1/proxy/"), "another port of the loopback", 400)
        for address in ("127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0"):
            suite.client.request("PATCH", PODS + "/lure/status", {"status": {"podIP": address, "podIPs": [{"ip": address}]}}, headers=MERGE)
            suite.refused(client.get("%s/https:lure:%d/proxy/" % (PODS, suite.server.port)), "a pod at " + address, 400)
        suite.refused(client.get(PODS + "/lure:80%0d%0aX:y/proxy/"), "a port with more behind it", 400)
    suite.client.request("DELETE", PODS + "/lure?gracePeriodSeconds=0")
    suite.client.expect(200, "DELETE", "/api/v1/nodes/lure")


def endless_watch(suite):
    """A time that does not fit is a long one, not one that is over."""
    with suite.server.client(timeout=3) as client:
        connection = client.open()
        connection.request("GET", CONFIGMAPS + "?watch=true&timeoutSeconds=9223372036854775807", headers=client.headers(None))
        answer = connection.getresponse()
        if answer.status != 200:
            raise Failure("a watch with a large timeout: %d" % answer.status)
        made = suite.client.expect(201, "POST", CONFIGMAPS, {"metadata": {"generateName": "watched-"}})
        name = made["metadata"]["name"]
        while name.encode() not in (line := answer.readline()):
            if not line:
                raise Failure("a watch with a large timeout ended at once")
    suite.client.request("DELETE", CONFIGMAPS + "/" + name)


if __name__ == "__main__":
    sys.exit(run([creates_by_update, escalates, leads_requests_astray, endless_watch]))
