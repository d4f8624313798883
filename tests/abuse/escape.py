#!/usr/bin/env python3
"""Out of the container: a user who may create pods in one namespace, and nothing else, tries to get at the machine.

Needs real containers (root, runc); without them the test is skipped (exit status 77).
"""
import hashlib
import json
import os
import subprocess
import sys

from suite import Failure, cluster, run

SKIPPED = 77
PATIENCE = 120  # seconds; the processors may be shared with other tests
TOKEN = "token-of-mallory"
PODS = "/api/v1/namespaces/guest/pods"


def mallory(suite):
    if not getattr(suite, "prepared", False):
        prepare(suite)
        suite.prepared = True
    return suite.server.client(token=TOKEN, timeout=60)


def prepare(suite):
    """The namespace, and a role that lets mallory have pods there."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/guest"
    suite.client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "guest"}})
    suite.client.expect(201, "POST", rbac + "/roles", {"metadata": {"name": "pods"}, "rules": [
        {"apiGroups": [""], "resources": ["pods", "pods/log", "pods/exec"], "verbs": ["create", "get", "list", "delete"]}]})
    suite.client.expect(201, "POST", rbac + "/rolebindings", {
        "metadata": {"name": "pods"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pods"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]})
    cluster.wait_for(lambda: suite.client.get("/api/v1/namespaces/guest/serviceaccounts/default").status == 200, PATIENCE, "an account")


def body(name, command="true", container=None, **spec):
    first = dict({"name": "c", "image": "busybox", "command": ["sh", "-c", command]}, **(container or {}))
    return {"metadata": {"name": name},
            "spec": dict({"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [first]}, **spec)}


def ended(suite, pod):
    """Creates the pod, waits for its end and returns it with its log; the pod is gone afterwards."""
    name = pod["metadata"]["name"]
    with mallory(suite) as client:
        client.expect(201, "POST", PODS, pod)
        try:
            def finished():
                now = client.expect(200, "GET", PODS + "/" + name)
                return now if now["status"].get("phase") in ("Succeeded", "Failed") else None
            try:
                done = cluster.wait_for(finished, PATIENCE, "the end of pod " + name, interval=0.1)
            except Failure as problem:
                raise Failure("%s: %s" % (problem, json.dumps(client.expect(200, "GET", PODS + "/" + name)["status"])))
            answer = client.get(PODS + "/%s/log" % name)
            return done["status"], answer.data.decode("utf-8", "replace") if answer.status == 200 else ""
        finally:
            client.request("DELETE", PODS + "/" + name)
            cluster.wait_for(lambda: client.get(PODS + "/" + name).status == 404, PATIENCE, "the pod to be gone")


def refused(suite, pod, reason, *words):
    """The node must not run the pod, and must say why: a reason, and words of the message."""
    status, _ = ended(suite, pod)
    if status.get("phase") != "Failed" or status.get("reason") != reason or status.get("containerStatuses"):
        raise Failure("%s was not refused with %s: %s" % (pod["metadata"]["name"], reason, json.dumps(status)))
    for word in words:
        if word not in status.get("message", ""):
            raise Failure("%s: the message does not say %r: %s" % (pod["metadata"]["name"], word, status.get("message")))


def read(path):
    with open(path) as f:
        return f.read().strip()


def restored(path, before):
    """What a pod changed is changed back, and told."""
    now = read(path)
    if now != before:
        with open(path, "w") as f:
            f.write(before)
        raise Failure("%s was %s and is now %s" % (path, before, now))


def settings_of_the_machine(suite):
    """Kernel settings that are in no namespace of the pod stay as they are."""
    names = ("kernel.printk_ratelimit_burst", "kernel.core_pattern", "vm.overcommit_ratio", "fs.pipe-max-size")
    paths = {name: "/proc/sys/" + name.replace(".", "/") for name in names}
    before = {name: read(path) for name, path in paths.items()}
    try:
        for number, name in enumerate(names):
            refused(suite, body("sysctl-%d" % number, securityContext={"sysctls": [{"name": name, "value": "17"}]}),
                    "SysctlForbidden", "forbidden sysctl: \"%s\" not allowlisted" % name)
    finally:
        for name, path in paths.items():
            restored(path, before[name])


def settings_of_the_host_s_namespaces(suite):
    """They are refused by the server already; the node's own check has unit tests."""
    for name, shared in (("net.ipv4.tcp_syncookies", "hostNetwork"), ("kernel.shm_rmid_forced", "hostIPC")):
        pod = body("sysctl-host", securityContext={"sysctls": [{"name": name, "value": "1"}]}, **{shared: True})
        with mallory(suite) as client:
            suite.refused(client.request("POST", PODS, pod), name, 422)


