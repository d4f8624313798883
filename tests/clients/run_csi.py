#!/usr/bin/env python3
"""Runs the hostpath CSI driver of the Kubernetes project, unmodified, with its sidecars, as pods of `dibs up`: a claim is provisioned, a pod
writes, another one reads after the first is gone; a volume grows under a pod and without one; a pod has a volume of its own, and another a
block device; the agent is killed while volumes come and go; and deletion leaves nothing.

    run_csi.py

$DIBS_CSI_SOURCES is a folder with the sources (with vendored modules) of csi-driver-host-path, node-driver-registrar, external-provisioner,
external-attacher and external-resizer, each in a folder of its name. They are built in $DIBS_BUILD/clients/csi, and become images without
any tool but support/images.py. The driver's manifest is applied as it is, less the containers of sidecars that are not here.

Runs on a machine of its own (support/underlay.sh), from which nothing leaves. Skipped (exit status 77) where root, containers, kubectl, Go
or the sources are missing; where there are no loop devices, the part with the block device is.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
import run  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

DEADLINE = 180  # seconds: an agent looks once a minute whether a volume grew
DRIVER = "hostpath.csi.k8s.io"
DRIVER_DATA = "/var/lib/csi-hostpath-data"  # as the manifest has it
# Container of the manifest: source folder, command.
PROGRAMS = {
    "hostpath": ("csi-driver-host-path", "hostpathplugin"),
    "node-driver-registrar": ("node-driver-registrar", "csi-node-driver-registrar"),
    "csi-attacher": ("external-attacher", "csi-attacher"),
    "csi-provisioner": ("external-provisioner", "csi-provisioner"),
    "csi-resizer": ("external-resizer", "csi-resizer"),
}
# What the driver's own image has, too: the tools of util-linux know more than those of busybox.
TOOLS = ("sh", "mkdir", "rm", "rmdir", "cp", "ls", "cat", "tar", "dd", "stat", "df", "du", "sleep")
UTIL_LINUX = ("mount", "umount", "losetup", "findmnt", "fallocate", "blockdev")
CORE = "/api/v1/namespaces/default"
CLAIM = CORE + "/persistentvolumeclaims/csi-pvc"

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

BLOCK_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:
  - name: c
    image: busybox
    command: [sh, -c, %s]
    volumeDevices: [{name: raw, devicePath: /dev/xvda}]
  volumes: [{name: raw, persistentVolumeClaim: {claimName: pvc-raw}}]
"""


def build(sources):
    go = run.find_go()
    programs = {}
    folder = run.build_folder("csi")
    for container, (source, command) in PROGRAMS.items():
        where = os.path.join(sources, source)
        if not os.path.isdir(os.path.join(where, "vendor")):
            raise run.Missing("no sources of %s in %s" % (source, sources))
        program = os.path.join(folder, command)
        if not os.path.exists(program):
            run.shell(["nice", "-n", "10", go, "build", "-p", "1", "-mod=vendor", "-ldflags", "-s -w -X main.version=test -X main.vendorVersion=test",
                       "-o", program, "./cmd/" + command], where, missing=False, environment={"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"})
        programs[container] = program
    return programs


def image(program, tools):
    """An archive with the program as entry point, and with the machine's tools if it is to have some."""
    name = "/" + os.path.basename(program)
    files, links = {name: program}, []
    if tools:
        files["/bin/busybox"] = shutil.which("busybox")
        links = [("/bin/" + tool, "busybox") for tool in TOOLS]
        for tool in UTIL_LINUX:
            path = shutil.which(tool)
            files["/bin/" + tool] = path
            files.update({library: os.path.realpath(library) for library in images.libraries_of(path)})
    return images.archive(files, links, entrypoint=[name])


