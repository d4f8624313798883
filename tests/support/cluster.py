"""Starts, stops, kills and restarts the dibs binary for tests, and talks to it. Python 3 standard library only.

A Server owns one temporary folder (data, kubeconfig, log) and at most one process. It listens on a port the system picks; a restart takes
the same port and the same data again, so that clients can come back to it. The administrator has a token (of group system:masters) and the
client certificate of the kubeconfig.

Environment: DIBS is the binary (default: dibs on PATH), KUBECTL the kubectl program (default: kubectl on PATH).
"""
import base64
import ctypes
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

ADMIN_TOKEN = "administrator-of-the-test"
ALIASES = "busybox,ubuntu"  # images that are there, because tests ask no registry
# What agents of tests are started with: how full the disk of this machine is, is not what is tested.
AGENT_FLAGS = ("--image-alias", ALIASES, "--eviction-hard", "")
START_DEADLINE = 60.0
STOP_DEADLINE = 60.0
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
READY = re.compile(r"ready at (https://(\S+):(\d+)) .*export KUBECONFIG=(\S+)")
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:")

# No part of a cluster asks for what its role does not allow.
OWN_REFUSAL = "a part of this process was refused"

LIBC = ctypes.CDLL(None)


def die_with_parent():
    """In a child process: it is killed when the test is, so that a test that ran out of time leaves no server behind."""
    LIBC.prctl(1, signal.SIGKILL)


class Failure(Exception):
    """What a test found wrong; its text is the report."""


def binary():
    path = os.environ.get("DIBS") or shutil.which("dibs")
    if not path or not os.access(path, os.X_OK):
        raise Failure("no dibs binary: set DIBS to its path")
    return os.path.abspath(path)


def example(name):
    """Path of a program of examples/, built beside the binary."""
    return os.path.abspath(os.path.join(os.environ.get("DIBS_BUILD") or os.path.dirname(binary()), "examples", name, name))


def kubectl():
    """Path of kubectl, or None where there is none."""
    path = os.environ.get("KUBECTL")
    if path and os.access(path, os.X_OK):
        return os.path.abspath(path)
    return shutil.which("kubectl")


def go():
    """Path of Go, or None where there is none: tools/get-go, which `make test` calls, leaves one behind."""
    return shutil.which("go") or shutil.which(os.path.join(ROOT, "build", "tools", "venv", "bin", "go"))


def one_kubectl():
    """The same, but one version whatever the server says it is: some programs of that name only pick one of those beside them, "kubectl.1.32"."""
    path = kubectl()
    beside = glob.glob(os.path.realpath(path) + ".1.[0-9]*") if path else []
    if not beside:
        return path
    said = subprocess.run([path, "version", "--client"], capture_output=True, text=True).stdout
    own = re.search(r"v(1\.\d+)", said)
    return next((p for p in beside if own and p.endswith("." + own.group(1))), path)


def has_sanitizer():
    """Whether the binary was built with a sanitizer: memory bounds mean nothing then."""
    with open(binary(), "rb") as f:
        content = f.read()
    return b"__asan_init" in content or b"__tsan_init" in content


def has_containers():
    """Whether `dibs up` runs real containers here: it says what it picked."""
    with Server(["--nodes", "1"], command="up") as server:
        return wait_for(lambda: "containers:" in server.said(), 20, "what runs containers") and "real containers" in server.said()


def containers_of(folder):
    """Processes that hold containers of a server with this folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if os.path.basename(words[0]) == b"conmon" and any(folder.encode() in word for word in words):
            found.append(int(pid))
    return found


def wait_for(condition, seconds, what, interval=0.02):
    """The first true value of condition(), or a Failure after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure("not within %g s: %s" % (seconds, what))
        time.sleep(interval)


class Response:
    def __init__(self, status, headers, data):
        self.status, self.headers, self.data = status, headers, data

    @property
    def json(self):
        return json.loads(self.data)

    def __repr__(self):
        return "%d %s" % (self.status, self.data[:300].decode("utf-8", "replace"))


