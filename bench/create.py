# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Creating a sandbox: raw HTTP beside a bare round trip to the same server, and beside the kernel's
floor (the same namespaces and file systems around a bare exec); the official Python client beside the
same client talking to a server that does nothing."""

from lib import boot_floor, empty_server, report, wire

_RUNS = 100
_CLIENT_RUNS = 50


def main():
    return [*_raw(), *_client()]


def _raw():
    api = wire.Api()
    creates, kills, trips, floors = [], [], [], []
    with boot_floor.running() as floor:
        for _ in range(_RUNS):
            trips.append(report.timed(api.health)[0])
            seconds, created = report.timed(api.create)
            creates.append(seconds)
            kills.append(report.timed(lambda: api.kill(created))[0])
            if floor:
                floors.append(floor.once())
    rows = [
        report.times(name, samples, beside="GET /health", floor=trips)
        for name, samples in (("create, raw HTTP", creates), ("kill, raw HTTP", kills))
    ]
    if not floors:
        return [*rows, report.Row("the kernel's floor of a create", "needs root on the server's machine")]
    boots, ends = zip(*floors)
    return [
        *rows,
        report.times("create, raw HTTP", creates, beside="bare clone3, mounts, exec", floor=boots),
        report.times("kill, raw HTTP", kills, beside="bare kill and wait of it", floor=ends),
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
