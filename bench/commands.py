# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""One command on a kept connection through the gateway, beside a bare start, exec and wait of the
same argv by a loop in the same sandbox; and many at once."""

import os
import selectors
import time

from lib import report, wire
from lib.floor import Floor

_COMMANDS = (("/bin/true",), ("/bin/bash", "-l", "-c", "true"))
_WARM_UP = 20
# Floor and value take turns, so that a machine that changes its pace shows in both.
_ROUNDS = 10
_RUNS = 40
_CONNECTIONS = 64
_BURST_ROUNDS = 4
_BURST = 1000


def main():
    with wire.sandbox() as sandbox:
        floor = Floor(sandbox)
        rows = [_single(sandbox, floor, argv) for argv in _COMMANDS]
        rows.append(_many(sandbox, floor, _COMMANDS[0]))
    return rows


def _single(sandbox, floor, argv):
    message = sandbox.start(*argv)
    bare, samples = [], []
    for _ in range(_WARM_UP):
        _check(*sandbox.connection.exchange(message))
    for _ in range(_ROUNDS):
        bare += floor.spawn(_RUNS, *argv)
        for _ in range(_RUNS):
            seconds, (head, body) = report.timed(lambda: sandbox.connection.exchange(message))
            _check(head, body)
            samples.append(seconds)
    return report.times(" ".join(argv), samples, beside="bare spawn in the sandbox", floor=bare)


def _many(sandbox, floor, argv):
    jobs = os.cpu_count()
    bare, rates = [], []
    for _ in range(_BURST_ROUNDS):
        bare.append(floor.rate(jobs, _BURST // jobs, *argv))
        rates.append(_burst(sandbox.start(*argv)))
    name = f"{' '.join(argv)}, {_CONNECTIONS} connections"
    return report.rates(name, rates, "/s", beside=f"{jobs} bare loops in the sandbox", floor=bare)


def _burst(message):
    """Runs per second with all connections busy, driven by one loop."""
    selector = selectors.EpollSelector()
    connections = [wire.Connection(wire.SANDBOX_URL) for _ in range(_CONNECTIONS)]
    answers = {connection: bytearray() for connection in connections}
    begin = time.perf_counter()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.socket.sendall(message)
    sent, done = len(connections), 0
    while done < _BURST:
        for key, _ in selector.select():
            connection = key.data
            answer = answers[connection]
            answer += connection.socket.recv(65536)
            if not wire.complete(answer):
                continue
            _check(*bytes(answer).split(b"\r\n\r\n", 1))
            answer.clear()
            done += 1
            if sent < _BURST:
                connection.socket.sendall(message)
                sent += 1
    elapsed = time.perf_counter() - begin
    for connection in connections:
        connection.close()
    selector.close()
    return _BURST / elapsed


def _check(head, body):
    wire.expect(head, 200)
    if b"exit status 0" not in body:
        raise wire.Failed(body.decode(errors="replace"))


if __name__ == "__main__":
    report.run(main)
