#!/usr/bin/env python3
"""Runs unmodified programs of Kubernetes on our server.

    run_upstream.py managers [SECONDS]     kube-controller-manager and kube-scheduler, in place of ours, under some life: they do their work, and no
                                           line of their logs is an error that the server is to blame for
    run_upstream.py kubelet                a kubelet that knows nothing but a bootstrap token joins a cluster of `dibs up`: our controllers approve and
                                           sign its certificates, and pods run on it (its container runtime is upstream's fake)

DIBS_UPSTREAM_PROGRAMS is a folder with kube-controller-manager, kube-scheduler, kubelet and fake-cri; what is missing there is looked for in
build/tools, where tools/get-upstream puts programs, and else built from the source tree DIBS_KUBERNETES, once, which takes long. Without either the
test is skipped (exit status 77).
"""
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

SKIPPED = 77
PATIENCE = 180
STAMP = "-s -w" + "".join(" -X k8s.io/component-base/version.git%s=%s" % pair for pair in (("Major", "1"), ("Minor", "37"), ("Version", "v1.37.0")))

# Errors and warnings that are not the server's fault, or that are known.
KNOWN = (
    r"The manifest file is empty",  # a flag that is not given
    r"Flexvolume plugin directory",
    r"the object has been modified",  # two controllers, one object: tried again
    r"is not as new as written version",  # its cache is behind its own write: tried again
    r"Work item failed. err=.resourceclaims.* not found",  # removed with its pod in the meantime
    # Watches of two kinds come in no order, here as there: the pod was seen before its template. That it gets its claim, placed() asserts.
    r"Work item failed. err=.*resource claim template .*not found",
    r"because it is being terminated",  # of a namespace that is deleted under a controller
    r"metadatainformer.*\*v1\.PartialObjectMetadata",  # of a definition that was deleted: the garbage collector goes on asking
    r"Failed to get node. err=.node ..\"? not found",  # pods that never had one
)

LIFE = """
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
 "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}}
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}
{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": {"pods": "20"}}}
{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "volume"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "device"},
 "spec": {"spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "gpu"}}]}}}}
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "device"}],
 "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "d"}]}}]}}
"""
MACHINE = """
{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}}
{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n"}, "spec": {"driver": "gpu.example.com", "nodeName": "n",
 "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d0"}, {"name": "d1"}]}}
"""
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"}, "spec": {
    "group": "example.com", "names": {"kind": "Thing", "plural": "things"}, "scope": "Namespaced", "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}


