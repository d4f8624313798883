"""Machines as network namespaces ("ip netns"), each with mounts of its own that last as long as the test: an agent that is started again finds
those of the one before. Wants root."""
import os
import subprocess

import cluster

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine.sh")


class Machines:
    """The machines of a test. A process on each holds its mounts."""

    def __init__(self):
        self.holders = {}

    def add(self, name):
        """`name` is that of a network namespace, which is there."""
        holder = subprocess.Popen([SCRIPT, name, "sleep", "infinity"], stdin=subprocess.DEVNULL, preexec_fn=cluster.die_with_parent)
        self.holders[name] = holder

        def is_there():
            with open("/proc/%d/cmdline" % holder.pid, "rb") as f:
                return f.read().startswith(b"sleep\0")
        cluster.wait_for(is_there, 10, "machine " + name)

    def command(self, name, *words):
        """What runs a command there."""
        return ["nsenter", "--target", str(self.holders[name].pid), "--net", "--mount", *words]
