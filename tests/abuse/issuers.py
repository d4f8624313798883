#!/usr/bin/env python3
"""Tokens of an issuer outside of the cluster, and what front proxies say: who is believed, and who is not."""
import http.server
import json
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from credentials import encode, openssl, signature, unauthorized
from suite import Failure, run

FOLDER = tempfile.mkdtemp(prefix="dibs-issuer-")
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def path(name):
    return os.path.join(FOLDER, name)


def number(text):
    return encode(bytes.fromhex(text.zfill(len(text) + len(text) % 2)))


class Key:
    """A key pair of the issuer."""

    def __init__(self, name, kind):
        self.id, self.kind, self.file = name, kind, path(name + ".key")
        if kind == "RS256":
            openssl("genrsa", "-out", self.file, "2048")
        else:
            openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.file)

    def jwk(self):
        if self.kind == "RS256":
            modulus = openssl("rsa", "-in", self.file, "-noout", "-modulus").decode().strip().split("=")[1]
            return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id, "n": number(modulus), "e": "AQAB"}
        point = openssl("ec", "-in", self.file, "-pubout", "-outform", "DER")[-64:]
        return {"kty": "EC", "use": "sig", "crv": "P-256", "kid": self.id, "x": encode(point[:32]), "y": encode(point[32:])}

    def sign(self, claims, **header):
        head = dict({"alg": self.kind, "kid": self.id}, **header)
        message = "%s.%s" % (encode(json.dumps(head).encode()), encode(json.dumps(claims).encode()))
        made = signature(self.file, message.encode()) if self.kind == "ES256" else \
            openssl("dgst", "-sha256", "-sign", self.file, source=message.encode())
        return "%s.%s" % (message, encode(made))


class Issuer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path("tls.key"), "-out", path("tls.crt"), "-days", "30",
                "-subj", "/CN=issuer", "-addext", "subjectAltName=IP:127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path("tls.crt"), path("tls.key"))
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = "https://127.0.0.1:%d" % self.server_address[1]
        self.keys, self.fetches = [Key("one", "RS256"), Key("two", "ES256")], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def claims(self, **more):
        return dict({"iss": self.url, "aud": "my-client", "sub": "u-1", "email": "alice@example.com", "roles": ["devs", "ops"],
                     "exp": int(time.time()) + 600}, **more)


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        body = {"issuer": self.server.url, "jwks_uri": self.server.url + "/keys"}
        if self.path == "/keys":
            self.server.fetches += 1
            body = {"keys": [key.jwk() for key in self.server.keys]}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


ISSUER = Issuer() if shutil.which("openssl") else None


def configuration(prefix):
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [{
        "issuer": {"url": ISSUER.url, "audiences": ["my-client"], "certificateAuthority": open(path("tls.crt")).read()},
        "claimMappings": {"username": {"claim": "email", "prefix": prefix}, "groups": {"expression": "dyn(claims.roles).map(r, 'oidc:' + r)"},
                          "extra": [{"key": "example.com/subject", "valueExpression": "claims.sub"}]},
        "userValidationRules": [{"expression": "!user.username.startsWith('system:')", "message": "reserved"}]}]}


def configure(prefix):
    with open(path("config.new"), "w") as f:
        json.dump(configuration(prefix), f)
    os.rename(path("config.new"), path("config"))


def who(suite, token):
    with suite.server.client(token=token) as client:
        answer = client.request("POST", REVIEW, {})
    return answer.json["status"]["userInfo"] if answer.status == 201 else answer.status


def until(test, seconds, what):
    end = time.monotonic() + seconds
    while not test():
        if time.monotonic() > end:
            raise Failure(what)
        time.sleep(0.2)


