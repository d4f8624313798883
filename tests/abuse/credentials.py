#!/usr/bin/env python3
"""Bad credentials: tokens and certificates that are expired, foreign, forged or garbage. None opens anything."""
import base64
import copy
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import time

from suite import CONFIGMAPS, Failure, run

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def openssl(*arguments, source=None):
    done = subprocess.run(["openssl", *arguments], input=source, capture_output=True)
    if done.returncode:
        raise Failure("openssl %s: %s" % (" ".join(arguments), done.stderr.decode("utf-8", "replace")))
    return done.stdout


def signature(key, message):
    """An ES256 signature as JSON Web Tokens have it: both numbers with 32 bytes each."""
    der = openssl("dgst", "-sha256", "-sign", key, source=message)
    numbers, place = b"", 2
    for _ in range(2):
        length = der[place + 1]
        numbers += der[place + 2:place + 2 + length].lstrip(b"\x00").rjust(32, b"\x00")
        place += 2 + length
    return numbers


def token(header, claims, key):
    message = "%s.%s" % (encode(json.dumps(header).encode()), encode(json.dumps(claims).encode()))
    return "%s.%s" % (message, encode(signature(key, message.encode())))


def unauthorized(suite, bearer, what):
    for path in (CONFIGMAPS, "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1"):
        with suite.server.client(token=None) as client:
            answer = client.get(path, headers={"Authorization": bearer})
        if suite.refused(answer, what, 401)["reason"] != "Unauthorized":
            raise Failure("%s: %r" % (what, answer))


def account_token(suite, name):
    suite.client.request("POST", ACCOUNTS, {"metadata": {"name": name}})
    return suite.client.expect(201, "POST", "%s/%s/token" % (ACCOUNTS, name), {"spec": {}})["status"]["token"]


