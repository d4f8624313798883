#!/usr/bin/env python3
"""The end of clusters: `dibs up NAME`, `dibs list` and `dibs down NAME` with pods at work, and what is left on the machine afterwards.

In namespaces of its own, with folders of its own for whatever a machine has in /tmp, /run, /etc/cni and /var/lib/cni, so that all that is there is
of this test: mounts, links, rules, control groups, processes and files are the same before and after, also when the process was killed, and when
its folder was deleted as far as mounts let that happen. Without real containers the same is done with simulated ones, and there is less to look at.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SUPPORT = os.path.join(HERE, "..", "support")
sys.path.insert(0, SUPPORT)
sys.dont_write_bytecode = True
import cluster  # noqa: E402

INSIDE = "DIBS_TEST_DOWN"  # names the folder that becomes /tmp
# Where a cluster may leave files, beside its home; what programs of the machine make with their first use is theirs.
PLACES = ("/tmp", "/run", "/etc/cni", "/var/lib/cni")
NOT_OURS = ("/run/xtables.lock", "/run/dibs/ranges.lock", "/run/dibs")
PATIENCE = 120  # seconds; the processors may be shared with other tests
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
    "volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}],
    "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "9999"], "volumeMounts": [{"name": "m", "mountPath": "/m"}]}]}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}


class World:
    def __init__(self, home, real):
        self.home, self.real = home, real
        self.environment = dict(os.environ, HOME=home)
        for variable in ("KUBECONFIG", "DIBS_DATA_DIR"):
            self.environment.pop(variable, None)

    def dibs(self, *words, status=0):
        done = subprocess.run([cluster.binary(), *words], capture_output=True, text=True, env=self.environment, timeout=PATIENCE)
        if done.returncode != status:
            raise cluster.Failure("dibs %s ended with %d:\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def up(self, *words, drivers=("--drivers", "gpu")):
        runtime = "auto" if self.real else "sim"
        return self.dibs("up", *words, *drivers, "-d", "--wait", "--bind", "127.0.0.1:0", "--nodes", "2", "--runtime", runtime, "--eviction-hard", "",
                         "--images", os.path.join(self.home, "images"), "--log-level", "error")

    def kubectl(self, *words, source=None):
        done = subprocess.run([cluster.kubectl(), *words], capture_output=True, text=True, env=self.environment, timeout=PATIENCE, input=source)
        if done.returncode:
            raise cluster.Failure("kubectl %s: %s" % (" ".join(words), done.stderr))
        return done.stdout

    def list(self):
        return {one["name"]: one for one in json.loads(self.dibs("list", "-o", "json"))}

    def fill(self, context):
        self.kubectl("--context", context, "apply", "-f", "-", source=json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, SERVICE]}))
        self.kubectl("--context", context, "wait", "pod/p", "--for=condition=Ready", "--timeout=%ds" % PATIENCE)

    def left(self):
        """All that could be left of a cluster, as lines."""
        def said(*command):
            return subprocess.run(command, capture_output=True, text=True).stdout
        lines = ["mount " + line.split()[4] for line in open("/proc/self/mountinfo")]
        lines += ["link " + line.split(":")[1].split("@")[0] for line in said("ip", "-o", "link").splitlines()]
        # The tables of iptables itself come with its first use, and stay, empty.
        lines += ["table " + line for line in said("nft", "list", "tables").splitlines() if line not in ("table ip filter", "table ip nat")]
        for program in ("iptables-save", "ip6tables-save"):
            if shutil.which(program):
                # A chain of the table itself has a policy.
                lines += ["rule %s %s" % (program, line.split(" [")[0]) for line in said(program).splitlines()
                          if line.startswith("-A") or (line.startswith(":") and line.split()[1] == "-")]
        for family in ("-4", "-6"):
            lines += ["route " + line for line in said("ip", family, "route").splitlines()]
            lines += ["ip rule " + line for line in said("ip", family, "rule").splitlines()]
        lines += ["process " + words.replace("\0", " ") for _, words in self.processes()]
        for place in PLACES if self.real else (self.home,):
            for folder, folders, files in os.walk(place):
                folders[:] = [name for name in folders if name not in (".kube", "images")]
                paths = [os.path.join(folder, name) for name in files + folders]
                lines += ["file " + path for path in paths if path not in NOT_OURS]
        return sorted(lines)

    def processes(self):
        """Those that know its home, with their command lines."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = open("/proc/%s/cmdline" % pid).read()
                known = words + open("/proc/%s/environ" % pid).read()
                if self.home in known and open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append((int(pid), words))
            except OSError:
                pass
        return found

    def groups(self):
        """Control groups of its nodes."""
        found = []
        for name in os.listdir("/run/dibs"):
            owner = os.path.join("/run/dibs", name, "owner")
            if os.path.exists(owner) and not name.startswith("net-"):
                group = open(owner).read().splitlines()[1]
                found += [path for path in ("/sys/fs/cgroup" + group, "/sys/fs/cgroup/memory" + group) if os.path.isdir(path)]
        return found


