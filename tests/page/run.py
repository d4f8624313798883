#!/usr/bin/env python3
"""The page.

    run.py browser|model

browser: that of a running cluster in a real browser (browser.mjs): every view, live changes, refusals, a thousand nodes, accessibility.
Needs node, npm, Chromium (CHROMIUM names another than the one on PATH) and the packages of package-lock.json; where one of these cannot
be had, or the binary was built without its page, the test is skipped (exit status 77). Screenshots are left in $DIBS_BUILD/page/shots.

model: the types of its sources, and the tests of web/tests, where the build has left the packages in build/web.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
sys.dont_write_bytecode = True
import cluster  # noqa: E402

SKIPPED = 77
# Milliseconds that 19 frames of 20 may take with a thousand nodes; the server of a sanitizer build takes much of the machine.
FRAME, FRAME_OF_SLOW = 100, 300
NAMES = ("package.json", "package-lock.json", "browser.mjs", "large.mjs", "many.mjs")


class Missing(Exception):
    """A tool or a package that is not to be had here."""


def chromium():
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        found = name and shutil.which(name)
        if found:
            return found
    raise Missing("Chromium is not installed")


def prepare():
    """The folder with the test's program and its packages."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("node or npm is not installed")
    root = os.environ.get("DIBS_BUILD") or os.path.join(HERE, "..", "..", "build")
    folder = os.path.abspath(os.path.join(root, "page"))
    os.makedirs(folder, exist_ok=True)
    for name in NAMES:
        shutil.copy(os.path.join(HERE, name), folder)
    with open(os.path.join(HERE, "package-lock.json")) as f:
        lock = f.read()
    stamp = os.path.join(folder, "node_modules", ".stamp")
    if not os.path.exists(stamp) or open(stamp).read() != lock:
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"],
                              cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Missing("npm ci: %s" % done.stderr[-1000:])
        with open(stamp, "w") as f:
            f.write(lock)
    return folder


def link(server):
    done = subprocess.run([cluster.binary(), "open", "--kubeconfig", server.kubeconfig], capture_output=True, text=True, timeout=60)
    if done.returncode or not done.stdout.startswith(server.url + "/dibs/#code="):
        raise cluster.Failure("dibs open: status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return done.stdout.strip()


def run(browser, folder):
    with cluster.Server(["--nodes", "3", "--drivers", "gpu", "--runtime", "sim"], command="up") as server:
        with server.client() as client:
            answer = client.get("/dibs/")
            if answer.status == 404 and b"built without the page" in answer.data:
                raise Missing("the binary was built without its page")
            if answer.status != 200:
                raise cluster.Failure("GET /dibs/: %r" % answer)
        shots = os.path.join(folder, "shots")
        shutil.rmtree(shots, ignore_errors=True)
        os.makedirs(shots)
        environment = dict(os.environ, URL=server.url, TOKEN=cluster.ADMIN_TOKEN, LINK=link(server), CHROMIUM=browser, SHOTS=shots,
                           DIBS=cluster.binary(), KUBECONFIG=server.kubeconfig, FRAME=str(FRAME_OF_SLOW if cluster.has_sanitizer() else FRAME),
                           # The server's authority is its own.
                           NODE_TLS_REJECT_UNAUTHORIZED="0", NODE_NO_WARNINGS="1")
        done = subprocess.run(["node", "browser.mjs"], cwd=folder, env=environment, capture_output=True, text=True, timeout=500)
        print(done.stdout, end="")
        if done.returncode == SKIPPED:
            raise Missing(done.stderr.strip())
        if done.returncode:
            raise cluster.Failure("the browser's test failed, status %d\n%s" % (done.returncode, done.stderr[-4000:]))


def check_model():
    web = os.path.join(HERE, "..", "..", "web")
    folder = os.path.abspath(os.path.join(HERE, "..", "..", "build", "web", "making"))
    if not shutil.which("node") or not os.path.exists(os.path.join(folder, "node_modules", "typescript")):
        raise Missing("the page was not built here")
    shutil.rmtree(os.path.join(folder, "tests"), ignore_errors=True)
    shutil.copytree(os.path.join(web, "tests"), os.path.join(folder, "tests"))
    for words in (["node", "node_modules/typescript/bin/tsc", "--noEmit"], ["node", "--test", "tests/"]):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise cluster.Failure("%s: status %d\n%s%s" % (" ".join(words), done.returncode, done.stdout[-4000:], done.stderr[-2000:]))
    print("ok")


def main(arguments):
    try:
        if arguments == ["browser"]:
            run(chromium(), prepare())
        elif arguments == ["model"]:
            check_model()
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except Missing as why:
        print("skipped: %s" % why)
        return SKIPPED
    except cluster.Failure as failure:
        print("FAILED: %s" % failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
