#!/usr/bin/env python3
"""Replays what a real Kubernetes API server answered against the dibs binary, and compares the failing steps with two lists.

    run.py [http] [kubectl] [cluster] [node] [--only TEXT] [--verbose] [--update]

A fresh server is started for each file of HTTP sessions and for each kubectl transcript; those of "cluster" were recorded with controllers
and scheduler, so they run against `dibs up --nodes 0`, and those of "node" with a kubelet and the example driver, so they run real
containers, one transcript at a time. The recordings are not part of the project: they
lie in ../shared/conformance from its root, or where DIBS_CONFORMANCE says; without them the test is skipped (exit status 77).

differs.txt holds the steps that differ for good, todo.txt those still to do, one a line: "FILE SESSION STEP  # reason". For a
transcript FILE is the name of its folder in TRANSCRIPTS, SESSION its own name and STEP the number of the command, from 1. The test fails when a
step that is in neither list fails twice, the second time on a server of its own: clients race with their own clocks on a busy machine. It fails,
too, when a listed step passes, so that the lists shrink, unless the list says "sometimes". --update writes todo.txt anew from what failed.
Every recorded file and folder is replayed or listed: "FOLDER * *  # reason" in todo.txt is one that is not replayed yet.
--only takes the sessions and transcripts whose name contains the text. --verbose prints every difference, listed or not.
"""
import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

SKIPPED = 77
KLOG = re.compile(r"! [EWI]\d{4} \d\d:\d\d:\d\d")  # what kubectl logs beside its messages depends on timing
# What each file was recorded from. Sessions write allocations by hand, one device into many: the guard against that is off.
RELEASE_1_37 = ("--emulate-release", "1.37", "--disable-admission-plugins", "UniqueDevices")
RELEASE_1_30, RELEASE_1_27 = ("--emulate-release", "1.30"), ("--emulate-release", "1.27")
API_OFF = ("--runtime-config", "resource.k8s.io/v1alpha2=false")
GATE_OFF = ("--feature-gates", "DynamicResourceAllocation=false")
NO_NODES = ("--nodes", "0", "--node-monitor-grace-period", "24h")
# The kubelet of the recordings told nothing of its disk.
NODE = ("--emulate-release", "1.37", "--nodes", "1", "--local-storage-capacity-isolation", "false")
# Command and flags by the name of the file.
HTTP_FILES = {
    "objects": ("apiserver", RELEASE_1_37),
    "reading": ("apiserver", RELEASE_1_37),
    "cluster": ("apiserver", RELEASE_1_37),
    "resource": ("apiserver", RELEASE_1_37),
    "v1alpha2-1.27": ("up", (*RELEASE_1_27, *NO_NODES)),
    "v1alpha2-1.30": ("up", (*RELEASE_1_30, *NO_NODES)),
}
# Folder, command and flags by the name that the lists give to the transcripts of the folder.
TRANSCRIPTS = {
    "kubectl": ("server", "apiserver", RELEASE_1_37),
    "kubectl-cluster": ("cluster", "up", ("--emulate-release", "1.37", *NO_NODES)),
    "kubectl-1.32": ("release-1.32", "up", ("--emulate-release", "1.32", *NO_NODES)),
    "kubectl-1.30": ("release-1.30", "up", (*RELEASE_1_30, *NO_NODES)),
    "kubectl-1.30-no-plugin": ("release-1.30-no-plugin", "up", (*RELEASE_1_30, "--scheduler-config",
                                                                os.path.join(HERE, "no-dynamic-resources.yaml"), *NO_NODES)),
    "kubectl-1.30-off": ("release-1.30-off", "up", (*RELEASE_1_30, *API_OFF, *GATE_OFF, *NO_NODES)),
    "kubectl-1.27": ("release-1.27", "up", (*RELEASE_1_27, *NO_NODES)),
    "kubectl-1.27-gate-off": ("release-1.27-gate-off", "up", (*RELEASE_1_27, *GATE_OFF, *NO_NODES)),
    "kubectl-1.27-off": ("release-1.27-off", "up", (*RELEASE_1_27, *API_OFF, *GATE_OFF, *NO_NODES)),
    "kubectl-node": ("node", "up", (*NODE, "--drivers", "gpu")),
    # Starts and stops the driver by itself.
    "kubectl-node driver-away": ("node", "up", NODE),
}
DRIVER_SCRIPT = """#!/bin/bash
case $1 in
start)
  setsid {dibs} driver gpu --gpu-device-status --node-name node-0 --kubeconfig {kubeconfig} --kubelet-registrar-directory-path {root}/plugins_registry \\
    --kubelet-plugins-directory-path {root}/plugins --cdi-root {root}/cdi >>{work}/driver.log 2>&1 </dev/null &
  echo $! >{work}/driver.pid
  until [ "$(kubectl get resourceslices -o name | wc -l)" != 0 ]; do sleep 0.1; done
  ;;
stop)
  kill "$(cat {work}/driver.pid)"
  while kill -0 "$(cat {work}/driver.pid)" 2>/dev/null; do sleep 0.05; done
  ;;
esac
"""
PARTS = {"http": tuple(HTTP_FILES), "kubectl": ("kubectl",),
         "cluster": ("kubectl-cluster", "kubectl-1.32", "kubectl-1.30", "kubectl-1.30-no-plugin", "kubectl-1.30-off", "kubectl-1.27",
                     "kubectl-1.27-gate-off", "kubectl-1.27-off"),
         "node": ("kubectl-node",)}
