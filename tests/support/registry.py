"""A registry of images for tests: plain HTTP on the loopback address, read only, with what the test puts into it.

    with Registry() as registry:
        registry.put("team/app:1", [layer({"version": b"one"})])
        registry.address  # 127.0.0.1:PORT
"""
import base64
import collections
import gzip
import hashlib
import http.server
import io
import json
import platform
import tarfile
import threading

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files):
    """A tar archive: paths with their bytes, or with (bytes, mode)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, content in files.items():
            data, mode = content if isinstance(content, tuple) else (content, 0o644)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


class Registry:
    def __init__(self, login=None):
        """`login`: user:password that it wants to see."""
        self.blobs, self.tags = {}, {}
        self.asked = collections.Counter()  # by path
        self.open = threading.Event()  # answers wait for it
        self.open.set()
        registry = self
        wanted = "Basic " + base64.b64encode(login.encode()).decode() if login else None

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.open.wait(60)
                if wanted and self.headers.get("Authorization") != wanted:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="registry"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if self.command == "GET":
                    registry.asked[self.path] += 1
                kind, data = registry.answer(self.path)
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "application/json")
                self.send_header("Content-Length", str(len(data)))
                if kind == MANIFEST:
                    self.send_header("Docker-Content-Digest", digest(data))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_port

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path):
        if path in ("/v2", "/v2/"):
            return "application/json", b"{}"
        name, _, reference = path[len("/v2/"):].rpartition("/")
        repository, _, kind = name.rpartition("/")
        if kind == "manifests":
            found = self.tags.get(repository + ":" + reference, reference)
            if found in self.blobs:
                return MANIFEST, self.blobs[found]
        elif kind == "blobs" and reference in self.blobs:
            return "application/octet-stream", self.blobs[reference]
        return None, json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}).encode()

    def blob(self, data):
        self.blobs[digest(data)] = data
        return {"digest": digest(data), "size": len(data)}

    def put(self, name, layers, command=(), diff_ids=None):
        """Puts an image there, under REPOSITORY:TAG; returns the digests of its layers' blobs. `diff_ids` in place of the true ones."""
        packed = [self.blob(gzip.compress(data, mtime=0)) for data in layers]
        config = self.blob(json.dumps({
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux", "config": {"Cmd": list(command)},
            "rootfs": {"type": "layers", "diff_ids": diff_ids or [digest(data) for data in layers]}}).encode())
        manifest = self.blob(json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": dict(config, mediaType=CONFIG),
            "layers": [dict(blob, mediaType=LAYER) for blob in packed]}).encode())
        self.tags[name] = manifest["digest"]
        return [blob["digest"] for blob in packed]
