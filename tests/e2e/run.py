#!/usr/bin/env python3
"""Runs kubectl against the dibs binary as text files say, and compares what is printed.

    run.py [--update] [--jobs N] [--store etcd] [FILE.test|PAGE.md...]
                            (default: all files beside this one, and the pages of docs/ that can be run)

Each file runs on a fresh server, in a folder with nothing but a link to examples, with KUBECONFIG set, and EXAMPLES as the folder of examples,
DATA as that of the server's data, CATS_PROGRAM as the program of the example driver, SUPPORT as the folder of what tests share. A line of a file begins
  "# "    a remark
  "$ "    a command for bash; "<<EOF" in it takes the lines up to EOF as its input. What follows, up to the next line of this list, is what
          it prints: standard output as it stands, standard error behind "! ", and "? N" where the exit status is not 0.
  "% restart"                 stops the server (SIGTERM) and starts it again, same data and port; "% kill" does it by SIGKILL
  "% start NAME COMMAND"      runs the command in the background; what it prints goes to the file NAME
  "% await NAME REGEX"        waits until a line of the file NAME holds the expression, at most 30 s
  "% end NAME"                ends that command (SIGINT, as by Ctrl-C)
  "% flags FLAG..."           flags of the server: ahead of the first command it starts with them, later they hold from the next restart on
  "% up"                      ahead of the first command: the server is that of "dibs up", with controllers and scheduler; without nodes unless flags say --nodes
  "% containers"              the file wants real containers: it is left out where "dibs up" has none
  "% sqlite"                  the file is about SQLite's files: it is left out with another store
  "% underlay"                the file runs on a network of its own, with an interface eth0 (support/underlay.sh)
In what is expected, "~ REGEX" stands for one line that the whole expression matches, and "..." for any number of lines.
What differs from run to run is written as a mark: <uid> <time> <rv> <age> <token> <port>; runs of blanks count as one.
--update writes what was printed into the files where it does not match. --store etcd gives each server a fresh etcd to keep its objects in.

A page of docs/ is run as its reader would: what stands in blocks of the kind "console" are such commands with what they print, and lines
"<!-- % DIRECTIVE -->" are directives. Marks are not written there: a page shows an age, a uid or the random end of a name as it came.
PAGE.zh.md must have the same blocks as PAGE.md; it is compared, not run.
"""
import argparse
import concurrent.futures
import contextlib
import difflib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.normpath(os.path.join(HERE, "..", "..", "examples"))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import etcd  # noqa: E402

COMMAND_DEADLINE = 60
AWAIT_DEADLINE = 30
STORE = "DIBS_E2E_STORE"  # what --store said, for processes of this one
INSIDE = "DIBS_E2E_REPORT"  # set: this is the run inside an underlay, and where it reports to
HEREDOC = re.compile(r"<<-?'?(\w+)'?")
MARKS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r"(resourceVersion\"?: *)\"\d+\""), r'\1"<rv>"'),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"(https://127\.0\.0\.1:)\d+"), r"\1<port>"),
    (re.compile(r"(?<=[ \t])(\d+[dhms])+(?=[ \t]|$)", re.M), "<age>"),
    (re.compile(r"[ \t]+"), " "),
)


def normal(text):
    for expression, mark in MARKS:
        text = expression.sub(mark, text)
    return [line.strip() for line in text.rstrip("\n").split("\n")] if text.strip() else []


# What the server makes up at the end of a name, or of the name that this one begins with.
SUFFIX = (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?=[-\s\"'/]|$)", re.M), "-<suffix>")
DIRECTIVE = re.compile(r"<!-- % (.*?) -->")


def normal_page(text):
    return normal(SUFFIX[0].sub(SUFFIX[1], text))


class Block:
    """A remark (source lines only), a directive, or a command with what it should print."""

    def __init__(self, kind, lines, text="", expected=None):
        self.kind, self.lines, self.text, self.expected = kind, lines, text, expected


def parse(path):
    with open(path) as f:
        lines = f.read().rstrip("\n").split("\n")
    if path.endswith(".md"):
        lines = lines_of_page(lines)
    blocks = parse_lines(lines)
    if path.endswith(".md"):
        for block in blocks:
            if block.kind == "command":
                block.expected = normal_page("\n".join(block.expected))
    return blocks


def lines_of_page(lines):
    """What of a page is run."""
    out, inside = [], False
    for line in lines:
        directive = DIRECTIVE.fullmatch(line.strip())
        if line.startswith("```"):
            inside = line == "```console"
            out.append("")
        elif inside:
            out.append(line)
        elif directive:
            out.append("% " + directive.group(1))
    return out


