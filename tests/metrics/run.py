#!/usr/bin/env python3
"""Metrics of a running cluster: what docs/metrics.md lists is served, and what is served is listed there; what deploy/grafana/dibs.json asks for has
values after pods with claims ran, waited, failed and were evicted; `dibs scheduler` and `dibs controllers` alone tell the same, and answer probes.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

DEADLINE = 60
DRIVER = "gpu.example.com"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# As PromQL has them, beside names of metrics and labels.
FUNCTIONS = {"sum", "by", "rate", "histogram_quantile", "vector", "or", "le"}


class Metrics:
    """An exposition: types by family, samples as (name, labels, value)."""

    def __init__(self, text):
        self.types = dict(re.findall(r"(?m)^# TYPE (\w+) (\w+)$", text))
        self.samples = []
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = SAMPLE.match(line).groups()
            self.samples.append((name, dict(LABEL.findall(labels or "")), float(value)))

    def family(self, name):
        """That of a sample; None: of no family that was declared."""
        if name in self.types:
            return name
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        return base if self.types.get(base) == "histogram" else None

    def value(self, wanted, **labels):
        return sum(value for name, found, value in self.samples if name == wanted and labels.items() <= found.items())


def documented():
    """(type, labels) by name, by heading of docs/metrics.md."""
    out, heading = {}, ""
    with open(os.path.join(ROOT, "docs", "metrics.md")) as f:
        for line in f:
            if line.startswith("## "):
                heading = line[3:].strip()
            row = re.match(r"\| `([a-z_]+)` \| (\w+) \| ([\w, ]*) ?\|", line)
            if row:
                out.setdefault(heading, {})[row[1]] = (row[2], sorted(filter(None, re.split(r",? ", row[3].strip()))))
    return out


def check_documented(where, metrics, pages, *headings):
    """The families served are just those of the headings, with these types and labels."""
    wanted = {name: what for heading in headings for name, what in pages[heading].items()}
    if set(wanted) != set(metrics.types):
        raise Failure("%s: not served: %s; not in docs/metrics.md: %s" %
                      (where, sorted(set(wanted) - set(metrics.types)), sorted(set(metrics.types) - set(wanted))))
    for name, kind in metrics.types.items():
        if wanted[name][0] != kind:
            raise Failure("%s: %s is a %s, docs/metrics.md says %s" % (where, name, kind, wanted[name][0]))
    for name, labels, _ in metrics.samples:
        family = metrics.family(name)
        if family is None:
            raise Failure("%s: %s belongs to no family" % (where, name))
        if sorted(set(labels) - {"le"}) != wanted[family][1]:
            raise Failure("%s: %s has the labels %s, docs/metrics.md says %s" % (where, name, sorted(labels), wanted[family][1]))
    print("ok %s: %d families, as documented" % (where, len(wanted)), flush=True)


def queries():
    """Expressions of the dashboard, by title of their panel."""
    with open(os.path.join(ROOT, "deploy", "grafana", "dibs.json")) as f:
        board = json.load(f)
    out = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]
    out += [(one["name"], "x(%s)" % one["query"]["query"][len("label_values("):].rpartition(",")[0])
            for one in board["templating"]["list"] if one["type"] == "query"]
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        raise Failure("two panels of the dashboard have one id")
    return out


def check_dashboard(parts):
    """Each metric that it asks for has values, and the labels that it picks or groups by."""
    checked = set()
    for title, query in queries():
        names = re.findall(r"\b([a-z]+_[a-z_]+)\b(?=[{\[ )>]|$)", re.sub(r"\{[^}]*\}", "{}", re.sub(r"by \([^)]*\)", "", query)))
        names = [name for name in names if name not in FUNCTIONS]
        if not names:
            raise Failure("panel %s asks for nothing: %s" % (title, query))
        asked = set(re.findall(r"(\w+)\s*(?:=~|!=|=)", query))
        for group in re.findall(r"by \(([^)]*)\)", query):
            asked |= set(re.split(r",\s*", group))
        for name in names:
            found = [labels for part in parts for sample, labels, _ in part.samples if sample == name]
            if not found:
                raise Failure("panel %s: nobody serves %s" % (title, name))
            missing = [label for label in asked if not any(label in labels for labels in found)]
            if missing:
                raise Failure("panel %s: %s has no label %s" % (title, name, missing))
            checked.add(name)
    print("ok dashboard: %d metrics" % len(checked), flush=True)


def claim_pod(name, count=1):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"},
         "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}]}}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
         "spec": {"terminationGracePeriodSeconds": 0, "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
                  "containers": [{"name": "main", "image": "busybox", "command": ["sleep", "100000"],
                                  "resources": {"claims": [{"name": "gpu"}]}}]}}]})


def runs(api, name):
    return api.expect(200, "GET", PODS + "/" + name)["status"].get("phase") == "Running"


def workload(server):
    """A pod with a device, one that ends, one that waits, one that is evicted."""
    api = server.client()
    for name in ("stays", "ends", "evicted"):
        server.kubectl("apply", "-f", "-", source=claim_pod(name))
    server.kubectl("apply", "-f", "-", source=claim_pod("greedy", 9))
    for name in ("stays", "ends", "evicted"):
        wait_for(lambda: runs(api, name), DEADLINE, "pod %s to run" % name, 0.1)
    claim = next(one for one in api.expect(200, "GET", CLAIMS)["items"] if one["metadata"]["ownerReferences"][0]["name"] == "evicted")
    device = claim["status"]["allocation"]["devices"]["results"][0]["device"]
    server.kubectl("apply", "-f", "-", source=json.dumps(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "ill"},
         "spec": {"deviceSelector": {"driver": DRIVER, "device": device}, "taint": {"key": "ill", "effect": "NoExecute"}}}))
    server.kubectl("delete", "pod", "ends")
    wait_for(lambda: {one["metadata"]["name"] for one in api.expect(200, "GET", PODS)["items"]} == {"stays", "greedy"}, DEADLINE,
             "two pods to be left", 0.1)
    return api


def check_values(main, node):
    """Of the workload, where each has one right answer."""
    for what, found, wanted in (
            ("devices", main.value("dibs_devices", driver=DRIVER, node="node-0"), 8),
            ("devices in use", main.value("dibs_devices", driver=DRIVER, state="allocated"), 1),
            ("tainted devices", main.value("dibs_devices", driver=DRIVER, tainted="true"), 1),
            ("claims that wait", main.value("dibs_resource_claims", state="pending"), 1),
            ("claims in use", main.value("dibs_resource_claims", state="reserved"), 1),
            ("claims of templates", main.value("dynamic_resource_allocation_resource_claims", source="resource_claim_template"), 2),
            ("claims made", main.value("dynamic_resource_allocation_resourceclaim_creates_total", status="success"), 4),
            ("pods bound", main.value("scheduler_pod_scheduling_sli_duration_seconds_count"), 3),
            ("pods that wait", main.value("scheduler_pending_pods", queue="unschedulable"), 1),
            ("pods that wait for devices", main.value("scheduler_unschedulable_pods", plugin="DynamicResources"), 1),
            ("waits for conditions", main.value("scheduler_dra_bindingconditions_allocations_total", driver=DRIVER, status="success"), 3),
            ("evicted pods", main.value("device_taint_eviction_controller_pod_deletions_total"), 1),
            ("prepared", node.value("dra_operations_duration_seconds_count", operation_name="PrepareResources", is_error="false"), 3),
            ("unprepared", node.value("dra_operations_duration_seconds_count", operation_name="UnprepareResources", is_error="false"), 2),
            ("prepared now", node.value("dra_resource_claims_in_use", driver_name=DRIVER), 1)):
        if found != wanted:
            raise Failure("%s: %s, expected %s" % (what, found, wanted))
    print("ok values", flush=True)


class Part:
    """A command of its own with --metrics-bind-address, against the server."""

    def __init__(self, server, folder, *words):
        self.log = os.path.join(folder, words[0] + ".log")
        self.words = words
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([cluster.binary(), *words, "--kubeconfig", server.kubeconfig, "--metrics-bind-address", "127.0.0.1:0"],
                                            stdout=log, stderr=log)

    def address(self):
        def told():
            with open(self.log) as f:
                found = re.search(r'msg="?metrics and probes"? .*port=(\d+)', f.read())
            return found and found[1]
        return "http://127.0.0.1:" + wait_for(told, DEADLINE, "the port of dibs " + self.words[0], 0.1)

    def get(self, path):
        try:
            with urllib.request.urlopen(self.address() + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self):
        self.process.terminate()
        if self.process.wait(DEADLINE) != 0:
            with open(self.log) as f:
                raise Failure("dibs %s ended with %d:\n%s" % (self.words[0], self.process.returncode, f.read()[-4000:]))


def check_alone(pages):
    """The parts in processes of their own: each tells its own, and is ready when it has read the cluster."""
    with tempfile.TemporaryDirectory(prefix="dibs-test-metrics-") as folder, cluster.Server() as server:
        parts = [Part(server, folder, "scheduler"), Part(server, folder, "controllers")]
        try:
            for part, headings in zip(parts, (("Scheduler",), ("Controllers",))):
                for path in ("/healthz", "/livez", "/readyz"):
                    wait_for(lambda: part.get(path) == (200, "ok"), DEADLINE, "%s of dibs %s" % (path, part.words[0]), 0.1)
                lease = "kube-scheduler" if part.words[0] == "scheduler" else "kube-controller-manager"

                def leads():
                    metrics = Metrics(part.get("/metrics")[1])
                    return metrics if metrics.value("leader_election_master_status", name=lease) == 1 else None
                metrics = wait_for(leads, DEADLINE, "dibs %s to lead" % part.words[0], 0.1)
                pages["Lease"] = {"leader_election_master_status": ("gauge", ["name"])}

                def settled():
                    found = Metrics(part.get("/metrics")[1])
                    return found if "workqueue_depth" in found.types or part.words[0] == "scheduler" else None
                metrics = wait_for(settled, DEADLINE, "all of dibs %s" % part.words[0], 0.1)
                check_documented("dibs " + part.words[0], metrics, pages, *headings, "Scheduler and controllers", "Every process", "Lease")
                status, text = part.get("/secrets")
                if status != 404:
                    raise Failure("/secrets: %d %s" % (status, text))
        finally:
            for part in parts:
                part.stop()
        for words, wanted in ((["scheduler", "--metrics-bind-address", "nowhere"], "--metrics-bind-address \"nowhere\": must be HOST:PORT"),
                              (["controllers", "--metrics-bind-address", "127.0.0.1:%d" % server.port, "--kubeconfig", server.kubeconfig],
                               "--metrics-bind-address 127.0.0.1:%d: " % server.port)):
            done = subprocess.run([cluster.binary(), *words], capture_output=True, text=True, timeout=DEADLINE)
            if done.returncode == 0 or wanted not in done.stderr:
                raise Failure("dibs %s: exit status %d\n%s" % (" ".join(words), done.returncode, done.stderr))
        print("ok parts that run alone", flush=True)


def main():
    if not cluster.kubectl():
        print("SKIPPED: no kubectl")
        return 77
    pages = documented()
    with cluster.Server(["--runtime", "sim", "--drivers", "gpu:binding-conditions=true"], command="up") as server:
        api = workload(server)

        def scrape(path):
            answer = api.get(path)
            if answer.status != 200:
                raise Failure("%s: %r" % (path, answer))
            return Metrics(answer.data.decode())
        # The last claims are let go a moment after their pods.
        wait_for(lambda: len(api.expect(200, "GET", CLAIMS)["items"]) == 2, DEADLINE, "two claims to be left", 0.1)
        wait_for(lambda: scrape("/metrics").value("dibs_resource_claims") == 2, DEADLINE, "two claims to be counted", 0.1)
        main_metrics, node = scrape("/metrics"), scrape("/api/v1/nodes/node-0/proxy/metrics")
        check_documented("dibs up", main_metrics, pages, "Scheduler", "Scheduler and controllers", "Controllers", "API server", "Every process")
        check_documented("node-0", node, pages, "Nodes")
        check_values(main_metrics, node)
        check_dashboard([main_metrics, node])
    check_alone(pages)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
