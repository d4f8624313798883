#!/usr/bin/env python3
"""Runs the end-to-end suite of Kubernetes 1.37, unmodified, on `dibs up`, with real containers, and prints a table of what passed.

    run.py conformance|control-plane|dra|webhooks [--only REGEX] [--part I/N] [--jobs N] [--limit MINUTES]

Sources come from outside:

    DIBS_KUBERNETES  a tree of github.com/kubernetes/kubernetes, v1.37; without it one is made of the Go modules of v1.37.0
    DIBS_HOSTPATH    a tree of github.com/kubernetes-csi/csi-driver-host-path, v1.17.1, of which there is no module (git clone --depth 1
                     --branch v1.17.1 https://github.com/kubernetes-csi/csi-driver-host-path): its program is the proxy in the suite's driver pods

Programs are built once, in $DIBS_BUILD/upstream (default: build/upstream of the project), where logs lie as well, one for each spec. Each spec
is a process of its own, so that one that hangs costs its own limit only. Everything is on a machine of its own (support/underlay.sh), from which
nothing leaves. Wants root, runc, conmon, busybox-static, Go; for `conformance` also what TOOLS names, nginx, and etcd. Exit status: 0 when everything passed but what `expected.txt` names, 77 when skipped.
"""
import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
from run import Missing, SKIPPED, shell  # noqa: E402

INSIDE = "DIBS_UPSTREAM_INSIDE"
KUBERNETES = "v1.37.0"
STAMP = "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37 -X k8s.io/component-base/version.gitVersion=v1.37.0"
# Alpha features that specs of Feature:OffByDefault are about.
ALPHA = ",".join(gate + "=true" for gate in (
    "DRAResourcePoolStatus", "DRAPartitionableDevicesType", "DRADeviceCompatibilityGroups", "DRAOptionalNodeOperations",
    "DRANodeAllocatableResources", "GenericWorkload", "DRAWorkloadResourceClaims"))
# What the suite's agnhost image has besides busybox, from this machine.
TOOLS = ("bash", "curl", "dig", "getent", "ip", "nc.openbsd", "socat")
CORES = "0-63\n"  # specs ask for more processors than a small machine has; shares of them are what they get


def folder():
    root = os.environ.get("DIBS_BUILD") or os.path.join(HERE, "..", "..", "build")
    path = os.path.abspath(os.path.join(root, "upstream"))
    os.makedirs(os.path.join(path, "images"), exist_ok=True)
    return path


def kubernetes_of_modules(go):
    """A tree as git has it, but for what it keeps in staging/: those are modules of their own, and are named in its go.mod instead. Made once."""
    tree = os.path.join(folder(), "kubernetes")
    if os.path.exists(tree):
        return tree
    print("getting Kubernetes %s (once)" % KUBERNETES, flush=True)
    found = subprocess.run([go, "mod", "download", "-json", "k8s.io/kubernetes@" + KUBERNETES], cwd=folder(), capture_output=True, text=True)
    module = json.loads(found.stdout or "{}")
    if found.returncode or "Dir" not in module:
        raise Missing("$DIBS_KUBERNETES names no source tree, and no module is to be had: %s" % (module.get("Error") or found.stderr))
    making = tree + ".new"
    shutil.rmtree(making, ignore_errors=True)
    shutil.copytree(module["Dir"], making, ignore=shutil.ignore_patterns("vendor", "go.work", "go.work.sum"))
    subprocess.run(["chmod", "-R", "u+w", making], check=True)
    said = json.loads(subprocess.run([go, "mod", "edit", "-json"], cwd=making, capture_output=True, text=True, check=True).stdout)
    staged = [one["Old"]["Path"] for one in said["Replace"] if one["New"]["Path"].startswith("./staging/")]
    shell([go, "mod", "edit"] + ["-replace=%s=%s@%s" % (path, path, KUBERNETES.replace("v1.", "v0.", 1)) for path in staged], making, missing=False)
    os.rename(making, tree)
    return tree