def programs(*names):
    """Their paths; they are built where there is a tree to build them from."""
    built = os.path.join(HERE, "..", "..", "build")
    root = os.environ.get("DIBS_UPSTREAM_PROGRAMS") or os.path.join(os.environ.get("DIBS_BUILD") or built, "upstream")
    tree = os.environ.get("DIBS_KUBERNETES", "")
    found = []
    for name in names:
        places = [os.path.abspath(os.path.join(folder, name)) for folder in (root, os.path.join(built, "tools"))]
        found.append(next((path for path in places if os.access(path, os.X_OK)), places[0]))
    for name, path in zip(names, found):
        if os.access(path, os.X_OK):
            continue
        if not cluster.go() or not os.path.exists(os.path.join(tree, "go.mod")):
            print("skipped: no %s, and no Go or no source tree in DIBS_KUBERNETES to build it from" % path)
            sys.exit(SKIPPED)
        print("building %s (once)" % name, flush=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        source = os.path.join(HERE, "go-cri", "main.go") if name == "fake-cri" else "./cmd/" + name
        subprocess.run([cluster.go(), "build", "-ldflags=" + STAMP, "-o", path, source], cwd=tree, check=True,
                       env=dict(os.environ, CGO_ENABLED="0", GOPROXY="off", GOTOOLCHAIN="local"))
    return found


class Part:
    """A program of Kubernetes beside the server; its log lies in the server's folder."""

    def __init__(self, server, program, *flags):
        self.log = os.path.join(server.folder, os.path.basename(program) + ".log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=server.folder,
                                            preexec_fn=cluster.die_with_parent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def complaints(self, known=KNOWN):
        lines = [line for line in self.text().splitlines() if re.match(r"[EWF]\d{4} ", line)]
        return [line for line in lines if not any(re.search(one, line) for one in known)]


def apply(server, objects, *flags):
    done = subprocess.run([cluster.kubectl(), "apply", "-f", "-", *flags], input=objects, capture_output=True, text=True,
                          env=dict(os.environ, KUBECONFIG=server.kubeconfig))
    if done.returncode:
        raise Failure("kubectl apply: " + done.stderr)


def has(text, what):
    if not text:
        raise Failure(what)


def live(server, name):
    """A namespace with all sorts of things in it, and its end."""
    server.kubectl("create", "namespace", name)
    server.kubectl("wait", "--for=create", "sa/default", "-n", name, "--timeout=60s")
    apply(server, LIFE, "-n", name)
    apply(server, json.dumps(DEFINITION))
    server.kubectl("wait", "crd/things.example.com", "--for=condition=Established", "--timeout=60s")
    apply(server, json.dumps({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}), "-n", name)

    def placed():
        pods = json.loads(server.kubectl("get", "pods", "-n", name, "-o", "json"))["items"]
        return sum(1 for pod in pods if pod["spec"].get("nodeName")) >= 5
    wait_for(placed, PATIENCE, "five pods with a node in " + name, interval=0.5)
    request = subprocess.run("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=%s 2>/dev/null | base64 -w0" % name,
                             shell=True, capture_output=True, text=True, check=True).stdout
    apply(server, json.dumps({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}, "spec": {
        "request": request, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}}))
    server.kubectl("certificate", "approve", name)
    server.kubectl("wait", "csr/" + name, "--for=jsonpath={.status.certificate}", "--timeout=60s")
    server.kubectl("set", "image", "deployment/web", "*=y", "-n", name)
    server.kubectl("delete", "crd", "things.example.com")
    # Nobody ends the pods: the node is made up.
    server.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0", check=False)
    server.kubectl("delete", "namespace", name, "--wait=false")

    def gone():
        server.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0", check=False)
        return not server.kubectl("get", "namespace", name, "--ignore-not-found")
    wait_for(gone, PATIENCE, "the end of namespace " + name, interval=2)


def managers(seconds):
    manager, scheduler = programs("kube-controller-manager", "kube-scheduler")
    with cluster.Server() as server:
        keys = os.path.join(server.data, "pki")
        configs = {}
        for who in ("controllers", "scheduler"):
            configs[who] = os.path.join(server.folder, who + ".kubeconfig")
            subprocess.run([cluster.binary(), "pki", "kubeconfig", who, "--data-dir", server.data, "--out", configs[who]], check=True)

        def access(config):
            return ["--%skubeconfig=%s" % (kind, config) for kind in ("", "authentication-", "authorization-")] + ["--secure-port=0"]
        with Part(server, manager, *access(configs["controllers"]), "--use-service-account-credentials", "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
                  "--service-account-private-key-file=%s/sa.key" % keys, "--root-ca-file=%s/ca.crt" % keys, "--node-monitor-grace-period=24h",
                  "--cluster-signing-cert-file=%s/ca.crt" % keys, "--cluster-signing-key-file=%s/ca.key" % keys) as manages, \
                Part(server, scheduler, *access(configs["scheduler"])) as schedules:
            apply(server, MACHINE)
            server.kubectl("patch", "node", "n", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
                "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "50"}, "conditions": [{"type": "Ready", "status": "True"}]}}))
            try:
                end, rounds = time.monotonic() + seconds, 0
                while rounds == 0 or time.monotonic() < end:
                    rounds += 1
                    live(server, "life-%d" % rounds)
            except Failure as failure:
                raise Failure("%s\n%s\n%s" % (failure, "\n".join(manages.complaints()[-20:]), "\n".join(schedules.complaints()[-20:])))
            for part in (manages, schedules):
                has(part.process.poll() is None, "it ended by itself: " + part.text()[-3000:])
                has(not part.complaints(), "%s complains:\n%s" % (os.path.basename(part.log), "\n".join(part.complaints()[:40])))
    print("ok: %d rounds" % rounds)


def kubelet():
    kubelet_program, cri = programs("kubelet", "fake-cri")
    if os.geteuid() != 0:
        print("skipped: a kubelet needs root")
        sys.exit(SKIPPED)
    token = "abcdef.0123456789abcdef"
    with cluster.Server(["--nodes", "0"], command="up") as server:
        server.kubectl("create", "secret", "generic", "bootstrap-token-abcdef", "-n", "kube-system", "--type=bootstrap.kubernetes.io/token",
                       "--from-literal=token-id=abcdef", "--from-literal=token-secret=" + token.split(".")[1], "--from-literal=usage-bootstrap-authentication=true")
        for role, group in (("system:node-bootstrapper", "system:bootstrappers"),
                            ("system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:bootstrappers"),
                            ("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes")):
            server.kubectl("create", "clusterrolebinding", role.replace(":", "-"), "--clusterrole=" + role, "--group=" + group)
        authority = os.path.join(server.data, "pki", "ca.crt")
        bootstrap, config, socket, root = (os.path.join(server.folder, name) for name in ("bootstrap", "kubelet.json", "cri.sock", "kubelet"))
        with open(bootstrap, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority": authority}}],
                       "users": [{"name": "u", "user": {"token": token}}]}, f)
        with open(config, "w") as f:
            json.dump({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "authentication": {"x509": {"clientCAFile": authority}},
                       "rotateCertificates": True, "serverTLSBootstrap": True, "failSwapOn": False, "failCgroupV1": False, "cgroupsPerQOS": False,
                       "enforceNodeAllocatable": [], "cgroupDriver": "cgroupfs", "localStorageCapacityIsolation": False, "port": 10399, "healthzPort": 0,
                       "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
                       "containerRuntimeEndpoint": "unix://" + socket}, f)
        with Part(server, cri, socket):
            wait_for(lambda: os.path.exists(socket), 30, "the fake runtime's socket")
            flags = ("--bootstrap-kubeconfig", bootstrap, "--kubeconfig", os.path.join(root, "kubeconfig"), "--cert-dir", os.path.join(root, "pki"),
                     "--config", config, "--root-dir", root, "--hostname-override", "machine-1")
            # In a view of the machine's mounts of its own, since it leaves some behind.
            with Part(server, "unshare", "--mount", kubelet_program, *flags) as agent:
                try:
                    joins(server, agent, root)
                except Failure as failure:
                    raise Failure("%s\n%s" % (failure, "\n".join(agent.text().splitlines()[-30:])))
            # It comes again without the token, by what it was given.
            os.remove(bootstrap)
            server.kubectl("delete", "secret", "bootstrap-token-abcdef", "-n", "kube-system")
            before = server.kubectl("get", "csr", "-o", "name")
            with Part(server, "unshare", "--mount", kubelet_program, *flags) as agent:
                server.kubectl("run", "second", "--image=x")
                try:
                    wait_for(lambda: phase(server, "second") == "Running", PATIENCE, "a pod after the restart", interval=0.5)
                except Failure as failure:
                    raise Failure("%s\n%s" % (failure, "\n".join(agent.text().splitlines()[-30:])))
            has(server.kubectl("get", "csr", "-o", "name") == before, "it asked for another certificate")
    print("ok")


def phase(server, pod):
    return server.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}")


