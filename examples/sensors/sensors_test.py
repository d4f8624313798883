"""The sensors beside a cluster, as a user runs them: they come, fall ill, get well and go while pods use them.
sensors_test.py DIBS SENSORS"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POD = "/api/v1/namespaces/default/pods/reader"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DEADLINE = 60


class Story:
    def __init__(self, server, folder):
        self.server, self.api, self.folder = server, server.client(), folder

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as out:
            out.write(text + "\n")

    def devices(self):
        """Name and effects of its taints, of each."""
        items = self.api.expect(200, "GET", SLICES)["items"]
        return {device["name"]: [taint["effect"] for taint in device.get("taints", [])]
                for item in items for device in item["spec"].get("devices", [])}

    def wait_devices(self, want):
        cluster.wait_for(lambda: self.devices() == want, DEADLINE, "devices %s, there are %s" % (want, self.devices()))

    def health(self):
        status = self.api.expect(200, "GET", POD).get("status", {})
        return [(resource["health"], resource.get("message", ""))
                for container in status.get("containerStatuses", []) for entry in container.get("allocatedResourcesStatus", [])
                for resource in entry["resources"]]

    def run(self):
        self.wait_devices({"door": [], "roof": ["NoSchedule"]})
        self.server.kubectl("apply", "-f", os.path.join(HERE, "sensors.yaml"))
        cluster.wait_for(lambda: self.api.expect(200, "GET", POD).get("status", {}).get("phase") == "Running", DEADLINE, "a pod that runs")
        claim = self.api.expect(200, "GET", CLAIMS)["items"][0]
        results = [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]
        assert results == ["door"], results  # nobody tolerates what is wrong with the other
        cdi = os.path.join(self.server.data, "nodes", "node-0", "cdi")
        spec = "".join(open(os.path.join(cdi, name)).read() for name in os.listdir(cdi))
        assert "SENSOR=door" in spec and "SENSOR_UNIT=fahrenheit" in spec and "/sensors/door" in spec, spec
        cluster.wait_for(lambda: self.health() == [("Healthy", "")], DEADLINE, "health in the pod's status")

        self.write("gate", "")
        self.write("no_name", "healthy")
        self.wait_devices({"door": [], "gate": [], "roof": ["NoSchedule"]})
        self.write("door", "unhealthy: no answer")
        self.wait_devices({"door": ["NoSchedule"], "gate": [], "roof": ["NoSchedule"]})
        cluster.wait_for(lambda: self.health() == [("Unhealthy", "no answer")], DEADLINE, "the pod to show it")
        self.write("door", "healthy")
        cluster.wait_for(lambda: self.health() == [("Healthy", "")], DEADLINE, "the pod to show that it is well")
        for name in ("gate", "roof", "door"):
            os.remove(os.path.join(self.folder, name))
        self.wait_devices({})

        # The pod has its sensor until it ends.
        self.api.expect(200, "DELETE", POD + "?gracePeriodSeconds=0")
        cluster.wait_for(lambda: not [name for name in os.listdir(cdi) if "sensors" in name], DEADLINE, "the CDI file to go")


def main(dibs, sensors):
    os.environ["DIBS"] = dibs
    wrong = subprocess.run([sensors, "--foldr", "x"], capture_output=True, text=True)
    assert wrong.returncode == 2 and 'unknown flag "--foldr"; did you mean "--folder"?' in wrong.stderr, wrong
    shown = subprocess.run([sensors, "--help"], capture_output=True, text=True).stdout
    assert shown.index("--taint-effect") < shown.index("Flags of every driver") < shown.index("--node-name"), shown
    with tempfile.TemporaryDirectory(prefix="sensors-") as folder:
        command = "%s --folder %s --look-every 100ms" % (sensors, folder)
        for name, text in (("door", "healthy"), ("roof", "unhealthy: wet")):
            with open(os.path.join(folder, name), "w") as out:
                out.write(text + "\n")
        with cluster.Server(["--nodes", "1", "--runtime", "sim", "--driver", command], command="up") as server:
            Story(server, folder).run()
    print("sensors come, fall ill, get well and go")


main(*sys.argv[1:])
