#!/usr/bin/env python3
"""A picture of the page, for the README.

    picture.py OUT.png

A cluster with simulated containers is filled with work, and its page opened in Chromium (picture.mjs). Wants what run.py wants, and pngquant, which makes
the picture small. DIBS is the binary.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
sys.dont_write_bytecode = True
import cluster  # noqa: E402
import run  # noqa: E402

LARGEST = 300 * 1024


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    out = os.path.abspath(arguments[0])
    try:
        browser, folder = run.chromium(), run.prepare()
        if not shutil.which("pngquant"):
            raise run.Missing("pngquant is not installed")
        shutil.copy(os.path.join(HERE, "picture.mjs"), folder)
        with cluster.Server(["--nodes", "64", "--drivers", "gpu", "--runtime", "sim"], command="up") as server:
            environment = dict(os.environ, URL=server.url, TOKEN=cluster.ADMIN_TOKEN, LINK=run.link(server), CHROMIUM=browser, OUT=out,
                               NODE_TLS_REJECT_UNAUTHORIZED="0", NODE_NO_WARNINGS="1")
            subprocess.run(["node", "picture.mjs"], cwd=folder, env=environment, timeout=300, check=True)
    except run.Missing as why:
        print("picture: %s" % why, file=sys.stderr)
        return 1
    subprocess.run(["pngquant", "--force", "--strip", "--speed", "1", "--output", out, "256", out], check=True)
    size = os.path.getsize(out)
    print("%s: %d KiB" % (out, size // 1024))
    if size > LARGEST:
        print("picture: larger than %d KiB" % (LARGEST // 1024), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