class Client:
    """One kept-alive connection with one identity. Not for two threads at a time."""

    def __init__(self, server, token=ADMIN_TOKEN, context=None, timeout=60):
        self.server, self.token, self.timeout = server, token, timeout
        self.context = context or server.context()
        self.connection = None

    def open(self):
        self.close()
        self.connection = http.client.HTTPSConnection(self.server.host, self.server.port, timeout=self.timeout,
                                                      context=self.context)
        return self.connection

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def headers(self, headers):
        merged = {"Accept": "application/json", "User-Agent": "dibs-test"}
        if self.token:
            merged["Authorization"] = "Bearer " + self.token
        merged.update(headers or {})
        return merged

    def request(self, method, path, body=None, raw=None, headers=None):
        """Sends once and reads the whole answer; raises OSError or HTTPException when the connection breaks."""
        headers = self.headers(headers)
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None:
            headers.setdefault("Content-Type", "application/json")
        if self.connection is None:
            self.open()
        try:
            self.connection.request(method, path, raw, headers)
            answer = self.connection.getresponse()
            data = answer.read()
        except BaseException:
            self.close()
            raise
        if answer.will_close:
            self.close()
        return Response(answer.status, answer.headers, data)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def expect(self, status, method, path, body=None, **more):
        """The decoded answer; a Failure when the status is another."""
        answer = self.request(method, path, body, **more)
        if answer.status != status:
            raise Failure("%s %s: %r, expected %d" % (method, path, answer, status))
        return answer.json

    def stream(self, path, headers=None):
        """Opens a connection of its own and returns the open answer, a file of lines (a watch). Its hang_up() ends it, from any thread."""
        connection = http.client.HTTPSConnection(self.server.host, self.server.port, timeout=self.timeout,
                                                 context=self.context)
        connection.request("GET", path, headers=self.headers(headers))
        sock = connection.sock
        answer = connection.getresponse()

        def hang_up():
            try:
                sock.shutdown(socket.SHUT_RDWR)  # wakes up whoever reads; a close alone would wait for them
            except OSError:
                pass
            connection.close()
            sock.close()
        answer.hang_up = hang_up
        return answer


def clear_machine(folder):
    """Takes away what nodes below the folder have on the machine: containers, mounts, networks."""
    for owner in glob.glob("/run/dibs/*/owner"):
        try:
            with open(owner) as f:
                mine = f.read().startswith(folder)
        except OSError:
            continue  # another test has just ended
        if mine:
            subprocess.run([binary(), "down", "--data-dir", folder], capture_output=True, timeout=60)
            return