def settings_of_the_pod(suite):
    """What is safe is the pod's own: it sees it, the host does not."""
    path = "/proc/sys/net/ipv4/ip_local_port_range"
    before = read(path)
    status, log = ended(suite, body("sysctl-own", "cat %s /proc/sys/kernel/shm_rmid_forced" % path, securityContext={"sysctls": [
        {"name": "net/ipv4/ip_local_port_range", "value": "20000 20100"}, {"name": "kernel.shm_rmid_forced", "value": "1"}]}))
    if status["phase"] != "Succeeded" or log.split() != ["20000", "20100", "1"]:
        raise Failure("the pod does not have its settings: %s %r" % (json.dumps(status), log))
    if read(path) != before:
        raise Failure("the host has the pod's settings: " + read(path))


def fields_that_cannot_be_honoured(suite):
    """A pod does not run with less than it asked for; nor with more, as a field that is not honoured might unlock."""
    unmasked = {"securityContext": {"procMount": "Unmasked"}}
    refused(suite, body("users", container=unmasked, hostUsers=False), "PodFeatureUnsupported", "spec.hostUsers")
    refused(suite, body("armor", securityContext={"appArmorProfile": {"type": "RuntimeDefault"}}),
            "AppArmor", "Cannot enforce AppArmor", "spec.securityContext.appArmorProfile")


def labels_that_the_kernel_does_not_know(suite):
    """Options of SELinux are taken as by any node without it, and an event says that they have no effect."""
    if os.path.exists("/sys/fs/selinux/enforce"):
        return
    status, _ = ended(suite, body("labels", container={"securityContext": {"seLinuxOptions": {"level": "s0:c1,c2"}}}))
    if status["phase"] != "Succeeded":
        raise Failure("the pod did not run: " + json.dumps(status))

    def told():
        events = suite.client.expect(200, "GET", "/api/v1/namespaces/guest/events?fieldSelector=involvedObject.name%3Dlabels")["items"]
        return any(e["reason"] == "FieldWithoutEffect" and "seLinuxOptions" in e["message"] for e in events)
    cluster.wait_for(told, PATIENCE, "an event that names the field", interval=0.1)


def through_the_first_process(suite):
    """Where containers share their processes, the first one is the agent's, and root in a container may look through its eyes."""
    path = "/proc/sys/kernel/printk_ratelimit_burst"
    before = read(path)
    _, log = ended(suite, body("eyes", "ls /proc/1/root/proc/sys/kernel | wc -l; echo %d > /proc/1/root%s" % (int(before) + 1, path),
                               shareProcessNamespace=True))
    restored(path, before)
    if "ead-only" not in log and "denied" not in log:
        raise Failure("what kept the pod from writing? %r" % log)


def calls_that_make_namespaces(suite):
    """Without a filter every user may have a user namespace, and in it all capabilities."""
    filtered = {"seccompProfile": {"type": "RuntimeDefault"}}
    status, log = ended(suite, body("calls", "unshare -U true && echo inside; unshare -n true && echo inside; echo end", securityContext=filtered))
    if status["phase"] != "Succeeded" or "inside" in log or "end" not in log:
        raise Failure("the default profile let a container make a namespace: %s %r" % (status["phase"], log))
    missing = {"seccompProfile": {"type": "Localhost", "localhostProfile": "nowhere.json"}}
    with mallory(suite) as client:
        client.expect(201, "POST", PODS, body("profile", securityContext=missing))
        try:
            def waiting():
                now = client.expect(200, "GET", PODS + "/profile")["status"].get("containerStatuses") or [{}]
                return now[0].get("state", {}).get("waiting", {}).get("message", "").count("cannot load seccomp profile")
            cluster.wait_for(waiting, PATIENCE, "the refusal of a profile that is not there")
        finally:
            client.request("DELETE", PODS + "/profile")


