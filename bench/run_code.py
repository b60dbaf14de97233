# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`1+1` in the code interpreter: warm on a kept connection through the gateway, and in fresh
sandboxes and contexts, beside Jupyter on the same machine and outside of any sandbox (ipykernel
driven by jupyter_client; Jupyter Server over its WebSocket); with the official client beside the same
client talking to a server that does nothing. Memory is that of idle sandboxes with their agent,
interpreter and Python kernel, beside one ipykernel's process."""

import contextlib
import json
import time

from lib import empty_server, jupyter, memory, report, wire

_TEMPLATE = "code-interpreter-v1"
_WARM_UP = 20
_ROUNDS = 10
_RUNS = 30
_CLIENT_RUNS = 100
_STARTS = 10
# What each of the other languages is asked for in a new context, and what its answer has in it.
_LANGUAGES = {
    "javascript": ("1+1", b'"text": "2"'),
    "typescript": ("const two: number = 2; two", b'"text": "2"'),
    "bash": ("echo $((1+1))", b'"text": "2\\n"'),
    "r": ("1+1", b'[1] 2'),
    "java": ("1+1", b'"text": "2"'),
}
# Sandboxes for what can be seen once in each.
_FRESH = 5
_IDLE = 20
_SETTLE = 5.0


def main():
    with jupyter.running() as peer:
        rows = [*_warm(peer), *_client(), *_starts(peer), *_contexts(peer), *_once(), *_memory(peer)]
        rows.append(report.Row(f"beside: {peer.facts()['versions']}"))
    return rows


def _warm(peer):
    ours, kernel, server = [], [], []
    with wire.sandbox(_TEMPLATE) as sandbox:
        message = sandbox.execute("1+1")
        for _ in range(_WARM_UP):
            _check(*sandbox.connection.exchange(message))
        peer.kernel(_WARM_UP), peer.server(_WARM_UP)
        for _ in range(_ROUNDS):
            for _ in range(_RUNS):
                seconds, answer = report.timed(lambda: sandbox.connection.exchange(message))
                _check(*answer)
                ours.append(seconds)
            kernel += peer.kernel(_RUNS)
            server += peer.server(_RUNS)
    name = "run_code('1+1'), raw HTTP"
    return [
        report.times(name, ours, beside="ipykernel, jupyter_client", floor=kernel),
        report.times(name, ours, beside="Jupyter Server, WebSocket", floor=server),
    ]


def _client():
    from e2b_code_interpreter import Sandbox

    def made(url):
        return Sandbox.create(timeout=600, api_url=url[0], sandbox_url=url[1])

    def once(sandbox):
        seconds, result = report.timed(lambda: sandbox.run_code("1+1"))
        if result.text != "2":
            raise wire.Failed(f"1+1 is {result.text}: {result.error}")
        return seconds

    ours, theirs = [], []
    with contextlib.ExitStack() as ends:
        empty = ends.enter_context(empty_server.running())
        real = made((wire.API_URL, wire.SANDBOX_URL))
        ends.callback(real.kill)
        idle = made((empty, empty))
        for i in range(_WARM_UP + _CLIENT_RUNS):
            pair = once(real), once(idle)
            if i >= _WARM_UP:
                ours.append(pair[0])
                theirs.append(pair[1])
    row = report.times("run_code('1+1'), Python client", ours, beside="client, empty server", floor=theirs)
    over = report.percentile(ours, 0.5) - report.percentile(theirs, 0.5)
    return [row, report.times("the same, over the client alone", [over])]


def _starts(peer):
    """A sandbox that nobody has used: its kernel may still be on its way."""
    creates, firsts, kernels = [], [], []
    api = wire.Api(_TEMPLATE)
    for _ in range(_STARTS):
        seconds, created = report.timed(api.create)
        try:
            sandbox = wire.Sandbox(created)
            first, answer = report.timed(lambda: sandbox.connection.exchange(sandbox.execute("1+1")))
            _check(*answer)
            sandbox.connection.close()
        finally:
            api.kill(created)
        creates.append(seconds)
        firsts.append(first)
        kernels.append(sum(peer.start()))
    both = [create + first for create, first in zip(creates, firsts)]
    beside = "ipykernel, start + first run"
    return [
        report.times(f"create of {_TEMPLATE}", creates),
        report.times("first run_code right after create", firsts, beside=beside, floor=kernels),
        report.times("create + first run_code", both, beside=beside, floor=kernels),
    ]