def driver_manifest(sources):
    """The newest deployment's manifest without the containers that are not built here, and the images of those that are."""
    folders = glob.glob(os.path.join(sources, "csi-driver-host-path", "deploy", "kubernetes-1.*[0-9]"))
    newest = max(folders, key=lambda name: int(name.rsplit(".", 1)[1]))
    path = os.path.join(newest, "hostpath", "csi-hostpath-plugin.yaml")
    with open(path) as f:
        text = f.read()
    head, rest = text.split("      containers:\n", 1)
    body, tail = rest.split("        # end csi containers", 1)
    names, kept = {}, []
    for block in re.split(r"(?m)^(?=        - name: )", body):
        name = re.match(r"\s*- name: (\S+)", block)
        if not name or name.group(1) not in PROGRAMS:
            continue
        # Its answers come from the sidecar that is left out.
        block = re.sub(r"(?m)^          livenessProbe:\n(?:^            .*\n)+", "", block)
        names[name.group(1)] = re.search(r"image: (\S+)", block).group(1)
        kept.append(block)
    if set(names) != set(PROGRAMS):
        raise Failure("%s has no containers %s" % (path, set(PROGRAMS) - set(names)))
    return head + "      containers:\n" + "".join(kept) + tail, names, os.path.dirname(path)


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


