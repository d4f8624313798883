"""What real.py stands on: its transcript, the machine (one with a GPU, or a make-believe one), an image of the machine's programs, and what the machine
lacks, lent by the archive that `pack` makes."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import cluster
import images
from cluster import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
LIMIT = 500  # seconds for all of it; whoever lends the machine gives ten minutes, in which it also ends
FAKE_LIMIT = 1500  # a make-believe machine is nobody's, and the binary may be one with sanitizers
IMAGE = "dibs.test/cuda-check:1"
# What the manifests of others run: the program stands for their sample, which computes bodies.
SAME_IMAGES = ["ubuntu:22.04", "ubuntu:24.04", "nvcr.io/nvidia/k8s/cuda-sample:nbody-cuda11.6.0-ubuntu18.04",
               "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"]
TOOLS = ["sh", "bash", "sleep", "env", "grep", "sed", "cat", "ls", "tr", "date"]
CNI_FOLDERS = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"]
# For a kernel without bridges: an answer, and no network.
NO_NETWORK = """#!/bin/sh
case $CNI_COMMAND in
  VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}' ;;
  ADD) echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"'"$CNI_NETNS"'"}],"ips":[{"address":"10.87.0.2/16","interface":0}]}' ;;
esac
"""


class OutOfTime(Failure):
    """There is no time for more: what is still to be done is not begun."""


class Transcript:
    """What was done and said, on the standard output and in a file, with the second in which it was. Figures are in a file from the first one on:
    whoever lends the machine may end it at any moment."""

    def __init__(self, out, limit):
        self.begun, self.limit, self.figures = time.monotonic(), limit, {}
        self.file, self.figures_path = open(os.path.join(out, "transcript.txt"), "w"), os.path.join(out, "figures.json")

    def say(self, text):
        for line in text.rstrip("\n").split("\n"):
            line = "%6.1f  %s" % (time.monotonic() - self.begun, line)
            print(line, flush=True)
            self.file.write(line + "\n")
            self.file.flush()

    def left(self):
        return self.limit - (time.monotonic() - self.begun)

    def need(self, seconds, what):
        if self.left() < seconds:
            raise OutOfTime("no time left for %s" % what)

    def figure(self, name, seconds):
        self.figures.setdefault(name, []).append(round(seconds, 3))
        self.say("%s: %.3f s" % (name, seconds))
        self.keep_figures()

    def keep_figures(self, more=None):
        with open(self.figures_path + ".new", "w") as f:
            json.dump(dict(self.figures, **(more or {})), f, indent=2)
        os.replace(self.figures_path + ".new", self.figures_path)

    def summary(self, more):
        self.keep_figures(more)
        self.say("== figures (seconds: smallest, middle, largest, how many)")
        for name, values in sorted(dict(self.figures, **more).items()):
            ordered = sorted(values)
            self.say("%-56s %7.3f %7.3f %7.3f %4d" % (name, ordered[0], ordered[len(ordered) // 2], ordered[-1], len(ordered)))


def output_of(*command, timeout=60):
    """What a program said, whatever its exit status."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout + done.stderr).strip()


def find(program, *more):
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *more]))


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError as error:
        return str(error)