def same(before, after, groups, what):
    problems = ["more: " + line for line in after if line not in before]
    # Copies of others' mounts go with their mount points, wherever these are deleted.
    problems += ["less: " + line for line in before if line not in after and not line.startswith("mount ")]
    problems += ["control group " + group for group in groups if os.path.isdir(group)]
    if problems:
        raise cluster.Failure("%s:\n  %s" % (what, "\n  ".join(problems)))


def pid_of(world, name):
    return world.list()[name]["process"]


def has_ended(world, name):
    return world.list().get(name, {}).get("status") != "running"


def ends(world):
    """Each way of ending leaves nothing."""
    os.makedirs(os.path.join(world.home, ".local", "share"))
    before = world.left()
    ways = {
        "in order": lambda name, folder: None,
        "killed": lambda name, folder: os.kill(pid_of(world, name), signal.SIGKILL),
        "killed, its folder deleted": lambda name, folder: (os.kill(pid_of(world, name), signal.SIGKILL),
                                                             cluster.wait_for(lambda: has_ended(world, name), PATIENCE, "its end"),
                                                             shutil.rmtree(folder, ignore_errors=True)),
        "stopped": lambda name, folder: world.dibs("down", name, "--keep"),
    }
    for what, way in ways.items():
        world.up("lab", "--merge")
        folder = world.list()["lab"]["folder"]
        world.fill("dibs-lab")
        groups = world.groups()
        if world.real and not (groups and any("mount %s" % folder in line for line in world.left())):
            raise cluster.Failure("%s: there is nothing to look at: %s" % (what, world.left()))
        way("lab", folder)
        if "gone" not in world.dibs("down", "lab"):
            raise cluster.Failure("%s: `dibs down` says nothing" % what)
        same(before, world.left(), groups, what)
        if "dibs-lab" in world.kubectl("config", "get-contexts"):
            raise cluster.Failure("%s: its context is still there" % what)


def own_drivers(world):
    """A program that drives devices runs beside each node, is started again when it ends, and ends with its cluster, also a killed one."""
    before = world.left()
    command = "%s driver gpu" % cluster.binary()

    def running():
        found = [words for words in world.processes() if "driver\0gpu" in words[1]]
        return found if len(found) == 2 else None
    for way in (lambda: None, lambda: os.kill(pid_of(world, "own"), signal.SIGKILL)):
        world.up("own", "--merge", "--driver", command, drivers=())
        cluster.wait_for(lambda: len(world.kubectl("get", "resourceslices", "-o", "name").split()) == 2, PATIENCE, "devices of both nodes")
        first = running()
        os.kill(first[0][0], signal.SIGKILL)
        cluster.wait_for(lambda: running() and running() != first, PATIENCE, "the driver to be started again")
        way()
        world.dibs("down", "own")
        same(before, world.left(), [], "drivers")
    for wrong in ("./nothing", "/etc/passwd"):
        for more in ((), ("--nodes", "0")):
            if "--driver" not in world.dibs("up", "own", "--driver", wrong, *more, status=2):
                raise cluster.Failure("a program that cannot be run is taken for a driver")
    if "--nodes is 0" not in world.dibs("up", "own", "--driver", "/bin/true", "--nodes", "0", status=2):
        raise cluster.Failure("a driver without nodes is not refused")
    same(before, world.left(), [], "after a wrong driver")


