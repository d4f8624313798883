"""What tests that kill schedulers share: nodes that are objects only, short leases, and who holds which device at every revision."""
import http.client
import json
import threading
import time

from parts import cluster, persist
import verdict

# A lease that is short enough for several leaders in one test.
SCHEDULER_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 2s, renewDeadline: 1s, retryPeriod: 200ms}
"""


def make_node(client, name):
    persist(client, "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
                                              "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    answer = client.request("PATCH", "/api/v1/nodes/%s/status" % name, raw=json.dumps({"status": {
        "capacity": {"cpu": "64", "memory": "64Gi", "pods": "200"}, "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "200"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}]}}).encode(),
        headers={"Content-Type": "application/merge-patch+json"})
    if answer.status != 200:
        raise cluster.Failure("node status: %r" % answer)


class Book:
    """Who holds which device, from one change of a claim to the next; finds a device in two claims."""

    def __init__(self):
        self.problems, self.allocations = [], 0
        self.owner, self.held = {}, {}

    def judge(self):
        verdict.judge(self.problems)

    def enter(self, uid, name, now, version):
        """The claim holds these devices from this version on."""
        before = self.held.get(uid, [])
        if before and now and before != now:
            self.problems.append("%s at revision %s: %s became %s without being given back" % (name, version, before, now))
        for device in before:
            if device not in now:
                self.owner.pop(device, None)
        for device in now:
            if self.owner.get(device, uid) != uid:
                self.problems.append("%s at revision %s: %s is allocated to %s already" % (name, version, device, self.owner[device]))
            if device not in before:
                self.allocations += 1
            self.owner[device] = uid
        self.held[uid] = now


class Ledger(Book):
    """Follows all claims from a revision on, over restarts. `group` is the path of the API's version, `devices_of` what a claim holds."""

    def __init__(self, server, group, devices_of):
        super().__init__()
        self.server, self.path, self.devices_of = server, group + "/resourceclaims", devices_of
        self.ended, self.answer, self.lost = False, None, None
        with server.client() as client:
            self.version = client.expect(200, "GET", self.path)["metadata"]["resourceVersion"]
        self.thread = threading.Thread(target=self.follow)
        self.thread.start()

    def take(self, event):
        if "object" not in event:
            raise ValueError("an answer, not an event")
        claim = event["object"]
        if event["type"] == "ERROR":
            raise cluster.Failure("the watch of claims was lost: %s" % claim)
        self.version = claim["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            self.enter(claim["metadata"]["uid"], claim["metadata"]["name"],
                       [] if event["type"] == "DELETED" else self.devices_of(claim), self.version)

    def follow(self):
        while not self.ended:
            try:
                self.answer = self.server.client().stream(
                    "%s?watch=true&allowWatchBookmarks=true&resourceVersion=%s" % (self.path, self.version))
                for line in self.answer:
                    self.take(json.loads(line))
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                time.sleep(0.05)
            except cluster.Failure as failure:
                self.lost = failure
                return

    def judge(self):
        super().judge()
        if self.lost:
            raise self.lost

    def stop(self):
        self.ended = True
        if self.answer:
            self.answer.hang_up()
        self.thread.join(20)
