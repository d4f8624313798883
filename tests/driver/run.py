#!/usr/bin/env python3
"""`dibs driver test`: finds what is wrong with a driver that has one planted fault, finds nothing wrong with drivers that are right, and
keeps its manners.

    run.py faults|drivers|manners
"""
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

DEADLINE = 240
NEEDED = {"registers", "publishes"}

# Fault of src/trial/faulty/main.cc, the checks that have to fail, a word of what is said, flags. No other check may fail.
FAULTS = [
    ("", "", "", []),
    ("silent", "registers", "expected a registration socket in ", ["--start-timeout", "1s"]),
    ("ends", "registers", "there is no hardware", []),
    ("type", "registers", "seen: CSIPlugin", []),
    ("name", "registers", "No Name", []),
    ("endpoint", "registers", "/nowhere/dra.sock", []),
    ("versions", "registers", "seen: v9.DRAPlugin", []),
    ("refuses-registration", "registers", "no, thanks", []),
    ("no-slices", "publishes", "seen: no ResourceSlice", ["--start-timeout", "2s"]),
    ("no-devices", "publishes", "seen: slices without devices", ["--start-timeout", "2s"]),
    ("incomplete", "publishes", "says that it has 2 slices and has 1", ["--start-timeout", "2s"]),
    ("twice", "publishes", "has device dev-0 twice", ["--start-timeout", "2s"]),
    ("unowned", "publishes", "is not owned by its node", ["--start-timeout", "2s"]),
    ("elsewhere", "publishes", "is of node \"elsewhere\"", ["--start-timeout", "2s"]),
    ("not-empty", "empty-call", "no claims", []),
    ("never-prepares", "prepare", "not today", ["--only", "prepare"]),
    ("slow", "prepare", "DeadlineExceeded", ["--only", "prepare", "--call-timeout", "1s"]),
    ("no-entry", "prepare", "expected an entry for the claim's uid", ["--only", "prepare"]),
    ("wrong-device", "prepare", "expected device node-0/dev-0", ["--only", "prepare"]),
    ("bad-id", "prepare", "expected CDI ids of the form", ["--only", "prepare"]),
    ("no-file", "prepare", "unresolvable CDI devices", ["--only", "prepare"]),
    ("bad-file", "prepare", "expected CDI files that are valid", ["--only", "prepare"]),
    ("not-again", "prepare-again", "once is enough", ["--only", "prepare,prepare-again"]),
    ("no-ids-again", "prepare-again versions killed", "expected the same answer", []),
    ("one-version", "versions", "v1beta1: ", []),
    ("one-claim", "two-claims", "expected an entry for each of two claims", ["--only", "prepare,two-claims"]),
    ("never-unprepares", "prepare unprepare", "is still prepared for claim", ["--only", "prepare,unprepare"]),
    ("keeps-files", "unprepare", "expected no CDI file of the claim", ["--only", "prepare,unprepare"]),
    ("unprepares-once", "unprepare-again", "unprepared before", ["--only", "unprepare,unprepare-again"]),
    ("not-unknown", "unprepare-unknown", "never prepared", ["--only", "unprepare,unprepare-again,unprepare-unknown,claim-deleted"]),
    ("asks-for-claim", "claim-deleted", "whose object was deleted", ["--only", "unprepare,claim-deleted"]),
    ("stale", "killed", "address already in use", ["--only", "prepare,killed,stops"]),
    ("forgets", "killed", "prepared by somebody else", []),
    ("keeps-old-files", "killed-unprepare nothing-left", "expected no CDI file", []),
    ("makes-up", "missing-claim wrong-uid", "expected an error for a claim", []),
    ("dies-of-claims", "missing-claim wrong-uid", "signal 6", []),
    ("takes-all", "other-driver", "expected no device that was not allocated", []),
    ("any-device", "unknown-device", "expected an error for a device that", []),
    ("all-or-none", "unknown-device bad-parameters", "an error for both", []),
    ("any-parameters", "bad-parameters", "expected an error for parameters", []),
    ("dies-of-parameters", "bad-parameters", "signal 6", []),
    ("health", "", "", []),
    ("health-empty", "health", "none of them among 0", []),
    ("health-strangers", "health", "none of them among 1", []),
    ("health-missing", "health", "Unimplemented", []),
    ("notes", "nothing-left", "faulty.example.com/", []),
    ("never-ends", "stops", "none", ["--stop-timeout", "1s"]),
    ("ends-badly", "stops", "seen: status 3", []),
    ("untidy", "stops", "expected no socket after SIGTERM", []),
]


def try_driver(arguments, flags=()):
    done = subprocess.run([cluster.binary(), "driver", "test", "-o", "json", *flags, *arguments], capture_output=True, text=True,
                          timeout=DEADLINE, preexec_fn=cluster.die_with_parent)
    if done.returncode not in (0, 1) or cluster.SANITIZER.search(done.stderr):
        raise cluster.Failure("%s: status %d, %s%s" % (arguments, done.returncode, done.stdout, done.stderr))
    report = json.loads(done.stdout)
    if report["failed"]:
        subprocess.run(["rm", "-r", os.path.dirname(report["log"])], check=True)
    if done.returncode != bool(report["failed"]):
        raise cluster.Failure("%s: status %d with %d failures" % (arguments, done.returncode, report["failed"]))
    return report


def found(report, outcome):
    return {check["check"]: check["text"] + check.get("output", "") for check in report["checks"] if check["outcome"] == outcome}