def make(program, variable, arguments):
    """Builds a program of the tree that the variable names, once."""
    out = os.path.join(folder(), program)
    if os.path.exists(out):
        return
    go, tree = cluster.go(), os.environ.get(variable, "")
    if not go:
        raise Missing("Go is not installed")
    environment = {} if program == "e2e.test" else {"CGO_ENABLED": "0"}
    if not tree and variable == "DIBS_KUBERNETES":
        tree = kubernetes_of_modules(go)
        environment["GOFLAGS"] = "-mod=mod"
    if not os.path.exists(os.path.join(tree, "go.mod")):
        raise Missing("$%s names no source tree" % variable)
    print("building %s (once)" % program, flush=True)
    shell([go] + arguments[:-1] + ["-o", out, arguments[-1]], tree, missing=False, environment=environment)


def build():
    """The suite and the programs of its images."""
    make("e2e.test", "DIBS_KUBERNETES", ["test", "-c", "-ldflags=-checklinkname=0 -s -w " + STAMP, "./test/e2e"])
    make("agnhost", "DIBS_KUBERNETES", ["build", "-ldflags=-s -w", "./test/images/agnhost"])
    make("sampledeviceplugin", "DIBS_KUBERNETES", ["build", "-ldflags=-s -w", "./test/images/sample-device-plugin"])
    make("hostpathplugin", "DIBS_HOSTPATH", ["build", "-mod=vendor", "-ldflags=-s -w -X main.version=v1.17.1", "./cmd/hostpathplugin"])


