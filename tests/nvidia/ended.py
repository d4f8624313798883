#!/usr/bin/env python3
"""What real.py has found is in its files, however it ends: by an exception that nobody foresaw, or by whoever lends the machine.

Wants what `real.py --fake` wants; without it, it is skipped (exit status 77).
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import real  # noqa: E402


def broken(_):
    raise KeyError("nothing of the kind")


def found(out):
    """The transcript, after a look at the other files: what the first step measured is there."""
    with open(os.path.join(out, "figures.json")) as f:
        figures = json.load(f)
    if not figures.get("apply to first kernel, a GPU"):
        raise cluster.Failure("figures.json has %s" % figures)
    if not os.path.getsize(os.path.join(out, "dibs.log")):
        raise cluster.Failure("dibs.log is empty")
    with open(os.path.join(out, "transcript.txt")) as f:
        return f.read()


def unforeseen(out):
    real.Proof.STEPS = [("gpu", real.Proof.gpu), ("mig", broken), ("examples", real.Proof.gpu)]
    sys.argv = ["real.py", "--fake", "h200", "--out", out]
    status = real.main()
    text = found(out)
    for part in ("Traceback", "nothing of the kind", "ok gpu", "ok examples", "FAILED: mig"):
        if part not in text:
            raise cluster.Failure("the transcript does not say %r" % part)
    if status != 1:
        raise cluster.Failure("exit status %s" % status)
    print("ok a step with an exception that nobody foresaw is told, and the next one goes on")


def ended(out):
    process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "real.py"), "--fake", "h200", "--out", out], stdout=subprocess.DEVNULL)
    try:
        def begun():
            path = os.path.join(out, "transcript.txt")
            return os.path.exists(path) and "ok gpu" in open(path).read() or process.poll() is not None
        cluster.wait_for(begun, 120, "the first step to be done", 0.1)
        process.send_signal(signal.SIGTERM)
        process.wait(120)
    finally:
        process.kill()
        process.wait()
    text = found(out)
    if "== figures" not in text or "ended before its time" not in text:
        raise cluster.Failure("the transcript ends with %s" % text[-500:])
    print("ok what was found is kept where the machine is taken away")


def main():
    if os.geteuid() != 0 or not cluster.kubectl() or not cluster.has_containers():
        print("SKIPPED: wants root, kubectl and real containers")
        return 77
    with tempfile.TemporaryDirectory(prefix="dibs-ended-") as folder:
        ended(os.path.join(folder, "ended"))
        unforeseen(os.path.join(folder, "unforeseen"))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
