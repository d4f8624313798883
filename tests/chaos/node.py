#!/usr/bin/env python3
"""A node's agent and its driver in processes of their own, that are killed again and again while pods with claims come and go.

    node.py [--runtime oci|sim] [--seconds N] [--seed N]

The API server, the agent and the driver are killed by turns (SIGKILL) and started again. In the end, with nothing killed any more, it must
hold that
  - every pod that is left runs, and a container was never started twice because an agent was (simulated ones end with their agent);
  - after the last pod is deleted nothing is left of any: no claim, no prepared device in the agent's or the driver's checkpoint, no CDI file,
    no container process, no mount, no folder.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from parts import Part, cluster, persist  # noqa: E402

NODE = "node-0"
GPUS = 8
PATIENCE = 240  # seconds; the processors may be shared with other tests
NODE_TOKEN = "token-of-the-node"
RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = RESOURCE + "/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"


def kubeconfig_of_node(server):
    path = os.path.join(server.folder, "kubeconfig-node")
    with open(path, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "dibs",
                   "clusters": [{"name": "dibs", "cluster": {"server": server.url, "certificate-authority": server.ca_file()}}],
                   "users": [{"name": "node", "user": {"token": NODE_TOKEN}}],
                   "contexts": [{"name": "dibs", "context": {"cluster": "dibs", "user": "node"}}]}, f)
    return path


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "terminationGracePeriodSeconds": 1, "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
        "containers": [{"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 9999 & wait"],
                        "resources": {"claims": [{"name": "gpu"}]}}]}}


def not_running(client, alive, survive):
    """None, or the first pod that is not as it should be."""
    pods = {p["metadata"]["name"]: p for p in persist(client, "GET", PODS).json["items"]}
    if set(pods) != set(alive):
        return "pods %s instead of %s" % (sorted(pods), sorted(alive))
    for name, p in pods.items():
        statuses = p["status"].get("containerStatuses") or [{}]
        if not statuses[0].get("ready"):
            return "pod %s is not ready: %s" % (name, json.dumps(p["status"]))
        if survive and statuses[0]["restartCount"] != 0:
            return "the container of pod %s was started again: %s" % (name, json.dumps(statuses))
    return None


def left_over(client, root, cdi):
    """None, or the first thing that outlived its pod."""
    for path in (PODS, CLAIMS):
        names = [o["metadata"]["name"] for o in persist(client, "GET", path).json["items"]]
        if names:
            return "%s: %s" % (path, names)
    with open(os.path.join(root, "dra_manager_state")) as f:
        state = json.loads(json.load(f)["Data"])
    if state.get("ClaimInfoStateList"):
        return "the agent's checkpoint: %s" % state
    for path in glob.glob(os.path.join(root, "plugins", "*", "checkpoint*")):
        with open(path) as f:
            text = f.read()
        if "-" in text and '"gpu-' in text:
            return "the driver's checkpoint %s: %s" % (path, text)
    files = [name for name in os.listdir(cdi) if "common" not in name]
    if files:
        return "CDI files: %s" % files
    folders = os.listdir(os.path.join(root, "pods"))
    if folders:
        return "folders of pods: %s" % folders
    with open("/proc/mounts") as f:
        mounts = [line for line in f if root in line]
    if mounts:
        return "mounts: %s" % mounts
    for status in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(status, "rb") as f:
                command = f.read().decode("utf-8", "replace").replace("\0", " ")
        except OSError:
            continue
        if "conmon" in command and root in command:
            return "a process: %s" % command
    return None


class Remains:
    """Containers outlive a test that fails: their processes name its folder."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            subprocess.run(["pkill", "-9", "-f", "conmon.*" + self.folder], check=False)


