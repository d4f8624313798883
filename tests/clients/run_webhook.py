#!/usr/bin/env python3
"""Admission webhooks that others wrote, unmodified, in pods of `dibs up`: cert-manager with its chart, and with its help the webhook of
Kubernetes' example driver, which run_chart.py has to leave out. They refuse what they are there to refuse, in their own words, let the rest
pass, also after everything was killed, and go without leaving anything.

    run_webhook.py

$DIBS_CERT_MANAGER is a source tree of cert-manager 1.20.2: its programs are in no Go module that can be had by its name. They are built
in $DIBS_BUILD/clients/webhook, once, which takes long, and become images of the names that the charts have.

Runs on a machine of its own (support/underlay.sh), from which nothing leaves. Skipped (exit status 77) where the tree, root, containers,
kubectl, Go or the modules are missing.
"""
import base64
import copy
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
import run  # noqa: E402
import run_chart as chart  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

DEADLINE = chart.DEADLINE
VERSION = "v1.20.2"  # the one that the driver's suite is run with upstream
MANAGER = "cert-manager"
COMMANDS = ("controller", "webhook", "cainjector", "startupapicheck")
IMAGE = "quay.io/jetstack/cert-manager-%s:" + VERSION
WEBHOOK = "dra-example-webhook"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations"
CERTIFICATES = "/apis/cert-manager.io/v1/namespaces/%s/"
OPAQUE = "basic-resourceclaim-opaque-config"  # the demo with parameters

ISSUER = {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "own", "namespace": "default"}, "spec": {"selfSigned": {}}}
CERTIFICATE = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "own", "namespace": "default"},
               "spec": {"secretName": "own", "dnsNames": ["own.example.com"], "issuerRef": {"name": "own"}}}
DENIED = 'admission webhook "webhook.cert-manager.io" denied the request: '
NAMELESS = DENIED + 'spec: Invalid value: "": at least one of commonName'


def build(go, module, tree):
    """All programs, and the driver's suite; returns where they are."""
    out = run.build_folder("webhook")
    # Name, folder with the module, package, and whether it is a suite.
    wanted = [(name, os.path.join(tree, "cmd", name), ".", False) for name in COMMANDS]
    wanted += [(name, module, "./cmd/" + name, False) for name in (chart.PLUGIN, WEBHOOK)]
    wanted.append(("e2e.test", module, "./test/e2e", True))
    environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    for name, folder, package, is_suite in wanted:
        program = os.path.join(out, name)
        if name in COMMANDS and os.path.exists(program):
            continue
        more = ["-tags=e2e"] if is_suite else []
        run.shell([go, "list", "-deps", *(["-test"] if is_suite else []), *more, package], folder, missing=True, environment=environment)
        run.shell(["nice", "-n", "10", go, *(["test", "-c"] if is_suite else ["build"]), *more, "-mod=readonly", "-trimpath", "-ldflags=-s -w",
                   "-o", program, package], folder, missing=False, environment=environment)
    return out


def claim(version, interval, kind="ResourceClaim", driver=chart.DRIVER):
    """One device, to be shared by slices of time that are so long."""
    request = {"deviceClassName": chart.DRIVER}
    parameters = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig",
                  "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}}
    spec = {"devices": {"requests": [{"name": "gpu", **(request if version == "v1beta1" else {"exactly": request})}],
                        "config": [{"requests": ["gpu"], "opaque": {"driver": driver, "parameters": parameters}}]}}
    return {"apiVersion": "resource.k8s.io/" + version, "kind": kind, "metadata": {"name": "asked", "namespace": "default"},
            "spec": spec if kind == "ResourceClaim" else {"spec": spec}}


