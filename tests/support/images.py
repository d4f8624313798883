"""Images made of programs of this machine, and handed to dibs: no registry is asked."""
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import tempfile

import cluster


def libraries_of(program):
    """Files that the program is loaded with, by their paths here; none of a static one."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", said)))


def archive(files, links=(), entrypoint=(), user="", command=(), folders=(), modes=None):
    """A docker archive of one layer: files by path in the image, each a path here or bytes; links by path; folders with their modes; root's programs,
    with the mode 0755 unless `modes` has another."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path, mode in folders:
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        for path, source in sorted(files.items()):
            data = source
            if isinstance(source, str):
                with open(source, "rb") as f:
                    data = f.read()
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(data), (modes or {}).get(path, 0o755)
            tar.addfile(entry, io.BytesIO(data))
        for path, target in links:
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    content = layer.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
                         "config": {"Entrypoint": list(entrypoint), "Cmd": list(command), "User": user, "Env": ["PATH=/bin:/usr/bin"]}}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [], "Layers": [digest + ".tar"]}]).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in ((digest + ".tar", content), (name, config), ("manifest.json", manifest)):
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def add(folder, name, content):
    """Puts an archive into the folder of images (--images) under the name."""
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        file.write(content)
        file.flush()
        done = subprocess.run([cluster.binary(), "image", "import", "--images", folder, file.name, name], capture_output=True, text=True)
    if done.returncode != 0:
        raise cluster.Failure("dibs image import: " + done.stderr)


def of_program(program, name, busybox=None):
    """An archive of a program, as /bin/NAME, with its libraries, and with the machine's busybox as the shell."""
    files = {"/bin/" + name: program}
    for path in libraries_of(program):
        files[path] = os.path.realpath(path)
    links = []
    if busybox:
        files["/bin/busybox"] = busybox
        links = [("/bin/" + tool, "busybox") for tool in ("sh", "cat", "ls", "mkdir", "mount", "umount", "sleep", "echo", "ln", "rm", "touch")]
    return archive(files, links)
