# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Upload and download of one large file over raw HTTP, beside bare loops in the same sandbox: TCP
into a file, and sendfile with one splice hop."""

from lib import report, wire
from lib.floor import Floor

_MIB = 1 << 20
_SIZE = 256 * _MIB
_ROUNDS = 3
_FILE = "/home/user/large"
_BARE_FILE = "/home/user/bare"


def main():
    uploads, downloads, received, sent = [], [], [], []
    with wire.sandbox() as sandbox:
        floor = Floor(sandbox)
        for _ in range(_ROUNDS):
            received.append(floor.receive(_SIZE, _BARE_FILE) / _MIB)
            uploads.append(_upload(sandbox))
            sent.append(floor.send(_BARE_FILE) / _MIB)
            downloads.append(_download(sandbox))
            # Each round writes new files, as the first one does.
            sandbox.run("/bin/rm", _FILE, _BARE_FILE)
    return [
        report.rates("upload of 256 MiB", uploads, "MiB/s", beside="bare receive into a file", floor=received),
        report.rates("download of 256 MiB", downloads, "MiB/s", beside="bare sendfile and splice", floor=sent),
    ]


def _upload(sandbox):
    connection, piece = sandbox.connection, bytes(_MIB)

    def send():
        connection.socket.sendall(sandbox.upload(_FILE, _SIZE))
        for _ in range(_SIZE // _MIB):
            connection.socket.sendall(piece)
        return connection.answer()

    seconds, (head, _) = report.timed(send)
    wire.expect(head, 200)
    return _SIZE / _MIB / seconds


def _download(sandbox):
    connection = sandbox.connection

    def receive():
        connection.socket.sendall(sandbox.download(_FILE))
        return connection.drain()

    seconds, (head, size, _) = report.timed(receive)
    wire.expect(head, 200)
    if size < _SIZE:
        raise wire.Failed(f"{size} bytes")
    return _SIZE / _MIB / seconds


if __name__ == "__main__":
    report.run(main)