class Server:
    """One dibs apiserver. Use as a context manager: it starts on entry; on exit it must end cleanly."""

    def __init__(self, flags=(), folder=None, data=None, command="apiserver", log_level="warn", environment=None):
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="dibs-test-")
        self.data = data or os.path.join(self.folder, "data")
        self.flags, self.command, self.log_level = list(flags), command, log_level
        self.environment = environment or {}
        self.log = os.path.join(self.folder, "server.log")
        self.tokens = os.path.join(self.folder, "tokens.csv")
        self.process = None
        self.host, self.port, self.url, self.kubeconfig = "127.0.0.1", 0, None, None
        self.contexts = {}
        self.write_tokens([])

    def write_tokens(self, more):
        """More static tokens, as (token, user, [groups]); read when the server starts."""
        with open(self.tokens, "w") as f:
            for token, user, groups in [(ADMIN_TOKEN, "admin", ["system:masters"])] + list(more):
                f.write('%s,%s,%s,"%s"\n' % (token, user, user, ",".join(groups)))

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, kind, *_):
        try:
            if self.process:
                self.stop(check=kind is None)
        finally:
            self.remove()

    def remove(self):
        if self.process:
            self.kill()
        if self.own_folder and not os.environ.get("DIBS_TEST_KEEP"):
            clear_machine(self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Starts the process and waits for its ready line."""
        assert self.process is None
        arguments = [binary(), self.command, "--data-dir", self.data, "--bind", "%s:%d" % (self.host, self.port),
                     "--token-auth-file", self.tokens, "--log-level", self.log_level] + self.flags
        for flag, value in zip(AGENT_FLAGS[::2], AGENT_FLAGS[1::2]):
            if self.command == "up" and flag not in self.flags:
                arguments += [flag, value]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL,
                                            env=dict(os.environ, **self.environment), preexec_fn=die_with_parent)
        os.set_blocking(self.process.stdout.fileno(), False)
        text = b""
        end = time.monotonic() + START_DEADLINE
        while True:
            text += self.process.stdout.read() or b""
            found = READY.search(text.decode("utf-8", "replace"))
            if found:
                break
            if self.process.poll() is not None or time.monotonic() > end:
                code = self.process.poll()
                self.kill()
                raise Failure("the server did not become ready (exit status %s): %s\n%s" %
                              (code, text.decode("utf-8", "replace"), self.log_tail()))
            time.sleep(0.01)
        self.output = text
        self.url, self.host, self.port = found.group(1), found.group(2), int(found.group(3))
        self.kubeconfig = found.group(4)
        return self

    def said(self):
        """What the process printed so far."""
        self.output += self.process.stdout.read() or b""
        return self.output.decode("utf-8", "replace")

    def log_tail(self, size=4000):
        try:
            with open(self.log, "rb") as f:
                text = f.read()
        except OSError:
            return ""
        # What a sanitizer says begins with what matters.
        report = SANITIZER.search(text.decode("utf-8", "replace"))
        return report.string[report.start():][:4 * size] if report else text[-size:].decode("utf-8", "replace")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, check=True):
        """Ends the process by SIGTERM; with check, it must exit with status 0 and no sanitizer may have spoken."""
        process, self.process = self.process, None
        ended = process.poll()
        if ended is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                process.stdout.close()
                if check:
                    raise Failure("the server did not end within %g s of SIGTERM\n%s" % (STOP_DEADLINE, self.log_tail()))
        process.stdout.close()
        if check:
            if ended is not None:
                raise Failure("the server had ended by itself, exit status %d\n%s" % (ended, self.log_tail()))
            if process.returncode != 0:
                raise Failure("the server ended with status %d\n%s" % (process.returncode, self.log_tail()))
            self.check_log()

    def check_log(self):
        with open(self.log, "rb") as f:
            text = f.read().decode("utf-8", "replace")
        found = SANITIZER.search(text)
        if found:
            raise Failure("a sanitizer reports:\n" + text[max(0, found.start() - 200):found.start() + 6000])
        refused = [line for line in text.splitlines() if OWN_REFUSAL in line]
        if refused:
            raise Failure("parts of the cluster were refused what they asked for:\n" + "\n".join(refused[:10]))

    def kill(self):
        """Ends the process as a power cut would, SIGKILL."""
        process, self.process = self.process, None
        if process:
            process.kill()
            process.wait()
            process.stdout.close()

    def restart(self, kill=False):
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def ca_file(self):
        """The certificate authority out of the kubeconfig, as a file."""
        path = os.path.join(self.folder, "ca.crt")
        written = path + ".new"
        with open(written, "wb") as f:
            f.write(self.from_kubeconfig("certificate-authority-data"))
        os.replace(written, path)  # parts of the cluster may be reading it
        return path

    def certificate_files(self):
        """The administrator's certificate and key out of the kubeconfig, as files."""
        paths = []
        for field, name in (("client-certificate-data", "admin.crt"), ("client-key-data", "admin.key")):
            paths.append(os.path.join(self.folder, name))
            with open(paths[-1], "wb") as f:
                f.write(self.from_kubeconfig(field))
        return paths

    def from_kubeconfig(self, field):
        with open(self.kubeconfig) as f:
            found = re.search(r"\b%s: *\"?([A-Za-z0-9+/=]+)" % field, f.read())
        if not found:
            raise Failure("%s has no %s" % (self.kubeconfig, field))
        return base64.b64decode(found.group(1))

    def token_kubeconfig(self, token=ADMIN_TOKEN):
        """A kubeconfig that shows a token instead of a certificate."""
        path = os.path.join(self.folder, "kubeconfig-token")
        with open(path + ".new", "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "dibs",
                       "clusters": [{"name": "dibs", "cluster": {"server": self.url, "certificate-authority": self.ca_file()}}],
                       "users": [{"name": "admin", "user": {"token": token}}],
                       "contexts": [{"name": "dibs", "context": {"cluster": "dibs", "user": "admin"}}]}, f)
        os.replace(path + ".new", path)
        return path

    def context(self, certificate=False):
        """A TLS context that trusts the server, with the administrator's certificate when asked; one for all threads."""
        if certificate not in self.contexts:
            context = ssl.create_default_context(cadata=self.from_kubeconfig("certificate-authority-data").decode())
            if certificate:
                context.load_cert_chain(*self.certificate_files())
            self.contexts[certificate] = context
        return self.contexts[certificate]

    def context_of(self, pair):
        """A TLS context with another certificate and key (paths)."""
        context = ssl.create_default_context(cadata=self.from_kubeconfig("certificate-authority-data").decode())
        context.load_cert_chain(*pair)
        return context

    def client(self, **more):
        return Client(self, **more)

    def raw_socket(self, tls=True, timeout=30):
        """A bare connection, for what no HTTP library would send."""
        plain = socket.create_connection((self.host, self.port), timeout=timeout)
        return self.context().wrap_socket(plain, server_hostname=self.host) if tls else plain

    def resident_bytes(self):
        with open("/proc/%d/statm" % self.process.pid) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def kubectl(self, *arguments, check=True, source=None, timeout=60):
        """Runs kubectl as the administrator and returns what it printed."""
        done = subprocess.run([kubectl(), *arguments], input=source, capture_output=True, text=True, timeout=timeout,
                              env=self.kubectl_environment())
        if check and done.returncode != 0:
            raise Failure("kubectl %s: exit status %d\n%s%s" %
                          (" ".join(arguments), done.returncode, done.stdout, done.stderr))
        return done.stdout

    def kubectl_environment(self):
        return dict(os.environ, KUBECONFIG=os.path.abspath(self.kubeconfig), KUBECTL_PAGER="", TZ="UTC",
                    LC_ALL="C.UTF-8", NO_COLOR="1", HOME=self.folder)
