#!/usr/bin/env python3
"""The package on a bare Debian, tried as docs/first-steps.md says.

    bare.py [--package FILE.deb] [--release bookworm|trixie] [--update]

debootstrap makes the smallest Debian there is, once, and a copy of it becomes a machine: a root, processes, mounts and a network of its own, whose
only interface is the loopback one (apt alone has the network of this machine). There every command of the page is typed as root, and must print
what the page says, and a pod must have its GPU within a minute of the installation's begin; what else the commands can do is tried once; an ordinary
user has a cluster, too; the package must bring no compiler, and leave nothing when it is purged. --update writes into the page, and its Chinese
version, what was printed.

Wants root, debootstrap, kubectl, an archive of Debian that answers, and the package: that of `make package` in build/package when it was made of the
checked out commit. Where one of these is missing it is skipped (exit status 77).
"""
import argparse
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "e2e")]
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
import run as pages  # noqa: E402

SKIPPED = 77
PAGES = [os.path.join(ROOT, "docs", name) for name in ("first-steps.md", "first-steps.zh.md")]
EXAMPLE = "/usr/share/doc/dibs/examples/gpu/basic-resourceclaimtemplate.yaml"
FIRST_POD = 60  # seconds from the begin of the installation to the first pod with a device
PATIENCE = 300  # seconds for a command; the processors may be shared with other tests
ENVIRONMENT = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TERM": "dumb",
               "DEBIAN_FRONTEND": "noninteractive"}
# What differs from run to run, beside the marks of pages.
MARKS = ((re.compile(r"\bin \d+\.\d+ s\b"), "in <seconds>"), (re.compile(r"#code=\S+"), "#code=<code>"),
         (re.compile(r"\b[0-9a-f]{12}(-changed)?\b"), "<commit>"),
         # Of two pods, either may be the first to find a node.
         (re.compile(r"\bnode-\d+\b"), "<node>"), (re.compile(r"score \d+"), "score <n>"), (re.compile(r"runc [^ :]+:"), "runc <version>:"))
