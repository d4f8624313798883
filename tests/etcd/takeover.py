#!/usr/bin/env python3
"""One etcd, two programs: dibs serves what a kube-apiserver wrote, and a kube-apiserver serves what dibs wrote.

    takeover.py [protobuf|json|reverse|both]...

protobuf, json  a kube-apiserver that stores so fills the cluster and ends; dibs shows every object of every version that both serve exactly as
                the other did, its resourceVersion included; dibs then creates, updates, patches, applies and deletes, ends, and the
                kube-apiserver shows the same as dibs, and writes on
reverse         an etcd filled by dibs alone
both            both at once: each sees in its watches what the other wrote, in the same order and with the same versions

Needs kube-apiserver (tools/get-upstream kube-apiserver) and etcd; without them it is skipped (exit status 77).
"""
import copy
import json
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import cluster  # noqa: E402
import etcd  # noqa: E402
import kube_apiserver  # noqa: E402
import objects  # noqa: E402
from cluster import Failure  # noqa: E402
from objects import ALLOCATION, GROUP, SPACE  # noqa: E402

SKIPPED = 77
RANGE = "10.96.0.0/16"
CORE = "/api/v1/namespaces/%s/" % SPACE
DEVICES = "/apis/resource.k8s.io/v1/namespaces/%s/" % SPACE
# What a server keeps in order by itself, each its own way.
OWN = {"apiservices", "clusterroles", "clusterrolebindings", "roles", "rolebindings", "flowschemas", "prioritylevelconfigurations", "leases"}
# Fields and defaults that are younger than the kube-apiserver.
YOUNGER = ("csinodes//machine.status: ",
           "statefulsets/story/stateful.spec.updateStrategy.rollingUpdate.maxUnavailable: ",
           ".spec.preventPodSchedulingIfMissing: ")


def dibs(store, flags=()):
    return cluster.Server(store.server_flags() + ["--service-cluster-ip-range", RANGE, *flags])


def kubernetes(store, flags=()):
    return kube_apiserver.KubeApiserver(store, ["--runtime-config", "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true", *flags],
                                        service_range=RANGE)


def served(client):
    """{(group version, plural): path} of what can be listed."""
    return {(version, one["name"]): path + "/" + one["name"] for version, path, one in resources(client)}


def resources(client):
    """Of what can be listed: the version of its group, the path of that, and what discovery says of it."""
    versions = [("v1", "/api/v1")]
    for group in client.expect(200, "GET", "/apis")["groups"]:
        versions += [(v["groupVersion"], "/apis/" + v["groupVersion"]) for v in group["versions"]]
    for name, path in versions:
        answer = client.get(path)
        if answer.status != 200:
            continue
        for one in answer.json["resources"]:
            if "list" in one["verbs"] and "/" not in one["name"]:
                yield name, path, one


def is_told(kind, item):
    """Whether the story has made it."""
    meta = item["metadata"]
    if meta.get("labels", {}).get("story") == "told":
        return True
    # A kube-apiserver tells by events that it notes addresses which another gave out.
    return kind != "events" and meta.get("namespace") == SPACE


def listed(client, path):
    """A kube-apiserver that has just started asks to come back (429) until it has read the objects of custom kinds."""
    def attempt():
        answer = client.get(path)
        return None if answer.status == 429 else answer
    return cluster.wait_for(attempt, 60, "an answer to GET " + path, interval=0.2)


def seen(server):
    """{(group version, plural, namespace, name): object} of all that a server shows."""
    out = {}
    with server.client() as client:
        for (version, plural), path in sorted(served(client).items()):
            answer = listed(client, path)
            if answer.status != 200:
                raise Failure("GET %s: %r" % (path, answer))
            for item in answer.json["items"] or []:
                out[version, plural, item["metadata"].get("namespace", ""), item["metadata"]["name"]] = item
    return out


