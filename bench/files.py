# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Upload and download of one large file over raw HTTP, beside bare loops in the same sandbox: TCP
into a file, and sendfile with one splice hop."""

from lib import report, wire
from lib.floor import Floor

_MIB = 1 << 20
_SIZE = 1024 * _MIB
_ROUNDS = 5
_FILE = "/home/user/large"
_BARE_FILE = "/home/user/bare"


def main():
    plain, forms, downloads, received, sent = [], [], [], [], []
    with wire.sandbox() as sandbox:
        floor = Floor(sandbox)

        # Each file is a new one: an overwritten one costs something else.
        def into_new(action):
            rate = action()
            sandbox.run("/bin/rm", _FILE)
            return rate

        for _ in range(_ROUNDS):
            received.append(floor.receive(_SIZE, _BARE_FILE) / _MIB)
            sent.append(floor.send(_BARE_FILE) / _MIB)
            sandbox.run("/bin/rm", _BARE_FILE)
            forms.append(into_new(lambda: _upload(sandbox, *sandbox.upload_form(_FILE, _SIZE))))
            plain.append(_upload(sandbox, sandbox.upload(_FILE, _SIZE)))
            downloads.append(into_new(lambda: _download(sandbox)))
    size = f"{_SIZE // _MIB:,} MiB"
    beside = "bare receive into a file"
    return [
        report.rates(f"upload of {size}", plain, "MiB/s", beside=beside, floor=received),
        report.rates(f"upload of {size} as a form", forms, "MiB/s", beside=beside, floor=received),
        report.rates(f"download of {size}", downloads, "MiB/s", beside="bare sendfile and splice", floor=sent),
    ]


def _upload(sandbox, before, after=b""):
    connection, piece = sandbox.connection, bytes(_MIB)

    def send():
        connection.socket.sendall(before)
        for _ in range(_SIZE // _MIB):
            connection.socket.sendall(piece)
        connection.socket.sendall(after)
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