# Becomes the first process of the machine: everything that loses its parent is its child, and ends with it.
MACHINE = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount --rbind /sys/fs/cgroup "$1/sys/fs/cgroup"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/run"
mount -t tmpfs tmpfs "$1/tmp"
chmod 1777 "$1/tmp"
ip link set lo up
cd "$1"
pivot_root . mnt
umount -l mnt
hostname bare
exec chroot . bash -c 'touch /run/ready; while :; do sleep 1; done'
"""
# What is of no package, and state and caches of apt and dpkg themselves.
NOT_OF_PACKAGES = re.compile(r"/(proc|sys|dev|run|tmp|mnt|var/(cache|log|lib/(apt|dpkg))|etc/ld\.so\.cache|(home/new|root)/\.(kube|local))(/|$)")


class Missing(Exception):
    """Something of this machine that the test wants."""


def base(release):
    """An archive of the smallest system."""
    folder = os.path.join(os.environ.get("DIBS_BUILD") or os.path.join(ROOT, "build"), "bare")
    archive = os.path.join(folder, release + ".tar")
    if os.path.exists(archive):
        return archive
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dibs-bare-") as made:
        done = subprocess.run(["debootstrap", "--variant=minbase", release, made], capture_output=True, text=True)
        if done.returncode:
            raise Missing("debootstrap: " + (done.stdout + done.stderr)[-600:])
        subprocess.run(["tar", "-C", made, "-cf", archive + ".new", "--one-file-system", "."], check=True)
    os.rename(archive + ".new", archive)
    return archive


def own_package():
    """That of `make package`, if it is of this commit."""
    found = glob.glob(os.path.join(ROOT, "build", "package", "dibs_*.deb"))
    if not found:
        raise Missing("no package in build/package: make package")
    with tempfile.TemporaryDirectory(prefix="dibs-bare-") as folder:
        subprocess.run(["dpkg-deb", "-x", found[0], folder], check=True)
        said = subprocess.run([os.path.join(folder, "usr/bin/dibs"), "version", "-o", "json"], capture_output=True, text=True).stdout
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    commit = re.search(r'"commit":"([0-9a-f]+)', said)
    if head and (not commit or not head.startswith(commit.group(1))):
        raise Missing("build/package is of another commit than this checkout: make package")
    return found[0]


class Machine:
    def __init__(self, archive, package):
        self.root = tempfile.mkdtemp(prefix="dibs-bare-")
        self.holder = None
        try:
            subprocess.run(["tar", "-C", self.root, "-xf", archive], check=True)
            os.chmod(self.root, 0o755)
            shutil.copy("/etc/resolv.conf", os.path.join(self.root, "etc/resolv.conf"))
            shutil.copy(package, os.path.join(self.root, "root"))
            shutil.copy(cluster.one_kubectl(), os.path.join(self.root, "usr/local/bin/kubectl"))
            with open(os.path.join(self.root, "etc/apt/apt.conf.d/90test"), "w") as f:
                f.write('APT::Get::Assume-Yes "true";\n')
            self.start()
        except BaseException:
            self.end()
            raise

    def start(self):
        self.holder = subprocess.Popen(["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--fork", "--kill-child", "bash", "-c", MACHINE,
                                        "machine", self.root], stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)

        def is_there():
            if self.holder.poll() is not None:
                raise Missing("namespaces or mounts are not to be had here")
            with open("/proc/%d/task/%d/children" % (self.holder.pid, self.holder.pid)) as f:
                self.first = f.read().strip()
            return self.first and os.path.exists("/proc/%s/root/run/ready" % self.first)
        cluster.wait_for(is_there, 30, "the machine")

    def end(self):
        if self.holder:
            self.run("dibs down --data-dir /root/.local/share/dibs; dibs down --data-dir /home/new/.local/share/dibs")
            # unshare takes its child, the first process, with it, and this takes all others.
            self.holder.send_signal(signal.SIGKILL)
            self.holder.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, command, user=None, **more):
        """What a command prints, and how it ended."""
        # apt, and nothing else, sees the network.
        space = [] if command.startswith("apt ") else ["--net"]
        words = ["bash", "-c", command] if not user else ["su", "-", user, "-c", command]
        settings = ["%s=%s" % one for one in ENVIRONMENT.items()]
        done = subprocess.run(["nsenter", "--target", self.first, "--mount", "--pid", "--uts", "--ipc", *space, "env", "-i", "-C", "/root",
                               *settings, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, **more)
        return done.stdout, done.returncode

    def must(self, command, user=None):
        said, status = self.run(command, user)
        if status:
            raise cluster.Failure("%s: status %d\n%s" % (command, status, said[-3000:]))
        return said

    def files(self):
        return {path for path in self.must("find / -xdev").split("\n") if not NOT_OF_PACKAGES.match(path)}

    def alive(self):
        """What a cluster could leave: mounts, links, rules, processes."""
        lines = ["mount " + line.split()[4] for line in self.must("cat /proc/self/mountinfo").splitlines()]
        lines += ["link " + line.split(":")[1] for line in self.must("! command -v ip >/dev/null || ip -o link").splitlines()]
        lines += ["table " + line for line in self.must("! command -v nft >/dev/null || nft list tables").splitlines()
                  # iptables makes them with its first use, and they stay, empty.
                  if line not in ("table ip filter", "table ip nat")]
        lines += ["process " + line for line in self.must("cat /proc/[0-9]*/comm 2>/dev/null || true").splitlines() if line not in ("cat", "sleep")]
        return set(lines)


def normal(text):
    lines = pages.normal_page(text)
    for expression, mark in MARKS:
        lines = [expression.sub(mark, line) for line in lines]
    return lines


def same(before, after, what):
    more = sorted(after - before)
    if more:
        raise cluster.Failure("%s:\n  %s" % (what, "\n  ".join(more[:40])))


def try_page(machine, package, update):
    """Types what stands on the page; the outputs, in order."""
    printed, problems, times = [], [], {}
    before = None
    for block in pages.parse(PAGES[0]):
        if block.kind != "command":
            continue
        command = re.sub(r"dibs_[0-9][^ ]*\.deb", os.path.basename(package), block.text)
        if command.startswith("dibs up"):
            before = machine.alive()
        begun = time.monotonic()
        said, status = machine.run(command)
        times[command.split("\n")[0]] = time.monotonic() - begun
        printed.append(said)
        if block.expected == ["..."]:
            if status:
                problems.append("$ %s: status %d\n%s" % (command, status, said[-3000:]))
        elif not update and not pages.matches(normal("\n".join(block.expected)), normal(said)):
            problems.append("$ %s\n  expected:\n%s\n  printed, status %d:\n%s" % (command, "\n".join(block.expected), status, said))
        if command.startswith("dibs down"):
            same(before, machine.alive(), "what the cluster leaves")
            same(set(), set(machine.must("find / -xdev -path '*.local/share/dibs*'").split("\n")) - {"", "/root/.local/share/dibs"}, "files it leaves")
        if problems and not update:
            break
    for command, seconds in times.items():
        print("  %6.2f s  %s" % (seconds, command))
    first = [command for command in times if " wait pod " in command][:1]
    if not problems and not first:
        problems.append("the page waits for no pod")
    elif not problems:
        taken = sum(list(times.values())[:list(times).index(first[0]) + 1])
        print("  %6.2f s  from the begin to the first pod" % taken)
        if taken > FIRST_POD:
            problems.append("the first pod is ready after %.1f s" % taken)
    if problems:
        raise cluster.Failure("\n".join(problems))
    return printed


def write(path, printed):
    """The page with what was printed in its blocks."""
    with open(path) as f:
        text = f.read()
    left = iter(printed)

    def fill(block):
        parts = []
        for one in pages.parse_lines(block.group(1).strip("\n").split("\n")):
            if one.kind == "command":
                said = next(left)
                parts.append("\n".join(one.lines + (one.expected if one.expected == ["..."] else said.rstrip("\n").split("\n") * bool(said.strip()))))
        return "```console\n%s\n```" % "\n\n".join(parts)
    with open(path, "w") as f:
        f.write(re.sub(r"```console\n(.*?)```", fill, text, flags=re.S))


LAB = """drivers: gpu
nodes:
- {prefix: big-, count: 1, labels: {size: big}, drivers: {gpu: {partitions: 4}}}
- {prefix: small-, count: 2}
"""


def expect(said, words, what):
    if words not in said:
        raise cluster.Failure("%s: %r is not in\n%s" % (what, words, said))


def try_the_rest(machine):
    """What the page leaves out, a command of each kind, on a cluster with a name and a file."""
    before = machine.alive()
    with open(os.path.join(machine.root, "root/lab.yaml"), "w") as f:
        f.write(LAB)
    with open(os.path.join(machine.root, "root/image.tar"), "wb") as f:
        f.write(images.archive({"/bin/sleep": os.path.join(machine.root, "bin/busybox")}))
    machine.must("dibs up lab -d --wait --merge --config lab.yaml --bind 127.0.0.1:0")
    expect(machine.must("dibs list"), "lab", "dibs list")
    expect(machine.must("kubectl get nodes -l size=big -o name"), "node/big-0", "nodes of a file")
    expect(machine.must("dibs plan -f " + EXAMPLE), "pod0", "dibs plan")
    # Each GPU as a whole, and its parts.
    devices = machine.must("dibs top devices")
    if sum(line.startswith("big-0") for line in devices.splitlines()) <= sum(line.startswith("small-0") for line in devices.splitlines()):
        raise cluster.Failure("gpu:partitions=4 makes no more devices:\n" + devices)

    machine.must("dibs image load image.tar example.com/own:1")
    expect(machine.must("dibs image list"), "example.com/own ", "dibs image list")
    machine.must("kubectl run own --image=example.com/own:1 --image-pull-policy=Never --command -- sleep 9999")
    machine.must("kubectl wait pod/own --for=condition=Ready --timeout=60s")
    machine.must("kubectl apply -f " + EXAMPLE)
    machine.must("kubectl -n basic-resourceclaimtemplate wait pod --all --for=condition=Ready --timeout=60s")

    machine.must("dibs device fail small-1/gpu-7")
    expect(machine.must("dibs top devices"), "tainted", "a device that fails")
    machine.must("dibs device heal small-1/gpu-7")
    if "tainted" in machine.must("dibs top devices"):
        raise cluster.Failure("a device does not heal")
    machine.must("dibs driver test --only registers,publishes,prepare,unprepare,stops dibs driver gpu")
    expect(machine.must("dibs usage -A --by namespace,pod -o csv"), "basic-resourceclaimtemplate,pod0", "dibs usage")
    machine.must("test -s /usr/share/dibs/deploy/helm/dibs/Chart.yaml && test -s /usr/share/dibs/deploy/grafana/dibs.json")

    machine.must("kill -9 $(dibs list -o json | grep -o '\"process\":[0-9]*' | cut -d: -f2)")
    expect(machine.must("dibs down lab"), "gone", "dibs down")
    same(before, machine.alive(), "what a killed cluster leaves")
    same(set(), set(machine.must("find / -xdev -path '*.local/share/dibs*'").split("\n")) - {"", "/root/.local/share/dibs"}, "files it leaves")
    machine.must("dibs image remove example.com/own:1")
    machine.must("dibs up -d --wait --drivers gpu:partitions=4 --bind 127.0.0.1:0 && dibs down")


def check_what_it_brings(machine):
    for compiler in ("cc", "gcc", "g++", "clang", "cmake", "make"):
        if machine.run("command -v " + compiler)[1] == 0:
            raise cluster.Failure("the package brings %s" % compiler)
    linked = machine.must("ldd /usr/bin/dibs")
    if "not found" in linked:
        raise cluster.Failure("ldd: " + linked)
    for page in ("dibs", "dibs-up", "dibs-node"):
        machine.must("gzip -t /usr/share/man/man1/%s.1.gz" % page)
    machine.must("source /usr/share/bash-completion/completions/dibs && complete -p dibs")
    machine.must("test -s /usr/share/zsh/vendor-completions/_dibs && test -s /usr/share/fish/vendor_completions.d/dibs.fish")
    machine.must("test -s /usr/share/doc/dibs/commands.md")
    machine.must("systemd-analyze verify --man=no dibs.service dibs-node.service")


def check_ordinary_user(machine):
    """Simulated containers, and his own folder."""
    machine.must("useradd -m -s /bin/bash new")
    said = machine.must("dibs up -d --wait --merge --drivers gpu --bind 127.0.0.1:0", user="new")
    if "simulated" not in said:
        raise cluster.Failure("the ready line says nothing of simulated containers:\n" + said)
    machine.must("kubectl apply -f " + EXAMPLE, user="new")
    machine.must("kubectl -n basic-resourceclaimtemplate wait pod --all --for=condition=Ready --timeout=60s", user="new")
    machine.must("dibs down", user="new")
    left = machine.must("find /home/new -path '*dibs*' ! -path '*/.kube/*'").strip()
    if left:
        raise cluster.Failure("files it leaves:\n" + left)


def check_purge(machine, package):
    """What it needs is there already: so nothing but its own files come and go."""
    named = [path for path in machine.files() if "dibs" in path and not path.startswith("/root/dibs_")]
    if named:
        raise cluster.Failure("what the package leaves:\n  " + "\n  ".join(named))
    machine.must("apt install systemd")
    before = machine.files()
    machine.must("apt install ./" + shlex.quote(os.path.basename(package)))
    check_what_it_brings(machine)
    alive = machine.alive()
    # As the unit runs it, and stopped as by the unit: its containers go on.
    machine.must("DIBS_DATA_DIR=/var/lib/dibs dibs up -d --wait --bind 127.0.0.1:0")
    machine.must("kubectl --kubeconfig /var/lib/dibs/kubeconfig run p --image=busybox --command -- sleep 9999")
    machine.must("kubectl --kubeconfig /var/lib/dibs/kubeconfig wait pod/p --for=condition=Ready --timeout=60s")
    machine.must("dibs down --keep --data-dir /var/lib/dibs")
    # Not by apt, which has another network than the machine's.
    machine.must("dpkg --remove dibs")
    same(alive, machine.alive(), "what the removed package leaves of a cluster")
    if machine.run("test -s /var/lib/dibs/store.db -a -s /etc/default/dibs")[1]:
        raise cluster.Failure("data or configuration is gone before it is purged")
    machine.must("apt purge dibs")
    same(before, machine.files(), "what the package leaves")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package")
    parser.add_argument("--release", default="bookworm")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    try:
        if os.geteuid() != 0:
            raise Missing("only root can")
        if not shutil.which("debootstrap"):
            raise Missing("debootstrap is not installed")
        if not cluster.kubectl():
            raise Missing("no kubectl on PATH, and KUBECTL names none")
        package = args.package or own_package()
        machine = Machine(base(args.release), package)
        try:
            machine.must("apt update")
            printed = try_page(machine, package, args.update)
            check_purge(machine, package)
            machine.must("apt install ./" + shlex.quote(os.path.basename(package)))
            try_the_rest(machine)
            check_ordinary_user(machine)
        finally:
            machine.end()
        if args.update:
            for page in PAGES:
                write(page, printed)
    except Missing as why:
        print("skipped: %s" % why)
        return SKIPPED
    except cluster.Failure as failure:
        print("FAILED: %s" % failure)
        return 1
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