def several(world):
    """Two clusters, one with a folder of its own; a third under a name that is taken."""
    before = world.left()
    own = os.path.join(world.home, "elsewhere")
    world.up("one", "--merge")
    world.up("two", "--merge", "--data-dir", own)
    known = world.list()
    if sorted(known) != ["one", "two"] or {one["status"] for one in known.values()} != {"running"} or known["two"]["folder"] != own:
        raise cluster.Failure("dibs list: %s" % known)
    for name in known:
        world.fill("dibs-" + name)
    if "in use" not in world.dibs("up", "one", "--bind", "127.0.0.1:0", status=1):
        raise cluster.Failure("a cluster runs twice")
    keep = os.path.join(own, "of-somebody-else")
    open(keep, "w").close()
    os.kill(pid_of(world, "two"), signal.SIGKILL)
    cluster.wait_for(lambda: has_ended(world, "two"), PATIENCE, "the end of a killed cluster")
    if world.list()["two"]["status"] != "stopped":
        raise cluster.Failure("dibs list: %s" % world.list())
    said = world.dibs("down", "two")
    if "stays in %s: of-somebody-else" % own not in " ".join(said.split()):
        raise cluster.Failure("what is not of the cluster is not told: %s" % said)
    os.unlink(keep)
    os.rmdir(own)
    world.kubectl("--context", "dibs-one", "get", "pod", "p")
    world.dibs("down", "one")
    same(before, world.left(), [], "several")
    for wrong in ("one", "two"):
        if "there is no cluster" not in world.dibs("down", wrong, status=1):
            raise cluster.Failure("what is not there is taken down")
    world.dibs("up", "Not_a_name", status=2)
    same(before, world.left(), [], "after a wrong name")


def by_folder(world):
    """A cluster with a name, in a folder of its own: ended by either, also when the folder is gone, and whatever KUBECONFIG says by then."""
    before = world.left()
    own = os.path.join(world.home, "elsewhere")
    world.up("two", "--merge", "--data-dir", own)
    world.fill("dibs-two")
    said = world.dibs("down", "three", "--data-dir", own, status=1)
    if "is two, not three" not in said:
        raise cluster.Failure("another cluster is taken down: %s" % said)
    world.environment["KUBECONFIG"] = os.path.join(world.home, "another")
    if "cluster two is gone" not in world.dibs("down", "--data-dir", own):
        raise cluster.Failure("its name is not known")
    del world.environment["KUBECONFIG"]
    if "dibs-two" in world.kubectl("config", "get-contexts"):
        raise cluster.Failure("its context is still where --merge has put it")
    same(before, world.left(), [], "by its folder")

    world.up("two", "--merge", "--data-dir", own)
    world.fill("dibs-two")
    groups = world.groups()
    os.kill(pid_of(world, "two"), signal.SIGKILL)
    cluster.wait_for(lambda: has_ended(world, "two"), PATIENCE, "its end")
    shutil.rmtree(own, ignore_errors=True)
    world.dibs("down", "two")
    same(before, world.left(), groups, "its folder deleted, by its name")

    pki = os.path.join(own, "pki")
    os.makedirs(pki)
    if "there is no cluster" not in world.dibs("down", "--data-dir", own, status=1) or not os.path.isdir(pki):
        raise cluster.Failure("a folder that is no cluster's is taken away")
    shutil.rmtree(own)