def build_conformance():
    """Programs of images that only specs of [Conformance] name."""
    make("nnp", "DIBS_KUBERNETES", ["build", "-ldflags=-s -w", "./test/images/nonewprivs"])
    make("sample-apiserver", "DIBS_KUBERNETES", ["build", "-ldflags=-s -w", "k8s.io/sample-apiserver"])
    missing = [tool for tool in TOOLS + ("nginx", "etcd") if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing:
        raise Missing("%s: not installed" % ", ".join(missing))


def with_libraries(programs):
    """Programs of this machine and what they are loaded with, by their paths here."""
    files = {}
    for program in programs:
        path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        for file in [path] + images.libraries_of(path):
            files[file] = os.path.realpath(file)
    return files


class Images:
    """The images that specs name, made of the suite's own programs and of this machine's."""
    E2E = "registry.k8s.io/e2e-test-images/"
    FOLDERS = [("/tmp", 0o1777), ("/root", 0o700)]
    USERS = {"/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n",
             "/etc/group": b"root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"}

    def __init__(self, to):
        self.to = to
        self.busybox = shutil.which("busybox")
        listed = subprocess.run([self.busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
        self.commands = [command for command in listed if command != "busybox"]

    def put(self, names, programs=(), files=None, without=(), more=(), **config):
        """`programs` are the suite's own, in the root; `files` others; `without`: commands that busybox is not."""
        content = dict(self.USERS, **{"/bin/busybox": self.busybox})
        content.update({"/" + program: os.path.join(folder(), program) for program in programs})
        content.update(files or {})
        links = [("/bin/" + command, "busybox") for command in self.commands if command not in without]
        archive = images.archive(content, links + list(more), folders=self.FOLDERS, **config)
        for name in names:
            images.add(self.to, name, archive)

    def usual(self):
        e2e = self.E2E
        self.put(["registry.k8s.io/sig-storage/hostpathplugin:v1.17.1"], ["hostpathplugin"], entrypoint=["/hostpathplugin"])
        self.put(["registry.k8s.io/pause:3.10.2"], ["agnhost"], entrypoint=["/agnhost", "pause"])
        # Debian's busybox keeps variables whose names no shell could assign to from what it starts.
        bash = shutil.which("bash")
        self.put([e2e + "busybox:1.37.0-2", e2e + "busybox:1.36.1-1"], files=with_libraries(["bash"]), without=["sh"], more=[("/bin/sh", bash)], command=["sh"])
        self.agnhost(e2e + "agnhost:2.66.1", e2e + "agnhost:2.55", command=["pause"])
        self.put([e2e + "sample-device-plugin:1.7", e2e + "sample-device-plugin:1.8.0"], ["sampledeviceplugin"],
                 entrypoint=["/sampledeviceplugin", "-alsologtostderr"])

    def agnhost(self, *names, command, files=None):
        tools = [tool for tool in TOOLS if shutil.which(tool)]
        content = with_libraries(tools)
        tree = os.path.join(os.environ.get("DIBS_KUBERNETES", ""), "test", "images", "agnhost", "porter")
        for key in ("localhost.crt", "localhost.key"):
            if os.path.exists(os.path.join(tree, key)):
                content["/" + key] = os.path.join(tree, key)
        content["/etc/nsswitch.conf"] = b"hosts: files dns\n"
        content.update(files or {})
        # busybox's shell would take its own commands for these.
        instead = {"nc": shutil.which("nc.openbsd") or "busybox", "sh": shutil.which("bash")}
        self.put(names, ["agnhost"], content, without=tools + list(instead),
                 more=[("/agnhost-2", "agnhost")] + [("/bin/" + name, path) for name, path in instead.items()], entrypoint=["/agnhost"], command=command)

    def conformance(self):
        e2e = self.E2E
        for name in ("kitten", "nautilus"):
            html = os.path.join(os.environ["DIBS_KUBERNETES"], "test", "images", name, "html")
            self.agnhost(e2e + name + ":1.8", command=["test-webserver"],
                         files={"/" + file: os.path.join(html, file) for file in (name + ".jpg", "data.json")})
        self.put([e2e + "nonroot:1.5"], command=["sh"], user="1234")
        self.put([e2e + "nonewprivs:1.4"], files={"/usr/local/bin/nnp": os.path.join(folder(), "nnp")}, modes={"/usr/local/bin/nnp": 0o6755},
                 command=["/usr/local/bin/nnp"])
        self.put([e2e + "glibc-dns-testing:2.1.1"], files=dict(with_libraries(["bash", "dig", "getent"]), **{"/etc/nsswitch.conf": b"hosts: files dns\n"}),
                 command=["bash"])
        self.put([e2e + "sample-apiserver:1.29.2"], ["sample-apiserver"], entrypoint=["/sample-apiserver"])
        etcd = os.path.join(HERE, "..", "..", "build", "tools", "etcd")
        etcd = etcd if os.path.exists(etcd) else shutil.which("etcd")
        libraries = {file: os.path.realpath(file) for file in images.libraries_of(etcd)}
        self.put(["registry.k8s.io/etcd:3.7.0-0"], files=dict(libraries, **{"/usr/local/bin/etcd": etcd}))
        settings = (b"daemon off; error_log /dev/stderr; pid /tmp/nginx.pid; user root; events {}\n"
                    b"http { access_log /dev/stdout; server { listen 80; root /usr/share/nginx/html; } }\n")
        self.put([e2e + "nginx:1.27.0-2", e2e + "nginx:1.28.0-2"],
                 files=dict(with_libraries(["nginx"]), **{"/etc/nginx/nginx.conf": settings, "/var/log/nginx/error.log": b"", "/var/lib/nginx/body/.keep": b"",
                                                          "/usr/share/nginx/html/index.html": b"<title>Welcome to nginx!</title>\n"}),
                 command=[shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-c", "/etc/nginx/nginx.conf"])


def specs(focus):
    """Texts of all specs that the expression matches."""
    done = subprocess.run([os.path.join(folder(), "e2e.test"), "--ginkgo.dry-run", "--ginkgo.v", "--ginkgo.no-color", "--ginkgo.focus", focus],
                          capture_output=True, text=True)
    # Labels follow the text, and which versions of a component it is for.
    found = [re.sub(r" \[sig-[a-z-]+(, [^\]]*)?\]( \[\w+: \[[^\]]*\]\])*$", "", line) for line in done.stdout.splitlines() if line.startswith("[sig")]
    if not found:
        raise cluster.Failure("the suite lists no spec: %s" % (done.stdout + done.stderr)[-2000:])
    return sorted(set(found))


class Runs:
    """Specs on one cluster, a few at a time."""

    def __init__(self, server, logs, limit):
        self.server, self.logs, self.limit = server, logs, limit
        self.lock, self.results, self.begun = threading.Lock(), {}, 0
        shutil.rmtree(logs, ignore_errors=True)
        os.makedirs(logs)

    def one(self, text):
        with self.lock:
            self.begun += 1
            log = os.path.join(self.logs, "%03d.log" % self.begun)
        started = time.monotonic()
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [os.path.join(folder(), "e2e.test"), "--kubeconfig", self.server.kubeconfig, "--provider", "skeleton", "--ginkgo.no-color",
                 "--ginkgo.v", "--ginkgo.silence-skips", "--ginkgo.focus", re.escape(text).replace("\\ ", " ") + "$",
                 "--ginkgo.timeout", "%dm" % self.limit, "--ginkgo.grace-period", "20s"],
                stdout=out, stderr=subprocess.STDOUT, preexec_fn=cluster.die_with_parent)
            try:
                process.wait(60 * self.limit + 60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with open(log, errors="replace") as f:
            said = f.read()
        ran = re.search(r"Ran (\d+) of \d+ Specs", said)
        if not ran:
            result = "no result"
        elif "SUCCESS!" in said:
            result = "skipped" if ran.group(1) == "0" else "passed"
        else:
            result = "failed"
        with self.lock:
            self.results[text] = result
            print("%-9s %4.0f s  %s  %s" % (result, time.monotonic() - started, os.path.basename(log), text), flush=True)

    def all(self, texts, jobs):
        waiting = queue.Queue()
        for text in texts:
            waiting.put(text)

        def work():
            while True:
                try:
                    self.one(waiting.get_nowait())
                except queue.Empty:
                    return
        threads = [threading.Thread(target=work) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def fake_cores():
    """Nodes count the processors that this file names."""
    with tempfile.NamedTemporaryFile("w", delete=False) as f:
        f.write(CORES)
    subprocess.run(["mount", "--bind", f.name, "/sys/devices/system/cpu/online"], check=True)
    os.unlink(f.name)


def on_cluster(nodes, flags, texts, options, logs):
    if not texts:
        return {}
    alone = [text for text in texts if "[Serial]" in text or "[Slow]" in text]
    with cluster.Server(["--nodes", str(nodes), "--runtime", "oci", "--emulate-release", "1.37", "--images", os.path.join(folder(), "images")] + flags,
                        command="up") as server:
        runs = Runs(server, logs, options.limit)
        runs.all([text for text in texts if text not in alone], options.jobs)
        runs.all(alone, 1)
        end_pods(server)
        return runs.results


def end_pods(server):
    """Containers outlive their agents."""
    api = server.client()
    for pod in api.expect(200, "GET", "/api/v1/pods")["items"]:
        api.request("DELETE", "/api/v1/namespaces/%s/pods/%s?gracePeriodSeconds=1" % (pod["metadata"]["namespace"], pod["metadata"]["name"]))
    cluster.wait_for(lambda: not cluster.containers_of(server.folder), 90, "the containers to end")


def run_dra(options):
    """All that names DRA, on two clusters: alpha features are on in the second one only."""
    chosen = [text for text in specs("DRA|DynamicResourceAllocation") if re.search(options.only, text)]
    usual = [text for text in chosen if "OffByDefault" not in text]
    alpha = [text for text in chosen if "OffByDefault" in text]
    logs = os.path.join(folder(), "logs")
    results = on_cluster(3, [], usual, options, os.path.join(logs, "dra"))
    gates = ["--feature-gates", ALPHA, "--runtime-config", "api/alpha=true,api/beta=true"]
    results.update(on_cluster(3, gates, alpha, options, os.path.join(logs, "dra-alpha")))
    return results


def run_conformance(options):
    """What every cluster must do to be called Kubernetes; the images are made of this machine's programs where upstream takes others' images."""
    Images(os.path.join(folder(), "images")).conformance()
    chosen = [text for text in specs(r"\[Conformance\]") if re.search(options.only, text)]
    part, parts = options.part
    return on_cluster(2, [], chosen[part - 1::parts], options, os.path.join(folder(), "logs", "conformance-%d" % part))


def run_control_plane(options):
    """The API server and controllers, without pods; the suite wants a node all the same."""
    focus = (r"\[sig-api-machinery\] (Watchers|Servers with support for Table|FieldValidation|server version|ServerSideApply|CustomResource|Discovery|"
             r"Namespaces|Server request timeout|ValidatingAdmissionPolicy|API Streaming|Servers with support for API chunking|client-go|health handlers|"
             r"ResourceQuota)|\[sig-node\] (DRA|ConfigMap|Secrets|Lease|RuntimeClass).*should.*(API|CRUD|lifecycle|operations)")
    without = r"Webhook|webhook|\[Slow\]|\[Serial\]|\[Disruptive\]|pod|Pod|terminating|volume|env"
    chosen = [text for text in specs(focus) if re.search(options.only, text) and not re.search(without, text)]
    return on_cluster(1, [], chosen, options, os.path.join(folder(), "logs", "control-plane"))


def run_webhooks(options):
    """Admission webhooks: pods behind Services, which the API server calls."""
    chosen = [text for text in specs(r"\[sig-api-machinery\] AdmissionWebhook") if re.search(options.only, text)]
    return on_cluster(1, [], chosen, options, os.path.join(folder(), "logs", "webhooks"))


SELECTIONS = {"conformance": run_conformance, "control-plane": run_control_plane, "dra": run_dra, "webhooks": run_webhooks}


def expected():
    """Specs that need not pass, each with the reason behind its text."""
    with open(os.path.join(HERE, "expected.txt")) as f:
        lines = [line.rstrip("\n") for line in f]
    return {line.split("  # ")[0] for line in lines if line and not line.startswith("#")}


def table(results):
    groups = {}
    for text, result in results.items():
        group = groups.setdefault(re.match(r"\[[^\]]*\](?: \[DRA\])? ?[^ \[]*(?: plane)?", text).group(0).strip(), {})
        group[result] = group.get(result, 0) + 1
    print("\n%-60s %7s %7s %7s %9s" % ("", "passed", "failed", "skipped", "no result"))
    for group, counts in sorted(groups.items()):
        print("%-60s %7d %7d %7d %9d" % ((group,) + tuple(counts.get(r, 0) for r in ("passed", "failed", "skipped", "no result"))))
    bad = sorted(text for text, result in results.items() if result != "passed" and text not in expected())
    for text in bad:
        print("%s: %s" % (results[text], text))
    passed = sum(result == "passed" for result in results.values())
    print("%d of %d passed" % (passed, len(results)))
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("selection", choices=sorted(SELECTIONS))
    parser.add_argument("--only", default="", help="specs that match this expression alone")
    parser.add_argument("--part", type=lambda text: tuple(map(int, text.split("/"))), default=(1, 1), help="of conformance: the I-th of N parts")
    parser.add_argument("--jobs", type=int, default=3, help="specs at a time")
    parser.add_argument("--limit", type=int, default=4, help="minutes that a spec may take")
    options = parser.parse_args()
    if os.environ.get(INSIDE):
        Images(os.path.join(folder(), "images")).usual()
        fake_cores()
        return table(SELECTIONS[options.selection](options))
    if os.geteuid() != 0:
        print("SKIPPED: wants root")
        return SKIPPED
    try:
        build()
        if options.selection == "conformance":
            build_conformance()
    except Missing as missing:
        print("SKIPPED: %s" % missing)
        return SKIPPED
    script = os.path.join(HERE, "..", "support", "underlay.sh")
    return subprocess.run([script, sys.executable, "-B", os.path.abspath(__file__)] + sys.argv[1:], env=dict(os.environ, **{INSIDE: "1"})).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
