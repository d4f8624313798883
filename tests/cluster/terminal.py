#!/usr/bin/env python3
"""`dibs up` on a terminal: how far it is stands on one line that is written over, the ready line stands alone, and a clean start and end log no error
and no warning.
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402
from cluster import Failure  # noqa: E402

NODES = 400  # enough for a start that takes longer than a moment
PATIENCE = 120  # seconds; the processors may be shared with other tests
CALM = 2  # seconds after the ready line, for whatever would be said then
PROGRESS = re.compile(r"^dibs up: (\d+) of %d nodes (started|ready)$" % NODES)
READY = re.compile(r"^dibs is ready at https://\S+ in \d+\.\d{3} s; export KUBECONFIG=\S+$")


class Terminal:
    """What is seen: lines, of which the last may be written over. Keeps all that has ever stood on it."""

    def __init__(self):
        self.lines, self.column, self.seen = [""], 0, set()

    def take(self, text):
        for part in re.findall(r"\x1b\[K|[\r\n]|[^\x1b\r\n]+", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.lines.append("")
                self.column = 0
            elif part == "\x1b[K":
                self.lines[-1] = self.lines[-1][:self.column]
            else:
                line = self.lines[-1]
                self.lines[-1] = line[:self.column] + part + line[self.column + len(part):]
                self.column += len(part)
                self.seen.add(self.lines[-1])


def read(master, terminal, seconds, until=lambda text: False):
    """Shows what comes until `until` holds for all of it, or the time is over; False once nobody has the terminal open."""
    end, text = time.monotonic() + seconds, ""
    while time.monotonic() < end and not until(text):
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            new = os.read(master, 65536).decode()
        except OSError:
            return False
        text += new
        terminal.take(new)
    return True


def start(home):
    """What a start and an end in the foreground leave on a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([cluster.binary(), "up", "--nodes", str(NODES), "--runtime", "sim", "--bind", "127.0.0.1:0", "--wait"], stdin=slave,
                               stdout=slave, stderr=slave, env=dict(os.environ, HOME=home), preexec_fn=cluster.die_with_parent)
    os.close(slave)
    terminal = Terminal()
    read(master, terminal, PATIENCE, lambda text: "containers:" in text)
    read(master, terminal, CALM)
    process.send_signal(signal.SIGINT)
    if read(master, terminal, PATIENCE):
        process.kill()
        raise Failure("does not end:\n%s" % "\n".join(terminal.lines))
    os.close(master)
    return process.wait(), terminal


def check(home):
    status, terminal = start(home)
    left = [line for line in terminal.lines if line]
    what = "\n".join(left)
    if status != 0:
        raise Failure("ends with %d:\n%s" % (status, what))
    progress = [PROGRESS.match(line) for line in terminal.seen]
    told = {match.group(1) for match in progress if match}
    if len(told) < 10 or str(NODES) not in told:
        raise Failure("progress is not told: %s\n%s" % (sorted(told), what))
    if any(PROGRESS.search(line) for line in left) or any("of %d" % NODES in line for line in left):
        raise Failure("progress is not written over:\n" + what)
    ready = [line for line in left if "ready at" in line]
    if len(ready) != 1 or not READY.match(ready[0]) or left.index(ready[0]) != 0:
        raise Failure("the ready line does not stand alone, or not first:\n" + what)
    if any(re.search(r"level=(warn|error)", line) for line in terminal.seen):
        raise Failure("a clean start complains:\n" + what)


def main():
    with tempfile.TemporaryDirectory(prefix="dibs-t-", dir="/tmp") as home:
        check(home)
    print("ok")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
