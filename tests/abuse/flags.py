#!/usr/bin/env python3
"""Flags of kube-apiserver, of `dibs controllers` and `dibs up`, from outside: each does what it says."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time

import issuers
from credentials import decode, encode, openssl, signature
from http2 import ACK, SETTINGS, Connection
from issuers import path
from suite import CONFIGMAPS, Failure, Suite, cluster

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
MAX_STREAMS = 3  # SETTINGS_MAX_CONCURRENT_STREAMS
HOUR = 3600


def expect(what, found, wanted):
    if found != wanted:
        raise Failure("%s: %r, expected %r" % (what, found, wanted))


def user_of(suite, token):
    """Who bears the token, or the status of the refusal."""
    said = issuers.who(suite, token)
    return (said["username"], said["groups"]) if isinstance(said, dict) else said


def claims_of(token):
    return [json.loads(decode(part)) for part in token.split(".")[:2]]


# One server whose users, certificates and tokens are all of elsewhere.

def foreign_flags():
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path("port.key"), "-out", path("port.crt"), "-days", "2",
            "-subj", "/CN=port", "-addext", "subjectAltName=IP:127.0.0.1")
    openssl("genrsa", "-out", path("signing.key"), "2048")
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path("older.key"))
    openssl("ec", "-in", path("older.key"), "-pubout", "-out", path("older.pub"))
    return ["--oidc-issuer-url", issuers.ISSUER.url, "--oidc-client-id", "my-client", "--oidc-ca-file", path("tls.crt"),
            "--oidc-username-claim", "sub", "--oidc-username-prefix", "ex:", "--oidc-groups-claim", "roles", "--oidc-groups-prefix", "oidc:",
            "--oidc-required-claim", "team=blue", "--oidc-signing-algs", "ES256", "--anonymous-auth", "false",
            "--tls-min-version", "VersionTLS13", "--tls-cert-file", path("port.crt"), "--tls-private-key-file", path("port.key"),
            "--service-account-signing-key-file", path("signing.key"), "--service-account-key-file", path("older.pub"),
            "--api-audiences", "here,there", "--service-account-max-token-expiration", "1h", "--disable-http2-serving", "true"]


def outside_issuer(suite):
    rsa, ec = issuers.ISSUER.keys
    good = issuers.ISSUER.claims(team="blue")
    expect("a good token", user_of(suite, ec.sign(good)), ("ex:u-1", ["oidc:devs", "oidc:ops", "system:authenticated"]))
    expect("a token by an algorithm that is not taken", user_of(suite, rsa.sign(good)), 401)
    expect("a token without the claim", user_of(suite, ec.sign(issuers.ISSUER.claims())), 401)
    expect("a token with another claim", user_of(suite, ec.sign(dict(good, team="red"))), 401)
    expect("a token for another client", user_of(suite, ec.sign(dict(good, aud="other"))), 401)


def nobody(suite):
    with suite.server.client(token=None) as client:
        for where in ("/version", "/readyz", CONFIGMAPS):
            expect("%s for nobody" % where, client.get(where).status, 401)


def port(suite):
    def connect(**more):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        for name, value in more.items():
            setattr(context, name, value)
        with socket.create_connection((suite.server.host, suite.server.port), timeout=10) as plain:
            with context.wrap_socket(plain) as tls:
                return tls.getpeercert(binary_form=True), tls.version(), tls.selected_alpn_protocol()
    with open(path("port.crt")) as f:
        der = ssl.PEM_cert_to_DER_cert(f.read())
    expect("the port", connect(), (der, "TLSv1.3", "http/1.1"))
    try:
        raise Failure("TLS 1.2 is spoken: %r" % (connect(maximum_version=ssl.TLSVersion.TLSv1_2),))
    except ssl.SSLError:
        pass


def account_tokens(suite):
    suite.client.request("POST", ACCOUNTS, {"metadata": {"name": "robot"}})

    def ask(**spec):
        answer = suite.client.request("POST", ACCOUNTS + "/robot/token", {"spec": spec})
        if answer.status != 201:
            raise Failure("a token: %r" % answer)
        return answer.json["status"]["token"]
    name = ("system:serviceaccount:default:robot", ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    header, claims = claims_of(ask())
    expect("how it is signed", header["alg"], "RS256")
    expect("its audiences", claims["aud"], ["here", "there"])
    expect("a token for one of them", user_of(suite, ask(audiences=["there"])), name)
    expect("a token for somebody else", user_of(suite, ask(audiences=["elsewhere"])), 401)
    for wish in (2 * HOUR, HOUR):
        claims = claims_of(ask(expirationSeconds=wish))[1]
        expect("the life of a token for %d s" % wish, claims["exp"] - claims["iat"], HOUR)
    # One by the key that signed before.
    message = "%s.%s" % (encode(json.dumps({"alg": "ES256", "typ": "JWT"}).encode()), encode(json.dumps(claims).encode()))
    expect("a token by the older key", user_of(suite, "%s.%s" % (message, encode(signature(path("older.key"), message.encode())))), name)


# One whose times are short.

BRIEF_FLAGS = ["--event-ttl", "2s", "--min-request-timeout", "1", "--http2-max-streams-per-connection", "7",
               "--shutdown-send-retry-after", "true", "--shutdown-delay-duration", "500ms"]


def events(suite):
    where = "/api/v1/namespaces/default/events"
    suite.client.expect(201, "POST", where, {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "kind": "Pod", "name": "p"}})
    cluster.wait_for(lambda: suite.client.get(where + "/e").status == 404, 60, "the event to go")


def watches(suite):
    began = time.monotonic()
    answer = suite.client.stream(CONFIGMAPS + "?watch=1")
    answer.read()
    if not 0.9 < time.monotonic() - began < 30:
        raise Failure("a watch of one or two seconds took %.1f" % (time.monotonic() - began))


def streams(suite):
    kind, flags, _, payload = Connection(suite).until(lambda got: got[0] == SETTINGS and not got[1] & ACK, "settings")
    settings = dict(struct.unpack(">HI", payload[i:i + 6]) for i in range(0, len(payload), 6))
    expect("streams of a connection", settings.get(MAX_STREAMS), 7)


def the_end(suite):
    """Who comes while the server ends and is still at work is to come again, by an open connection and by a new one."""
    server = suite.server
    clients = [server.client() for _ in range(20)]
    for client in clients:
        client.get(CONFIGMAPS)
    busy = http.client.HTTPSConnection(server.host, server.port, timeout=60, context=server.context())
    # In flight: its body comes in pieces.
    busy.putrequest("POST", CONFIGMAPS)
    for name, value in (("Authorization", "Bearer " + cluster.ADMIN_TOKEN), ("Content-Type", "application/json"), ("Content-Length", "2")):
        busy.putheader(name, value)
    busy.endheaders(b"{")
    server.signal(signal.SIGTERM)

    def refused(client):
        answer = client.get(CONFIGMAPS)
        if answer.status != 200 and (answer.status != 429 or not answer.headers["Retry-After"]):
            raise Failure("while it ends: %r" % answer)
        return answer.status == 429

    def newcomer():
        with server.client() as client:
            return refused(client)
    cluster.wait_for(newcomer, 60, "a newcomer to be told to come again", 0.05)
    if not all(refused(client) for client in clients):
        raise Failure("an open connection is served after a newcomer was sent away")
    busy.send(b"}")
    expect("the request in flight", busy.getresponse().status, 429)
    busy.close()


# Parts beside a server.

def controllers():
    """Whose gate is off makes no claims for pods, and does the rest."""
    with cluster.Server(["--emulate-release", "1.34"]) as server:
        client = server.client()
        client.expect(201, "POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", {
            "metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}})

        def claims_with(gates):
            name = "with" if gates.endswith("true") else "without"
            program = subprocess.Popen([cluster.binary(), "controllers", "--kubeconfig", server.token_kubeconfig(), "--release", "1.34",
                                        "--feature-gates", gates, "--log-level", "error", "--leader-elect", "false"],
                                       preexec_fn=cluster.die_with_parent)
            try:
                client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
                account = "/api/v1/namespaces/%s/serviceaccounts/default" % name
                cluster.wait_for(lambda: client.get(account).status == 200, 60, "the controllers to work", 0.1)
                client.expect(200, "GET", "/api/v1/namespaces/default/serviceaccounts/default")
                client.expect(201, "POST", PODS, {
                    "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}],
                                                         "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]}})
                # Another namespace's account is made after the pod was seen.
                client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": name + "-2"}})
                account = "/api/v1/namespaces/%s-2/serviceaccounts/default" % name
                cluster.wait_for(lambda: client.get(account).status == 200, 60, "the controllers to go on", 0.1)
                if gates.endswith("true"):
                    cluster.wait_for(lambda: client.get("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims").json["items"], 60, "a claim")
                return len(client.get("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims").json["items"])
            finally:
                program.send_signal(signal.SIGTERM)
                program.wait(60)
        expect("claims with the gate off", claims_with("DynamicResourceAllocation=false"), 0)
        expect("claims with the gate on, for both pods", claims_with("DynamicResourceAllocation=true"), 2)


def scheduler():
    """`dibs up` schedules as its configuration says."""
    config = path("scheduler.yaml")
    with open(config, "w") as f:
        json.dump({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [
            {"schedulerName": "mine", "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]}}}}]}]}, f)
    with cluster.Server(["--nodes", "3", "--runtime", "sim", "--scheduler-config", config], command="up") as server:
        client = server.client()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        cluster.wait_for(lambda: client.get(account).status == 200, 60, "the account", 0.1)
        for name, who in (("other", "default-scheduler"), ("one", "mine"), ("two", "mine")):
            client.expect(201, "POST", PODS, {"metadata": {"name": name},
                                              "spec": {"schedulerName": who, "containers": [{"name": "c", "image": "busybox"}]}})

        def node(name):
            return client.get(PODS + "/" + name).json["spec"].get("nodeName")
        for name in ("one", "two"):
            expect("the node of %s" % name, cluster.wait_for(lambda: node(name), 60, "%s to have a node" % name, 0.1), "node-1")
        expect("the node of a pod of a scheduler that is not there", node("other"), None)


def on_one_server(flags, checks, certificate=None, ends=False):
    server = cluster.Server(flags)
    if certificate:
        server.contexts[False] = ssl.create_default_context(cafile=certificate)
    server.start()
    try:
        suite = Suite(server)
        for check in checks:
            attempt(check, suite)
        if ends and server.process.wait(cluster.STOP_DEADLINE) != 0:
            raise Failure("the server ended with status %d\n%s" % (server.process.returncode, server.log_tail()))
        if not ends:
            server.stop()
    finally:
        server.remove()


FAILED = []


def attempt(check, *arguments):
    began = time.monotonic()
    try:
        check(*arguments)
        print("ok %s (%.1f s)" % (check.__name__, time.monotonic() - began), flush=True)
    except Exception as problem:  # a broken connection is a finding too
        FAILED.append(check.__name__)
        print("FAILED %s: %s" % (check.__name__, problem if isinstance(problem, Failure) else "%s: %s" % (type(problem).__name__, problem)),
              flush=True)


def main():
    if not issuers.ISSUER:
        print("SKIPPED: openssl is not installed")
        return 77
    try:
        on_one_server(foreign_flags(), [outside_issuer, nobody, port, account_tokens], certificate=path("port.crt"))
        on_one_server(BRIEF_FLAGS, [events, watches, streams, the_end], ends=True)
        attempt(controllers)
        attempt(scheduler)
    except Failure as failure:
        FAILED.append("a server")
        print("FAILED %s" % failure)
    finally:
        shutil.rmtree(issuers.FOLDER, ignore_errors=True)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
