#!/usr/bin/env python3
"""Images that lie: what a registry gives is checked before it is used, and what an event says of a pull is what happened.

Real containers and a registry on the loopback address; skipped (exit status 77) where this machine runs none, or has no skopeo or no static
busybox. Pods are made by a user who may do nothing but that.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import time

from suite import Failure, cluster
from pods import USER, Pods, need, run_checks
from registry import Registry, digest, layer
import images

SKIPPED = 77
BUSYBOX = "/bin/busybox"


class World(Pods):
    def __init__(self, server, registry, private, images):
        super().__init__(server)
        self.registry, self.private, self.images = registry, private, images
        with open(BUSYBOX, "rb") as f:
            self.base = layer({"bin/busybox": (f.read(), 0o755)})

    def image(self, name):
        return self.registry.address + "/" + name

    def start(self, name, image, policy="IfNotPresent", command=None):
        self.make(name, image, command, container={"imagePullPolicy": policy})

    def refused(self, name):
        """Why the pod waits for its image."""
        def why():
            waiting = self.container(name).get("state", {}).get("waiting", {})
            return waiting.get("message") if waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff") else None
        return cluster.wait_for(why, 60, "the refusal of the image of pod " + name)

    def listed(self):
        return subprocess.run([cluster.binary(), "image", "list", "--images", self.images], capture_output=True, text=True).stdout

    def image_id(self, name):
        self.ended(name)
        return self.container(name)["imageID"]


def a_pull_is_a_pull(world):
    image = world.image("team/app:1")
    show = ["/bin/busybox", "cat", "/version"]
    world.registry.put("team/app:1", [world.base, layer({"version": b"one"})])
    world.start("first", image, command=show)
    need(world.said("first") == "one", "the image of the registry does not run")
    world.has_event("first", 'Pulling: Pulling image "%s"' % image, 'Pulled: Successfully pulled image "%s" in ' % image, "Image size: ")
    need(world.image_id("first") == world.registry.address + "/team/app@" + world.registry.tags["team/app:1"], "imageID: " + world.image_id("first"))

    world.registry.put("team/app:1", [world.base, layer({"version": b"two"})])
    world.start("present", image, command=show)
    need(world.said("present") == "one", "IfNotPresent did not take what is there")
    world.has_event("present", "already present on machine")
    world.start("always", image, "Always", command=show)
    need(world.said("always") == "two", "Always did not pull")
    world.has_event("always", "Successfully pulled image")
    listed = world.listed()
    need(any(world.registry.address in line and line.endswith("registry") for line in listed.splitlines()), "dibs image list:\n" + listed)


def one_of_many_pulls(world):
    blobs = world.registry.put("team/many:1", [world.base, layer({"many": b"m" * 100000})])
    world.registry.open.clear()
    for number in range(4):
        world.start("many-%d" % number, world.image("team/many:1"), "Always", ["/bin/busybox", "true"])
    time.sleep(2)
    world.registry.open.set()
    for number in range(4):
        world.ended("many-%d" % number)
        world.has_event("many-%d" % number, "Successfully pulled image")
    fetched = world.registry.asked["/v2/team/many/blobs/" + blobs[1]]
    need(fetched == 1, "four pulls at once fetched the layer %d times" % fetched)


def a_forged_layer(world):
    """The layer of another image by its diff_id, and a content of one's own under that name."""
    secret = layer({"secret": b"of somebody else"})
    world.registry.put("owner/app:1", [world.base, secret])
    world.start("owner", world.image("owner/app:1"), command=["/bin/busybox", "true"])
    world.ended("owner")
    world.registry.put("thief/app:1", [world.base, layer({"x": b"mine"})], diff_ids=[digest(world.base), digest(secret)])
    world.start("thief", world.image("thief/app:1"), command=["/bin/busybox", "cat", "/secret"])
    need("is not what the image says" in world.refused("thief"), "a layer with a forged diff_id: " + world.refused("thief"))
    new = layer({"bin/sh": b"evil"})
    world.registry.put("poison/app:1", [layer({"y": b"z"})], diff_ids=[digest(new)])
    world.start("poison", world.image("poison/app:1"))
    world.refused("poison")
    need(not os.path.exists(os.path.join(world.images, "layers", digest(new)[7:])), "a forged layer got the name of another")


def marks_that_climb(world):
    for number, mark in enumerate((".wh...", "a/.wh...", "a/.wh..", "../.wh.x", "a/../../.wh.layers")):
        name = "climb-%d" % number
        world.registry.put(name + ":1", [layer({"a/b": b"1", mark: b""})])
        world.start(name, world.image(name + ":1"))
        world.refused(name)
        need(os.path.isfile(os.path.join(world.images, "names.json")) and os.listdir(os.path.join(world.images, "layers")),
             "the mark %s deleted images" % mark)


