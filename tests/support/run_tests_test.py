#!/usr/bin/env python3
"""What tools/run-tests makes of tests that fail once: fine, unless the first run says that something is broken (verdict.py)."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import verdict  # noqa: E402
from cluster import Failure  # noqa: E402

RUN_TESTS = os.path.join(HERE, "..", "..", "tools", "run-tests")


def run_tests(*scripts):
    """Each script is one test, which finds its own name in $0. The exit status, and what was printed."""
    with tempfile.TemporaryDirectory(prefix="dibs-run-tests-") as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as f:
            for number, script in enumerate(scripts):
                f.write("add_test(t%d sh -c [==[%s]==] %s/t%d)\n" % (number, script, folder, number))
        done = subprocess.run([RUN_TESTS, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout


def expect(passes, *scripts):
    status, said = run_tests(*scripts)
    if (status == 0) != passes:
        raise Failure("exit status %d of %s:\n%s" % (status, scripts, said))
    return said


def main():
    once = "[ -e $0 ] && exit 0; touch $0; %s; exit 1"
    broken = "printf '  some words\\n%sa write is lost\\n'" % verdict.MARK
    expect(True, "exit 0", broken)
    expect(True, "exit 0", once % "echo too late")
    expect(False, "exit 1")
    said = expect(False, "exit 0", once % broken)
    if not said.rstrip().endswith(verdict.MARK + "a write is lost"):
        raise Failure("the end does not name what is broken:\n" + said)
    # One that passes may show how a broken promise looks.
    expect(True, broken, once % "echo too late")
    print("what is broken once stays broken, what is late once does not")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
