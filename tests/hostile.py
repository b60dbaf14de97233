# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What tests of bad input use: bare connections, calls to a sandbox's agent without the SDK, and what
the server uses meanwhile."""

import contextlib
import functools
import json
import os
import socket
import urllib.parse
from pathlib import Path

from harness import BY_DOMAIN, SANDBOX_URL, server_pid, to_sandbox, trusted

AGENT_PORT = 49983
JSON = {"Content-Type": "application/json"}
STREAM = {"Content-Type": "application/connect+json"}
BYTES = {"Content-Type": "application/octet-stream"}


class Usage:
    """What the server uses now."""

    def __init__(self):
        proc = Path(f"/proc/{server_pid()}")
        self.descriptors = len(list((proc / "fd").iterdir()))
        self.memory = int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def __repr__(self):
        return f"{self.descriptors} descriptors, {self.memory >> 20} MiB"


def dial(url=SANDBOX_URL, timeout=10):
    target = urllib.parse.urlsplit(url)
    return socket.create_connection((target.hostname, target.port), timeout=timeout)


def dial_tls(timeout=10):
    """The same port over TLS, handshaken."""
    name = BY_DOMAIN["E2B_DOMAIN"].partition(":")[0]
    return _trusted().wrap_socket(dial(timeout=timeout), server_hostname=f"api.{name}")


# Reading all certificates takes longer than a handshake.
_trusted = functools.cache(trusted)


def drain(connection):
    """All bytes until the server closes."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def raw(data, wait=5.0):
    """All bytes that come back until the server closes; fails if it does not within `wait`."""
    with dial(timeout=wait) as connection:
        # A server that refuses early may close before it has read all.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        return drain(connection)


def statuses(received):
    """The status of each answer in what came over one connection. No body here has these bytes."""
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]


def error_of(received):
    """The status of the one answer of a connection, checked for the error shape."""
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), received[:200]
    status, content = int(head[9:12]), json.loads(body)
    assert content["code"] == status and content["message"], received
    return status


def token_of(box):
    return box._envd_access_token


def to_agent(box, token=True):
    """Header lines that lead a bare request to the sandbox's agent."""
    fields = f"Host: localhost\r\nE2b-Sandbox-Id: {box.sandbox_id}\r\nE2b-Sandbox-Port: {AGENT_PORT}\r\n"
    return (fields + (f"X-Access-Token: {token_of(box)}\r\n" if token else "")).encode()


def call(box, method, path, body=None, headers=None, token=True, **options):
    """One request to the sandbox's agent."""
    fields = (headers or {}) | ({"X-Access-Token": token_of(box)} if token is True else {})
    return to_sandbox(method, path, box.sandbox_id, body=body, headers=fields, **options)
