#!/usr/bin/env python3
"""Runs the hostpath CSI driver of the Kubernetes project, unmodified, with its sidecars, as pods of `dibs up`: a claim is provisioned, a pod
writes, another one reads after the first is gone, and deletion leaves nothing.

    run_csi.py

$DIBS_CSI_SOURCES is a folder with the sources (with vendored modules) of csi-driver-host-path, node-driver-registrar, external-provisioner
and external-attacher, each in a folder of its name. They are built in $DIBS_BUILD/clients/csi, and become images without any tool but this
file. The driver's manifest is applied as it is, less the containers of sidecars that are not here.

Everything runs in a network namespace without a way out. Skipped (exit status 77) where root, Go or the sources are missing.
"""
import glob
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import run  # noqa: E402

DEADLINE = 120
IN_NAMESPACE = "DIBS_CSI_IN_NAMESPACE"
DRIVER_DATA = "/var/lib/csi-hostpath-data"  # as the manifest has it
# Container of the manifest: source folder, command, name of the program in its image.
PROGRAMS = {
    "hostpath": ("csi-driver-host-path", "hostpathplugin", "hostpathplugin"),
    "node-driver-registrar": ("node-driver-registrar", "csi-node-driver-registrar", "csi-node-driver-registrar"),
    "csi-attacher": ("external-attacher", "csi-attacher", "csi-attacher"),
    "csi-provisioner": ("external-provisioner", "csi-provisioner", "csi-provisioner"),
}
TOOLS = ("sh", "mount", "umount", "mkdir", "rm", "rmdir", "cp", "ls", "cat", "tar", "dd", "losetup", "stat", "df", "du", "sleep")


def build(sources):
    go = shutil.which("go")
    if not go:
        raise run.Missing("Go is not installed")
    programs = {}
    folder = run.build_folder("csi")
    for container, (source, command, name) in PROGRAMS.items():
        where = os.path.join(sources, source)
        if not os.path.isdir(os.path.join(where, "vendor")):
            raise run.Missing("no sources of %s in %s" % (source, sources))
        program = os.path.join(folder, name)
        if not os.path.exists(program):
            run.shell(["nice", "-n", "15", go, "build", "-p", "1", "-mod=vendor", "-ldflags", "-s -w -X main.version=test -X main.vendorVersion=test",
                       "-o", program, "./cmd/" + command], where, missing=False, environment={"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"})
        programs[container] = program
    return programs


def image(path, name, program):
    """A docker archive with one layer: busybox and its tools, and the program as entry point."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(shutil.which("busybox"), "bin/busybox")
        for tool in TOOLS:
            entry = tarfile.TarInfo("bin/" + tool)
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
        tar.add(program, os.path.basename(program))
    content = layer.getvalue()
    config = json.dumps({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": ["/" + os.path.basename(program)], "Env": ["PATH=/bin:/usr/bin:/sbin:/usr/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as tar:
        for file, data in (("config.json", config), ("layer.tar", content), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def documents(path):
    with open(path) as f:
        return re.split(r"(?m)^---\s*$", f.read())


def driver_manifest(sources):
    """The newest deployment's manifest without the containers that are not built here, and the images of those that are."""
    folders = sorted(glob.glob(os.path.join(sources, "csi-driver-host-path", "deploy", "kubernetes-1.[0-9]*")),
                     key=lambda name: (not name.endswith("-test"), name))
    path = next(p for p in (os.path.join(f, "hostpath", "csi-hostpath-plugin.yaml") for f in reversed(folders)) if os.path.isfile(p))
    with open(path) as f:
        text = f.read()
    head, rest = text.split("      containers:\n", 1)
    body, tail = rest.split("        # end csi containers", 1)
    images, kept = {}, []
    for block in re.split(r"(?m)^(?=        - name: )", body):
        name = re.match(r"\s*- name: (\S+)", block)
        if not name or name.group(1) not in PROGRAMS:
            continue
        # Its answers come from the sidecar that is left out.
        block = re.sub(r"(?m)^          livenessProbe:\n(?:^            .*\n)+", "", block)
        images[name.group(1)] = re.search(r"image: (\S+)", block).group(1)
        kept.append(block)
    return head + "      containers:\n" + "".join(kept) + tail, images, os.path.dirname(path)


