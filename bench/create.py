# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Creating a sandbox: raw HTTP beside a bare round trip to the same server, and the official
Python client beside the same client talking to a server that does nothing."""

from lib import empty_server, report, wire

_RUNS = 100
_CLIENT_RUNS = 50


def main():
    return [*_raw(), *_client()]


def _raw():
    api = wire.Api()
    creates, kills, trips = [], [], []
    for _ in range(_RUNS):
        trips.append(report.timed(api.health)[0])
        seconds, created = report.timed(api.create)
        creates.append(seconds)
        kills.append(report.timed(lambda: api.kill(created))[0])
    beside = "GET /health"
    return [
        report.times("create, raw HTTP", creates, beside=beside, floor=trips),
        report.times("kill, raw HTTP", kills, beside=beside, floor=trips),
    ]


def _client():
    import e2b

    def once(urls):
        def begin():
            return e2b.Sandbox.create("base", timeout=120, **urls)

        create, sandbox = report.timed(begin)
        try:
            command, result = report.timed(lambda: sandbox.commands.run("true"))
        finally:
            sandbox.kill()
        if result.exit_code != 0:
            raise wire.Failed(f"true ended with {result.exit_code}")
        return create, command

    real = {"api_url": wire.API_URL, "sandbox_url": wire.SANDBOX_URL}
    with empty_server.running() as url:
        empty = {"api_url": url, "sandbox_url": url}
        # The first round pays for imports and connections.
        once(real), once(empty)
        ours, theirs = [], []
        for _ in range(_CLIENT_RUNS):
            ours.append(once(real))
            theirs.append(once(empty))
    beside = "client, empty server"
    names = {
        "create, Python client": lambda pair: pair[0],
        "commands.run('true'), Python client": lambda pair: pair[1],
        "create + first command, Python client": sum,
    }
    return [
        report.times(name, [pick(pair) for pair in ours], beside=beside, floor=[pick(pair) for pair in theirs])
        for name, pick in names.items()
    ]


if __name__ == "__main__":
    report.run(main)
