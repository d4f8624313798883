#!/usr/bin/env python3
"""Pages of pods that are read through the API server's proxy, whose links it rewrites: one pod's page holds up nobody else's."""
import http.server
import socket
import sys
import threading
import time

from suite import Failure, cluster, run

PODS = "/api/v1/namespaces/default/pods"
SIZE = 4 << 20
SLOWEST = 5.0  # of a small answer beside a large page, also in a build with a sanitizer


def own_address():
    """One of this machine that the proxy may dial: it dials no loopback. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


class Pages(http.server.BaseHTTPRequestHandler):
    """What a pod serves: /ok, or a page of the path repeated without an end of any tag."""

    def do_GET(self):
        unit = {"/tags": b"<a", "/comments": b"<!--<a", "/quotes": b"<a b='"}.get(self.path)
        body = unit * (SIZE // len(unit)) if unit else b"ok"
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if unit else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def pages_without_an_end(suite):
    """Megabytes of tags that never end come as they are, and a small request beside them is answered at once."""
    address = own_address()
    if address is None or address.startswith("127."):
        print("  skipped: this machine has no address but the loopback")
        return
    served = http.server.ThreadingHTTPServer((address, 0), Pages)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        client = suite.client
        client.expect(201, "POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        cluster.wait_for(lambda: client.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}).status in (201, 409),
                         30, "an account")
        client.expect(201, "POST", PODS, {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "busybox"}]}})
        client.expect(200, "PATCH", PODS + "/p/status", {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}},
                      headers={"Content-Type": "application/merge-patch+json"})
        proxy = "%s/p:%d/proxy/" % (PODS, served.server_port)
        for page in ("tags", "comments", "quotes"):
            sizes = []

            def read():
                with suite.server.client(timeout=120) as other:
                    sizes.append(len(other.get(proxy + page).data))
            reader = threading.Thread(target=read)
            reader.start()
            slowest = 0.0
            while reader.is_alive():
                began = time.monotonic()
                answer = client.get(proxy + "ok")
                slowest = max(slowest, time.monotonic() - began)
                if answer.data != b"ok":
                    raise Failure("%r" % answer)
                time.sleep(0.05)
            reader.join()
            if slowest > SLOWEST:
                raise Failure("a small answer took %.1f s beside a page of %s" % (slowest, page))
            if not sizes or sizes[0] < SIZE - 8:
                raise Failure("the page of %s came with %s bytes of %d" % (page, sizes, SIZE))
    finally:
        served.shutdown()


if __name__ == "__main__":
    sys.exit(run([pages_without_an_end]))
