#!/usr/bin/env python3
"""What `pack` makes, unpacked into a folder that has nothing else: `real.py --fake` there proves that nothing is missing from the archive.

Wants root, kubectl, real containers, and the programs that pack takes; without them it is skipped (exit status 77).
"""
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

TAKEN = ("runc", "conmon", "nft", "ip")
OURS = TAKEN + ("crun", "kubectl")


def main():
    missing = [name for name in TAKEN + ("xz",) if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if os.geteuid() != 0 or not cluster.kubectl() or missing or not cluster.has_containers():
        print("SKIPPED: wants root, kubectl, real containers%s" % "".join(", " + name for name in missing))
        return 77
    with tempfile.TemporaryDirectory(prefix="dibs-packed-") as folder:
        archive = os.path.join(folder, "proof.tar.xz")
        # The binary may be one with sanitizers, which no limit was made for.
        subprocess.run([os.path.join(HERE, "pack"), "--limit", "1000", cluster.binary(), archive], check=True,
                       env=dict(os.environ, DIBS_PACK_XZ="-0", KUBECTL=cluster.kubectl()))
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        os.unlink(archive)
        # Programs of this machine that come along are not to be found in their own places.
        tools = os.path.join(folder, "tools")
        os.mkdir(tools)
        for place in os.environ["PATH"].split(os.pathsep) + ["/usr/sbin", "/sbin"]:
            for name in os.listdir(place) if os.path.isdir(place) else []:
                if name not in OURS and not os.path.lexists(os.path.join(tools, name)):
                    os.symlink(os.path.join(place, name), os.path.join(tools, name))
        environment = {"PATH": tools, "HOME": folder, "LC_ALL": "C.UTF-8"}
        done = subprocess.run([sys.executable, "-B", os.path.join(folder, "dibs-proof", "tests", "nvidia", "real.py"), "--fake", "h200", "--step", "gpu",
                               "--step", "mig", "--out", os.path.join(folder, "out")], cwd=folder, env=environment)
        if done.returncode != 0:
            return 1
        for name in ("transcript.txt", "figures.json", "dibs.log"):
            if not os.path.getsize(os.path.join(folder, "out", name)):
                sys.exit("FAILED: %s is empty" % name)
    print("ok what pack makes runs by itself")
    return 0


if __name__ == "__main__":
    sys.exit(main())
