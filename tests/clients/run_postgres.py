#!/usr/bin/env python3
"""Runs PostgreSQL, Debian's, in a StatefulSet of `dibs up` on a claim of the default class, as somebody careful would write it (no root, a
read-only image, a Secret, a headless Service), and a client in another pod that finds it by its names. Rows must be there again after
each of: the pod deleted, scaled to none and back, `dibs up` killed (the database goes on), the database killed, the StatefulSet deleted
and made again. At last the claim is deleted, and the volume's folder with it.

    run_postgres.py

The image is made of the files of the package postgresql-15: those installed here, or what apt-get downloads and nobody installs. Runs on
a machine of its own (support/underlay.sh), from which nothing leaves. Where root, containers, kubectl or the package cannot be had, the
test is skipped (exit status 77).
"""
import base64
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import images  # noqa: E402
import run  # noqa: E402
from cluster import Failure, wait_for  # noqa: E402

DEADLINE = 120  # seconds; the processors may be shared with other tests
PACKAGE = "postgresql-15"
PROGRAMS = "/usr/lib/postgresql/15/bin"
NAMESPACE = "shop"
IMAGE = "example.com/postgres:15"
USER = 999
PASSWORD = "not-the-one-of-others"
TOOLS = ("sh", "cat", "chmod", "ls", "mkdir", "mv", "rm", "sleep", "id", "touch")

# What a postgres image does: makes the database where there is none, and becomes the server.
SERVE = r"""#!/bin/sh
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  rm -rf "$PGDATA.new"
  initdb -D "$PGDATA.new" -U app --pwfile=/secret/password --auth=scram-sha-256 --encoding=UTF8 --locale=C
  echo "host all all all scram-sha-256" >> "$PGDATA.new/pg_hba.conf"
  echo "create database app" | postgres --single -D "$PGDATA.new" postgres
  mv "$PGDATA.new" "$PGDATA"
fi
chmod 700 "$PGDATA"  # what a fsGroup gave away
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/run/postgresql
"""