def _contexts(peer):
    """From the request for a context to the end of its first run."""
    rows = []
    with wire.sandbox(_TEMPLATE) as sandbox:
        _check(*sandbox.connection.exchange(sandbox.execute("1+1")))
        contexts, starts = [], []
        for _ in range(_STARTS):
            contexts.append(_context(sandbox, "python", "1+1", b'"text": "2"'))
            starts.append(peer.start()[0])
        rows.append(report.times("new context and a run in it: python", contexts, beside="ipykernel, start to ready", floor=starts))
        for language, (code, expected) in _LANGUAGES.items():
            samples = [_context(sandbox, language, code, expected) for _ in range(_STARTS)]
            rows.append(report.times(f"the same: {language}", samples))
    return rows


def _once():
    """In sandboxes that nobody has used for it yet."""
    java, back = [], []
    for _ in range(_FRESH):
        with wire.sandbox(_TEMPLATE) as sandbox:
            _check(*sandbox.connection.exchange(sandbox.execute("1+1")))
            java.append(_context(sandbox, "java", *_LANGUAGES["java"]))
            back.append(_killed(sandbox))
    return [
        report.times("the first Java context of a sandbox and a run in it", java),
        report.times("run_code right after the interpreter was killed", back),
    ]


def _killed(sandbox):
    """Seconds from the interpreter's death to the end of a run in a fresh default context."""
    sandbox.run("/bin/bash", "-c", "sudo kill -9 $(pgrep -x alcove-interp)")
    fresh = wire.Connection(wire.SANDBOX_URL)
    try:
        seconds, answer = report.timed(lambda: fresh.exchange(sandbox.execute("1+1")))
    finally:
        fresh.close()
    _check(*answer)
    return seconds


def _context(sandbox, language, code, expected):
    """Seconds; the context is removed again."""
    start = time.perf_counter()
    head, body = sandbox.connection.exchange(sandbox.create_context(language))
    wire.expect(head, 200)
    context = json.loads(body)["id"]
    answer = sandbox.connection.exchange(sandbox.execute(code, context))
    seconds = time.perf_counter() - start
    _check(*answer, expected)
    wire.expect(sandbox.connection.exchange(sandbox.remove_context(context))[0], 200)
    return seconds


def _memory(peer):
    api = wire.Api(_TEMPLATE)
    with contextlib.ExitStack() as ends:
        ids = []
        before = _settled()
        for _ in range(_IDLE):
            created = api.create()
            ends.callback(api.kill, created)
            ids.append(created["sandboxID"])
            sandbox = wire.Sandbox(created)
            _check(*sandbox.connection.exchange(sandbox.execute("1+1")))
            sandbox.connection.close()
        alive = _settled()
        sums = [memory.total(pids) for pids in memory.processes(ids).values()]
    used = ((before + _settled()) / 2 - alive) / _IDLE
    one = memory.of(peer.facts()["pid"])
    rows = [report.Row("idle sandbox with a kernel, share of MemAvailable", memory.text(used), n=str(_IDLE))]
    for name in ("Pss", "Private"):
        samples = [facts[name] for facts in sums]
        p50, p99 = (report.percentile(samples, share) for share in (0.5, 0.99))
        row = report.Row(f"the processes of one, {name}", memory.text(p50), memory.text(p99), str(len(samples)))
        row.beside, row.floor, row.ratio = f"one ipykernel, {name}", memory.text(one[name]), f"{p50 / one[name]:.2f}"
        rows.append(row)
    return rows


def _settled():
    time.sleep(_SETTLE)
    return memory.available()


def _check(head, body, expected=b'"text": "2"'):
    wire.expect(head, 200)
    if expected not in body:
        raise wire.Failed(body.decode(errors="replace"))


if __name__ == "__main__":
    report.run(main)