DIFFERS, TODO = os.path.join(HERE, "differs.txt"), os.path.join(HERE, "todo.txt")
Key = collections.namedtuple("Key", "file session step")
WHOLE = ["*", "*"]  # in place of session and step: nothing of the file or folder is replayed
Step = collections.namedtuple("Step", "key title problem")  # problem is None for a step as recorded

# The sections of todo.txt; the first one that matches takes the step.
SECTIONS = (
    ("admission policies", lambda s: s.key.session.startswith("vap-") or "admissionregistration" in s.title),
    ("CEL rules", lambda s: "-cel-" in s.key.session or "x-kubernetes-validations" in s.title + s.problem),
    ("the classic scheduler and controllers", lambda s: s.key.file.startswith(("v1alpha2", "kubectl-1.27", "kubectl-1.30"))),
    ("resource.k8s.io",
     lambda s: s.key.session.startswith("dra-") or "resource.k8s.io" in s.title + s.problem),
    ("everything else", lambda s: True),
)


def folder():
    return os.environ.get("DIBS_CONFORMANCE") or os.path.join(HERE, "..", "..", "..", "shared", "conformance")


def module(path):
    """A script of the recordings, as a module."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def replay_http(name, only, exact=False):
    sessions = module(os.path.join(folder(), "http", "sessions.py"))
    with open(os.path.join(folder(), "http", name + ".json")) as f:
        recorded = json.load(f)["sessions"]
    steps = []
    command_of, flags = HTTP_FILES[name]
    with cluster.Server(flags, command=command_of) as server:
        target = sessions.Server(types.SimpleNamespace(server=server.url, ca=server.ca_file(), cert=None, key=None,
                                                       token=cluster.ADMIN_TOKEN))
        for session in recorded:
            if only and (session["name"] != only if exact else only not in session["name"]):
                continue
            _, problems = sessions.play(target, session, False, False)
            found = {}
            for title, problem in problems:
                found[int(re.match(r"\S+ step (\d+) ", title).group(1))] = problem
            for number, step in enumerate(session["steps"]):
                if "expect" in step:
                    title = "%s %s" % (step.get("method", "read"), step.get("path", step.get("read", "")))
                    steps.append(Step(Key(name, session["name"], number), title, found.get(number)))
    return name, steps


def replay_transcript(file, name):
    place_of, command_of, flags = TRANSCRIPTS.get(file + " " + name) or TRANSCRIPTS[file]
    transcripts = module(os.path.join(folder(), "kubectl", "transcripts.py"))
    steps = []
    with cluster.Server(flags, command=command_of) as server, tempfile.TemporaryDirectory() as work:
        os.mkdir(os.path.join(work, "bin"))
        os.symlink(cluster.one_kubectl(), os.path.join(work, "bin", "kubectl"))
        environment = server.kubectl_environment()
        environment["KUBECONFIG"] = server.token_kubeconfig()  # as recorded: some commands bring a token of their own
        environment["PATH"] = os.path.join(work, "bin") + ":" + environment["PATH"]
        driver = None
        if file == "kubectl-node" and "--drivers" not in flags:
            driver = os.path.join(work, "bin", "driver.sh")
            with open(driver, "w") as f:
                f.write(DRIVER_SCRIPT.format(dibs=cluster.binary(), kubeconfig=environment["KUBECONFIG"], work=work,
                                             root=os.path.join(server.data, "nodes", "node-0")))
            os.chmod(driver, 0o755)
            subprocess.run([driver, "start"], env=environment, check=True)
        place = os.path.join(work, "empty")
        os.mkdir(place)
        before = os.path.join(folder(), "kubectl", place_of, name + ".sh")
        if os.path.exists(before):
            subprocess.run(["bash", before], env=environment, cwd=place, check=True, capture_output=True)
        number = 0
        for block in transcripts.parse(os.path.join(folder(), "kubectl", place_of, name + ".txt")):
            if block[0] != "run":
                continue
            _, command, source, expected = block
            number += 1
            got = [line for line in transcripts.run(command, source, environment, place) if not KLOG.match(line)]
            # Which range of Services a cluster has is the machine's to say; DNS is its tenth address.
            got = [re.sub(r"^nameserver \d+\.\d+\.\d+\.10$", "nameserver 10.0.0.10", line) for line in got]
            if len(expected) == 1 and expected[0].startswith("~ "):
                same = re.fullmatch(expected[0][2:], "\n".join(got), re.S) is not None
            else:
                same = got == [transcripts.normal(line) for line in expected]
            problem = None if same else "\n".join(["- " + x for x in expected] + ["+ " + x for x in got])
            steps.append(Step(Key(file, name, number), "$ " + command, problem))
        if driver:
            subprocess.run([driver, "stop"], env=environment, check=True)
    return file + " " + name, steps


def read_list(path):
    """The keys a list holds, with their lines."""
    keys = {}
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                words = line.split("#")[0].split()
                if words and words[1:] != WHOLE:
                    keys[Key(words[0], words[1], int(words[2]))] = line.rstrip("\n")
    return keys


def read_whole():
    """What todo.txt lists as a whole: files and folders that are not replayed."""
    with open(TODO) as f:
        lines = [line.rstrip("\n") for line in f]
    return {line.split()[0]: line for line in lines if line.split("#")[0].split()[1:] == WHOLE}


def check_books():
    """Every recorded file and folder is either replayed or listed as a whole; returns what is not so."""
    recorded = {"http/" + n[:-5] for n in os.listdir(os.path.join(folder(), "http")) if n.endswith(".json")}
    kubectl = os.path.join(folder(), "kubectl")
    recorded |= {"kubectl/" + n for n in os.listdir(kubectl) if os.path.isdir(os.path.join(kubectl, n)) and not n.startswith("__")}
    replayed = {"http/" + name for name in HTTP_FILES} | {"kubectl/" + place for place, _, _ in TRANSCRIPTS.values()}
    whole = set(read_whole())
    return ([name + ": recorded, but neither replayed nor in todo.txt" for name in sorted(recorded - replayed - whole)] +
            [name + ": replayed, but listed as not replayed" for name in sorted(replayed & whole)] +
            [name + ": listed as not replayed, but not recorded" for name in sorted(whole - recorded)])


def short(text, limit=100):
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit - 1] + "…"


def write_todo(failing, kept):
    """Writes the failing steps by section, and keeps the lines of `kept`: what was not replayed this time."""
    sections = collections.OrderedDict((title, []) for title, _ in SECTIONS)
    for step in failing:
        title = next(title for title, matches in SECTIONS if matches(step))
        sections[title].append("%s %s %d  # %s" % (*step.key, short(step.title)))
    section = SECTIONS[-1][0]
    if os.path.exists(TODO):
        with open(TODO) as f:
            for line in f:
                line = line.rstrip("\n")
                if line.startswith("## "):
                    section = line[3:].rsplit(" (", 1)[0]
                words = line.split("#")[0].split()
                if words and words[1:] != WHOLE and Key(words[0], words[1], int(words[2])) in kept:
                    sections.setdefault(section, []).append(line)
    order = {name: i for i, name in enumerate([*HTTP_FILES, *TRANSCRIPTS])}

    def place(line):
        file, session, step = line.split("#")[0].split()
        return order.get(file, 99), session, int(step)

    whole = read_whole()
    with open(TODO, "w") as f:
        f.write("# Recorded steps that are still to do, by what they wait for. Written by: tests/conformance/run.py --update\n")
        if whole:
            f.write("\n## not replayed (%d)\n" % len(whole))
            f.write("".join(line + "\n" for line in whole.values()))
        for title, lines in sections.items():
            if lines:
                f.write("\n## %s (%d)\n" % (title, len(lines)))
                f.write("".join(line + "\n" for line in sorted(lines, key=place)))


def again(steps, listed):
    """Replays the sessions with a step that differs and is in no list; a step counts as recorded when it is so either time."""
    doubtful = sorted({(s.key.file, s.key.session) for s in steps if s.problem is not None and s.key not in listed})
    second = {}
    for file, session in doubtful:
        _, repeated = replay_transcript(file, session) if file in TRANSCRIPTS else replay_http(file, session, True)
        second.update({s.key: s for s in repeated})
    return [second[s.key] if s.problem is not None and s.key in second else s for s in steps]


def report(name, steps, differs, todo, verbose):
    """Prints the counts of one file and what is not as listed; returns the number of surprises."""
    failing = [s for s in steps if s.problem is not None]
    for_good = sum(1 for s in failing if s.key in differs)
    to_do = sum(1 for s in failing if s.key in todo)
    text = "%s: %d of %d steps as recorded" % (name, len(steps) - len(failing), len(steps))
    if for_good:
        text += ", %d differ for good" % for_good
    if to_do:
        text += ", %d to do" % to_do
    surprises = 0
    lines = []
    for step in steps:
        listed = differs.get(step.key) or todo.get(step.key)
        where = "%s %s %d: %s" % (*step.key, short(step.title, 200))
        if step.problem is not None and (verbose or not listed):
            lines += ["  %s  %s" % ("listed " if listed else "DIFFERS", where)]
            lines += ["      " + line for line in step.problem.split("\n")]
        sometimes = listed and listed.split("#")[0].split()[3:] == ["sometimes"]
        if step.problem is None and listed and not sometimes:
            lines += ["  PASSES   %s: remove it from the list" % where]
            surprises += 1
        surprises += step.problem is not None and not listed
    print("\n".join([text] + lines), flush=True)
    return surprises


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="http|kubectl|cluster|node", help="what to replay (default: all)")
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 2))
    args = parser.parse_args()
    parts = args.parts or list(PARTS)
    if set(parts) - set(PARTS):
        parser.error("the parts are " + ", ".join(PARTS))
    if not os.path.isdir(os.path.join(folder(), "http")):
        print("SKIPPED: the recordings are not there: %s" % os.path.normpath(folder()))
        return SKIPPED
    if "node" in parts and not cluster.has_containers():
        print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay)")
        return SKIPPED
    if set(parts) - {"http"} and not cluster.kubectl():
        print("SKIPPED: no kubectl on PATH, and KUBECTL names none")
        return SKIPPED

    jobs = []
    if "http" in parts:
        jobs += [(replay_http, name, args.only) for name in HTTP_FILES]
    for file in sorted(set(TRANSCRIPTS) & {file for part in parts for file in PARTS[part]}):
        names = sorted(n[:-4] for n in os.listdir(os.path.join(folder(), "kubectl", TRANSCRIPTS[file][0])) if n.endswith(".txt"))
        jobs += [(replay_transcript, file, name) for name in names if not args.only or args.only in name]
    differs, todo = read_list(DIFFERS), read_list(TODO)
    both = set(differs) & set(todo)
    if both and not args.update:
        print("in both lists: " + ", ".join("%s %s %d" % key for key in sorted(both)))
        return 1
    total = []
    wrong = check_books()
    print("\n".join(wrong), end="\n" if wrong else "")
    surprises = len(wrong)
    with concurrent.futures.ProcessPoolExecutor(1 if "node" in parts else args.jobs) as pool:
        for future in [pool.submit(*job) for job in jobs]:
            name, steps = future.result()
            if not args.update:
                steps = again(steps, {**differs, **todo})
            surprises += report(name, steps, differs, {} if args.update else todo, args.verbose) if steps else 0
            total += steps
    replayed = {step.key for step in total}
    failing = [s for s in total if s.problem is not None]
    print("together: %d of %d steps as recorded" % (len(total) - len(failing), len(total)))
    if args.update:
        write_todo([s for s in failing if s.key not in differs], set(todo) - replayed)
        return 0
    if not args.only:
        gone = [key for key in {**differs, **todo}
                if key not in replayed and any(key.file in PARTS[part] for part in parts)]
        for key in gone:
            print("listed, but no such step is recorded: %s %s %d" % key)
        surprises += len(gone)
    if surprises:
        print("%d steps are not as listed in differs.txt and todo.txt" % surprises)
    return 1 if surprises else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