def nothing_is_made_up(world):
    world.start("unknown", world.image("declared:1"), "Always", ["true"])
    need("manifest unknown" in world.refused("unknown"), "a registry that has no such image: " + world.refused("unknown"))
    world.start("offline", "127.0.0.1:1/declared:1", "Always", ["true"])
    need(world.image_id("offline").startswith("dibs.dev/built-in@sha256:"), "imageID of a stand-in: " + world.image_id("offline"))
    world.has_event("offline", "BuiltinImage: Image ", "connection refused")
    need(not any("Successfully pulled" in event for event in world.events("offline")), "a pull was made up: %s" % world.events("offline"))
    world.start("declared", "127.0.0.1:1/declared:1", command=["true"])
    need(world.image_id("declared").startswith("dibs.dev/built-in@"), "imageID of a declared image")
    world.has_event("declared", "already present on machine")
    world.start("never", "127.0.0.1:1/other:1", "Never")
    cluster.wait_for(lambda: world.container("never").get("state", {}).get("waiting", {}).get("reason") == "ErrImageNeverPull", 30,
                     "that Never does not pull")
    listed = world.listed()
    need("built-in, where no registry can be reached" in listed, "dibs image list:\n" + listed)


def a_private_image(world):
    """Who cannot show the login does not get it, though it is on the machine."""
    registry = world.private
    image = registry.address + "/private:1"
    config = {"auths": {registry.address: {"username": "user", "password": "password"}}}
    world.admin.expect(201, "POST", "/api/v1/namespaces/default/secrets", {
        "metadata": {"name": "login"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json.dumps(config)}})
    registry.put("private:1", [world.base])
    world.make("private-owner", image, ["/bin/busybox", "true"], imagePullSecrets=[{"name": "login"}])
    world.ended("private-owner")
    world.make("stranger", image, ["/bin/busybox", "true"])
    need("unauthorized" in world.refused("stranger").lower() or "authentication" in world.refused("stranger"),
         "without the login: " + world.refused("stranger"))
    world.make("private-never", image, ["/bin/busybox", "true"], container={"imagePullPolicy": "Never"})
    world.has_event("private-never", "is not present with pull policy of Never")


def by_hand(world):
    """`dibs image` takes images from a registry, with a login where it wants one, and from standard input."""
    def dibs(*words, status=0, given=b""):
        done = subprocess.run([cluster.binary(), "image", *words, "--images", world.images], input=given, capture_output=True)
        said = (done.stdout + done.stderr).decode()
        need(done.returncode == status, "dibs image %s ended with %d: %s" % (" ".join(words), done.returncode, said))
        return said
    world.private.put("by-hand:1", [world.base])
    image = world.private.address + "/by-hand:1"
    insecure = ["--insecure-registries", world.private.address]
    need("authentication" in dibs("pull", image, *insecure, status=1), "a pull without a login")
    logins = os.path.join(world.server.folder, "logins.json")
    with open(logins, "w") as f:
        json.dump({"auths": {world.private.address: {"auth": base64.b64encode(b"user:password").decode()}}}, f)
    need("pulled " + image in dibs("pull", image, *insecure, "--authfile", logins), "a pull with a login")
    archive = images.archive({"/bin/busybox": BUSYBOX}, entrypoint=["/bin/busybox", "echo", "hello"])
    need("loaded docker.io/team/hello:1" in dibs("load", "-", "team/hello:1", given=archive), "a load from standard input")
    world.make("hello", "team/hello:1", None, container={"imagePullPolicy": "Never"})
    need(world.said("hello").strip() == "hello", "what was loaded does not run")
    dibs("load", "-", "team/nothing:1", status=1, given=b"no archive at all")
    world.remove_all()
    dibs("remove", image, "team/hello:1")
    need("team/hello" not in world.listed(), "a removed image is listed: " + world.listed())
    need("no image named" in dibs("remove", "team/hello:1", status=1), "an image that is not there")


CHECKS = (a_pull_is_a_pull, one_of_many_pulls, a_forged_layer, marks_that_climb, nothing_is_made_up, a_private_image, by_hand)


def main():
    if not shutil.which("skopeo") or not os.path.exists(BUSYBOX) or not cluster.kubectl() or not cluster.has_containers():
        print("SKIPPED: no real containers, skopeo, kubectl or busybox on this machine")
        return SKIPPED
    with Registry() as registry, Registry("user:password") as private:
        server = cluster.Server(command="up")
        images = os.path.join(server.folder, "images")
        server.flags = ["--nodes", "1", "--images", images, "--insecure-registries", registry.address + "," + private.address,
                        "--image-alias", "127.0.0.1:1/declared:1,%s/declared:1" % registry.address]
        server.write_tokens([(USER, USER, [])])
        with server:
            world = World(server, registry, private, images)
            failed = run_checks(CHECKS, world, sys.argv[1:])
            world.remove_all()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("FAILED: %s" % failure)