def devices(suite):
    """A device node that a container makes is a name, whatever its number."""
    status, log = ended(suite, body("devices", "mknod /d c 1 3 && mknod /e b 7 0; cat /d && echo opened; cat /e && echo opened; echo end"))
    if "opened" in log or "end" not in log:
        raise Failure("a container opened a device that it made: %s %r" % (status["phase"], log))


def secrets_on_the_disk(suite):
    """What pods have in their environment is readable for nobody but root, also after the agent was started again."""
    mallory(suite).close()
    suite.client.expect(201, "POST", "/api/v1/namespaces/guest/secrets", {"metadata": {"name": "key"}, "stringData": {"k": "hidden-word"}})
    env = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}]
    root = os.path.realpath(os.path.join(suite.server.data, "nodes", "node-0", "containers"))
    places = [root, "/run/dibs/" + hashlib.sha256(root.encode()).hexdigest()[:8]]

    def holders():
        """Files with the word, each with what is open of it or of its folder."""
        found = {}
        for place in places:
            for folder, folders, files in os.walk(place):
                folders[:] = [name for name in folders if name not in ("merged", "upper", "work", "ns")]
                for name in files:
                    path = os.path.join(folder, name)
                    if not os.path.isfile(path):
                        continue  # pipes and sockets of the monitor
                    try:
                        with open(path, "rb") as f:
                            if b"hidden-word" in f.read():
                                found[path] = (os.stat(path).st_mode & 0o077) | (os.stat(folder).st_mode & 0o077)
                    except OSError:
                        pass  # an exec that has ended
        return found

    def closed(when):
        found = holders()
        if not any(path.endswith("config.json") for path in found):
            raise Failure("no configuration of a container in %s: %s" % (places, found))
        for path, mode in found.items():
            if mode:
                raise Failure("%s %s is open to others: %o" % (when, path, mode))

    with mallory(suite) as client:
        client.expect(201, "POST", PODS, body("secret", "sleep 9999", container={"env": env}))
        try:
            running = lambda: client.expect(200, "GET", PODS + "/secret")["status"].get("phase") == "Running"
            cluster.wait_for(running, PATIENCE, "a running pod", interval=0.1)
            closed("at first")
            if cluster.kubectl():
                inside = subprocess.Popen([cluster.kubectl(), "-n", "guest", "exec", "secret", "--", "sleep", "5"],
                                          env=suite.server.kubectl_environment(), stderr=subprocess.DEVNULL)
                try:
                    cluster.wait_for(lambda: any(os.path.basename(path).startswith("x-") for path in holders()), PATIENCE, "an exec")
                    closed("with an exec")
                finally:
                    inside.wait()
            client.close()
            suite.server.restart()
            suite.client = suite.server.client(timeout=120)
            with mallory(suite) as again:
                cluster.wait_for(lambda: again.get(PODS + "/secret").status == 200, PATIENCE, "the pod", interval=0.1)
            closed("after a restart")
        finally:
            with mallory(suite) as again:
                again.request("DELETE", PODS + "/secret")
                cluster.wait_for(lambda: again.get(PODS + "/secret").status == 404, PATIENCE, "the pod to be gone")


def main():
    if os.geteuid() != 0 or not cluster.has_containers():
        print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay)")
        return SKIPPED
    return run([settings_of_the_machine, settings_of_the_host_s_namespaces, settings_of_the_pod, fields_that_cannot_be_honoured,
                labels_that_the_kernel_does_not_know, through_the_first_process, calls_that_make_namespaces, devices, secrets_on_the_disk],
               flags=["--nodes", "1"], command="up", tokens=[(TOKEN, "mallory", ["system:authenticated"])])


if __name__ == "__main__":
    sys.exit(main())
