"""Runs the example as a user would: against an API server, until a signal. lamps_test.py DIBS LAMPS"""
import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request


class Server:
    """The API server, asked over HTTPS with the certificate of its kubeconfig."""

    def __init__(self, binary, folder):
        self.process = subprocess.Popen(
            [binary, "apiserver", "--data-dir", folder, "--bind", "127.0.0.1:0", "--store", "memory", "--log-level", "off"],
            stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"https://\S+?(?= )", self.process.stdout.readline()).group()
        self.kubeconfig = os.path.join(folder, "kubeconfig")
        text = open(self.kubeconfig).read()
        files = {}
        for field in ("certificate-authority-data", "client-certificate-data", "client-key-data"):
            files[field] = os.path.join(folder, field)
            data = re.search(field + r":\s*\"?([A-Za-z0-9+/=]+)", text).group(1)
            open(files[field], "wb").write(base64.b64decode(data))
        self.tls = ssl.create_default_context(cafile=files["certificate-authority-data"])
        self.tls.load_cert_chain(files["client-certificate-data"], files["client-key-data"])

    def ask(self, path, body=None):
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, context=self.tls, timeout=10))

    def slices(self):
        return self.ask("/apis/resource.k8s.io/v1/resourceslices")["items"]


def wait_for(what, test, seconds=20):
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "no " + what
        time.sleep(0.05)


def main(dibs, lamps):
    with tempfile.TemporaryDirectory(prefix="lamps") as folder:
        server = Server(dibs, folder)
        try:
            server.ask("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}})
            registry = os.path.join(folder, "plugins_registry")
            os.mkdir(registry)
            command = [lamps, "--kubeconfig", server.kubeconfig, "--node-name", "node-0", "--cdi-root", folder + "/cdi",
                       "--kubelet-registrar-directory-path", registry,
                       "--kubelet-plugins-directory-path", folder + "/plugins"]
            for turn in range(2):
                driver = subprocess.Popen(command)
                try:
                    wait_for("slice", server.slices)
                    wait_for("socket", lambda: os.listdir(registry))
                finally:
                    driver.send_signal(signal.SIGTERM)
                    assert driver.wait(20) == 0
                assert not os.listdir(registry), os.listdir(registry)
                slices = server.slices()
                assert len(slices) == 1 and slices[0]["spec"]["pool"]["generation"] == 1, slices
                names = [device["name"] for device in slices[0]["spec"]["devices"]]
                assert names == ["lamp-0", "lamp-1", "lamp-2", "lamp-3"], names
        finally:
            server.process.terminate()
            server.process.wait()
    wrong = subprocess.run([lamps, "--colour", "red"], capture_output=True, text=True)
    assert wrong.returncode == 2 and 'unknown flag "--colour"' in wrong.stderr, wrong
    print("the example driver publishes, ends and starts again")


main(*sys.argv[1:])
