#!/usr/bin/env python3
"""Bad manners on the wire: endless bodies, slow readers and writers, garbage, thousands of idle connections, and breaking off."""
import http.client
import json
import os
import random
import select
import socket
import ssl
import struct
import sys
import threading
import time
import warnings

from suite import CONFIGMAPS, Failure, cluster, raise_file_limit, run

AUTHORIZATION = "Authorization: Bearer %s\r\n" % cluster.ADMIN_TOKEN
HEAD = "Host: x\r\n" + AUTHORIZATION
MEGABYTE = 1 << 20


def read_answer(sock, timeout=30, already=b""):
    """Status line, headers and what of the body has come, up to the length told; None when the connection ends first."""
    sock.settimeout(timeout)
    data = already
    try:
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                return None
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        for line in head.split(b"\r\n")[1:]:
            if line.lower().startswith(b"content-length:"):
                while len(body) < int(line.split(b":")[1]):
                    more = sock.recv(65536)
                    if not more:
                        break
                    body += more
        return head.decode("latin-1"), body
    except (ConnectionError, ssl.SSLError):
        return None


def status_of(answer):
    return int(answer[0].split(" ")[1]) if answer else None


def ends(sock, seconds):
    """Whether the server closes the connection within so many seconds."""
    sock.settimeout(seconds)
    try:
        while True:
            if not sock.recv(65536):
                return True
    except socket.timeout:
        return False
    except OSError:
        return True


