#!/usr/bin/env python3
"""HTTP/2 as no good client speaks it: floods of frames, streams that are opened and thrown away, readers that do not read."""
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time

from suite import CONFIGMAPS, Failure, cluster, run

ADMIN_TOKEN = cluster.ADMIN_TOKEN
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PROTOCOL_ERROR, INTERNAL_ERROR, REFUSED, CALM = 1, 2, 7, 11


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A field as it is, that no table keeps."""
    def text(data):
        return (bytes([len(data)]) if len(data) < 127 else b"\x7f" + varint(len(data) - 127)) + data
    return b"\x00" + text(name.encode()) + text(value.encode())


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


class Connection:
    def __init__(self, suite, window=65535):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        self.socket = context.wrap_socket(socket.create_connection((suite.server.host, suite.server.port), timeout=60))
        if self.socket.selected_alpn_protocol() != "h2":
            raise Failure("the server does not speak HTTP/2")
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)))
        self.input, self.next = b"", 1

    def send(self, data):
        self.socket.sendall(data)

    def head(self, path, method="GET", more=()):
        fields = [(":method", method), (":scheme", "https"), (":authority", "h"), (":path", path), ("authorization", "Bearer " + ADMIN_TOKEN)]
        return b"".join(literal(*field) for field in fields + list(more))

    def ask(self, path, **more):
        stream, self.next = self.next, self.next + 2
        self.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, self.head(path, **more)))
        return stream

    def read(self):
        """The next frame; None at the end."""
        def take(size):
            while len(self.input) < size:
                try:
                    more = self.socket.recv(65536)
                except (ConnectionError, ssl.SSLError):
                    more = b""
                if not more:
                    return None
                self.input += more
            out, self.input = self.input[:size], self.input[size:]
            return out
        start = take(9)
        if start is None:
            return None
        payload = take(int.from_bytes(start[:3], "big"))
        return None if payload is None else (start[3], start[4], int.from_bytes(start[5:], "big"), payload)

    def until(self, test, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.read()
            if got is None:
                raise Failure("%s: the connection ended" % what)
            if got[0] == PING and not got[1] & ACK:
                self.send(frame(PING, ACK, 0, got[3]))
            if test(got):
                return got
        raise Failure("%s: it did not come" % what)

    def ends(self, what, seconds=60):
        """The server says goodbye, or only ends."""
        end = time.monotonic() + seconds
        reason = None
        while time.monotonic() < end:
            got = self.read()
            if got is None:
                return reason
            if got[0] == GOAWAY:
                reason = int.from_bytes(got[3][4:8], "big")
        raise Failure("%s: the connection lives" % what)

    def flood(self, data, times, what):
        try:
            for _ in range(times):
                self.send(data() if callable(data) else data)
        except OSError:
            pass
        reason = self.ends(what)
        # The library has bounds of its own, with other words for them.
        if reason not in (None, PROTOCOL_ERROR, INTERNAL_ERROR, CALM):
            raise Failure("%s: ended with %s" % (what, reason))


def answers(suite):
    if not shutil.which("curl"):
        return
    done = subprocess.run(["curl", "-sk", "--http2", "-w", "\n%{http_version} %{http_code}", "-H", "Authorization: Bearer " + ADMIN_TOKEN,
                           suite.server.url + "/api/v1/namespaces/default", suite.server.url + CONFIGMAPS], capture_output=True, text=True)
    if done.stdout.count("\n2 200") != 2:
        raise Failure("curl --http2: %r" % done)


def rapid_reset(suite):
    connection = Connection(suite)

    def one():
        stream, connection.next = connection.next, connection.next + 2
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, connection.head(CONFIGMAPS)) + frame(RST, 0, stream, struct.pack(">I", 8))
    connection.flood(one, 20000, "rapid resets")


def floods(suite):
    Connection(suite).flood(frame(PING, 0, 0, b"12345678") * 50, 2000, "pings")
    Connection(suite).flood(frame(SETTINGS, 0, 0) * 50, 2000, "settings")
    connection = Connection(suite)
    connection.send(frame(HEADERS, END_STREAM, 1, connection.head("/")))
    connection.flood(frame(CONTINUATION, 0, 1) * 50, 20000, "continuations")
    connection = Connection(suite)
    connection.send(frame(HEADERS, END_HEADERS, 1, connection.head(CONFIGMAPS, method="POST")))
    connection.flood(frame(DATA, 0, 1) * 50, 2000, "empty data")


def a_bomb_of_headers(suite):
    connection = Connection(suite)
    # One field of 4,000 bytes goes into the table, and is meant again by a byte each time.
    kept = b"\x40\x01x\x7f" + varint(4000 - 127) + b"y" * 4000
    connection.send(frame(HEADERS, END_STREAM, 1, connection.head("/") + kept))
    for _ in range(20):
        connection.send(frame(CONTINUATION, 0, 1, b"\xbe" * 16000))
    connection.send(frame(CONTINUATION, END_HEADERS, 1, b"\xbe"))
    got = connection.until(lambda f: f[2] == 1 and f[0] in (HEADERS, RST) or f[0] == GOAWAY, "a bomb of headers")
    if got[0] == HEADERS and b"431" not in got[3]:
        raise Failure("a bomb of headers: %r" % (got,))


def many_bombs_of_headers(suite):
    """Each is small enough to be let in; all together are not, as long as they are not whole."""
    connection = Connection(suite)
    kept = b"\x40\x01x\x7f" + varint(4000 - 127) + b"y" * 4000
    for i in range(90):
        stream, connection.next = connection.next, connection.next + 2
        connection.send(frame(HEADERS, END_HEADERS, stream, connection.head("/", method="POST") + (b"" if i else kept) + b"\xbe" * 55))
    refused = set()

    def sees(got):
        if got[0] == RST and got[3] == struct.pack(">I", REFUSED):
            refused.add(got[2])
        return len(refused) >= 80
    connection.until(sees, "many bombs of headers")
    for stream in set(range(1, connection.next, 2)) - refused:
        connection.send(frame(RST, 0, stream, struct.pack(">I", 8)))
    good = connection.ask(CONFIGMAPS)
    connection.until(lambda f: f[0] == HEADERS and f[2] == good, "an answer after many bombs of headers")


def too_many_streams(suite):
    connection = Connection(suite)
    for _ in range(300):
        connection.ask(CONFIGMAPS + "?watch=true")
    connection.until(lambda f: f[0] in (RST, GOAWAY), "300 watches on a connection")


def a_reader_that_does_not_read(suite):
    """One watch is not read: others on the connection go on, and so does the server."""
    connection = Connection(suite, window=0)
    connection.ask(CONFIGMAPS + "?watch=true")  # its window stays shut
    other = connection.ask(CONFIGMAPS + "?watch=true&resourceVersion=0")
    connection.send(frame(WINDOW, 0, other, struct.pack(">I", 1000000)))
    name = "h2-%d" % time.monotonic_ns()
    suite.client.expect(201, "POST", CONFIGMAPS, {"metadata": {"name": name}})
    connection.until(lambda f: f[0] == DATA and f[2] == other and name.encode() in f[3], "an event beside a reader that does not read")


def nonsense(suite):
    for data in (b"\x00" * 10000, b"GET / HTTP/1.1\r\n\r\n", frame(DATA, 0, 1, b"x") * 10, frame(99, 255, 77, b"abc"), frame(HEADERS, 5, 2, b"\xff" * 100),
                 frame(WINDOW, 0, 0, struct.pack(">I", 0)), frame(SETTINGS, 0, 0, b"123"), frame(HEADERS, 5, 1, literal(":path", "/")),
                 frame(HEADERS, 5, 1, b"".join(literal(*f) for f in ((":method", "GET"), (":scheme", "https"), (":path", "/"), (":front-proxy", "x"))))):
        connection = Connection(suite)
        try:
            connection.send(data)
        except OSError:
            pass
        connection.socket.settimeout(1)
        try:
            while connection.read():
                pass
        except OSError:
            pass


if __name__ == "__main__":
    sys.exit(run([answers, rapid_reset, floods, a_bomb_of_headers, many_bombs_of_headers, too_many_streams, a_reader_that_does_not_read, nonsense]))