def in_a_users_folder(world):
    """What a folder had before a cluster lay in it, it has afterwards; what would be mixed up with the cluster's keeps it from starting."""
    own = os.path.join(world.home, "project")
    kept = {"cluster.yaml": "nodes: 1\n", "cluster.md": "", "store.db.backup": "", "notes.1.2.tmp": "", "pki/own.crt": "mine"}
    for name, text in kept.items():
        os.makedirs(os.path.dirname(os.path.join(own, name)), exist_ok=True)
        with open(os.path.join(own, name), "w") as f:
            f.write(text)
    before = world.left()
    world.up("lab", "--merge", "--config", os.path.join(own, "cluster.yaml"), "--data-dir", own)
    said = world.dibs("down", "--data-dir", own)
    if "cluster.md, cluster.yaml, notes.1.2.tmp, pki/own.crt, store.db.backup" not in sorted_words(said):
        raise cluster.Failure("what stays is not told: %s" % said)
    same(before, world.left(), [], "files of the user")

    for name in ("nodes/a", "usage/a", "log/a", "log", "kubeconfig", "cluster.json", "store.db"):
        path = os.path.join(own, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write("mine")
        before = world.left()
        said = world.dibs("up", "--data-dir", own, "--bind", "127.0.0.1:0", status=2)
        if name.split("/")[0] not in said or "move it away" not in said:
            raise cluster.Failure("%s is not named: %s" % (name, said))
        world.dibs("down", "--data-dir", own, status=1)
        same(before, world.left(), [], "a folder with " + name)
        os.unlink(path)
        if "/" in name:
            os.rmdir(os.path.dirname(path))
    shutil.rmtree(own)


def sorted_words(said):
    """A list behind a colon, in order."""
    return "\n".join(", ".join(sorted(line.rsplit(": ", 1)[-1].split(", "))) for line in said.splitlines())


def other_kubeconfigs(world):
    """A kubeconfig elsewhere goes with its cluster, as far as it is still of it."""
    before = world.left()
    first, second, others = [os.path.join(world.home, name) for name in ("first", "second", "others")]
    world.up("lab", "--kubeconfig-out", first)
    world.dibs("down", "lab", "--keep")
    world.up("lab", "--kubeconfig-out", others)
    world.kubectl("--kubeconfig", others, "config", "set-cluster", "work", "--server", "https://work:6443")
    world.dibs("down", "lab", "--keep")
    world.up("lab", "--kubeconfig-out", second)
    with open(second, "w") as f:
        f.write("clusters: [{name: dibs-lab, cluster: {server: 'https://127.0.0.1:1'}}]\n")
    world.dibs("down", "lab")
    if os.path.exists(first):
        raise cluster.Failure("the administrator's credentials are left")
    with open(others) as f:
        text = f.read()
    if "work" not in text or "dibs-lab" in text or "client-key-data" in text:
        raise cluster.Failure("a file with another cluster: %s" % text)
    if not os.path.exists(second):
        raise cluster.Failure("a file that is of another cluster by now is removed")
    os.unlink(second)
    os.unlink(others)
    same(before, world.left(), [], "other kubeconfigs")


def without_a_name(world):
    """A cluster of --data-dir alone is listed: while it runs, when it was killed, and not once it is gone, with or without its folder."""
    before = world.left()
    own, other = os.path.join(world.home, "a%b", "own"), os.path.join(world.home, "other")

    def listed():
        return {one["folder"]: one["status"] for one in json.loads(world.dibs("list", "-o", "json"))}
    world.up("--data-dir", own)
    world.up("--data-dir", other)
    if listed() != {own: "running", other: "running"}:
        raise cluster.Failure("dibs list: %s" % listed())
    if world.dibs("list", "-o", "name").strip():
        raise cluster.Failure("a cluster without a name is named")
    pid = next(one["process"] for one in json.loads(world.dibs("list", "-o", "json")) if one["folder"] == own)
    os.kill(pid, signal.SIGKILL)
    cluster.wait_for(lambda: listed()[own] == "stopped", PATIENCE, "its end")
    world.dibs("down", "--data-dir", own)
    if listed() != {other: "running"}:
        raise cluster.Failure("dibs list: %s" % listed())
    world.dibs("down", "--data-dir", other, "--keep-data")
    shutil.rmtree(other)
    if listed():
        raise cluster.Failure("dibs list: %s" % listed())
    os.rmdir(os.path.dirname(own))
    same(before, world.left(), [], "without a name")


def without_files(lines):
    return [line for line in lines if not line.startswith("file ")]


def data_stays(world):
    """Without containers and whatever they need, and as it was for the next start."""
    before = world.left()
    world.up("lab", "--merge")
    folder = world.list()["lab"]["folder"]
    world.fill("dibs-lab")
    groups = world.groups()
    uid = world.kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.uid}")
    for ending in (lambda: None, lambda: os.kill(pid_of(world, "lab"), signal.SIGKILL)):
        ending()
        if "data stays in %s" % folder not in world.dibs("down", "lab", "--keep-data"):
            raise cluster.Failure("dibs down --keep-data says nothing")
        same(without_files(before), without_files(world.left()), groups, "all but data")
        if world.list()["lab"]["status"] != "stopped":
            raise cluster.Failure("dibs list: %s" % world.list())
        world.up("lab", "--merge")
        cluster.wait_for(lambda: world.kubectl("get", "pod", "p", "-o", "jsonpath={.status.containerStatuses[0].restartCount}{.status.phase}") in
                         ("0Running", "1Running", "2Running"), PATIENCE, "the pod to run again")
        if world.kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.uid}") != uid:
            raise cluster.Failure("the pod is another")
    if "--keep-data" not in world.dibs("down", "lab", "--keep", "--keep-data", status=2):
        raise cluster.Failure("--keep and --keep-data go together")
    world.dibs("down", "lab")
    same(before, world.left(), [], "after all")


