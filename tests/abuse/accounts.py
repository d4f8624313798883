"""As whom the parts of a cluster act: the audit log of a whole cluster at work names the account of each, none of them in system:masters, and
none is refused anything. Controllers in a process of their own do the same with tokens of those accounts.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import suite
from suite import cluster
from cluster import Failure, Server, die_with_parent, wait_for

FOLDER = tempfile.mkdtemp(prefix="dibs-accounts-")
ACCOUNT = "system:serviceaccount:kube-system:"
MANAGER_TOKEN = "the-controller-manager"
DEPLOYMENT = {"metadata": {"name": "web"}, "spec": {
    "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"]}]}}}}
CLAIM = {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [
    {"name": "g", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}}
POD = {"metadata": {"name": "user"}, "spec": {
    "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"], "resources": {"claims": [{"name": "g"}]}}],
    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}]}}


def audit_flags(name):
    policy = os.path.join(FOLDER, "policy.json")
    with open(policy, "w") as f:
        json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}], "omitStages": ["RequestReceived"]}, f)
    return ["--audit-policy-file", policy, "--audit-log-path", os.path.join(FOLDER, name)]


def events(name):
    with open(os.path.join(FOLDER, name)) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def check(found, wanted):
    """Everybody wanted was seen; nobody but the test itself may do everything, and nobody else was refused."""
    users = {event["user"].get("username", "") for event in found}
    if not wanted <= users:
        raise Failure("never seen: %s" % sorted(wanted - users))
    for event in found:
        user = event["user"]
        if user.get("username") == "admin":
            continue
        # What the flags of a start say of its nodes is done for the cluster's owner.
        if user.get("username") == "system:admin" and event.get("objectRef", {}).get("resource") == "nodes":
            continue
        if "system:masters" in user.get("groups", []):
            raise Failure("in system:masters: %r" % event)
        if event["responseStatus"]["code"] == 403:
            raise Failure("refused: %r" % event)


def ready(client):
    deployment = client.expect(200, "GET", "/apis/apps/v1/namespaces/default/deployments/web")
    pod = client.expect(200, "GET", "/api/v1/namespaces/default/pods/user")
    return deployment.get("status", {}).get("readyReplicas") == 2 and pod["status"].get("phase") == "Running"


def a_whole_cluster():
    with Server(["--nodes", "1", "--drivers", "gpu,net", "--runtime", "sim"] + audit_flags("up.log"), command="up") as server:
        client = server.client()
        client.expect(201, "POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", CLAIM)
        wait_for(lambda: client.request("POST", "/api/v1/namespaces/default/pods", POD).status == 201, 30, "an account for pods")
        client.expect(201, "POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
        wait_for(lambda: ready(client), 60, "pods that run", 0.2)
        client.expect(200, "DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
        client.expect(200, "DELETE", "/api/v1/namespaces/default/pods/user?gracePeriodSeconds=1")
        wait_for(lambda: not client.expect(200, "GET", "/api/v1/namespaces/default/pods")["items"], 60, "the end of all pods", 0.2)
    check(events("up.log"), {"system:kube-scheduler", "system:kube-controller-manager", "system:node:node-0"} |
          {ACCOUNT + name for name in ("deployment-controller", "replicaset-controller", "resource-claim-controller", "service-account-controller",
                                       "root-ca-cert-publisher", "generic-garbage-collector", "node-controller", "dibs-driver-gpu", "dibs-driver-net", "dibs-driver-net-controller")})


def controllers_alone():
    server = Server(audit_flags("alone.log"))
    server.write_tokens([(MANAGER_TOKEN, "system:kube-controller-manager", [])])
    with server:
        client = server.client()
        arguments = [cluster.binary(), "controllers", "--kubeconfig", server.token_kubeconfig(MANAGER_TOKEN), "--use-service-account-credentials",
                     "--log-level", "warn"]
        process = subprocess.Popen(arguments, stderr=open(os.path.join(FOLDER, "controllers.err"), "wb"), preexec_fn=die_with_parent)
        try:
            wait_for(lambda: client.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, 60, "the account of the namespace", 0.2)
            client.expect(201, "POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
            wait_for(lambda: len(client.expect(200, "GET", "/api/v1/namespaces/default/pods")["items"]) == 2, 60, "two pods", 0.2)
        except Failure:
            print(open(os.path.join(FOLDER, "controllers.err")).read()[-4000:])
            raise
        finally:
            process.terminate()
            process.wait()
    found = events("alone.log")
    check(found, {ACCOUNT + name for name in ("deployment-controller", "replicaset-controller", "service-account-controller")})
    writers = {event["user"]["username"] for event in found if event["verb"] == "create" and event.get("objectRef", {}).get("resource") == "pods"}
    if writers != {ACCOUNT + "replicaset-controller"}:
        raise Failure("pods were created by %r" % writers)


if __name__ == "__main__":
    failed = 0
    for case in (a_whole_cluster, controllers_alone):
        try:
            case()
            print("ok %s" % case.__name__, flush=True)
        except Failure as problem:
            failed += 1
            print("FAILED %s: %s" % (case.__name__, problem), flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(1 if failed else 0)
