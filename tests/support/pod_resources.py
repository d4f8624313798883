#!/usr/bin/env python3
"""Asks the PodResources service of a node over its socket, as a monitoring agent does: pod_resources.py SOCKET [NAMESPACE/POD]

Prints a line for each claim of each container: pod, container, class, claim, driver where it is told, CDI ids. With a pod's name it asks for
that pod alone (Get), else for all (List). What the service refuses is printed as "error: …", with exit status 1. Python 3 standard library
only: just enough of HTTP/2 and protobuf for one call.
"""
import socket
import struct
import sys
import urllib.parse

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header field without indexing and without Huffman code."""
    def text(raw):
        assert len(raw) < 127
        return bytes([len(raw)]) + raw
    return b"\x00" + text(name.encode()) + text(value.encode())


def read_exactly(connection, size):
    out = b""
    while len(out) < size:
        part = connection.recv(size - len(out))
        if not part:
            raise ConnectionError("the service hung up")
        out += part
    return out


def call(path, method, request=b""):
    """The answer's message; None when the call failed, which trailers in Huffman code do not tell in plain words."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(path)
        headers = b"".join(literal(*pair) for pair in (
            (":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost"),
            ("content-type", "application/grpc"), ("te", "trailers")))
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, headers) +
                           frame(DATA, END_STREAM, 1, b"\x00" + struct.pack(">I", len(request)) + request))
        body, trailers = b"", b""
        while True:
            head = read_exactly(connection, 9)
            size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = read_exactly(connection, size)
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                connection.sendall(frame(PING, ACK, 0, payload))
            elif kind == DATA and stream == 1:
                body += payload
            elif kind == HEADERS and stream == 1:
                trailers = payload
            elif kind in (RST_STREAM, GOAWAY):
                raise ConnectionError("the service broke the call off")
            if stream == 1 and flags & END_STREAM and kind in (DATA, HEADERS):
                break
    if len(body) < 5:
        return None, trailers
    return body[5:5 + int.from_bytes(body[1:5], "big")], trailers


def fields(message):
    """{number: [value]} of a message; numbers as int, all else as bytes."""
    def varint(i):
        value = shift = 0
        while True:
            value |= (message[i] & 127) << shift
            shift += 7
            i += 1
            if message[i - 1] < 128:
                return value, i
    out, i = {}, 0
    while i < len(message):
        key, i = varint(i)
        if key & 7 == 0:
            value, i = varint(i)
        else:
            size, i = varint(i)
            value, i = message[i:i + size], i + size
        out.setdefault(key >> 3, []).append(value)
    return out


def text_of(message, number):
    return message.get(number, [b""])[0].decode()


def show(pod):
    pod = fields(pod)
    for container in pod.get(3, []):
        container = fields(container)
        for claim in container.get(5, []):
            claim = fields(claim)
            resources = [fields(resource) for resource in claim.get(4, [])]
            ids = [text_of(fields(device), 1) for resource in resources for device in resource.get(1, [])]
            drivers = sorted({text_of(resource, 2) for resource in resources} - {""})
            words = ["%s/%s" % (text_of(pod, 2), text_of(pod, 1)), text_of(container, 1), "class=" + text_of(claim, 1),
                     "claim=" + text_of(claim, 2), "driver=" + ",".join(drivers), "cdi=" + ",".join(ids)]
            print(" ".join(words))


def main(path, pod=None):
    if pod is None:
        answer, _ = call(path, "/v1.PodResourcesLister/List")
        for one in fields(answer).get(1, []):
            show(one)
        return 0
    name_space, name = pod.split("/")
    request = b"".join(bytes([number << 3 | 2, len(value)]) + value.encode() for number, value in ((1, name), (2, name_space)))
    answer, trailers = call(path, "/v1.PodResourcesLister/Get", request)
    if answer is None:
        known = urllib.parse.unquote_to_bytes(trailers).decode("ascii", "replace")
        print("error: " + ("PodResources API Get method disabled" if "disabled" in known else "the call failed"))
        return 1
    show(fields(answer)[1][0])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