class Story(chart.Story):
    def __init__(self, server, module, helm, tree, charts):
        super().__init__(server, module, helm)
        self.tree, self.charts = tree, charts

    def create(self, body, *flags):
        self.server.kubectl("create", "-f", "-", *flags, source=json.dumps(body))

    def refused(self, body, *words):
        self.told(lambda: self.create(body), *words)

    def told(self, what, *words):
        """kubectl fails, and says these words."""
        try:
            what()
        except Failure as failure:
            missing = [each for each in words if each not in str(failure)]
            if missing:
                raise Failure("not said: %s\n%s" % (missing, failure))
        else:
            raise Failure("was accepted, instead of: %s" % ", ".join(words))

    def secret(self, namespace, name):
        found = self.get("/api/v1/namespaces/%s/secrets/%s" % (namespace, name))
        return {key: base64.b64decode(value).decode() for key, value in found.get("data", {}).items()} if found else {}

    def wait_trusted(self, kind, name, namespace, secret):
        """cainjector writes whom to trust into a configuration: the authority that is in a Secret."""
        def trusted():
            authority = self.secret(namespace, secret).get("ca.crt")
            found = self.get((CONFIGURATIONS % kind) + "/" + name)
            return authority and found and all(
                base64.b64decode(hook["clientConfig"].get("caBundle", "")).decode() == authority for hook in found["webhooks"])
        wait_for(trusted, DEADLINE, "caBundle of %s to be that of the Secret %s" % (name, secret), 0.1)

    # cert-manager.

    def install_manager(self):
        """As the driver's README says it. The chart is made of its sources as upstream's Makefile makes it, less its signature."""
        sources = os.path.join(self.charts, MANAGER)
        shutil.copytree(os.path.join(self.tree, "deploy", "charts", MANAGER), sources)
        os.rename(os.path.join(sources, "Chart.template.yaml"), os.path.join(sources, "Chart.yaml"))
        self.helm("package", "--version", VERSION, "--app-version", VERSION, "--destination", self.charts, sources)
        self.helm("upgrade", "-i", "--create-namespace", "--namespace", MANAGER, "--wait", "--set", "crds.enabled=true", MANAGER,
                  os.path.join(self.charts, "%s-%s.tgz" % (MANAGER, VERSION)))
        # Its own check ran as a hook of the chart: a Job that creates a CertificateRequest (a dry run), which both webhooks are asked about.
        for kind in ("validating", "mutating"):
            self.wait_trusted(kind, MANAGER + "-webhook", MANAGER, MANAGER + "-webhook-ca")
        self.done("cert-manager is installed, its own check has passed, and cainjector has filled caBundle in")

    def manager_refuses(self):
        none, two, nameless = copy.deepcopy(ISSUER), copy.deepcopy(ISSUER), copy.deepcopy(CERTIFICATE)
        none["spec"] = {}
        self.refused(none, DENIED + "spec: Required value: at least one issuer must be configured")
        two["spec"]["ca"] = {"secretName": "own"}
        self.refused(two, DENIED + "spec.selfSigned: Forbidden: may not specify more than one issuer type")
        del nameless["spec"]["dnsNames"]
        self.refused(nameless, NAMELESS)
        self.expect("issuers", self.names(CERTIFICATES % "default" + "issuers"), set())
        self.done("cert-manager's webhook refuses, in its words")

    def manager_issues(self):
        self.create(ISSUER)
        self.create(CERTIFICATE)
        self.server.kubectl("wait", "--for=condition=Ready", "issuer/own", "certificate/own", "--timeout=%ds" % DEADLINE, timeout=2 * DEADLINE)
        found = self.secret("default", "own")
        self.expect("the Secret's keys", set(found), {"ca.crt", "tls.crt", "tls.key"})
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(found["tls.key"] + found["tls.crt"])
            file.flush()
            ssl.create_default_context().load_cert_chain(file.name)  # the key is the certificate's
        # The mutating webhook writes down who asked.
        asked = self.get(CERTIFICATES % "default" + "certificaterequests")["items"]
        self.expect("who asked", [one["spec"].get("username") for one in asked], ["system:serviceaccount:cert-manager:cert-manager"])
        self.told(lambda: self.server.kubectl("patch", "certificate", "own", "--type=merge", "-p", '{"spec": {"dnsNames": null}}'), NAMELESS)
        self.server.kubectl("delete", "certificate/own", "issuer/own", "secret/own")
        self.done("a certificate is issued, and an update of it refused")

    # The driver's webhook.

    def install_driver(self):
        self.install("--set", "webhook.enabled=true", "--wait")
        self.wait_driver(8)
        self.wait_trusted("validating", chart.RELEASE + "-webhook-config", chart.NAMESPACE, chart.RELEASE + "-webhook-cert")
        self.done("the driver is installed with its webhook, whose certificate cert-manager issued")

    def driver_refuses(self):
        said = ('admission webhook "dra.example.com" denied the request: 1 configs failed to validate: object at %s.devices.config[0].opaque.'
                "parameters is invalid: unknown time-slice interval: Never")
        for version in ("v1", "v1beta2", "v1beta1"):
            self.refused(claim(version, "Never"), said % "spec")
            self.refused(claim(version, "Never", "ResourceClaimTemplate"), said % "spec.spec")
            for kind in ("ResourceClaim", "ResourceClaimTemplate"):
                self.create(claim(version, "Long", kind), "--dry-run=server")
        unknown = claim("v1", "Long")
        unknown["spec"]["devices"]["config"][0]["opaque"]["parameters"]["sharinq"] = {}
        self.refused(unknown, "error decoding object at spec.devices.config[0].opaque.parameters", "sharinq")
        self.create(claim("v1", "Never", driver="other.example.com"), "--dry-run=server")  # not its to judge
        self.expect("claims", self.names(chart.RESOURCE + "resourceclaims"), set())

    def driver_serves(self):
        self.driver_refuses()
        self.apply(OPAQUE, OPAQUE + ".yaml")
        self.wait_ready(OPAQUE, ("pod0",))
        for number in "01":
            self.devices(OPAQUE, "pod0", "ts-ctr" + number, SHARING_STRATEGY="TimeSlicing", TIMESLICE_INTERVAL="Long")
            self.devices(OPAQUE, "pod0", "sp-ctr" + number, SHARING_STRATEGY="SpacePartitioning", PARTITION_COUNT="10")
        self.delete_namespace(OPAQUE)
        self.done("bad parameters are refused in every version, good ones reach their pod")

    def webhook_gone(self):
        """A webhook that cannot be asked refuses, and no more once it is back."""
        deployment = "deployment/%s-webhook" % chart.RELEASE
        self.server.kubectl("scale", "--namespace", chart.NAMESPACE, deployment, "--replicas=0")
        wait_for(lambda: not [name for name in self.pods(chart.NAMESPACE) if "-webhook-" in name], DEADLINE, "the webhook's pod to go", 0.1)
        self.refused(claim("v1", "Long"), 'failed calling webhook "dra.example.com"')
        self.server.kubectl("scale", "--namespace", chart.NAMESPACE, deployment, "--replicas=1")
        self.server.kubectl("rollout", "status", "--namespace", chart.NAMESPACE, deployment, timeout=DEADLINE)
        self.driver_refuses()
        self.done("without its pod all claims are refused, and with it the bad ones")

    def killed(self):
        self.kill()
        self.driver_refuses()
        self.manager_refuses()
        self.done("killed and started again, both are asked as before")

    def uninstall_driver(self):
        self.uninstall()
        self.expect("configurations", {name for name in self.names(CONFIGURATIONS % "validating") if MANAGER not in name}, set())
        self.expect("certificates", self.names(CERTIFICATES % chart.NAMESPACE + "certificates"), set())
        self.delete_namespace(chart.NAMESPACE)  # with the Secret: cert-manager keeps what it issued
        wait_for(lambda: not self.slices(), DEADLINE, "the slices to go", 0.1)
        self.create(claim("v1", "Never"), "--dry-run=server")  # nobody minds any more
        self.done("the driver is uninstalled")

    def specs(self, program):
        done = subprocess.run([program, "-ginkgo.no-color", "-ginkgo.focus=Webhooks"], capture_output=True, text=True, timeout=chart.E2E_DEADLINE,
                              env=self.server.kubectl_environment(), cwd=os.path.join(self.module, "test", "e2e"))
        summary = re.search(r"(?m)^.*\d+ Passed \| .*$", done.stdout)
        if done.returncode or not summary or "3 Passed | 0 Failed" not in summary.group(0):
            raise Failure("the suite ends with %d\n%s" % (done.returncode, (done.stdout + done.stderr)[-12000:]))
        self.done("its own specs of webhooks: " + summary.group(0))

    def nothing_left(self):
        self.helm("uninstall", "--namespace", MANAGER, MANAGER, "--wait")
        # The chart has definitions kept, so that nobody loses certificates.
        self.server.kubectl("delete", "customresourcedefinitions", "--selector", "app.kubernetes.io/instance=" + MANAGER, timeout=DEADLINE)
        self.delete_namespace(MANAGER)
        self.expect("releases", json.loads(self.helm("list", "--all-namespaces", "--all", "-o", "json")), [])
        left = set()
        for path in [CONFIGURATIONS % kind for kind in ("validating", "mutating")] + [chart.RBAC + kind for kind in (
                "clusterroles", "clusterrolebindings", "roles", "rolebindings")] + ["/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                                                                                    "/api/v1/services", "/api/v1/secrets"]:
            left |= {name for name in self.names(path) if MANAGER in name or "dra-" in name or "own" == name}
        self.expect("objects left", left, set())
        answer = self.api.get("/apis/cert-manager.io")
        self.expect("the group", answer.status, 404)
        self.expect("containers left", cluster.containers_of(self.server.folder), [])
        self.done("cert-manager is uninstalled, and nothing is left")

    def run(self, suite):
        self.install_manager()
        self.manager_refuses()
        self.manager_issues()
        self.install_driver()
        self.driver_serves()
        self.webhook_gone()
        self.killed()
        self.uninstall_driver()
        self.specs(suite)
        self.nothing_left()

    def end(self):
        self.helm("uninstall", "--namespace", MANAGER, MANAGER, "--ignore-not-found", check=False)
        super().end()

    def report(self):
        said = [super().report(), self.server.kubectl("get", "certificates,certificaterequests,issuers", "-A", check=False)]
        for pod in self.pods(MANAGER):
            said.append("%s:\n%s" % (pod, self.server.kubectl("logs", "--namespace", MANAGER, pod, "--tail=30", check=False)))
        return "\n".join(said)


def inside(module, tree, programs, helm):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    with tempfile.TemporaryDirectory(prefix="dibs-test-images-") as folder, tempfile.TemporaryDirectory(prefix="dibs-test-charts-") as charts:
        for name in COMMANDS:
            path = "/app/cmd/%s/%s" % (name, name)
            # Nobody in particular, as upstream's: the chart insists on it.
            images.add(folder, IMAGE % name, images.archive({path: os.path.join(programs, name)}, entrypoint=[path], user="65532"))
        images.add(folder, chart.IMAGE, chart.image_of([os.path.join(programs, name) for name in (chart.PLUGIN, WEBHOOK)]))
        images.add(folder, "ubuntu:22.04", chart.image_of([shutil.which(tool) for tool in ("bash", "env", "grep", "sort", "sleep")]))
        flags = ["--nodes", str(len(chart.NODES)), "--images", folder, "--image-alias", "busybox"]
        with cluster.Server(flags, command="up") as server:
            story = Story(server, module, helm, tree, charts)
            try:
                story.run(os.path.join(programs, "e2e.test"))
            except Failure as failure:
                raise Failure("%s\n%s\n%s" % (failure, story.report(), server.log_tail()))
            finally:
                story.end()
    return 0


def main():
    if len(sys.argv) > 1:
        return inside(*sys.argv[1:])
    tree = os.environ.get("DIBS_CERT_MANAGER")
    if not tree or not os.path.isdir(os.path.join(tree, "cmd", "webhook")):
        print("SKIPPED: DIBS_CERT_MANAGER is no source tree of cert-manager")
        return run.SKIPPED
    if os.geteuid() != 0 or not cluster.kubectl():
        print("SKIPPED: wants root and kubectl")
        return run.SKIPPED
    try:
        go = run.find_go()
        module = chart.source(go)
        programs = build(go, module, os.path.abspath(tree))
        helm = chart.find_helm()
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    return run.on_own_machine(__file__, module, os.path.abspath(tree), programs, helm)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
