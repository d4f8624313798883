#!/usr/bin/env python3
"""Upstream's own examples of the Pod Security Standards: each pod passes or violates each level of each version as upstream says.

The examples are data of the Go module k8s.io/pod-security-admission (test/testdata/LEVEL/VERSION/{pass,fail}/CHECK.yaml), which Go fetches.
Where there is no Go, or the module cannot be had, the test is skipped (exit status 77).

Each example is created, as a dry run, in a namespace that enforces its level and version, and again as the template of a deployment, which
may only be warned of.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

SKIPPED = 77
MODULE = "k8s.io/pod-security-admission@v0.36.3"
LABEL = "pod-security.kubernetes.io/enforce"
YAML = {"Content-Type": "application/yaml"}
# What a refusal must speak of, by the name of the check.
REASONS = {
    "allowprivilegeescalation": "allowPrivilegeEscalation", "apparmorprofile": "forbidden AppArmor profile",
    "capabilities_baseline": "capabilities", "capabilities_restricted": "unrestricted capabilities", "hostnamespaces": "host namespaces",
    "hostpathvolumes": "hostPath", "hostports": "hostPort", "hostprobesandhostlifecycle": "probe or lifecycle host",
    "privileged": "privileged", "procmount": "procMount", "procmount_restricted": "procMount", "restrictedvolumes": "restricted volume types",
    "runasnonroot": "runAsNonRoot", "runasuser": "runAsUser", "seccompprofile_baseline": "seccompProfile",
    "seccompprofile_restricted": "seccompProfile", "selinuxoptions": "seLinuxOptions", "sysctls": "forbidden sysctl",
    "windowshostprocess": "hostProcess",
}
# Pods that no server takes, whatever the level: without user namespaces of their own they may not unmask /proc.
INVALID = re.compile(r"procMount: Unmasked")


def fixtures():
    """The folder of the examples, or a text that says why there is none."""
    go = cluster.go()
    if not go:
        return None, "Go is not installed"
    done = subprocess.run([go, "mod", "download", "-json", MODULE], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/")
    if done.returncode:
        return None, "%s cannot be had: %s" % (MODULE, (done.stderr or done.stdout).strip()[-500:])
    return os.path.join(json.loads(done.stdout)["Dir"], "test", "testdata"), None


def warnings(answer):
    return "; ".join(answer.headers.get_all("Warning") or [])


class Check:
    def __init__(self, client):
        self.client, self.count, self.failures = client, 0, []

    def fail(self, path, what, answer):
        self.failures.append("%s: %s: %r %s" % (path, what, answer, warnings(answer)))

    def pods(self, namespace, text):
        return self.client.request("POST", "/api/v1/namespaces/%s/pods?dryRun=All" % namespace, raw=text.encode(), headers=YAML)

    def example(self, namespace, path, passes):
        self.count += 1
        with open(path) as f:
            text = re.sub(r"(?m)^  name: .*$", "  name: test", f.read(), count=1)
        answer = self.pods(namespace, text)
        reason = REASONS.get(re.sub(r"\d+\.yaml$", "", os.path.basename(path)), "")
        if passes:
            if answer.status != 201:
                return self.fail(path, "should pass", answer)
        elif answer.status == 422 and INVALID.search(text) and reason in answer.json["message"]:
            return None  # there is no template to be made of it either
        elif answer.status != 403 or 'pods "test" is forbidden: violates PodSecurity' not in answer.json["message"] or \
                reason not in answer.json["message"]:
            return self.fail(path, "should be refused for %s" % reason, answer)
        return self.template(namespace, path, text, passes, reason)

    def template(self, namespace, path, text, passes, reason):
        pod = self.pods("privileged", text)
        if pod.status != 201:
            return self.fail(path, "is no valid pod", pod)
        labels = {"test": "true"}
        metadata = {"labels": labels, "annotations": pod.json["metadata"].get("annotations", {})}
        deployment = {"metadata": {"name": "test"}, "spec": {"selector": {"matchLabels": labels},
                                                             "template": {"metadata": metadata, "spec": pod.json["spec"]}}}
        answer = self.client.request("POST", "/apis/apps/v1/namespaces/%s/deployments?dryRun=All" % namespace, deployment)
        told = warnings(answer)
        if answer.status != 201 or ("would violate PodSecurity" in told) == passes or (not passes and reason not in told):
            self.fail(path, "as a template should be taken %s" % ("in silence" if passes else "with a warning"), answer)
        return None


def main():
    folder, missing = fixtures()
    if missing:
        print("SKIPPED: %s" % missing)
        return SKIPPED
    with cluster.Server(["--disable-admission-plugins", "ServiceAccount"]) as server:
        client = server.client()
        client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "privileged"}})
        check = Check(client)
        for level in sorted(os.listdir(folder)):
            if not os.path.isdir(os.path.join(folder, level)):
                continue
            for version in sorted(os.listdir(os.path.join(folder, level))):
                namespace = "%s-%s" % (level, version.replace(".", "-"))
                client.expect(201, "POST", "/api/v1/namespaces",
                              {"metadata": {"name": namespace, "labels": {LABEL: level, LABEL + "-version": version}}})
                for outcome in ("pass", "fail"):
                    files = os.path.join(folder, level, version, outcome)
                    for name in sorted(os.listdir(files)):
                        check.example(namespace, os.path.join(files, name), outcome == "pass")
    for failure in check.failures[:40]:
        print("FAILED %s" % failure)
    print("%d of %d examples as upstream has them" % (check.count - len(check.failures), check.count))
    if check.count < 1000:
        raise cluster.Failure("only %d examples in %s" % (check.count, folder))
    return 1 if check.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