def good_tokens(suite):
    for key in ISSUER.keys:
        user = who(suite, key.sign(ISSUER.claims()))
        if user == 401:
            raise Failure("a good token signed by %s was refused" % key.kind)
        if user["username"] != "ex:alice@example.com" or user["groups"] != ["oidc:devs", "oidc:ops", "system:authenticated"]:
            raise Failure("%r" % user)
        if user["extra"]["example.com/subject"] != ["u-1"]:
            raise Failure("%r" % user)
    done = subprocess.run(["kubectl", "--server", suite.server.url, "--insecure-skip-tls-verify", "--token", ISSUER.keys[0].sign(ISSUER.claims()),
                           "--kubeconfig", "/dev/null", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
                          capture_output=True, text=True) if shutil.which("kubectl") else None
    if done and done.stdout != "ex:alice@example.com":
        raise Failure("kubectl --token: %r" % done)


def bad_tokens(suite):
    rsa, ec = ISSUER.keys
    stranger = Key("one", "ES256")
    good = ISSUER.claims()
    cases = {
        "of another audience": rsa.sign(dict(good, aud="other")), "of another issuer": rsa.sign(dict(good, iss="https://evil.example")),
        "expired": rsa.sign(dict(good, exp=int(time.time()) - 5)), "without an end": rsa.sign({k: v for k, v in good.items() if k != "exp"}),
        "not good yet": rsa.sign(dict(good, nbf=int(time.time()) + 3600)), "not verified": rsa.sign(dict(good, email_verified=False)),
        "without its claim": rsa.sign({k: v for k, v in good.items() if k != "email"}),
        "with another key's name": ec.sign(good, kid="one"), "by a stranger's key": stranger.sign(good),
        "that says it is unsigned": rsa.sign(good, alg="none"), "with a shared secret": rsa.sign(good, alg="HS256"),
        "with roles that are no list": rsa.sign(dict(good, roles=5)), "cut off": rsa.sign(good)[:-20],
    }
    for what, token in cases.items():
        unauthorized(suite, "Bearer " + token, "a token " + what)


def a_flood_of_unknown_keys(suite):
    before = ISSUER.fetches
    began = time.monotonic()
    stranger = Key("stranger", "ES256")
    for i in range(60):
        unauthorized(suite, "Bearer " + stranger.sign(ISSUER.claims(), kid="k%d" % i), "a token of an unknown key")
    allowed = 2 + int((time.monotonic() - began) / 10)
    if ISSUER.fetches - before > allowed:
        raise Failure("60 bad tokens made the server fetch keys %d times" % (ISSUER.fetches - before))


def rotation(suite):
    time.sleep(11)  # the server asks an issuer at most every ten seconds
    fresh = Key("fresh", "ES256")
    old = ISSUER.keys[0]
    ISSUER.keys = [fresh]
    if who(suite, fresh.sign(ISSUER.claims())) == 401:
        raise Failure("a token by a new key was refused")
    unauthorized(suite, "Bearer " + old.sign(ISSUER.claims()), "a token by a key that is gone")


def another_configuration(suite):
    configure("changed:")
    token = ISSUER.keys[0].sign(ISSUER.claims())
    until(lambda: (who(suite, token) or {}) != 401 and who(suite, token)["username"] == "changed:alice@example.com", 40,
          "the configuration was not read again")
    # One that cannot be used is not, and keeps no other file from being read.
    with open(path("config"), "w") as f:
        f.write("rubbish")
    certificate("second")
    until(lambda: shown(suite) == "second", 40, "a certificate was not read again beside a broken configuration")
    if who(suite, token) == 401:
        raise Failure("a broken configuration took the good one's place")


def certificate(name):
    """That of the name later.example, with this one inside."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path("later.key"), "-out", path("later.crt"), "-days", "2",
            "-subj", "/CN=" + name)


def shown(suite):
    """The name in the certificate that connections to later.example see."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((suite.server.host, suite.server.port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname="later.example") as tls:
            der = tls.getpeercert(binary_form=True)
    return "second" if b"second" in der else "first" if b"first" in der else None


def front_proxies(suite):
    pki = os.path.join(suite.server.data, "pki")

    def review(certificate, headers):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(*certificate)
        client = suite.server.client(token=None)
        client.context = context
        with client:
            return client.request("POST", REVIEW, {}, headers=headers)

    headers = {"X-Remote-User": "carol", "X-Remote-Group": "ops", "X-Remote-Uid": "9", "X-Remote-Extra-Team": "blue"}
    proxy = (os.path.join(pki, "front-proxy-client.crt"), os.path.join(pki, "front-proxy-client.key"))
    answer = review(proxy, headers)
    user = answer.json["status"].get("userInfo") if answer.status == 201 else None
    if user != {"username": "carol", "uid": "9", "groups": ["ops", "system:authenticated"], "extra": {"team": ["blue"]}}:
        raise Failure("a front proxy's user: %r" % answer)
    suite.refused(review(proxy, {}), "a front proxy without a user", 401)
    # Another certificate of its authority, by a name that is not allowed.
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", path("other.key"), "-out", path("other.csr"), "-subj", "/CN=other")
    with open(path("ext"), "w") as f:
        f.write("extendedKeyUsage=clientAuth\n")
    openssl("x509", "-req", "-in", path("other.csr"), "-CA", os.path.join(pki, "front-proxy-ca.crt"), "-CAkey",
            os.path.join(pki, "front-proxy-ca.key"), "-CAcreateserial", "-CAserial", path("serial"), "-days", "2", "-extfile", path("ext"),
            "-out", path("other.crt"))
    suite.refused(review((path("other.crt"), path("other.key")), headers), "a front proxy of another name", 401)
    # A client's certificate is none of a front proxy's, so its headers name nobody.
    answer = review((os.path.join(pki, "admin.crt"), os.path.join(pki, "admin.key")), headers)
    if answer.json["status"]["userInfo"]["username"] != "kubernetes-admin":
        raise Failure("a client's headers were believed: %r" % answer)
    trust = suite.client.expect(200, "GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")["data"]
    if trust["requestheader-client-ca-file"] != open(os.path.join(pki, "front-proxy-ca.crt")).read():
        raise Failure("%r" % trust)


if __name__ == "__main__":
    if not ISSUER:
        print("SKIPPED: openssl is not installed")
        sys.exit(77)
    configure("ex:")
    certificate("first")
    try:
        status = run([good_tokens, bad_tokens, a_flood_of_unknown_keys, rotation, another_configuration, front_proxies],
                     flags=["--authentication-config", path("config"),
                            "--tls-sni-cert-key", "%s,%s:later.example" % (path("later.crt"), path("later.key"))])
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(status)