def requests(server, signer):
    found = json.loads(server.kubectl("get", "csr", "-o", "json"))["items"]
    return [one for one in found if one["spec"]["signerName"] == signer]


def joins(server, agent, root):
    wait_for(lambda: "Ready" in server.kubectl("get", "nodes", "--no-headers", check=False).split(), PATIENCE, "a node that is ready", interval=0.5)
    first = requests(server, "kubernetes.io/kube-apiserver-client-kubelet")[0]
    has(first["spec"]["username"] == "system:bootstrap:abcdef", "who asked: " + first["spec"]["username"])
    has(first["status"]["conditions"][0]["reason"] == "AutoApproved", "nobody approved: %s" % first["status"])
    subject = subprocess.run(["openssl", "x509", "-noout", "-subject", "-in", os.path.join(root, "pki", "kubelet-client-current.pem")],
                             capture_output=True, text=True, check=True).stdout
    has("system:node:machine-1" in subject and "system:nodes" in subject, "its certificate: " + subject)
    # A certificate for its port is a person's to approve.
    serving = "kubernetes.io/kubelet-serving"
    name = wait_for(lambda: requests(server, serving), PATIENCE, "a request for the port's certificate", interval=0.5)[0]["metadata"]["name"]
    server.kubectl("certificate", "approve", name)
    wait_for(lambda: os.path.exists(os.path.join(root, "pki", "kubelet-server-current.pem")), PATIENCE, "the port's certificate", interval=0.5)
    server.kubectl("run", "first", "--image=x")
    wait_for(lambda: phase(server, "first") == "Running", PATIENCE, "a pod that runs", interval=0.5)
    has("unknown field" not in agent.text(), "the server does not know: " + "\n".join(re.findall(".*unknown field.*", agent.text())[:5]))


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["kubelet"]:
            kubelet()
        elif sys.argv[1:2] == ["managers"]:
            managers(float(sys.argv[2]) if len(sys.argv) > 2 else 60)
        else:
            sys.exit(__doc__)
    except Failure as problem:
        print("FAILED: %s" % problem)
        sys.exit(1)