def endless_bodies(suite):
    """A body of 100 MB is refused before it is sent."""
    size = 100 * MEGABYTE
    heads = {
        "Content-Length": "POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (CONFIGMAPS, HEAD, size),
        "chunked": "POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" % (CONFIGMAPS, HEAD),
        "PATCH": "PATCH %s/x HTTP/1.1\r\n%sContent-Type: application/merge-patch+json\r\nContent-Length: %d\r\n\r\n" % (CONFIGMAPS, HEAD, size),
        "DELETE": "DELETE %s/x HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n" % (CONFIGMAPS, HEAD, size),
    }
    for what, head in heads.items():
        sock = suite.server.raw_socket()
        sock.sendall(head.encode())
        piece = b" " * 65536
        if what == "chunked":
            piece = b"10000\r\n" + piece + b"\r\n"
        sent, early = 0, b""
        try:
            while sent < size and not early:
                sock.settimeout(30)
                sock.sendall(piece)
                sent += len(piece)
                sock.settimeout(0)
                try:
                    early = sock.recv(1)
                except ssl.SSLWantReadError:
                    pass
        except OSError:
            pass
        if sent >= size:
            raise Failure("%s: all of 100 MB were taken" % what)
        if sent > 32 * MEGABYTE:
            raise Failure("%s: %d MB were taken before the refusal" % (what, sent >> 20))
        answer = read_answer(sock, already=early)
        sock.close()
        if status_of(answer) != 413:
            raise Failure("%s: %s after %d KB, expected 413" % (what, answer, sent >> 10))
        body = json.loads(answer[1])
        if body.get("kind") != "Status" or body.get("code") != 413 or body.get("reason") != "RequestEntityTooLarge":
            raise Failure("%s: %s" % (what, body))
    # A client that asks first sends nothing.
    sock = suite.server.raw_socket()
    sock.sendall(heads["Content-Length"].replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n").encode())
    answer = read_answer(sock)
    sock.close()
    if status_of(answer) != 413:
        raise Failure("Expect: 100-continue: %s, expected 413" % (answer,))
    # A client that sends all it has before it reads still gets the answer, not a broken connection.
    for _ in range(5):
        answer = suite.server.client().request("POST", CONFIGMAPS, raw=b" " * (4 * MEGABYTE))
        suite.refused(answer, "4 MB sent at once", 413)


def malformed_requests(suite):
    long_head = "GET /api HTTP/1.1\r\n" + HEAD + "X: " + "x" * (2 * MEGABYTE) + "\r\n\r\n"
    cases = {
        "no HTTP": b"hello\r\n\r\n",
        "binary": bytes(range(256)) * 4,
        "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "no path": b"GET HTTP/1.1\r\n\r\n",
        "a space in the path": b"GET /api v1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "no colon": b"GET /api HTTP/1.1\r\nnonsense\r\n\r\n",
        "a space before the colon": b"GET /api HTTP/1.1\r\nHost : x\r\n\r\n",
        "NUL in a header": b"GET /api HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        "two lengths": ("POST %s HTTP/1.1\r\n%sContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}" % (CONFIGMAPS, HEAD)).encode(),
        "a negative length": ("POST %s HTTP/1.1\r\n%sContent-Length: -1\r\n\r\n{}" % (CONFIGMAPS, HEAD)).encode(),
        "a length of letters": ("POST %s HTTP/1.1\r\n%sContent-Length: 0x2\r\n\r\n{}" % (CONFIGMAPS, HEAD)).encode(),
        "a length beyond 64 bits": ("POST %s HTTP/1.1\r\n%sContent-Length: 99999999999999999999999\r\n\r\n{}" % (CONFIGMAPS, HEAD)).encode(),
        "length and chunks": ("POST %s HTTP/1.1\r\n%sContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (CONFIGMAPS, HEAD)).encode(),
        "an unknown encoding": ("POST %s HTTP/1.1\r\n%sTransfer-Encoding: smoke\r\n\r\n{}" % (CONFIGMAPS, HEAD)).encode(),
        "a bad chunk size": ("POST %s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n" % (CONFIGMAPS, HEAD)).encode(),
        "a chunk size beyond 64 bits": ("POST %s HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n%s\r\n" % (CONFIGMAPS, HEAD, "f" * 40)).encode(),
        "a head of 2 MB": long_head.encode(),
        "a line of 2 MB": b"GET /" + b"a" * (2 * MEGABYTE) + b" HTTP/1.1\r\n\r\n",
        "100,000 headers": b"GET /api HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(100000)) + b"\r\n",
        "a method of 100 KB": b"G" * 100000 + b" / HTTP/1.1\r\n\r\n",
    }
    answered = []
    for what, raw in cases.items():
        sock = suite.server.raw_socket()
        try:
            sock.sendall(raw)
        except OSError:
            sock.close()
            continue  # refused while it was sent
        answer = read_answer(sock, 60)
        if answer is not None and not 400 <= status_of(answer) < 500 and status_of(answer) not in (501, 505):
            raise Failure("%s: %s" % (what, answer[0].split("\r\n")[0]))
        answered.append((what, sock))
    for what, sock in answered:
        if not ends(sock, 60):
            raise Failure("%s: the connection stays open" % what)
        sock.close()
    # An unknown method is no reason to hang up, and says which are allowed.
    with suite.server.client() as client:
        answer = client.request("FROB", CONFIGMAPS)
        if answer.status != 405:
            raise Failure("an unknown method: %r" % answer)
        suite.refused(answer, "an unknown method", 405)


def pipelining(suite):
    sock = suite.server.raw_socket()
    paths = ["/healthz" if i % 2 else "/version" for i in range(200)]
    requests = "".join("GET %s HTTP/1.1\r\n%s\r\n" % (path, HEAD) for path in paths).encode()
    threading.Thread(target=lambda: sock.sendall(requests), daemon=True).start()
    reader = sock.makefile("rb")
    for path in paths:
        line = reader.readline()
        if not line.startswith(b"HTTP/1.1 200"):
            raise Failure("pipelined %s: %r" % (path, line))
        length = 0
        while line not in (b"\r\n", b""):
            line = reader.readline()
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = reader.read(length)
        if (body == b"ok") != (path == "/healthz"):
            raise Failure("pipelined answers out of order: %s got %r" % (path, body[:40]))
    reader.close()
    sock.close()


def connection_close(suite):
    """Who asks for the connection to be closed gets the answer first."""
    sock = suite.server.raw_socket()
    sock.sendall(("GET /healthz HTTP/1.1\r\n%sConnection: close\r\n\r\n" % HEAD).encode())
    answer = read_answer(sock)
    if status_of(answer) != 200 or not ends(sock, 30):
        raise Failure("Connection: close: %s" % (answer,))
    sock.close()


def garbage_tls(suite):
    chance = random.Random(11)
    plain = suite.server.raw_socket(tls=False)
    plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    plain.settimeout(20)
    try:
        data = plain.recv(4096)
    except OSError:
        data = b""
    if data.startswith(b"HTTP/1.") and not data.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400")):
        raise Failure("plain HTTP was served: %r" % data[:60])
    plain.close()
    hello = client_hello(suite)
    pieces = [bytes(chance.randrange(256) for _ in range(500)) for _ in range(30)]
    pieces += [hello[:n] for n in range(1, len(hello), max(1, len(hello) // 40))]
    for _ in range(100):
        broken = bytearray(hello)
        for _ in range(chance.randint(1, 6)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        pieces.append(bytes(broken))
    pieces += [b"\x16\x03\x01\xff\xff" + b"\x01" * 70000, b"\x80" * 1000, b"\x15\x03\x03\x00\x02\x02\x28", hello + b"\x17\x03\x03\x40\x00" + b"x" * 16384]
    left = []
    for piece in pieces:
        sock = suite.server.raw_socket(tls=False)
        try:
            sock.sendall(piece)
        except OSError:
            pass
        left.append(sock)
    suite.probe()
    for sock in left:
        sock.close()
    # Old protocols are refused.
    context = ssl._create_unverified_context()
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        with socket.create_connection((suite.server.host, suite.server.port), timeout=20) as sock:
            with context.wrap_socket(sock):
                raise Failure("TLS 1.1 was accepted")
    except (ssl.SSLError, OSError, ValueError):
        pass


def client_hello(suite):
    """What a client of TLS would send first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = suite.server.context().wrap_bio(incoming, outgoing, server_hostname=suite.server.host)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def slow_readers(suite):
    """Clients that read a byte a second of a large answer hold up nobody."""
    client = suite.client
    client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "slow"}})
    path = "/api/v1/namespaces/slow/configmaps"
    for i in range(40):
        client.expect(201, "POST", path, {"metadata": {"name": "big-%d" % i}, "data": {"k": "x" * 400000}})
    readers = []
    for _ in range(20):
        sock = suite.server.raw_socket()
        sock.sendall(("GET %s HTTP/1.1\r\n%s\r\n" % (path, HEAD)).encode())
        readers.append(sock)
    for _ in range(4):
        for sock in readers:
            sock.settimeout(10)
            sock.recv(1)
        suite.probe()
        time.sleep(0.5)  # the pace of the slow ones
    for sock in readers:
        sock.close()
    client.expect(200, "DELETE", path)


def slow_watchers(suite):
    """Watches that are never read do not make the server keep everything for them, nor hold up other watches."""
    path = "/api/v1/namespaces/slow-watch/configmaps"
    suite.client.expect(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "slow-watch"}})
    suite.client.expect(201, "POST", path, {"metadata": {"name": "big"}})
    start = suite.client.expect(200, "GET", path)["metadata"]["resourceVersion"]
    deaf = []
    for _ in range(10):
        sock = suite.server.raw_socket()
        sock.sendall(("GET %s?watch=true&resourceVersion=%s HTTP/1.1\r\n%s\r\n" % (path, start, HEAD)).encode())
        deaf.append(sock)
    alert = suite.server.client().stream("%s?watch=true&resourceVersion=%s" % (path, start))
    writes, size = 150, 500000
    seen = []

    def listen():
        for line in alert:
            seen.append(json.loads(line)["object"]["metadata"]["resourceVersion"])
            if len(seen) == writes:
                return
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    before = suite.server.resident_bytes()
    versions = []
    for i in range(writes):
        made = suite.client.expect(200, "PUT", path + "/big", {"metadata": {"name": "big"}, "data": {"k": chr(97 + i % 26) * size, "n": str(i)}})
        versions.append(made["metadata"]["resourceVersion"])
    listener.join(60)
    if seen != versions:
        raise Failure("beside deaf watches, another saw %d of %d events" % (len(seen), len(versions)))
    grown = suite.server.resident_bytes() - before
    # The history itself may stay in memory until it is compacted; ten copies of it may not.
    if not cluster.has_sanitizer() and grown > 4 * writes * size:
        raise Failure("grown by %d MB over %d MB of writes" % (grown >> 20, writes * size >> 20))
    for sock in deaf:
        sock.close()
    alert.hang_up()
    suite.client.expect(200, "DELETE", path)


def slow_writers(suite):
    """Heads that trickle in are cut off after a while; meanwhile others are served. So are bodies that never come."""
    loris = []
    for i in range(100):
        sock = suite.server.raw_socket()
        sock.sendall(b"GET /api HTTP/1.1\r\n")
        loris.append(sock)
    body = suite.server.raw_socket()
    body.sendall(("POST %s HTTP/1.1\r\n%sContent-Length: 1000\r\n\r\n{" % (CONFIGMAPS, HEAD)).encode())
    began = time.monotonic()
    closed = 0
    while time.monotonic() - began < 60 and closed < len(loris):
        closed = 0
        for sock in loris:
            try:
                sock.sendall(b"X: y\r\n")
                if select.select([sock], [], [], 0)[0] and ends(sock, 1):
                    closed += 1
            except OSError:
                closed += 1
        suite.probe()
        time.sleep(1)  # the pace of the slow ones
    for sock in loris:
        sock.close()
    if closed < len(loris):
        raise Failure("after 60 s, %d of %d trickling heads are still listened to" % (len(loris) - closed, len(loris)))
    if not ends(body, 90):
        raise Failure("a body that never comes is waited for longer than 90 s")
    body.close()


def idle_connections(suite):
    """5,000 connections opened and left: others are served, and all is given back when they go."""
    limit = raise_file_limit()
    count = min(5000, (limit - 200) // 2)
    before = suite.server.open_files()
    left = []
    for i in range(count):
        left.append(socket.create_connection((suite.server.host, suite.server.port), timeout=30))
        if i % 1000 == 999:
            suite.probe()
    cluster.wait_for(lambda: suite.server.open_files() >= before + count * 9 // 10 or suite.server.open_files() < before + count // 2, 30,
                     "the connections to be accepted")
    suite.probe()
    grown = suite.server.resident_bytes()
    for sock in left:
        sock.close()
    cluster.wait_for(lambda: suite.server.open_files() <= before + 50, 60, "the connections to be given back")
    if not cluster.has_sanitizer() and grown > 2 << 30:
        raise Failure("%d MB for %d idle connections" % (grown >> 20, count))
    print("  %d connections" % count)


def broken_off(suite):
    """Connections reset in the middle of requests, answers and watches leave nothing behind."""
    before = suite.server.open_files()
    chance = random.Random(3)
    for i in range(300):
        sock = suite.server.raw_socket()
        request = ("POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{" % (CONFIGMAPS, HEAD),
                   "GET %s?watch=true HTTP/1.1\r\n%s\r\n" % (CONFIGMAPS, HEAD),
                   "GET /openapi/v2 HTTP/1.1\r\n%s\r\n" % HEAD)[i % 3].encode()
        sock.sendall(request[:chance.randrange(1, len(request) + 1)] if i % 4 == 0 else request)
        if i % 2 and i % 3:
            sock.settimeout(10)
            try:
                sock.recv(10)
            except OSError:
                pass
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close by reset
        sock.close()
    cluster.wait_for(lambda: suite.server.open_files() <= before + 20, 90, "%d open files to go back to %d" % (suite.server.open_files(), before))


def upgrades(suite):
    """Upgrades where there is nothing to upgrade to, and to what nobody speaks."""
    for path in ("/api/v1/namespaces/default/pods/none/exec?command=x", CONFIGMAPS + "?watch=true&timeoutSeconds=1", "/healthz"):
        for protocol in ("websocket", "SPDY/3.1", "h2c", "nonsense"):
            sock = suite.server.raw_socket()
            sock.sendall(("GET %s HTTP/1.1\r\n%sConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n" %
                          (path, HEAD, protocol)).encode())
            answer = read_answer(sock)
            if answer is None or status_of(answer) >= 500:
                raise Failure("%s to %s: %s" % (path, protocol, answer))
            sock.sendall(os.urandom(200))
            sock.close()


if __name__ == "__main__":
    http.client._MAXHEADERS = 1000
    raise_file_limit()  # the server inherits it
    sys.exit(run([endless_bodies, malformed_requests, pipelining, connection_close, garbage_tls, slow_readers, slow_watchers, broken_off,
                  upgrades, idle_connections, slow_writers]))
