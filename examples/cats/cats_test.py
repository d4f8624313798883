"""The cats as an administrator runs them: both halves as programs of their own, with no more rights than install.yaml
gives them, in the releases that had the classic model and in today's. cats_test.py DIBS CATS [RELEASE...]"""
import base64
import glob
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSIC = "/apis/resource.k8s.io/v1alpha2"
CLAIMS = CLASSIC + "/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
PATHS = {  # by kind
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ResourceClass": CLASSIC + "/resourceclasses",
    "ResourceClaim": CLAIMS,
    "ResourceClaimTemplate": CLASSIC + "/namespaces/default/resourceclaimtemplates",
    "ClaimParameters": "/apis/cats.resource.example.com/v1/namespaces/default/claimparameters",
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/cats-driver/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/cats-driver/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/cats-driver/rolebindings",
    "Pod": PODS,
}


def wait_for(what, test, seconds=40):
    end = time.monotonic() + seconds
    while True:
        found = test()
        if found:
            return found
        assert time.monotonic() < end, "no " + what
        time.sleep(0.1)


class Cluster:
    """`dibs up` with simulated containers, asked over HTTPS with the certificate of its kubeconfig."""

    def __init__(self, binary, folder, release):
        command = [binary, "up", "--data-dir", folder, "--bind", "127.0.0.1:0", "--store", "memory", "--nodes", "2",
                   "--runtime", "sim", "--log-level", "off"]
        if release:
            command += ["--emulate-release", release, "--feature-gates", "DynamicResourceAllocation=true",
                        "--runtime-config", "resource.k8s.io/v1alpha2=true"]
        self.folder = folder
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"https://\S+?(?= )", self.process.stdout.readline()).group()
        text = open(os.path.join(folder, "kubeconfig")).read()
        self.files = {}
        for field in ("certificate-authority-data", "client-certificate-data", "client-key-data"):
            data = re.search(field + r":\s*\"?([A-Za-z0-9+/=]+)", text).group(1)
            self.files[field] = os.path.join(folder, field)
            open(self.files[field], "wb").write(base64.b64decode(data))
        self.tls = ssl.create_default_context(cafile=self.files["certificate-authority-data"])
        self.tls.load_cert_chain(self.files["client-certificate-data"], self.files["client-key-data"])

    def ask(self, path, body=None, method=None, kind="application/yaml"):
        data = body.encode() if body else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        return json.load(urllib.request.urlopen(request, context=self.tls, timeout=20))

    def get(self, path):
        try:
            return self.ask(path)
        except urllib.error.HTTPError as error:
            assert error.code == 404, error
            return None

    def apply(self, text):
        for document in text.split("\n---\n"):
            path = PATHS[re.search(r"^kind: (\w+)", document, re.M).group(1)]
            wait_for("answer to " + document, lambda: self.try_create(path, document))

    def try_create(self, path, document):
        try:
            return self.ask(path, document)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            # A kind that was just defined, or an account that is not made yet.
            assert error.code in (403, 404), text
            return None

    def kubeconfig(self, account):
        """Of a service account: no more than its roles."""
        token = self.ask("/api/v1/namespaces/cats-driver/serviceaccounts/%s/token" % account,
                         '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}')
        path = os.path.join(self.folder, account + ".kubeconfig")
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {
                       "server": self.url, "certificate-authority": self.files["certificate-authority-data"]}}],
                   "users": [{"name": "u", "user": {"token": token["status"]["token"]}}],
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, open(path, "w"))
        return path

    def phase(self, pod):
        found = self.get(PODS + "/" + pod)
        return found and found["status"].get("phase")

    def claims(self):
        return self.ask(CLAIMS)["items"]

    def given(self):
        """The cats that are allocated, as "node/name color size"."""
        out = []
        for claim in self.claims():
            for handle in claim["status"].get("allocation", {}).get("resourceHandles", []):
                cat = json.loads(handle["data"])
                out.append("%(node)s/%(name)s %(color)s %(size)s" % cat)
        return sorted(out)

    def shown(self):
        """What the CDI files of all nodes set."""
        text = "".join(open(name).read() for name in glob.glob(self.folder + "/nodes/*/cdi/*.yaml"))
        return sorted(re.findall(r"CAT_\w+=\w+", text))