def node_alone(world):
    """What an agent of its own leaves goes by its root folder, once the agent has ended."""
    before = world.left()
    world.up("lab", "--merge")
    root = os.path.join(world.home, "second")
    kubeconfig = world.list()["lab"]["kubeconfig"]
    agent = subprocess.Popen([cluster.binary(), "node", "--kubeconfig", kubeconfig, "--name", "second", "--root-dir", root, "--port", "0",
                              "--runtime", "auto" if world.real else "sim", "--images", os.path.join(world.home, "images"), "--eviction-hard", "",
                              "--log-level", "error"], stdout=subprocess.PIPE, text=True, env=world.environment, preexec_fn=cluster.die_with_parent)
    if "node second" not in agent.stdout.readline():
        raise cluster.Failure("the agent does not start")
    pod = json.loads(json.dumps(POD))
    pod["metadata"]["name"], pod["spec"]["nodeName"] = "q", "second"
    world.kubectl("apply", "-f", "-", source=json.dumps(pod))
    world.kubectl("wait", "pod/q", "--for=condition=Ready", "--timeout=%ds" % PATIENCE)
    if world.real and "end it" not in world.dibs("down", "--data-dir", root, status=1):
        raise cluster.Failure("the folder of an agent that runs is taken away")
    agent.kill()
    agent.wait()
    if "the node in %s is gone" % root not in world.dibs("down", "--data-dir", root) or os.path.exists(root):
        raise cluster.Failure("the folder of an agent stays")
    world.dibs("down", "lab")
    same(before, world.left(), [], "a node alone")


def main():
    if not cluster.kubectl():
        print("SKIPPED: no kubectl")
        return 77
    real = INSIDE in os.environ or cluster.has_containers()
    if real and INSIDE not in os.environ:
        inside = ["unshare", "--net", os.path.join(SUPPORT, "machine.sh"), "", sys.executable, "-B"] + [os.path.abspath(sys.argv[0])] + sys.argv[1:]
        folder = tempfile.mkdtemp(prefix="dibs-down-")
        try:
            return subprocess.run(inside, env=dict(os.environ, **{INSIDE: folder}), cwd="/").returncode
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if real:
        for place in PLACES:
            os.makedirs(place, exist_ok=True)
            what = ["--bind", os.environ[INSIDE]] if place == "/tmp" else ["-t", "tmpfs", "tmpfs"]
            subprocess.run(["mount", *what, place], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.makedirs("/run/dibs", exist_ok=True)
    home = tempfile.mkdtemp(prefix="d-")
    try:
        world = World(home, real)
        for what in (ends, several, by_folder, in_a_users_folder, other_kubeconfigs, without_a_name, data_stays, node_alone, own_drivers):
            if sys.argv[1:] and what.__name__ not in sys.argv[1:]:
                continue
            what(world)
            print("ok %s" % what.__name__, flush=True)
    finally:
        for folder in [os.path.join(home, "elsewhere"), os.path.join(home, "second")] + [one["folder"] for one in world.list().values()]:
            subprocess.run([cluster.binary(), "down", "--data-dir", folder], env=world.environment, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