class Story:
    def __init__(self, server, sources):
        self.server, self.sources, self.api = server, sources, server.client()
        self.began = time.monotonic()

    def done(self, what):
        now = time.monotonic()
        print("ok %s (%.1f s)" % (what, now - self.began), flush=True)
        self.began = now

    def apply(self, text):
        self.server.kubectl("apply", "-f", "-", source=text)

    def apply_file(self, *parts):
        with open(os.path.join(self.sources, *parts)) as f:
            self.apply(f.read())

    def get(self, path):
        answer = self.api.get(path)
        return answer.json if answer.status == 200 else None

    def wait(self, path, holds, what, interval=0.1):
        def there():
            found = self.get(path)
            return found if found is not None and holds(found) else None
        try:
            return wait_for(there, DEADLINE, what, interval)
        except Failure as failure:
            raise Failure("%s\n%s" % (failure, self.get(path)))

    def wait_gone(self, path, what):
        wait_for(lambda: self.get(path) is None, DEADLINE, what, 0.1)

    def pod(self, name, command, manifest=POD):
        """Made, and ready if it is one that stays; otherwise at its end."""
        self.apply(manifest % (name, json.dumps(command)))
        if "sleep" in command:
            return self.wait(CORE + "/pods/" + name, is_ready, "%s to run" % name)
        return self.wait(CORE + "/pods/" + name, lambda p: p["status"].get("phase") == "Succeeded", "%s to succeed" % name)

    def remove(self, kind, name):
        self.server.kubectl("delete", kind, name, "--wait=true", timeout=DEADLINE)

    def volumes(self):
        """What the driver knows, by id."""
        try:
            with open(os.path.join(DRIVER_DATA, "state.json")) as f:
                return {one["VolID"]: one for one in json.load(f)["Volumes"] or []}
        except (OSError, ValueError):
            return {}

    def left(self):
        """Everything that the node, the driver and the cluster have of volumes."""
        node = os.path.join(self.server.data, "nodes", "node-0")
        plugins = os.path.join(node, "plugins", "kubernetes.io", "csi")
        with open("/proc/self/mountinfo") as f:
            mounts = [line.split()[4] for line in f if "kubernetes.io~csi" in line or "/kubernetes.io/csi/" in line]
        return {"staged": glob.glob(plugins + "/*/*/*") + glob.glob(plugins + "/volumeDevices/*/*"), "mounts": mounts,
                "pods": glob.glob(os.path.join(node, "pods", "*", "volumes", "kubernetes.io~csi", "*")),
                "attached": [one["metadata"]["name"] for one in self.get("/apis/storage.k8s.io/v1/volumeattachments")["items"]],
                "in use": self.get("/api/v1/nodes/node-0")["status"].get("volumesInUse") or [],
                "driver": [one for one in self.volumes().values() if one["Staged"] or one["Published"]]}

    def nothing_left(self):
        """What a controller or a status has to follow may take a moment."""
        try:
            wait_for(lambda: not any(self.left().values()), 30, "nothing left of the volumes", 0.1)
        except Failure as failure:
            raise Failure("%s: %s" % (failure, self.left()))

    def install(self, manifest, folder):
        for source in ("external-provisioner", "external-attacher", "external-resizer"):
            self.apply_file(source, "deploy", "kubernetes", "rbac.yaml")
        self.apply_file(folder, "csi-hostpath-driverinfo.yaml")
        self.apply(manifest)
        self.wait(CORE + "/pods/csi-hostpathplugin-0", is_ready, "the driver's pod to be ready")
        self.registered()
        self.apply_file("csi-driver-host-path", "examples", "csi-storageclass.yaml")
        self.done("the driver is installed and registered")

    def registered(self):
        self.wait("/apis/storage.k8s.io/v1/csinodes/node-0", lambda node: any(
            one["name"] == DRIVER for one in node["spec"].get("drivers") or []), "the driver in the CSINode")

    def provision(self):
        self.apply_file("csi-driver-host-path", "examples", "csi-pvc.yaml")
        claim = self.wait(CLAIM, lambda c: c["status"].get("phase") == "Bound", "the claim to be bound")
        self.done("a claim is provisioned")
        return claim["spec"]["volumeName"]

    def write_and_read(self):
        self.pod("writer", "echo kept > /data/file; sleep 9999")
        self.done("a pod runs with it")
        wait_for(lambda: "kept" in self.server.kubectl("exec", "writer", "--", "cat", "/data/file", check=False), DEADLINE, "the file", 0.1)
        self.remove("pod", "writer")
        self.nothing_left()
        self.done("it has written and is gone")
        self.reads("reader")
        self.done("another one reads what it wrote")

    def reads(self, name):
        self.pod(name, "cat /data/file; id -G")
        said = self.server.kubectl("logs", name)
        if "kept" not in said or "2000" not in said:
            raise Failure("%s said %r" % (name, said))
        self.remove("pod", name)
        self.nothing_left()

    def enlarge(self, size):
        self.server.kubectl("patch", "pvc", "csi-pvc", "-p", json.dumps({"spec": {"resources": {"requests": {"storage": size}}}}))

    def has_size(self, size):
        claim = self.wait(CLAIM, lambda c: c["status"]["capacity"]["storage"] == size, "the claim to have %s" % size, 0.2)
        status = claim["status"]
        if status.get("conditions") or status.get("allocatedResourceStatuses"):
            raise Failure("it has the size, and says %s" % status)

    def grow(self):
        self.pod("grower", "sleep 9999")
        self.began = time.monotonic()
        self.enlarge("2Gi")
        self.has_size("2Gi")
        self.done("a volume grows under a pod")
        self.told("Pod", "grower")
        self.told("PersistentVolumeClaim", "csi-pvc")
        self.remove("pod", "grower")
        self.nothing_left()
        self.began = time.monotonic()
        self.enlarge("3Gi")
        self.wait(CLAIM, lambda c: any(one["type"] == "FileSystemResizePending" for one in c["status"].get("conditions") or []),
                  "the claim to wait for a node")
        if self.get(CLAIM)["status"]["capacity"]["storage"] != "2Gi":
            raise Failure("it grew without a pod")
        self.pod("grower", "sleep 9999")
        self.has_size("3Gi")
        self.remove("pod", "grower")
        self.nothing_left()
        self.done("a volume that nobody has grows with its next pod")

    def told(self, kind, name):
        def found():
            return [event for event in self.get(CORE + "/events")["items"] if event["involvedObject"]["kind"] == kind and
                    event["involvedObject"]["name"] == name and event["reason"] == "FileSystemResizeSuccessful"]
        wait_for(found, DEADLINE, "the event about %s" % name)

    def inline(self):
        self.apply_file("csi-driver-host-path", "examples", "csi-app-inline.yaml")
        self.wait(CORE + "/pods/my-csi-app-inline", is_ready, "the pod with a volume of its own to run")
        self.server.kubectl("exec", "my-csi-app-inline", "--", "sh", "-c", "echo x > /data/file && cat /data/file")
        if not any(one["Ephemeral"] for one in self.volumes().values()):
            raise Failure("the driver has no such volume: %s" % self.volumes())
        self.server.kubectl("delete", "pod", "my-csi-app-inline", "--grace-period=1", "--wait=true", timeout=DEADLINE)
        self.nothing_left()
        if any(one["Ephemeral"] for one in self.volumes().values()):
            raise Failure("the driver still has it: %s" % self.volumes())
        self.done("a pod had a volume of its own")

    def block(self):
        if not os.path.exists("/dev/loop-control"):
            print("skipped: the block volume, there are no loop devices here")
            return
        self.apply_file("csi-driver-host-path", "examples", "csi-pvc-block.yaml")
        path = CORE + "/persistentvolumeclaims/pvc-raw"
        volume = "/api/v1/persistentvolumes/" + self.wait(path, lambda c: c["status"].get("phase") == "Bound",
                                                          "the block claim to be bound")["spec"]["volumeName"]
        handle = self.get(volume)["spec"]["csi"]["volumeHandle"]
        self.pod("raw-writer", "echo kept | dd of=/dev/xvda bs=512 conv=fsync; sleep 9999", BLOCK_POD)
        wait_for(lambda: "kept" in self.server.kubectl("exec", "raw-writer", "--", "head", "-c", "5", "/dev/xvda", check=False), DEADLINE,
                 "what was written to the device", 0.2)
        self.remove("pod", "raw-writer")
        self.nothing_left()
        self.pod("raw-reader", "head -c 5 /dev/xvda; ls -l /dev/xvda", BLOCK_POD)
        said = self.server.kubectl("logs", "raw-reader")
        if "kept" not in said or "\nb" not in said:
            raise Failure("the reader of the device said %r" % said)
        self.remove("pod", "raw-reader")
        self.remove("pvc", "pvc-raw")
        self.wait_gone(volume, "the block volume to be removed")
        self.nothing_left()
        if handle in subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout:
            raise Failure("it still has its loop device")
        self.done("two pods had a block device")

    def driver_process(self):
        for holder in cluster.containers_of(self.server.folder):
            with open("/proc/%d/task/%d/children" % (holder, holder)) as f:
                children = f.read().split()
            for child in children:
                with open("/proc/%s/cmdline" % child, "rb") as f:
                    if f.read().startswith(b"/hostpathplugin"):
                        return int(child)
        raise Failure("the driver does not run")

    def kill_when(self, holds, what):
        """dibs goes the moment that the driver has written something down, and the driver does nothing more before that."""
        driver = self.driver_process()
        wait_for(lambda: any(holds(one) for one in self.volumes().values()), DEADLINE, what, 0)
        os.kill(driver, signal.SIGSTOP)
        try:
            self.server.kill()
            return ", ".join("staged" * bool(one["Staged"]) + " and published" * bool(one["Published"]) for one in self.volumes().values())
        finally:
            os.kill(driver, signal.SIGCONT)

    def start(self):
        self.server.start()
        self.api = self.server.client()

    def killed(self):
        self.apply(POD % ("first", json.dumps("sleep 9999")))
        then = self.kill_when(lambda one: one["Staged"], "the volume to be staged")
        self.start()
        self.wait(CORE + "/pods/first", is_ready, "the pod to run all the same")
        self.done("dibs was killed when the volume was staged (%s), and the pod runs" % then)
        pod = self.get(CORE + "/pods/first")
        self.server.kill()
        self.start()
        self.registered()
        self.server.kubectl("exec", "first", "--", "cat", "/data/file")
        now = self.get(CORE + "/pods/first")
        identity = [(one["containerID"], one["restartCount"]) for one in pod["status"]["containerStatuses"]]
        if identity != [(one["containerID"], one["restartCount"]) for one in now["status"]["containerStatuses"]]:
            raise Failure("another container: %s" % now["status"])
        self.done("it was killed when the pod ran, which goes on")
        driver = CORE + "/pods/csi-hostpathplugin-0"
        before = self.get(driver)["metadata"]["uid"]
        self.server.kubectl("delete", "pod", "csi-hostpathplugin-0", "--grace-period=1", timeout=DEADLINE)
        self.wait(driver, lambda one: one["metadata"]["uid"] != before and is_ready(one), "another driver")
        self.registered()
        self.server.kubectl("exec", "first", "--", "cat", "/data/file")
        self.done("the driver was replaced, and the pod has its volume")
        self.server.kubectl("delete", "pod", "first", "--wait=false")
        then = self.kill_when(lambda one: one["Staged"] and not one["Published"], "the volume to be taken from the pod")
        self.start()
        self.wait_gone(CORE + "/pods/first", "the pod to go")
        self.nothing_left()
        self.done("it was killed when the volume was taken from the pod (%s), and nothing is left" % then)
        self.reads("last")
        self.done("another pod reads what is there")

    def ends(self, volume):
        self.remove("pvc", "csi-pvc")
        self.wait_gone("/api/v1/persistentvolumes/" + volume, "the volume to be removed")
        self.nothing_left()
        if self.volumes():
            raise Failure("the driver still has %s" % self.volumes())
        self.done("claim and volume are removed")
        self.remove("statefulset", "csi-hostpathplugin")
        self.wait_gone(CORE + "/pods/csi-hostpathplugin-0", "the driver's pod to be removed")
        self.wait("/apis/storage.k8s.io/v1/csinodes/node-0", lambda node: not node["spec"].get("drivers"), "the CSINode without the driver")
        self.done("the driver is removed")

    def run(self, manifest, folder):
        self.install(manifest, folder)
        volume = self.provision()
        self.write_and_read()
        self.grow()
        self.inline()
        self.block()
        self.killed()
        self.ends(volume)

    def end(self):
        """Containers outlive their agent, and the driver is the last to go: others wait for it."""
        if not self.server.alive():
            self.start()
        for arguments in (("pods", "--selector=!app.kubernetes.io/instance"), ("pvc", "--all"), ("statefulsets", "--all")):
            self.server.kubectl("delete", *arguments, "--grace-period=1", "--timeout=60s", check=False, timeout=DEADLINE)
        wait_for(lambda: not cluster.containers_of(self.server.folder), DEADLINE, "all containers to end", 0.1)

    def report(self):
        if not self.server.alive():
            self.start()
        logs = [("logs", "csi-hostpathplugin-0", "--tail=30", "-c", name) for name in PROGRAMS]
        return "\n".join(self.server.kubectl(*words, check=False) for words in (
            ("get", "pods,pvc,pv,volumeattachments", "-A", "-o", "wide"), ("get", "events", "-A"), *logs))