def parse_lines(lines):
    blocks, i = [], 0
    while i < len(lines):
        line = lines[i]
        i += 1
        if not line.startswith("$ "):
            blocks.append(Block("directive" if line.startswith("% ") else "remark", [line], line[2:]))
            continue
        source = [line]
        heredoc = HEREDOC.search(line)
        if heredoc:
            while i < len(lines):
                source.append(lines[i])
                i += 1
                if source[-1] == heredoc.group(1):
                    break
        expected = []
        while i < len(lines) and not lines[i].startswith(("$ ", "% ", "# ")):
            expected.append(lines[i])
            i += 1
        while expected and not expected[-1]:
            expected.pop()
        blocks.append(Block("command", source, "\n".join(source)[2:], expected))
    return blocks


def first_flags(blocks):
    """The flags that the server starts with."""
    for block in blocks:
        if block.kind == "command":
            break
        if block.text.startswith("flags"):
            return flags_in(block.text)
    return []


def flags_in(text):
    return shlex.split(text.replace("$EXAMPLES", EXAMPLES))[1:]


def matches(expected, got):
    """Whether the lines are as expected, "~" and "..." taken into account."""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(matches(expected[1:], got[n:]) for n in range(len(got) + 1))
    if not got:
        return False
    if expected[0].startswith("~ "):
        same = re.fullmatch(expected[0][2:], got[0]) is not None
    else:
        same = " ".join(expected[0].split()) == got[0]
    return same and matches(expected[1:], got[1:])


class Run:
    """One file on one server."""

    def __init__(self, path, update):
        self.path, self.update = path, update
        self.page = path.endswith(".md")
        self.background = {}
        self.problems = []
        self.commands = 0

    def run(self):
        self.work = tempfile.mkdtemp(prefix="dibs-e2e-")
        blocks = parse(self.path)
        try:
            command = "up" if wants(self.path, "up") else "apiserver"
            self.defaults = ["--nodes", "0"] if command == "up" else []
            with contextlib.ExitStack() as stack:
                if os.environ.get(STORE) == "etcd":
                    self.defaults += stack.enter_context(etcd.Etcd()).server_flags()
                self.server = stack.enter_context(cluster.Server(self.defaults + first_flags(blocks), command=command))
                self.environment = self.server.kubectl_environment()
                self.environment["EXAMPLES"] = EXAMPLES
                os.mkdir(os.path.join(self.work, "bin"))
                os.mkdir(os.path.join(self.work, "here"))
                os.symlink(EXAMPLES, os.path.join(self.work, "here", "examples"))
                self.environment["DATA"] = self.server.data
                self.environment["SUPPORT"] = os.path.dirname(os.path.abspath(cluster.__file__))
                self.environment["CATS_PROGRAM"] = cluster.example("cats")
                os.symlink(cluster.kubectl(), os.path.join(self.work, "bin", "kubectl"))
                os.symlink(cluster.binary(), os.path.join(self.work, "bin", "dibs"))
                self.environment["PATH"] = os.path.join(self.work, "bin") + ":" + self.environment["PATH"]
                try:
                    for block in blocks:
                        if block.kind == "command":
                            self.command(block)
                        elif block.kind == "directive":
                            self.directive(block.text)
                finally:
                    for name in list(self.background):
                        self.end(name, signal.SIGKILL)
        except cluster.Failure as failure:
            self.problems.append(str(failure))
        finally:
            shutil.rmtree(self.work, ignore_errors=True)
        if self.update:
            self.write(blocks)
        return os.path.basename(self.path), self.commands, self.problems

    def command(self, block):
        self.commands += 1
        folder = os.path.join(self.work, "here")
        try:
            done = subprocess.run(["bash", "-c", block.text], capture_output=True, text=True, errors="replace",
                                  timeout=COMMAND_DEADLINE, env=self.environment, cwd=folder,
                                  stdin=subprocess.DEVNULL)
            if self.page:
                # A reader sees both in one terminal, and no exit status.
                got = normal_page(done.stdout + done.stderr)
            else:
                got = normal(done.stdout) + ["! " + line for line in normal(done.stderr)]
            if done.returncode and not self.page:
                got.append("? %d" % done.returncode)
        except subprocess.TimeoutExpired:
            got = ["! no end within %d s" % COMMAND_DEADLINE, "? 124"]
        got = [line.rstrip() for line in got]
        if matches(block.expected, got):
            return
        if self.update:
            block.expected = got
            return
        expected = [line if line.startswith("~ ") else " ".join(line.split()) for line in block.expected]
        delta = list(difflib.unified_diff(expected, got, "expected", "printed", lineterm="", n=2))[2:]
        self.problems.append("\n".join(["$ " + block.text.split("\n")[0]] + ["    " + line for line in delta]))

    def directive(self, text):
        words = text.rstrip().split(None, 2)
        if words[0] == "restart":
            self.server.restart()
        elif words[0] == "kill":
            self.server.restart(kill=True)
        elif words[0] in ("up", "containers", "underlay", "sqlite"):
            pass
        elif words[0] == "flags":
            self.server.flags = self.defaults + flags_in(text)
            # What kubectl remembers of the server holds no longer.
            shutil.rmtree(os.path.join(self.environment["HOME"], ".kube", "cache"), ignore_errors=True)
        elif words[0] == "start":
            folder = os.path.join(self.work, "here")
            with open(os.path.join(folder, words[1]), "wb") as output:
                self.background[words[1]] = subprocess.Popen(["bash", "-c", "exec " + words[2]], stdout=output,
                                                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                                             env=self.environment, cwd=folder, start_new_session=True)
        elif words[0] == "await":
            expression = re.compile(words[2], re.M)

            def there():
                with open(os.path.join(self.work, "here", words[1]), errors="replace") as f:
                    return expression.search(f.read())
            try:
                cluster.wait_for(there, AWAIT_DEADLINE, "% " + text)
            except cluster.Failure as failure:
                with open(os.path.join(self.work, "here", words[1]), errors="replace") as f:
                    self.problems.append("%s; it holds:\n%s" % (failure, f.read()))
        elif words[0] == "end":
            self.end(words[1], signal.SIGINT)
        else:
            raise cluster.Failure("%s: no such directive: %% %s" % (self.path, text))

    def end(self, name, number):
        process = self.background.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def write(self, blocks):
        with open(self.path, "w") as f:
            for block in blocks:
                for line in block.lines + (block.expected + [""] if block.kind == "command" else []):
                    f.write(line + "\n")