class Story:
    def __init__(self, server, sources):
        self.server, self.sources = server, sources
        self.api = server.client()

    def apply(self, text):
        self.server.kubectl("apply", "-f", "-", source=text)

    def install(self, programs, manifest, images, folder):
        for container, name in images.items():
            archive = os.path.join(self.server.folder, container + ".tar")
            image(archive, name, programs[container])
            subprocess.run([cluster.binary(), "image", "import", archive, name], check=True, capture_output=True)
        for source in ("external-provisioner", "external-attacher"):
            with open(os.path.join(self.sources, source, "deploy", "kubernetes", "rbac.yaml")) as f:
                self.apply(f.read())
        with open(os.path.join(folder, "csi-hostpath-driverinfo.yaml")) as f:
            self.apply(f.read())
        self.apply(manifest)
        self.wait("/api/v1/namespaces/default/pods/csi-hostpathplugin-0", lambda pod: is_ready(pod), "the driver's pod to be ready")
        self.wait("/apis/storage.k8s.io/v1/csinodes/node-0", lambda node: any(
            d["name"] == "hostpath.csi.k8s.io" for d in node["spec"].get("drivers") or []), "the driver in the CSINode")

    def wait(self, path, holds, what):
        last = {}

        def there():
            answer = self.api.request("GET", path)
            last["answer"] = answer
            return answer.status == 200 and holds(answer.json)
        try:
            cluster.wait_for(there, DEADLINE, what, 0.2)
        except cluster.Failure as failure:
            events = self.server.kubectl("get", "events", "-A", check=False)
            raise cluster.Failure("%s\n%s\n%s" % (failure, last.get("answer"), events))

    def wait_gone(self, path, what):
        cluster.wait_for(lambda: self.api.request("GET", path).status == 404, DEADLINE, what, 0.2)


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  securityContext: {fsGroup: 2000}
  containers:
  - name: c
    image: busybox
    command: [sh, -c, %s]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: csi-pvc}}]
"""


def story(server, sources, programs):
    manifest, images, folder = driver_manifest(sources)
    it = Story(server, sources)
    it.install(programs, manifest, images, folder)
    examples = os.path.join(sources, "csi-driver-host-path", "examples")
    for name in ("csi-storageclass.yaml", "csi-pvc.yaml"):
        with open(os.path.join(examples, name)) as f:
            it.apply(f.read())
    pods = "/api/v1/namespaces/default/pods/"
    claim = "/api/v1/namespaces/default/persistentvolumeclaims/csi-pvc"
    it.wait(claim, lambda c: c["status"].get("phase") == "Bound", "the claim to be bound")
    volume = it.api.expect(200, "GET", claim)["spec"]["volumeName"]

    it.apply(POD % ("writer", json.dumps("echo kept > /data/file; sleep 9999")))
    it.wait(pods + "writer", is_ready, "the writer to run")
    cluster.wait_for(lambda: "kept" in server.kubectl("exec", "writer", "--", "cat", "/data/file", check=False), DEADLINE, "the file", 0.3)
    server.kubectl("delete", "pod", "writer", "--wait=true", timeout=DEADLINE)
    it.apply(POD % ("reader", json.dumps("cat /data/file; id -G")))
    it.wait(pods + "reader", lambda p: p["status"].get("phase") == "Succeeded", "the reader to succeed")
    said = server.kubectl("logs", "reader")
    if "kept" not in said or "2000" not in said:
        raise cluster.Failure("the reader said %r" % said)
    server.kubectl("delete", "pod", "reader", "--wait=true", timeout=DEADLINE)
    server.kubectl("delete", "pvc", "csi-pvc", "--wait=true", timeout=DEADLINE)
    it.wait_gone("/api/v1/persistentvolumes/" + volume, "the volume to be removed")
    attached = it.api.expect(200, "GET", "/apis/storage.k8s.io/v1/volumeattachments")["items"]
    if attached:
        raise cluster.Failure("still attached: %s" % attached)
    staged = glob.glob(os.path.join(server.data, "nodes", "node-0", "plugins", "kubernetes.io", "csi", "*", "*"))
    if staged:
        raise cluster.Failure("still staged: %s" % staged)
    server.kubectl("delete", "statefulset", "csi-hostpathplugin", timeout=DEADLINE)
    it.wait_gone(pods + "csi-hostpathplugin-0", "the driver's pod to be removed")
    it.wait("/apis/storage.k8s.io/v1/csinodes/node-0", lambda node: not node["spec"].get("drivers"), "the CSINode without the driver")


def main():
    sources = os.environ.get("DIBS_CSI_SOURCES", "")
    try:
        if not sources or not os.path.isdir(sources):
            raise run.Missing("DIBS_CSI_SOURCES names no folder with the driver's sources")
        if os.geteuid() != 0 or not shutil.which("busybox") or not shutil.which("unshare"):
            raise run.Missing("root, busybox and unshare are needed")
        programs = build(sources)
        if not os.environ.get(IN_NAMESPACE):
            # No packet leaves the machine: there is no interface but lo and what dibs makes. The driver's data is in memory.
            os.environ[IN_NAMESPACE] = "1"
            os.makedirs(DRIVER_DATA, exist_ok=True)
            os.execvp("unshare", ["unshare", "--net", "--mount", "sh", "-c", "ip link set lo up && mount -t tmpfs none %s && exec \"$@\"" % DRIVER_DATA,
                                  "sh", sys.executable, "-B", *sys.argv])
        if not cluster.has_containers():
            raise run.Missing("no real containers here")
    except run.Missing as missing:
        print("skipped: %s" % missing)
        return run.SKIPPED
    with tempfile.TemporaryDirectory() as images:
        os.environ["DIBS_IMAGES"] = images
        with cluster.Server(["--nodes", "1"], command="up") as server:
            story(server, sources, programs)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