def await_none(question, what, calm, lasting):
    """Asks until there is no problem any more. `calm` parts may end by themselves and are started again, `lasting` ones may not."""
    problem = question()
    end = time.monotonic() + PATIENCE
    while problem:
        for part in calm:
            part.keep()
        for part in lasting:
            if part.process.poll() is not None:
                raise cluster.Failure("%s: %s ended by itself with status %d\n%s" % (what, part.arguments[0], part.process.returncode, part.said()[-4000:]))
        if time.monotonic() > end:
            said = "".join("\n--- %s\n%s" % (part.arguments[0], part.said()[-4000:]) for part in lasting + calm)
            raise cluster.Failure("%s: %s%s" % (what, problem, said))
        time.sleep(0.2)
        problem = question()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", default="oci", choices=("oci", "sim"))
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.runtime == "oci" and not cluster.has_containers():
        print("SKIPPED: no real containers on this machine (root, runc, namespaces, overlay)")
        return 77
    chance = random.Random(args.seed)
    server = cluster.Server(())
    server.write_tokens([(NODE_TOKEN, "system:node:" + NODE, ["system:nodes"])])
    with server, Remains(server.folder):
        client = server.client()
        root, cdi = os.path.join(server.folder, "node"), os.path.join(server.folder, "node", "cdi")
        node_config = kubeconfig_of_node(server)
        calm = [Part(server, "controllers"), Part(server, "scheduler")]
        agent = Part(server, "node", "--name", NODE, "--root-dir", root, "--runtime", args.runtime, "--port", "0", "--address", "127.0.0.1",
                     "--images", os.path.join(server.folder, "images"), *cluster.AGENT_FLAGS, "--cdi-dirs", cdi, kubeconfig=node_config)
        cluster.wait_for(lambda: os.path.isdir(os.path.join(root, "plugins_registry")), 30, "the agent's folders")
        driver = Part(server, "driver", "gpu", "--node-name", NODE, "--num-devices", str(GPUS), "--cdi-root", cdi,
                      "--kubelet-registrar-directory-path", os.path.join(root, "plugins_registry"),
                      "--kubelet-plugins-directory-path", os.path.join(root, "plugins"))
        persist(client, "POST", RESOURCE + "/namespaces/default/resourceclaimtemplates", {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}}})
        cluster.wait_for(lambda: client.get("/api/v1/namespaces/default/serviceaccounts/default").status == 200, 30,
                         "the account that pods run as")
        alive, made, killed = [], 0, {"agent": 0, "driver": 0, "server": 0}
        end = time.monotonic() + args.seconds
        next_kill = time.monotonic() + 2
        while time.monotonic() < end:
            if len(alive) < GPUS and (len(alive) < 2 or chance.random() < 0.55):
                name = "pod-%d" % made
                made += 1
                persist(client, "POST", PODS, pod(name), also=(409,))
                alive.append(name)
            else:
                name = alive.pop(chance.randrange(len(alive)))
                persist(client, "DELETE", PODS + "/" + name, also=(404,))
            if time.monotonic() > next_kill:
                next_kill = time.monotonic() + chance.uniform(0.05, 2)
                which = chance.choice(("agent", "agent", "driver", "driver", "server"))
                killed[which] += 1
                if which == "server":
                    server.restart(kill=True)
                else:
                    part = agent if which == "agent" else driver
                    part.kill()
                    time.sleep(chance.choice((0, 0, 0.3)))
                    part.start()
            time.sleep(chance.uniform(0, 0.3))
        lasting = [agent, driver]
        await_none(lambda: not_running(client, alive, args.runtime == "oci"), "after the last kill", calm, lasting)
        for name in alive:
            persist(client, "DELETE", PODS + "/" + name, also=(404,))
        await_none(lambda: left_over(client, root, cdi), "after the last pod", calm, lasting)
        for part in [driver, agent] + calm:
            part.stop()
        print("%d pods; killed: %s" % (made, ", ".join("%s %d" % item for item in killed.items())))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except cluster.Failure as failure:
        sys.exit("FAILED: %s" % failure)
