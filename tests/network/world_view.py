# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The world as the tests themselves see it from the host's namespace."""

import contextlib
import http.client
import json
import os
import socket
import ssl
import struct
from pathlib import Path

from bed import addresses

BED = Path(os.environ["ALCOVE_BED"])
CA = BED / "ca.crt"


def fetch(host, path, *, address=None, tls=None):
    """A GET for a name of the zone, which this machine's own resolver does not know."""
    raw = socket.create_connection((address or addresses.ZONE[host][0][0], 443 if tls else 80), timeout=10)
    with contextlib.closing(http.client.HTTPConnection(host)) as connection:
        connection.sock = tls.wrap_socket(raw, server_hostname=host) if tls else raw
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()


def trusting():
    return ssl.create_default_context(cafile=CA)


def seen():
    """What arrived in the world so far: `names` asked for as [name, type], and the addresses that
    `tcp` connections and `udp` datagrams to the echo came to."""
    return json.loads(fetch(addresses.FILES, "/seen")[1])


def ask_name_server(name, kind, *, tcp=False):
    """The flags and the addresses of the answer."""
    question = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    query = struct.pack("!HHHHHH", 4711, 0x0100, 1, 0, 0, 0) + question + struct.pack("!HH", kind, 1)
    with socket.socket(type=socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as asker:
        asker.settimeout(10)
        asker.connect((addresses.NAME_SERVER, 53))
        asker.sendall(struct.pack("!H", len(query)) + query if tcp else query)
        answer = asker.recv(65536) if not tcp else _read_all(asker)
    number, flags, _, count, _, _ = struct.unpack("!HHHHHH", answer[:12])
    assert number == 4711
    size = 4 if kind == 1 else 16
    at, found = len(query), []
    for _ in range(count):
        found.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, answer[at + 12 : at + 12 + size]))
        at += 12 + size
    return flags, found


def _read_all(asker):
    with asker.makefile("rb") as stream:
        return stream.read(struct.unpack("!H", stream.read(2))[0])