def wants(path, directive):
    return any(block.kind == "directive" and block.text == directive for block in parse(path))


def run(path, update):
    if wants(path, "underlay") and not os.environ.get(INSIDE):
        return run_on_underlay(path, update)
    return Run(path, update and not path.endswith(".md")).run()


def run_on_underlay(path, update):
    """This program once more, for the one file, inside that network."""
    with tempfile.NamedTemporaryFile("r") as report:
        done = subprocess.run([os.path.join(HERE, "..", "support", "underlay.sh"), sys.executable, "-B", os.path.abspath(__file__)] +
                              ["--update"] * update + [path],
                              capture_output=True, text=True, env=dict(os.environ, **{INSIDE: report.name}))
        try:
            return tuple(json.load(report))
        except ValueError:
            return os.path.basename(path), 0, [done.stdout + done.stderr]


def pages():
    """Those of docs/ that can be run."""
    folder = os.path.normpath(os.path.join(HERE, "..", "..", "docs"))
    names = sorted(n for n in os.listdir(folder) if n.endswith(".md") and not n.endswith(".zh.md"))
    return [path for path in (os.path.join(folder, n) for n in names) if any(b.kind == "directive" for b in parse(path))]


def translation_differs(page):
    """The first block that the page in Chinese has otherwise; None when all are the same, or there is no such page."""
    other = page[:-len(".md")] + ".zh.md"
    if not os.path.exists(other):
        return None
    mine, theirs = [[(b.text, b.expected) for b in parse(path) if b.kind == "command"] for path in (page, other)]
    for n in range(max(len(mine), len(theirs))):
        if n >= len(mine) or n >= len(theirs) or mine[n] != theirs[n]:
            return "%s: block %d differs: %s" % (os.path.basename(other), n + 1, (theirs or mine)[min(n, len(theirs) - 1)][0])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 2))
    parser.add_argument("--store", choices=["etcd"])
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    if args.store:
        os.environ[STORE] = args.store
    if args.store == "etcd" and not etcd.program():
        print(etcd.MISSING)
        return 77
    if not cluster.kubectl():
        print("SKIPPED: no kubectl on PATH, and KUBECTL names none")
        return 77
    cluster.binary()
    files = args.files or sorted(os.path.join(HERE, n) for n in os.listdir(HERE) if n.endswith(".test")) + pages()
    if os.environ.get(INSIDE):
        with open(os.environ[INSIDE], "w") as report:
            json.dump(run(files[0], args.update), report)
        return 0
    if args.store:
        files = [path for path in files if not wants(path, "sqlite")]
    wanting = [path for path in files if wants(path, "containers")]
    if wanting and not cluster.has_containers():
        print("SKIPPED, no real containers on this machine: " + ", ".join(os.path.basename(path) for path in wanting))
        files = [path for path in files if path not in wanting]
    failed = 0
    for problem in filter(None, (translation_differs(path) for path in files if path.endswith(".md"))):
        print(problem)
        failed += 1
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for future in [pool.submit(run, path, args.update) for path in files]:
            name, commands, problems = future.result()
            print("%s: %s, %d commands" % (name, "FAILED" if problems else "ok", commands))
            for problem in problems:
                print("  " + problem.replace("\n", "\n  "))
            sys.stdout.flush()
            failed += bool(problems)
    print("%d of %d files as expected" % (len(files) - failed, len(files)))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