def forged_tokens(suite):
    good = account_token(suite, "robot")
    header, claims = (json.loads(decode(part)) for part in good.split(".")[:2])
    ours = os.path.join(suite.server.data, "pki", "sa.key")
    foreign = os.path.join(suite.server.folder, "foreign.key")
    with open(foreign, "wb") as f:
        f.write(openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
    # The control: a token made here with the right key is taken, so what follows is refused for its own fault.
    with suite.server.client(token=token(header, claims, ours)) as client:
        who = client.expect(201, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    if who["status"]["userInfo"]["username"] != "system:serviceaccount:default:robot":
        raise Failure("the control token is of %s" % who["status"]["userInfo"])

    def changed(**fields):
        other = copy.deepcopy(claims)
        for name, value in fields.items():
            if value is None:
                other.pop(name, None)
            else:
                other[name] = value
        return "Bearer " + token(header, other, ours)

    now = int(time.time())
    unauthorized(suite, changed(exp=now - 3600, iat=now - 7200, nbf=now - 7200), "an expired token")
    unauthorized(suite, changed(exp=now - 120, iat=now - 7200, nbf=now - 7200), "a token that expired two minutes ago")
    unauthorized(suite, changed(nbf=now + 3600), "a token of the future")
    unauthorized(suite, changed(iss="https://elsewhere.example.com"), "a token of another issuer")
    unauthorized(suite, changed(aud=["elsewhere"]), "a token for another audience")
    unauthorized(suite, changed(aud=[]), "a token for no audience")
    account = copy.deepcopy(claims["kubernetes.io"])
    account["serviceaccount"]["uid"] = "00000000-0000-0000-0000-000000000000"
    unauthorized(suite, changed(**{"kubernetes.io": account}), "a token of an earlier account of that name")
    unauthorized(suite, changed(**{"kubernetes.io": None}), "a token without an account")
    unauthorized(suite, changed(exp="soon"), "a token whose end is a word")
    unauthorized(suite, changed(exp=-1), "a token that ended before 1970")

    head, body, sign = good.split(".")
    unauthorized(suite, "Bearer " + token(header, claims, foreign), "a token signed by another key")
    unauthorized(suite, "Bearer %s.%s." % (head, body), "a token without a signature")
    unauthorized(suite, "Bearer %s.%s" % (head, body), "a token in two parts")
    unauthorized(suite, "Bearer %s.%s.%s.%s" % (head, body, sign, sign), "a token in four parts")
    unauthorized(suite, "Bearer " + good[:-8], "a cut token")
    other = dict(claims, sub="system:serviceaccount:kube-system:admin")
    unauthorized(suite, "Bearer %s.%s.%s" % (head, encode(json.dumps(other).encode()), sign), "changed claims under an old signature")
    for algorithm in ("none", "None", "NONE", ""):
        bare = "%s.%s" % (encode(json.dumps({"alg": algorithm, "typ": "JWT"}).encode()), body)
        unauthorized(suite, "Bearer %s." % bare, "algorithm %r" % algorithm)
        unauthorized(suite, "Bearer %s.%s" % (bare, sign), "algorithm %r with a signature" % algorithm)
    public = openssl("pkey", "-in", ours, "-pubout")
    message = "%s.%s" % (encode(json.dumps({"alg": "HS256", "kid": header.get("kid", "")}).encode()), body)
    confused = encode(hmac.new(public, message.encode(), hashlib.sha256).digest())
    unauthorized(suite, "Bearer %s.%s" % (message, confused), "the public key as a secret")
    unauthorized(suite, "Bearer " + token(dict(header, alg="ES512"), claims, ours), "another algorithm than that of the key")
    unauthorized(suite, "Bearer %s.%s.%s" % (head, body, encode(b"\x00" * 64)), "a signature of zeros")
    for kid in ("../../../etc/passwd", "' or 1=1", "x" * 10000, 5, None, {}):
        crafted = token(dict(header, kid=kid), claims, foreign)
        unauthorized(suite, "Bearer " + crafted, "key id %r" % (kid if not isinstance(kid, str) else kid[:20]))


def garbage_tokens(suite):
    for text in ("x", ".", "..", "...", "eyJ", "a.b.c", "eyJhbGciOiJFUzI1NiJ9.e30.", "eyJhbGciOiJFUzI1NiJ9.W10.AAAA", "%00", "=" * 100,
                 "Bearer x", "A" * 100000, "A." * 5000, "eyJhbGciOiJFUzI1NiJ9." + "A" * 100000 + ".AAAA"):
        unauthorized(suite, "Bearer " + text, "token %r" % text[:30])
    deep = encode(b'{"a":' * 20000 + b"1" + b"}" * 20000)
    unauthorized(suite, "Bearer eyJhbGciOiJFUzI1NiJ9.%s.AAAA" % deep, "a deep token")
    # Whoever shows no token is anonymous, and gets 401 or 403, never an object.
    for header in ("", "Bearer", "Bearer ", "Basic x", "Basic " + encode(b"admin:admin"), "Digest x", "Negotiate", "bearer", "\tBearer x"):
        with suite.server.client(token=None) as client:
            answer = client.get(CONFIGMAPS, headers={"Authorization": header} if header else None)
        suite.refused(answer, "Authorization: %r" % header, 401, 403)


def foreign_certificates(suite):
    folder, pki = suite.server.folder, os.path.join(suite.server.data, "pki")
    ours = (os.path.join(pki, "ca.crt"), os.path.join(pki, "ca.key"))

    def path(name):
        return os.path.join(folder, name)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("other-ca.key"), "-out",
            path("other-ca.crt"), "-subj", "/CN=other", "-days", "10")
    theirs = (path("other-ca.crt"), path("other-ca.key"))

    def certificate(name, authority, subject="/O=system:masters/CN=intruder", days="10", usage="clientAuth"):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path(name + ".key"), "-out", path(name + ".csr"),
                "-subj", subject)
        with open(path(name + ".ext"), "w") as f:
            f.write("basicConstraints=CA:FALSE\n" + ("extendedKeyUsage=%s\n" % usage if usage else ""))
        openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", authority[0], "-CAkey", authority[1], "-CAcreateserial", "-CAserial",
                path("serial"), "-days", days, "-extfile", path(name + ".ext"), "-out", path(name + ".crt"))
        return path(name + ".crt"), path(name + ".key")

    def ask(pair, bearer=None):
        context = suite.server.context_of(pair)
        with suite.server.client(token=bearer, context=context) as client:
            return client.get(CONFIGMAPS)

    answer = ask(certificate("control", ours))
    if answer.status != 200:
        raise Failure("the control: a certificate of our authority: %r" % answer)
    answer = ask(certificate("plain", ours, subject="/CN=nobody-special"))
    suite.refused(answer, "a certificate without rights", 403)
    cases = {
        "a foreign authority": certificate("foreign", theirs),
        "an expired certificate": certificate("expired", ours, days="-1"),
        "a certificate for servers": certificate("server", ours, usage="serverAuth"),
        "a certificate signed by itself": (path("other-ca.crt"), path("other-ca.key")),
        "a certificate under one that is no authority": certificate("under", certificate("leaf", ours)),
    }
    for what, pair in cases.items():
        try:
            answer = ask(pair)
        except OSError:
            continue  # refused in the handshake
        suite.refused(answer, what, 401)
    # A bad certificate beside a good token does not spoil it, and a bad token is not saved by a good certificate of nobody.
    try:
        suite.sane(ask(cases["a foreign authority"], bearer=suite.client.token), "a foreign certificate with the administrator's token")
    except OSError:
        pass


def impersonation(suite):
    good = account_token(suite, "plain")
    for headers in ({"Impersonate-User": "admin"}, {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}, {"Impersonate-Uid": "1"},
                    {"Impersonate-Group": "system:masters"}, {"Impersonate-Extra-Scopes": "x"}, {"Impersonate-User": "system:serviceaccount:x"},
                    {"Impersonate-User": "\x7f"}, {"Impersonate-User": "u" * 100000}):
        with suite.server.client(token=good) as client:
            answer = client.get(CONFIGMAPS, headers=headers)
        if answer.status < 400:
            raise Failure("an account impersonated with %s: %r" % (list(headers.items())[0], answer))
        if answer.status >= 500 and "Impersonate-User" in headers:
            raise Failure("%s: %r" % (headers, answer))
    # Headers of proxies give nobody a name.
    with suite.server.client(token=None) as client:
        answer = client.get(CONFIGMAPS, headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters", "X-Forwarded-User": "admin"})
    suite.refused(answer, "names in headers of proxies", 401, 403)
    # Nor say on which node somebody is: that is for parts of the server's own process.
    review = suite.client.expect(201, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {},
                                 headers={"X-Remote-Extra-Authentication.kubernetes.io%2fnode-name": "node-0"})
    if "extra" in review["status"]["userInfo"]:
        raise Failure("a header gave its sender more than his token says: %r" % review["status"])


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("SKIPPED: openssl is not installed")
        sys.exit(77)
    sys.exit(run([forged_tokens, garbage_tokens, foreign_certificates, impersonation]))
