# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Looking at files, raw HTTP through the gateway on a kept connection: ListDir of 1,000 files beside
a bare readdir, lstat and llistxattr loop over the same directory, and Stat of one file beside the
agent's /health, a round trip with nothing to do."""

from lib import report, wire
from lib.floor import Floor

_FILES = 1000
_DIRECTORY = "/home/user/many"
_WARM_UP = 5
_ROUNDS = 10
_LISTS = 10
_STATS = 50


def main():
    with wire.sandbox() as sandbox:
        floor = Floor(sandbox)
        make = f"mkdir {_DIRECTORY} && cd {_DIRECTORY} && for i in $(seq {_FILES}); do echo $i > file-$i.txt; done"
        sandbox.run("/bin/bash", "-c", make)
        listing = sandbox.unary("filesystem.Filesystem/ListDir", {"path": _DIRECTORY, "depth": 1})
        stat = sandbox.unary("filesystem.Filesystem/Stat", {"path": f"{_DIRECTORY}/file-1.txt"})
        lists, bare, stats, trips = [], [], [], []
        for _ in range(_WARM_UP):
            _list(sandbox, listing)
        for _ in range(_ROUNDS):
            bare += floor.list(_LISTS, _DIRECTORY)
            lists += [_list(sandbox, listing) for _ in range(_LISTS)]
            for _ in range(_STATS):
                trips.append(_ask(sandbox, sandbox.health(), 204))
                stats.append(_ask(sandbox, stat, 200))
    return [
        report.times(f"ListDir of {_FILES:,} files", lists, beside="bare loop in the sandbox", floor=bare),
        report.times("Stat", stats, beside="GET /health of the agent", floor=trips),
    ]


def _list(sandbox, message):
    seconds, (head, body) = report.timed(lambda: sandbox.connection.exchange(message))
    wire.expect(head, 200)
    names = body.count(b'"name":')
    if names != _FILES:
        raise wire.Failed(f"{names} entries")
    return seconds


def _ask(sandbox, message, status):
    seconds, (head, _) = report.timed(lambda: sandbox.connection.exchange(message))
    wire.expect(head, status)
    return seconds


if __name__ == "__main__":
    report.run(main)