class RealMachine:
    """This one, with a GPU."""
    flags = []
    # Not what is there: a proof in simulated containers would be none.
    up_flags = ["--runtime", "oci"]

    def __init__(self, folder, transcript):
        self.folder, self.transcript = folder, transcript
        self.smi = find("nvidia-smi", "/usr/local/nvidia/bin")
        if not self.smi:
            raise Failure("no nvidia-smi here")
        self.persistence_before = None

    def describe(self):
        """With what is needed to understand a failure, as nobody can look later."""
        for command in ([self.smi, "-L"], ["uname", "-a"], ["nproc"], ["ldd", "--version"],
                        [self.smi, "--query-gpu=driver_version,mig.mode.current,mig.mode.pending,persistence_mode,compute_mode,memory.total", "--format=csv"]):
            self.transcript.say("$ %s\n%s" % (" ".join(command), output_of(*command)))
        self.transcript.say("$ nvidia-smi -q\n" + "\n".join(
            line for line in output_of(self.smi, "-q").splitlines() if re.search(r"Persistence|Product|MIG|Virtualization|GSP|Minor|Processes|Process ID", line)))
        for path in ("/proc/mounts", "/proc/filesystems", "/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/cgroup.subtree_control", "/proc/self/cgroup",
                     "/proc/devices", "/proc/driver/nvidia/version", "/proc/driver/nvidia/params"):
            self.transcript.say("%s:\n%s" % (path, read(path)))
        for pattern in ("/dev/nvidia*", "/dev/nvidia-caps/*", "/proc/driver/nvidia/capabilities/gpu*/mig", "/usr/lib/*/libcuda.so*", "/usr/lib64/libcuda.so*",
                        "/usr/lib/*/libnvidia-*.so*", "/usr/local/nvidia/*", "/usr/local/nvidia/*/*", "/etc/ld.so.conf.d/*", "/run/nvidia-persistenced/*"):
            self.transcript.say("%s: %s" % (pattern, " ".join(sorted(glob.glob(pattern))) or "none"))
        self.transcript.say("of the loader's cache:\n" + "\n".join(
            line for line in output_of("ldconfig", "-p").splitlines() if re.search("libcuda|libnvidia|libseccomp", line)))

    def persistence(self):
        return output_of(self.smi, "--query-gpu=persistence_mode", "--format=csv,noheader").splitlines()[:1] == ["Enabled"]

    def begin(self):
        """Without persistence mode the kernel tells of instances only while somebody has the GPU open."""
        self.persistence_before = self.persistence()
        if not self.persistence_before:
            self.transcript.say("$ nvidia-smi -pm 1\n" + output_of(self.smi, "-pm", "1"))
            if not self.persistence():
                self.transcript.say("persistence mode is off for good: instances are only seen while somebody has the GPU open")

    def end(self):
        if self.persistence_before is False and self.persistence():
            self.transcript.say("$ nvidia-smi -pm 0\n" + output_of(self.smi, "-pm", "0"))

    def instances(self):
        """By their numbers, as the kernel tells them: nvidia-smi would have the GPU open, and be in the way of another MIG mode."""
        return sorted("/".join(path.split("/")[-3::2]) for path in glob.glob("/proc/driver/nvidia/capabilities/gpu*/mig/gi*"))

    def has_mig_on(self):
        return "Enabled" in output_of(self.smi, "--query-gpu=mig.mode.current", "--format=csv,noheader")

    def time_slice(self):
        return output_of(self.smi, "compute-policy", "-l")

    def check_time_slice(self, before, now):
        """Its words are the tool's own, so that only a change is looked for."""
        if before == now:
            raise Failure("nvidia-smi compute-policy says the same as before:\n" + now)

    def compute_mode(self):
        return output_of(self.smi, "--query-gpu=compute_mode", "--format=csv,noheader")

    def mps_clients(self, daemon_log, _):
        return daemon_log.count("NEW CLIENT")

    def program(self):
        nvcc = find("nvcc", "/usr/local/cuda/bin")
        if not nvcc:
            raise Failure("no nvcc here")
        made = os.path.join(self.folder, "cuda-check")
        # For the GPU that is here: code for another one is compiled by the driver at every start.
        said = output_of(nvcc, "-O2", "-arch=native", "-Xcompiler", "-static-libstdc++,-static-libgcc", "-o", made, os.path.join(HERE, "check.cu"), timeout=180)
        if not os.path.exists(made):
            raise Failure("nvcc: " + said)
        said = output_of(made)
        self.transcript.say("$ cuda-check, without dibs\n" + said)
        if "PASSED" not in said:
            raise Failure("the CUDA program does not run on this machine by itself")
        return made

    def programs_of_image(self):
        """Their libraries are what those of the driver need, too."""
        found = [self.smi] + [path for pattern in ("/usr/lib/*/libcuda.so.1", "/usr/lib64/libcuda.so.1", "/usr/local/nvidia/lib*/libcuda.so.*",
                                                   "/usr/lib/*/libnvidia-ml.so.1", "/usr/local/nvidia/lib*/libnvidia-ml.so.*") for path in glob.glob(pattern)]
        return found


class FakeMachine:
    """A make-believe one; what stands where is said in each line."""
    up_flags = []

    def __init__(self, folder, transcript, name):
        self.transcript = transcript
        self.description = os.path.join(folder, name + ".yaml")
        self.root = os.path.join(folder, name)
        beside = os.path.dirname(cluster.binary())
        self.tool = os.path.join(os.environ.get("DIBS_BUILD") or beside, "dibs-fake-nvml")
        source = [path for path in (os.path.join(ROOT, "drivers", "nvidia", "machines", name + ".yaml"),
                                    os.path.join(beside, "..", "share", "dibs", "fake-nvml", name + ".yaml")) if os.path.exists(path)]
        if not source or not os.path.exists(self.tool):
            raise Failure("no make-believe machine %s: DIBS_BUILD names no build folder with dibs-fake-nvml" % name)
        shutil.copy(source[0], self.description)
        subprocess.run([self.tool, "layout", self.description, self.root], check=True)
        self.flags = ["+driver-root=" + self.root]

    def describe(self):
        self.transcript.say("A MAKE-BELIEVE MACHINE: nothing below was computed on a GPU\n" + output_of(self.tool, "show", self.description))

    def instances(self):
        return sorted(re.findall(r"^  \d+ (\S+ \d+:\d+)", output_of(self.tool, "show", self.description), re.M))

    def has_mig_on(self):
        return "MIG on" in output_of(self.tool, "show", self.description)

    def begin(self):
        pass

    def end(self):
        pass

    def time_slice(self):
        return output_of(os.path.join(self.root, "usr", "bin", "nvidia-smi"), "compute-policy", "-l")

    def check_time_slice(self, before, now):
        if not before.endswith(" 0") or not now.endswith(" 3"):
            raise Failure("the time slice was %r and is %r" % (before, now))

    def compute_mode(self):
        return "not told"

    def mps_clients(self, _, logs):
        """The stand-in computes nothing; it looks for the daemon's pipe."""
        return sum("pipe of MPS" in log for log in logs)

    def program(self):
        self.transcript.say("check.sh stands in for the CUDA program")
        return os.path.join(HERE, "check.sh")

    def programs_of_image(self):
        return []