def find_fault(case):
    fault, expected, word, flags = case
    with tempfile.TemporaryDirectory(prefix="fault-", dir="/tmp") as folder:
        report = try_driver([faulty_program(), *(["--fault", fault] if fault else [])], [*flags, "--data-dir", folder + "/t"])
    failed = found(report, "failed")
    if set(failed) != set(expected.split()):
        return "fault %r: failed are %s, expected %s" % (fault, failed, expected or "none")
    if expected and not any(word in text for text in failed.values()):
        return "fault %r: %r is not said: %s" % (fault, word, failed)
    skipped = set(found(report, "skipped"))
    if not set(failed) & NEEDED and fault != "stale" and skipped - {"health"}:
        return "fault %r: skipped are %s" % (fault, skipped)
    return None


def faulty_program():
    return os.path.join(os.environ["DIBS_BUILD"], "src", "trial", "faulty_driver")


def faults():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        wrong = [line for line in pool.map(find_fault, FAULTS) if line]
    if wrong:
        raise cluster.Failure("\n".join(wrong))
    planted = {check for _, expected, _, _ in FAULTS for check in expected.split()}
    made = {check["check"] for check in try_driver([faulty_program()])["checks"]}
    if made - planted:
        raise cluster.Failure("no fault is planted for %s" % (made - planted))
    print("ok %d faults are found" % sum(1 for case in FAULTS if case[1]))


def drivers():
    with tempfile.TemporaryDirectory(prefix="sensors-") as folder:
        for name, text in (("door", "healthy"), ("roof", "unhealthy: wet"), ("gate", "healthy")):
            with open(os.path.join(folder, name), "w") as out:
                out.write(text + "\n")
        gpu = [cluster.binary(), "driver", "gpu", "--log-level", "warn"]
        lamps = os.path.join(os.environ["DIBS_BUILD"], "examples", "driver", "lamps")
        programs = [[lamps], [cluster.example("sensors"), "--folder", folder], gpu, [*gpu, "--gpu-partitions", "4"],
                    [*gpu, "--gpu-allow-multiple-allocations", "--device-metadata"],
                    [*gpu, "--device-profile", "net"], [*gpu, "--device-profile", "cpu"]]
        for program in programs:
            report = try_driver(program)
            failed = found(report, "failed")
            if failed:
                raise cluster.Failure("%s: %s" % (program, failed))
            skipped = found(report, "skipped")
            if set(skipped) - {"health"} or ("sensors" in program[0] and skipped):
                raise cluster.Failure("%s: skipped are %s" % (program, skipped))
            print("ok %s" % " ".join(os.path.basename(word) for word in program))


def refused(arguments, word):
    done = subprocess.run([cluster.binary(), "driver", "test", *arguments], capture_output=True, text=True, timeout=DEADLINE)
    if done.returncode != 2 or word not in done.stderr or done.stderr.count("\n") != 1 or done.stdout:
        raise cluster.Failure("%s: %s" % (arguments, done))


def manners():
    refused([], "PROGRAM is required")
    refused(["./no-such-driver"], 'there is no program "./no-such-driver" that can be run')
    refused(["--only", "registres", "true"], 'did you mean "registers"')
    refused(["--start-timeout", "soon", "true"], "must be a duration")
    refused(["--node-name", "No Name", "true"], "--node-name")
    refused(["--data-dir", "/etc", "true"], "must be empty, or not there")
    # What looks like a flag of ours is the program's.
    done = subprocess.run([cluster.binary(), "driver", "test", "--start-timeout=2s", "sh", "-c", "echo $0 $1 >&2; exit 4", "--only", "-o"],
                          capture_output=True, text=True, timeout=DEADLINE)
    if done.returncode != 1 or "| --only -o" not in done.stdout or "status 4" not in done.stdout:
        raise cluster.Failure("the program's own arguments: %s" % done)
    log = done.stdout.split("What the driver wrote is in ")[1].strip()
    if open(log).read() != "--only -o\n":
        raise cluster.Failure("the log %s" % log)
    subprocess.run(["rm", "-r", os.path.dirname(log)], check=True)
    # Ctrl-C takes everything along, what the program started itself as well.
    running = subprocess.Popen([cluster.binary(), "driver", "test", "sh", "-c", "sleep 987 & echo $KUBECONFIG > /dev/null; sleep 986"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sleeps = lambda: [pid for pid in os.listdir("/proc") if pid.isdigit() and is_sleep(pid)]  # noqa: E731
    cluster.wait_for(lambda: len(sleeps()) == 2, 60, "the program to run")
    with open("/proc/%s/environ" % sleeps()[0]) as environment:
        folder = os.path.dirname(environment.read().split("KUBECONFIG=")[1].split("\0")[0])
    if not os.path.isdir(folder):
        raise cluster.Failure("no folder %s" % folder)
    running.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, errors = running.communicate(timeout=60)
    if running.returncode != 130 or "interrupted" not in errors:
        raise cluster.Failure("interrupted: status %d, %s" % (running.returncode, errors))
    cluster.wait_for(lambda: not sleeps(), 10, "the program's processes to go")
    if os.path.exists(folder):
        raise cluster.Failure("left behind: %s" % folder)
    print("ok refuses, passes arguments on, is interrupted in %.1f s" % (time.monotonic() - begin))


def is_sleep(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as line:
            return line.read() in (b"sleep\x00987\x00", b"sleep\x00986\x00")
    except OSError:
        return False


def main():
    modes = {"faults": faults, "drivers": drivers, "manners": manners}
    if len(sys.argv) != 2 or sys.argv[1] not in modes:
        sys.exit("usage: run.py faults|drivers|manners")
    try:
        modes[sys.argv[1]]()
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)


if __name__ == "__main__":
    main()