class Driver:
    """Both halves: two controllers, of which one works, and a plugin on every node."""

    def __init__(self, binary, cluster, *flags):
        self.cluster = cluster
        controller = [binary, "controller", "--kubeconfig", cluster.kubeconfig("controller"), "--log-level", "warn",
                      "--leader-election", *flags]
        plugin = [binary, "plugin", "--kubeconfig", cluster.kubeconfig("plugin"), "--log-level", "warn", *flags]
        self.controllers = [subprocess.Popen(controller) for _ in range(2)]
        self.plugins = []
        for node in ("node-0", "node-1"):
            root = os.path.join(cluster.folder, "nodes", node)
            wait_for("registry", lambda: os.path.isdir(root + "/plugins_registry"))
            self.plugins.append(subprocess.Popen(plugin + [
                "--node-name", node, "--cdi-root", root + "/cdi",
                "--kubelet-registrar-directory-path", root + "/plugins_registry",
                "--kubelet-plugins-directory-path", root + "/plugins"]))

    def kill_controller(self):
        victim = self.controllers.pop(0)
        victim.send_signal(signal.SIGKILL)
        victim.wait()

    def stop(self):
        for process in self.controllers + self.plugins:
            process.terminate()
        return [process.wait(30) for process in self.controllers + self.plugins]


def pod(name, claim_lines):
    return """apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: busybox:1.36
    command: [sleep, "9999"]
    resources:
      claims:
      - name: cat
  resourceClaims:
  - name: cat
    source:
      %s
""" % (name, claim_lines)


def story(cluster, driver):
    """The documents' pod, one more than there are cats for, and the end of the first."""
    cluster.apply(open(os.path.join(HERE, "cats.yaml")).read())
    wait_for("running pod", lambda: cluster.phase("pod-with-cats") == "Running")
    given = cluster.given()
    assert len(given) == 2 and len(set(given)) == 2, given
    assert all(cat.endswith(" black large") for cat in given), given
    assert cluster.shown() == ["CAT_0_COLOR=black", "CAT_0_SIZE=large", "CAT_1_COLOR=black", "CAT_1_SIZE=large"]
    for claim in cluster.claims():
        assert "resource-driver.example.com/deletion-protection" in claim["metadata"]["finalizers"], claim
        assert [user["name"] for user in claim["status"]["reservedFor"]] == ["pod-with-cats"], claim
    driver.kill_controller()
    # The other node has two such cats as well; the fifth pod's has to wait for them.
    for name in ("a", "b", "late"):
        cluster.apply(pod(name, "resourceClaimTemplateName: large-black-cat-claim-template"))
    wait_for("two more pods", lambda: [cluster.phase(name) for name in ("a", "b", "late")].count("Running") == 2, 60)
    waiting = [name for name in ("a", "b", "late") if cluster.phase(name) != "Running"][0]
    context = CLASSIC + "/namespaces/default/podschedulingcontexts/" + waiting
    wait_for("refusal", lambda: any(entry.get("unsuitableNodes") for entry in
                                    (cluster.get(context) or {"status": {}})["status"].get("resourceClaims", [])))
    assert len(set(cluster.given())) == 4, cluster.given()
    cluster.ask(PODS + "/pod-with-cats?gracePeriodSeconds=0", method="DELETE")
    wait_for("cat for the last pod", lambda: cluster.phase(waiting) == "Running", 60)
    given = cluster.given()
    assert len(given) == len(set(given)) == 3, given
    for name in ("a", "b", "late"):
        cluster.ask(PODS + "/" + name + "?gracePeriodSeconds=0", method="DELETE")
    wait_for("end of all claims", lambda: not cluster.claims(), 60)
    wait_for("end of all CDI files", lambda: not cluster.shown())


