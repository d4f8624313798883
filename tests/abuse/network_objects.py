#!/usr/bin/env python3
"""Networks of pods: an account that may write SpiderMultusConfigs and claim parameters of its namespace, and nothing else, tries to make more of it."""
import sys

from rights import robot, rule
from suite import Failure, run

import cluster

GROUP = "spiderpool.spidernet.io"
CONFIGS = "/apis/%s/v2beta1/namespaces/%%s/spidermultusconfigs" % GROUP
DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/%s/network-attachment-definitions"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
MERGE = {"Content-Type": "application/merge-patch+json"}


def config(name, annotations=None, **spec):
    return {"apiVersion": GROUP + "/v2beta1", "kind": "SpiderMultusConfig", "metadata": {"name": name, "annotations": annotations or {}},
            "spec": spec or {"cniType": "macvlan", "macvlan": {"master": ["eth0"]}}}


def await_object(suite, path):
    cluster.wait_for(lambda: suite.client.get(path).status == 200, 60, path, 0.1)
    return suite.client.expect(200, "GET", path)


def writer(suite, name):
    # The kinds come with the driver.
    await_object(suite, "/apis/%s/v2beta1/spidercoordinators/default" % GROUP)
    return robot(suite, name, [rule([GROUP], ["spidermultusconfigs", "spiderclaimparameters"], "create", "get", "patch", "update")])


def names_that_are_expressions(suite):
    """A class is the whole cluster's, and its selector is an expression: no name gets out of its quotes there."""
    with writer(suite, "quoter") as client:
        for i, master in enumerate(('"||true||"', "\\", "'||true", '"', "\\\"||true")):
            client.expect(201, "POST", CONFIGS % "default", config("quoted-%d" % i, cniType="macvlan", macvlan={"master": [master]}))
            made = await_object(suite, CLASSES + "/quoted-%d.default.cni.spidernet.io" % i)
            last = made["spec"]["selectors"][-1]["cel"]["expression"]
            inner = last.split(".name == ", 1)[1]
            if inner != '"%s"' % master.replace("\\", "\\\\").replace('"', '\\"'):
                raise Failure("the master %r became the expression %r" % (master, last))
        for spec in ({"cniType": "sriov", "sriov": {"resourceName": 'a" || true || "'}},
                     {"cniType": "macvlan", "macvlan": {"master": ["../eth0"]}},
                     {"cniType": "macvlan", "macvlan": {"master": ["x" * 16]}},
                     {"cniType": "macvlan", "macvlan": {"master": ["eth%d" % i for i in range(100)], "bond": {"name": "b", "mode": 0}}},
                     {"customCNI": "x" * 100000}):
            suite.refused(client.request("POST", CONFIGS % "default", config("bad", **spec)), "the spec %.80r" % spec, 422)


def networks_of_others(suite):
    """A definition stays with the config that has it; one of another namespace is out of reach."""
    with writer(suite, "taker") as client:
        suite.client.expect(201, "POST", CONFIGS % "default", config("victim"))
        before = await_object(suite, DEFINITIONS % "default" + "/victim")
        client.expect(201, "POST", CONFIGS % "default",
                      config("thief", {"multus.spidernet.io/cr-name": "victim"}, cniType="macvlan", macvlan={"master": ["evil0"]}))
        for name in ("kube-system/victim", "../victim", "", "Victim", "v" * 300):
            client.expect(201, "POST", CONFIGS % "default",
                          dict(config("x"), metadata={"generateName": "thief-", "annotations": {"multus.spidernet.io/cr-name": name}}))
        client.expect(201, "POST", CONFIGS % "default", config("last"))
        await_object(suite, DEFINITIONS % "default" + "/last")
        after = suite.client.expect(200, "GET", DEFINITIONS % "default" + "/victim")
        if after["spec"] != before["spec"] or after["metadata"]["ownerReferences"] != before["metadata"]["ownerReferences"]:
            raise Failure("the definition was taken over: %r" % after)
        found = {item["metadata"]["name"] for item in suite.client.expect(200, "GET", DEFINITIONS % "default")["items"]}
        if not found <= {"victim", "last"} | {"quoted-%d" % i for i in range(5)}:
            raise Failure("definitions were made of names that are none: %r" % found)
        suite.refused(client.request("PATCH", DEFINITIONS % "default" + "/victim", {"spec": {"config": "{}"}}, headers=MERGE),
                      "a patch of the definition", 403)


if __name__ == "__main__":
    sys.exit(run((names_that_are_expressions, networks_of_others), ("--nodes", "1", "--runtime", "sim", "--drivers", "net"), "up"))