MANIFEST = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: postgres, port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      os: {name: linux}
      automountServiceAccountToken: false
      securityContext:
        {runAsNonRoot: true, runAsUser: 999, runAsGroup: 999, fsGroup: 999, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: postgres
        image: example.com/postgres:15
        env: [{name: PGDATA, value: /var/lib/postgresql/data/pgdata}]
        ports: [{name: postgres, containerPort: 5432}]
        securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        lifecycle: {stopSignal: SIGINT}  # does not wait for clients to go
        readinessProbe: {exec: {command: [pg_isready, -q, -h, 127.0.0.1, -U, app]}, periodSeconds: 1}
        volumeMounts:
        - {name: data, mountPath: /var/lib/postgresql/data}
        - {name: run, mountPath: /run/postgresql}
        - {name: tmp, mountPath: /tmp}
        - {name: secret, mountPath: /secret, readOnly: true}
      volumes:
      - {name: run, emptyDir: {medium: Memory}}
      - {name: tmp, emptyDir: {}}
      - {name: secret, secret: {secretName: db, defaultMode: 0440}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""

OTHERS = """
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: %s}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: client
    image: example.com/postgres:15
    # One connection for many rows, as an application has it: it outlives a server of names that is away.
    command: [sh, -c, "while :; do echo 'insert into ticks default values \\\\watch 0.2' | psql -q -h db -U app -d app 2>&1; sleep 0.3; done"]
    env:
    - {name: PGPASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
    - {name: PGCONNECT_TIMEOUT, value: "3"}
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
""" % base64.b64encode(PASSWORD.encode()).decode()


def installed():
    """The folder below which the package's files are: that of this machine, or one with what apt-get had to download."""
    if os.access(PROGRAMS + "/postgres", os.X_OK):
        return "/"
    root = os.path.join(run.build_folder("postgres"), "root")
    if os.access(root + PROGRAMS + "/postgres", os.X_OK):
        return root
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise run.Missing("%s is not installed, and there is no apt-get" % PACKAGE)
    archives = os.path.join(run.build_folder("postgres"), "archives")
    os.makedirs(os.path.join(archives, "partial"), exist_ok=True)
    # Installing it would start a server.
    run.shell(["apt-get", "-o", "Dir::Cache::archives=" + archives, "-o", "APT::Sandbox::User=root", "install", "--download-only", "-y",
               "--no-install-recommends", PACKAGE], archives, missing=True, environment={"LC_ALL": "C"})
    half = root + ".new"
    shutil.rmtree(half, ignore_errors=True)
    for package in sorted(glob.glob(archives + "/*.deb")):
        run.shell(["dpkg-deb", "-x", package, half], archives, missing=False)
    os.rename(half, root)
    return root


def libraries(root, program):
    """Libraries of a program of the packages, by their places in the image; from this machine where the packages have none."""
    beside = glob.glob(os.path.join(root, "usr/lib/*-linux-gnu")) if root != "/" else []
    said = subprocess.run(["ldd", program], capture_output=True, text=True, env=dict(os.environ, LD_LIBRARY_PATH=":".join(beside))).stdout
    if "not found" in said:
        raise run.Missing("%s: %s" % (program, re.search(r"\S+ => not found", said).group(0)))
    return {path[len(root.rstrip("/")):] if path.startswith(root) else path: os.path.realpath(path)
            for path in re.findall(r"(/\S+) \(0x", said)}


def image(root):
    """A docker archive of the server, its client and a shell."""
    files = {"/bin/busybox": shutil.which("busybox"), "/bin/serve": SERVE.encode(),
             "/etc/passwd": b"root:x:0:0::/:/bin/sh\npostgres:x:%d:%d::/:/bin/sh\n" % (USER, USER),
             "/etc/group": b"root:x:0:\npostgres:x:%d:\n" % USER}
    links = [("/bin/" + tool, "busybox") for tool in TOOLS]
    base = root.rstrip("/")
    for program in ("postgres", "initdb", "psql", "pg_isready"):
        files[PROGRAMS + "/" + program] = base + PROGRAMS + "/" + program
        links.append(("/bin/" + program, PROGRAMS + "/" + program))
    for name in ("plpgsql", "dict_snowball", "libpqwalreceiver"):
        path = "/usr/lib/postgresql/15/lib/%s.so" % name
        files[path] = base + path
    for path in list(files):
        if path.startswith("/usr/lib/postgresql"):
            files.update(libraries(root, files[path]))
    for folder, _, names in os.walk(base + "/usr/share/postgresql/15"):
        if "/man" in folder or "/locale" in folder:
            continue
        for name in names:
            path = os.path.join(folder, name)
            files[path[len(base):]] = os.path.realpath(path)
    return images.archive(files, links, entrypoint=["/bin/serve"], user="%d:%d" % (USER, USER))


class Story:
    def __init__(self, server):
        self.server, self.api, self.began = server, server.client(), time.monotonic()

    def kubectl(self, *arguments, **more):
        return self.server.kubectl("-n", NAMESPACE, *arguments, timeout=DEADLINE, **more)

    def done(self, what):
        now = time.monotonic()
        print("ok %s (%.1f s)" % (what, now - self.began), flush=True)
        self.began = now

    def sql(self, text, host="db", check=True):
        return self.kubectl("exec", "client", "--", "psql", "-h", host, "-U", "app", "-d", "app", "-v", "ON_ERROR_STOP=1", "-qtAc", text,
                            check=check).strip()

    def pod(self):
        answer = self.api.get("/api/v1/namespaces/%s/pods/db-0" % NAMESPACE)
        return answer.json if answer.status == 200 else None

    def is_ready(self, but=None):
        """The uid of a pod that is ready, unless it is that one."""
        pod = self.pod()
        conditions = pod["status"].get("conditions", []) if pod else []
        if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and "deletionTimestamp" not in pod["metadata"]:
            return pod["metadata"]["uid"] if pod["metadata"]["uid"] != but else None
        return None

    def comes(self, but=None):
        return wait_for(lambda: self.is_ready(but), DEADLINE, "the database to be ready", 0.05)

    def goes(self):
        wait_for(lambda: self.pod() is None, DEADLINE, "the database's pod to go", 0.05)

    def has_rows(self, host="db"):
        found = wait_for(lambda: self.sql("select count(*), sum(n) from numbers", host, check=False), DEADLINE, "an answer to the client", 0.2)
        if found != "1000|500500":
            raise Failure("the rows are %r" % found)

    def server_process(self):
        """Pid and start time of the database's first process."""
        for holder in cluster.containers_of(self.server.folder):
            for path in glob.glob("/proc/[0-9]*/stat"):
                try:
                    with open(path) as f:
                        text = f.read()
                except OSError:
                    continue
                rest = text[text.rindex(")") + 2:].split()
                if "(postgres)" in text and int(rest[1]) == holder:
                    return int(text.split()[0]), int(rest[19])
        return None

    def folders(self):
        return glob.glob(os.path.join(self.server.data, "nodes", "*", "local-path", "*"))

    def deploy(self):
        self.server.kubectl("create", "namespace", NAMESPACE)
        self.kubectl("apply", "-f", "-", source=OTHERS)
        self.kubectl("apply", "-f", "-", source=MANIFEST)
        self.comes()
        self.done("the database is ready")
        own = "db-0.db.%s.svc.cluster.local" % NAMESPACE
        wait_for(lambda: "1" == self.sql("select 1", own, check=False), DEADLINE, "the client to reach %s" % own, 0.2)
        self.sql("create table ticks (at timestamptz default clock_timestamp()); create table numbers as select generate_series(1, 1000) n", own)
        self.has_rows("db")
        if self.kubectl("exec", "db-0", "--", "id", "-u").strip() != str(USER):
            raise Failure("the database runs as " + self.kubectl("exec", "db-0", "--", "id"))
        if "Read-only file system" not in self.kubectl("exec", "db-0", "--", "sh", "-c", "touch /bin/x 2>&1", check=False):
            raise Failure("the image can be written to")
        if len(self.folders()) != 1:
            raise Failure("folders of volumes: %s" % self.folders())
        told = self.kubectl("get", "events", "--field-selector=reason=FailedMount")
        if told:
            raise Failure("the pod came before its volume: %s" % told)
        self.done("a client reaches it by its names and writes")

    def restarts(self):
        before = self.is_ready()
        self.kubectl("delete", "pod", "db-0", "--wait=false")
        self.comes(but=before)
        self.has_rows()
        self.done("its pod was deleted, and the rows are there")
        self.kubectl("scale", "statefulset", "db", "--replicas=0")
        self.goes()
        self.done("it is scaled to none")
        self.kubectl("scale", "statefulset", "db", "--replicas=1")
        self.comes()
        self.has_rows()
        self.done("and to one again")

    def agent_killed(self):
        wait_for(lambda: int(self.sql("select count(*) from ticks where at > now() - interval '1 second'") or 0), DEADLINE, "rows to come", 0.2)
        process, uid = self.server_process(), self.is_ready()
        since = self.sql("select now()")
        self.began = time.monotonic()
        self.server.kill()
        time.sleep(3)  # how long nobody looks after the database: rows must come all the same
        self.server.start()
        self.api = self.server.client()
        ready = wait_for(self.is_ready, DEADLINE, "the database to be ready", 0.05)
        self.has_rows()
        if ready != uid or not process or self.server_process() != process:
            raise Failure("pod %s with process %s is %s with %s now" % (uid, process, ready, self.server_process()))
        pause = self.sql("select max(next - at) from (select at, lead(at) over (order by at) next from ticks where at > '%s') both_of" % since)
        if self.sql("select interval '%s' < '1.5 seconds'" % pause) != "t":
            raise Failure("rows came with a pause of %s" % pause)
        self.done("dibs was killed and started after 3 s, the database went on; the longest pause between rows is %s" % pause)

    def database_killed(self):
        process = self.server_process()
        restarts = self.pod()["status"]["containerStatuses"][0]["restartCount"]
        os.kill(process[0], signal.SIGKILL)
        wait_for(lambda: self.pod()["status"]["containerStatuses"][0]["restartCount"] == restarts + 1, DEADLINE, "a restart", 0.05)
        self.comes()
        self.has_rows()
        if self.server_process() == process:
            raise Failure("it is the same process")
        self.done("the database was killed and restarted, and the rows are there")

    def ends(self):
        self.kubectl("delete", "statefulset", "db")
        self.goes()
        self.done("the StatefulSet is deleted")
        self.kubectl("apply", "-f", "-", source=MANIFEST)
        self.comes()
        self.has_rows()
        self.done("and made again, the rows are there")
        if len(self.folders()) != 1:
            raise Failure("folders of volumes: %s" % self.folders())
        self.kubectl("delete", "statefulset,pvc", "--all", "--wait=false")
        volumes = "/api/v1/persistentvolumes"
        wait_for(lambda: not self.api.expect(200, "GET", volumes)["items"], DEADLINE, "the volume to go", 0.05)
        if self.folders():
            raise Failure("still there: %s" % self.folders())
        self.done("StatefulSet and claim are deleted, and the folder is gone")

    def run(self):
        self.deploy()
        self.restarts()
        self.agent_killed()
        self.database_killed()
        self.ends()

    def end(self):
        """Containers outlive their agent."""
        if not self.server.alive():
            self.server.start()
            self.api = self.server.client()
        self.api.request("DELETE", "/api/v1/namespaces/" + NAMESPACE)
        wait_for(lambda: self.api.get("/api/v1/namespaces/" + NAMESPACE).status == 404, DEADLINE, "the namespace to go")
        # That which removes a folder is elsewhere.
        wait_for(lambda: not self.api.expect(200, "GET", "/api/v1/pods")["items"], DEADLINE, "all pods to go")
        wait_for(lambda: not cluster.containers_of(self.server.folder), DEADLINE, "all containers to end")

    def report(self):
        return "\n".join(self.server.kubectl(*words, check=False) for words in (
            ("get", "pods,pvc,pv", "-A", "-o", "wide"), ("get", "events", "-n", NAMESPACE), ("-n", NAMESPACE, "logs", "db-0", "--tail=30"),
            ("-n", NAMESPACE, "logs", "client", "--tail=10")))


def inside(archive):
    if not cluster.has_containers():
        print("SKIPPED: no real containers here")
        return run.SKIPPED
    server = cluster.Server(["--nodes", "2"], command="up")
    folder = os.path.join(server.folder, "images")
    with open(archive, "rb") as f:
        images.add(folder, IMAGE, f.read())
    server.flags += ["--images", folder]
    with server:
        story = Story(server)
        try:
            story.run()
        except Failure as failure:
            raise Failure("%s\n%s\n%s" % (failure, story.report(), server.log_tail()))
        finally:
            story.end()
    return 0


def main():
    if len(sys.argv) > 1:
        return inside(sys.argv[1])
    try:
        if os.geteuid() != 0:
            raise run.Missing("wants root")
        if not cluster.kubectl() or not shutil.which("busybox"):
            raise run.Missing("kubectl and busybox are needed")
        content = image(installed())
    except run.Missing as missing:
        print("SKIPPED: %s" % missing)
        return run.SKIPPED
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        archive.write(content)
        archive.flush()
        return run.on_own_machine(__file__, archive.name)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