def differences(path, a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            yield from differences("%s.%s" % (path, key), a.get(key), b.get(key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences("%s[%d]" % (path, i), x, y)
    elif a != b:
        yield "%s: %s, then %s" % (path, json.dumps(a), json.dumps(b))


def compare(what, before, after):
    """The same objects of the story, byte for byte as far as JSON goes, in the versions that both serve."""
    kinds = {key[:2] for key in before} & {key[:2] for key in after}
    faults = []
    count = 0
    for key in sorted(set(before) | set(after)):
        if key[:2] not in kinds:
            continue
        one = before.get(key) or after.get(key)
        if not is_told(key[1], one):
            if key[1] not in OWN and key in before and key not in after:
                faults.append("%s: gone" % "/".join(key))
            continue
        count += 1
        if key not in after or key not in before:
            faults.append("%s: only %s" % ("/".join(key), "before" if key in before else "after"))
            continue
        faults += [text for text in differences("/".join(key), before[key], after[key]) if not any(y in text for y in YOUNGER)]
    if faults:
        raise Failure("%s: %d differences among %d objects\n%s" % (what, len(faults), count, "\n".join(faults[:60])))
    print("%s: %d objects of %d kinds are the same" % (what, count, len(kinds)))
    return count


def fill(server):
    """Everything, by kubectl and, where it has no words for it, by requests."""
    server.kubectl("apply", "--server-side=false", "-f", "-", source=as_list(objects.definitions()))
    server.kubectl("wait", "--for=condition=Established", "crd/cats." + GROUP)
    with server.client() as client:
        known = {(version, one["kind"]) for version, _, one in resources(client)}
    everything = [one for one in objects.basics() if (one["apiVersion"], one["kind"]) in known]
    server.kubectl("apply", "-f", "-", source=as_list(everything[:2]))
    server.kubectl("apply", "-f", "-", source=as_list(everything[2:]), timeout=180)
    cluster.wait_for(lambda: try_kubectl(server, objects.cats()), 30, "custom resources are served")
    with server.client() as client:
        claim = client.expect(200, "GET", DEVICES + "resourceclaims/claim")
        client.expect(200, "PUT", DEVICES + "resourceclaims/claim/status", dict(claim, status=ALLOCATION))
        pod = client.expect(200, "GET", CORE + "pods/pod")
        pod["status"].update(phase="Running", podIP="10.1.0.2", podIPs=[{"ip": "10.1.0.2"}], startTime="2026-01-02T03:04:05Z", conditions=[
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}])
        client.expect(200, "PUT", CORE + "pods/pod/status", pod)


def try_kubectl(server, list_of):
    try:
        server.kubectl("apply", "--validate=false", "-f", "-", source=as_list(list_of))
        return True
    except Failure:
        return False


def as_list(items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def write_more(server, who):
    """Every kind of write, over what another program has written."""
    with server.client() as client:
        path = CORE + "configmaps/map"
        map_ = client.expect(200, "GET", path)
        map_["data"]["by"] = who
        client.expect(200, "PUT", path, map_)
        old = copy.deepcopy(map_)
        client.expect(409, "PUT", path, old)
        client.expect(200, "PATCH", CORE + "services/service", {"metadata": {"annotations": {"by": who}}},
                      headers={"Content-Type": "application/strategic-merge-patch+json"})
        client.expect(200, "PATCH", "/apis/apps/v1/namespaces/%s/deployments/deployment" % SPACE, {"spec": {"replicas": len(who)}},
                      headers={"Content-Type": "application/merge-patch+json"})
        # By a patch: a kube-apiserver compares parameters of drivers byte by byte, and a PUT from here has blanks in them.
        client.expect(200, "PATCH", DEVICES + "resourceclaims/claim", {"metadata": {"annotations": {"by": who}}},
                      headers={"Content-Type": "application/merge-patch+json"})
        if client.get(CORE + "configmaps/gone").status == 200:
            client.expect(200, "DELETE", CORE + "configmaps/gone")
        client.expect(201, "POST", CORE + "configmaps", objects.made("ConfigMap", "v1", "by-" + who, data={"x": who}))
        service = client.expect(201, "POST", CORE + "services", objects.made(
            "Service", "v1", "service-" + who, spec={"type": "NodePort", "ports": [{"port": 80}]}))
        taken = [s for s in client.expect(200, "GET", "/api/v1/services")["items"]]
        addresses = [s["spec"]["clusterIP"] for s in taken if s["spec"]["clusterIP"] != "None"]
        ports = [p["nodePort"] for s in taken for p in s["spec"]["ports"] if p.get("nodePort")]
        for values in (addresses, ports):
            if len(values) != len(set(values)):
                raise Failure("given out twice, the last to %s: %s" % (service["metadata"]["name"], values))
        client.expect(422, "POST", CORE + "services", objects.made(
            "Service", "v1", "thief", spec={"clusterIP": addresses[0], "ports": [{"port": 80}]}))
        cat = client.expect(200, "GET", "/apis/%s/v1/namespaces/%s/cats/tom" % (GROUP, SPACE))
        cat["status"] = {"by": who}
        client.expect(200, "PUT", "/apis/%s/v1/namespaces/%s/cats/tom/status" % (GROUP, SPACE), cat)
    server.kubectl("apply", "--server-side", "--field-manager", who, "--force-conflicts", "-f", "-",
                   source=json.dumps(objects.made("ConfigMap", "v1", "applied", data={who: "applied", "both": who})))
    server.kubectl("-n", SPACE, "label", "pod", "pod", who + "=here")
    server.kubectl("-n", SPACE, "scale", "--replicas=2", "statefulset/stateful")


def taken_over(media):
    with etcd.Etcd() as store:
        storage = "application/vnd.kubernetes.protobuf" if media == "protobuf" else "application/json"
        flags = ["--storage-media-type", storage]
        theirs = kubernetes(store, flags)
        with theirs:
            fill(theirs)
            before = seen(theirs)
        with dibs(store) as ours:
            compare("dibs over kube-apiserver (%s)" % media, before, seen(ours))
            write_more(ours, "dibs")
            before = seen(ours)
        with kubernetes(store, flags) as theirs:
            compare("kube-apiserver (%s) over dibs" % media, before, seen(theirs))
            write_more(theirs, "kubernetes")
            before = seen(theirs)
        with dibs(store) as ours:
            compare("dibs over kube-apiserver (%s), again" % media, before, seen(ours))


def reverse():
    with etcd.Etcd() as store:
        with dibs(store) as ours:
            fill(ours)
            before = seen(ours)
        with kubernetes(store) as theirs:
            compare("kube-apiserver over an etcd of dibs alone", before, seen(theirs))
            write_more(theirs, "kubernetes")
            before = seen(theirs)
        with dibs(store) as ours:
            compare("dibs over what both wrote", before, seen(ours))


def both():
    count = 60
    with etcd.Etcd() as store, kubernetes(store) as theirs, dibs(store) as ours:
        with theirs.client() as client:
            client.expect(201, "POST", "/api/v1/namespaces", objects.made("Namespace", "v1", SPACE, None))
            start = client.expect(200, "GET", CORE + "configmaps")["metadata"]["resourceVersion"]
        logs = {}

        def follow(name, server):
            with server.client() as client:
                stream = client.stream(CORE + "configmaps?watch=true&resourceVersion=" + start)
                log = logs[name]
                for line in stream:
                    event = json.loads(line)
                    meta = event["object"]["metadata"]
                    log.append((event["type"], meta["name"], meta["resourceVersion"], json.dumps(event["object"].get("data"), sort_keys=True)))
                    if meta["name"] == "end":
                        return stream.hang_up()

        def write(name, server):
            with server.client() as client:
                for i in range(count):
                    made = client.expect(201, "POST", CORE + "configmaps", objects.made("ConfigMap", "v1", "%s-%d" % (name, i), data={"n": "0"}))
                    made["data"]["n"] = "1"
                    client.expect(200, "PUT", CORE + "configmaps/%s-%d" % (name, i), made)
                    for _ in range(50):  # a counter that both count up
                        shared = client.get(CORE + "configmaps/counter").json
                        if shared.get("kind") == "Status":
                            if client.request("POST", CORE + "configmaps",
                                              objects.made("ConfigMap", "v1", "counter", data={"n": "1"})).status == 201:
                                break
                            continue
                        shared["data"]["n"] = str(int(shared["data"]["n"]) + 1)
                        if client.request("PUT", CORE + "configmaps/counter", shared).status == 200:
                            break
                    else:
                        raise Failure("%s never won" % name)
                    if i % 3 == 0:
                        client.expect(200, "DELETE", CORE + "configmaps/%s-%d" % (name, i))

        faults = []

        def run(what, *arguments):
            def guarded():
                try:
                    what(*arguments)
                except BaseException as error:  # told by the main thread
                    faults.append("%s: %r" % (arguments[0], error))
            thread = threading.Thread(target=guarded, daemon=True)
            thread.start()
            return thread
        servers = {"dibs": ours, "kubernetes": theirs}
        logs.update({name: [] for name in servers})
        watchers = [run(follow, name, server) for name, server in servers.items()]
        writers = [run(write, name, server) for name, server in servers.items()]
        for thread in writers:
            thread.join(300)
        with ours.client() as client:
            client.expect(201, "POST", CORE + "configmaps", objects.made("ConfigMap", "v1", "end"))
            counter = client.expect(200, "GET", CORE + "configmaps/counter")["data"]["n"]
        for thread in watchers:
            thread.join(60)
        if faults:
            raise Failure("\n".join(faults))
        if counter != str(2 * count):
            raise Failure("the counter of both is %s, not %d" % (counter, 2 * count))
        if logs["dibs"] != logs["kubernetes"]:
            odd = [pair for pair in zip(logs["dibs"], logs["kubernetes"]) if pair[0] != pair[1]]
            raise Failure("the watches differ: %d and %d events, first %s" % (len(logs["dibs"]), len(logs["kubernetes"]), odd[:3]))
        compare("both at once", seen(ours), seen(theirs))
        print("both at once: %d events are the same in both watches" % len(logs["dibs"]))


STORIES = {"protobuf": lambda: taken_over("protobuf"), "json": lambda: taken_over("json"), "reverse": reverse, "both": both}


def main():
    names = sys.argv[1:] or list(STORIES)
    for missing, message in ((etcd.program() is None, etcd.MISSING), (kube_apiserver.program() is None, kube_apiserver.MISSING),
                             (cluster.kubectl() is None, "SKIPPED: no kubectl")):
        if missing:
            print(message)
            return SKIPPED
    failed = 0
    for name in names:
        try:
            STORIES[name]()
            print("ok    %s" % name)
        except Failure as failure:
            failed += 1
            print("FAIL  %s: %s" % (name, failure))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