def immediate(cluster):
    """A claim that waits for no pod, and parameters that come late or are wrong."""
    cluster.apply("""apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata:
  name: now
spec:
  resourceClassName: resource.example.com
  allocationMode: Immediate
  parametersRef: {apiGroup: cats.resource.example.com, kind: ClaimParameters, name: late}""")
    events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=now"
    wait_for("event", lambda: any('claimparameters.cats.resource.example.com "late" not found' in event["message"]
                                  for event in cluster.ask(events)["items"]))
    cluster.apply("""apiVersion: cats.resource.example.com/v1
kind: ClaimParameters
metadata: {name: late}
spec: {color: white, shareable: true}""")
    wait_for("white cat", lambda: [cat for cat in cluster.given() if " white " in cat], 60)
    assert cluster.claims()[0]["status"]["allocation"]["shareable"] is True
    for name in ("one", "two"):
        cluster.apply(pod(name, "resourceClaimName: now"))
    wait_for("two users", lambda: [cluster.phase(name) for name in ("one", "two")].count("Running") == 2, 60)
    for name in ("one", "two"):
        cluster.ask(PODS + "/" + name + "?gracePeriodSeconds=0", method="DELETE")
    wait_for("no users", lambda: not cluster.claims()[0]["status"].get("reservedFor"), 60)
    assert cluster.given(), "an immediate claim stays allocated"
    cluster.ask(CLAIMS + "/now", method="DELETE")
    wait_for("end of the claim", lambda: not cluster.claims())


def structured(cluster):
    """The scheduler gives the cats away: the driver offers them and translates what claims ask for."""
    cluster.ask(CLASSIC + "/resourceclasses/resource.example.com", '{"structuredParameters": true}', "PATCH",
                "application/merge-patch+json")
    wait_for("slices", lambda: len(cluster.ask(CLASSIC + "/resourceslices")["items"]) == 2)
    cluster.apply(open(os.path.join(HERE, "cats.yaml")).read())
    wait_for("running pod", lambda: cluster.phase("pod-with-cats") == "Running")
    assert cluster.shown() == ["CAT_0_COLOR=black", "CAT_0_SIZE=large", "CAT_1_COLOR=black", "CAT_1_SIZE=large"]
    for claim in cluster.claims():
        assert claim["metadata"]["finalizers"] == ["dra.k8s.io/delete-protection"], claim
    cluster.ask(PODS + "/pod-with-cats?gracePeriodSeconds=0", method="DELETE")
    wait_for("end of all claims", lambda: not cluster.claims(), 60)
    made = CLASSIC + "/namespaces/default/resourceclaimparameters"
    assert len(cluster.ask(made)["items"]) == 1
    cluster.ask(PATHS["ClaimParameters"] + "/large-black-cat-claim-parameters", method="DELETE")
    wait_for("end of the parameters", lambda: not cluster.ask(made)["items"])


def with_cluster(dibs, release, play):
    with tempfile.TemporaryDirectory(prefix="cats") as folder:
        cluster = Cluster(dibs, folder, release)
        try:
            cluster.apply(open(os.path.join(HERE, "install.yaml")).read())
            play(cluster)
        finally:
            cluster.process.terminate()
            cluster.process.wait()


def with_driver(cats, cluster, flags, play):
    driver = Driver(cats, cluster, *flags)
    try:
        play(driver)
    finally:
        ends = driver.stop()
    assert set(ends) == {0}, ends


def main(dibs, cats, *releases):
    for release in releases or ("1.27", "1.30", ""):
        def play(cluster):
            with_driver(cats, cluster, [], lambda driver: (story(cluster, driver), immediate(cluster)))

        with_cluster(dibs, release, play)
        if release != "1.27":
            with_cluster(dibs, release, lambda cluster: with_driver(
                cats, cluster, ["--structured"], lambda driver: structured(cluster)))
        print("cats were given and taken back as release", release or "1.37", flush=True)
    for wrong, words in ((["controller", "--cats", "black"], "--cats: not NODE=COLOR/SIZE"),
                         (["plugin"], "--node-name is required"), (["dog"], "Usage:")):
        ran = subprocess.run([cats] + wrong, capture_output=True, text=True)
        assert ran.returncode == 2 and words in ran.stderr, ran


main(*sys.argv[1:])
