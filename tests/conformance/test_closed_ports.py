# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Requests for ports that may be about to open: how many wait, and who frees his place."""

import http.client
import json
import socket
import time
import urllib.parse

import pytest
from harness import SANDBOX_URL, to_sandbox
from streams import envelope

pytestmark = pytest.mark.wire

_ORIGIN = urllib.parse.urlsplit(SANDBOX_URL)


def _start_something(box):
    """For ten seconds more, a port that is closed is waited for."""
    reply = to_sandbox(
        "POST",
        "/process.Process/Start",
        box["sandboxID"],
        body=envelope({"process": {"cmd": "/bin/true"}}),
        headers={"X-Access-Token": box["envdAccessToken"], "Content-Type": "application/connect+json"},
    )
    assert reply.status == 200, reply.body


def _ask_closed_port(box, times):
    """Connections on which a request has been sent and not been answered."""
    peers = [socket.create_connection((_ORIGIN.hostname, _ORIGIN.port), timeout=10) for _ in range(times)]
    # All within much less than a second.
    for peer in peers:
        peer.sendall(f"GET / HTTP/1.1\r\nHost: 8123-{box}.box.localhost\r\nConnection: close\r\n\r\n".encode())
    return peers


def _answer(peer):
    with peer:
        response = http.client.HTTPResponse(peer)
        response.begin()
        return response.status, dict(response.getheaders()), json.loads(response.read())


def test_only_so_many_wait_for_a_service(created):
    """For a moment after a command was started, a closed port is waited for; more than 128 at a time are told to come again."""
    box = created()
    _start_something(box)
    answers = [_answer(peer) for peer in _ask_closed_port(box["sandboxID"], 200)]
    refused = [(headers, body) for status, headers, body in answers if status == 429]
    assert {status for status, _, _ in answers} == {429, 502} and len(refused) <= 200 - 128
    for headers, body in refused:
        assert headers["Retry-After"] == "1" and headers["Content-Type"] == "application/json; charset=utf-8"
        assert body == {
            "sandboxId": box["sandboxID"],
            "message": "Too many requests wait for services of the sandbox to start",
            "port": 8123,
            "connectionLimit": 128,
            "code": 429,
        }
    # Another sandbox has places of its own.
    other = created()
    _start_something(other)
    waiting = _ask_closed_port(box["sandboxID"], 128)
    assert _answer(*_ask_closed_port(other["sandboxID"], 1))[0] == 502
    for peer in waiting:
        peer.close()


def test_who_leaves_does_not_wait_for_a_service(created):
    box = created()
    _start_something(box)
    waiting = _ask_closed_port(box["sandboxID"], 128)
    begin = time.monotonic()
    for peer in waiting:
        peer.close()
    # One that finds no place is answered at once; all places are free after a second anyway.
    status = 429
    while status == 429 and time.monotonic() < begin + 0.7:
        status = _answer(*_ask_closed_port(box["sandboxID"], 1))[0]
    assert status == 502