def inside(sources):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    # Seen here alone, and gone with the test.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", DRIVER_DATA], check=True)
    programs = build(sources)
    manifest, names, folder = driver_manifest(sources)
    server = cluster.Server(["--nodes", "1"], command="up")
    server.flags += ["--images", os.path.join(server.folder, "images")]
    for container, name in names.items():
        images.add(os.path.join(server.folder, "images"), name, image(programs[container], container == "hostpath"))
    with server:
        story = Story(server, sources)
        try:
            story.run(manifest, folder)
        except Failure as failure:
            raise Failure("%s\n%s\n%s" % (failure, story.report(), server.log_tail()))
        finally:
            story.end()
    return 0


def main():
    if len(sys.argv) > 1:
        return inside(sys.argv[1])
    sources = os.environ.get("DIBS_CSI_SOURCES", "")
    try:
        if not sources or not os.path.isdir(sources):
            raise run.Missing("DIBS_CSI_SOURCES names no folder with the driver's sources")
        missing = [tool for tool in ("busybox", *UTIL_LINUX) if not shutil.which(tool)]
        if os.geteuid() != 0 or missing or not cluster.kubectl():
            raise run.Missing("root, kubectl, busybox and util-linux are needed")
        build(sources)
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    there = os.path.isdir(DRIVER_DATA)
    os.makedirs(DRIVER_DATA, exist_ok=True)
    try:
        return run.on_own_machine(__file__, os.path.abspath(sources))
    finally:
        if not there:
            os.rmdir(DRIVER_DATA)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
