"""Somebody behind the machine's default route, who counts what comes to him. For tests that run in a network namespace of their own."""
import ipaddress
import os
import subprocess
import sys
import time

import cluster
from cluster import Failure

OWN, ADDRESS = "192.0.2.1", "192.0.2.254"

# Prints the destination of every IPv4 packet that comes, and who it is from.
LISTEN = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
s.bind(("way1", 0x0800))
print("ready", flush=True)
while True:
    data = s.recv(65536)
    print(".".join(str(b) for b in data[16:20]), ".".join(str(b) for b in data[12:16]), flush=True)
"""


def sh(command, check=True):
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode != 0:
        raise Failure("%s: %s" % (command, done.stdout))
    return done.stdout


class Stranger:
    def __init__(self):
        self.process = subprocess.Popen(["unshare", "-n", "sleep", "infinity"], preexec_fn=cluster.die_with_parent)
        cluster.wait_for(lambda: os.readlink("/proc/%d/ns/net" % self.process.pid) != os.readlink("/proc/self/ns/net"), 10, "a namespace")
        there = "nsenter -t %d -n " % self.process.pid
        sh("ip link add way0 type veth peer name way1 netns %d && ip addr add %s/24 dev way0 && ip link set way0 up "
           "&& ip route add default via %s" % (self.process.pid, OWN, ADDRESS))
        sh("%s ip link set lo up; %s ip addr add %s/24 dev way1; %s ip link set way1 up; %s ip route add default via %s" %
           (there, there, ADDRESS, there, there, OWN))
        self.listener = subprocess.Popen(there.split() + [sys.executable, "-c", LISTEN], stdout=subprocess.PIPE, bufsize=0,
                                         preexec_fn=cluster.die_with_parent)
        self.listener.stdout.readline()
        os.set_blocking(self.listener.stdout.fileno(), False)

    def close(self):
        for process in (self.listener, self.process):
            process.kill()
            process.wait()
        sh("ip link delete way0", check=False)

    def hear(self):
        """What came since the last time."""
        text = b""
        while True:
            more = self.listener.stdout.read(65536)
            if not more:
                return text.decode()
            text += more

    def heard(self, *ranges):
        """The packets to these ranges that came since the last time, each as its destination and its source."""
        time.sleep(0.2)
        wanted = [ipaddress.ip_network(r) for r in ranges]
        return [line for line in self.hear().splitlines()
                if line.count(".") == 6 and any(ipaddress.ip_address(line.split()[0]) in r for r in wanted)]