def make_image(machine, folder, transcript):
    """Of programs of this machine with their libraries, and the CUDA program; under the names that manifests of others have, too."""
    program = machine.program()
    begun = time.monotonic()
    files, named = {}, []
    for tool in TOOLS:
        path = find(tool)
        if not path:
            raise Failure("this machine has no %s for the image" % tool)
        files["/bin/" + tool] = os.path.realpath(path)
        named.append(path)
    for path in ("/bin/cuda-check", "/tmp/sample"):
        files[path] = program
    for path in named + [program] + machine.programs_of_image():
        for library in images.libraries_of(path):
            # The driver's own libraries come with a claim.
            if "nvidia" not in library and "libcuda" not in library:
                files[library] = os.path.realpath(library)
    content = images.archive(files, folders=[("/tmp", 0o1777)], command=["/bin/cuda-check"])
    store = os.path.join(folder, "images")
    for name in [IMAGE] + SAME_IMAGES:
        images.add(store, name, content)
    transcript.say("an image of %d files, %.1f MiB, made in %.1f s: %s" %
                   (len(files), len(content) / 2 ** 20, time.monotonic() - begun, ", ".join([IMAGE] + SAME_IMAGES)))
    return store


class Borrowed:
    """What the machine lacks, put where programs look for it, and taken away at the end."""

    def __init__(self, transcript, bundle):
        self.made = []
        binaries = os.path.join(bundle, "bin")
        if os.path.isdir(binaries):
            os.environ["PATH"] += os.pathsep + binaries
        if subprocess.run(["nft", "list", "tables"], capture_output=True).returncode != 0:
            transcript.say("nftables do not work here: Services do not either, and nothing below uses one")
            folder = tempfile.mkdtemp(prefix="dibs-no-nft-")
            self.made.append(folder)
            with open(os.path.join(folder, "nft"), "w") as f:
                f.write("#!/bin/sh\nexit 0\n")
            os.chmod(f.name, 0o755)
            os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
        if not re.search(r"libseccomp\.so\.2", output_of("ldconfig", "-p")):
            for library in glob.glob(os.path.join(bundle, "lib", "runc", "libseccomp.so.2")):
                self.put(library, "/usr/local/lib/libseccomp.so.2")
                output_of("ldconfig")
        self.lend_network(transcript, os.path.join(bundle, "cni"))

    def lend_network(self, transcript, plugins):
        if glob.glob("/etc/cni/net.d/*.conf*") or any(os.path.exists(os.path.join(folder, "bridge")) for folder in CNI_FOLDERS):
            return
        works = subprocess.run(["ip", "link", "add", "dibs-try", "type", "bridge"], capture_output=True).returncode == 0
        output_of("ip", "link", "delete", "dibs-try")
        if works and os.path.isdir(plugins):
            for name in os.listdir(plugins):
                self.put(os.path.join(plugins, name), os.path.join(CNI_FOLDERS[0], name))
            return
        transcript.say("pods get no network here: %s" % ("no plugins came along" if works else "the kernel makes no bridge"))
        self.write("/etc/cni/net.d/00-dibs-none.conflist", json.dumps(
            {"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "dibs-none"}]}), 0o644)
        self.write(os.path.join(CNI_FOLDERS[0], "dibs-none"), NO_NETWORK, 0o755)

    def put(self, source, path):
        with open(source, "rb") as f:
            self.write(path, f.read(), 0o755)

    def write(self, path, content, mode):
        # Folders that were made for it go, too.
        folder = os.path.dirname(path)
        missing = folder
        while not os.path.exists(os.path.dirname(missing)):
            missing = os.path.dirname(missing)
        self.made.append(path if os.path.exists(folder) else missing)
        os.makedirs(folder, exist_ok=True)
        with open(path, "wb" if isinstance(content, bytes) else "w") as f:
            f.write(content)
        os.chmod(path, mode)

    def give_back(self):
        for path in reversed(self.made):
            shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
