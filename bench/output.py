# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A command that prints much, in both encodings, beside the same command's pipe copied to TCP by a
loop in the same sandbox."""

from lib import report, wire
from lib.floor import Floor

_MIB = 1 << 20
_SIZE = 256 * _MIB
_ROUNDS = 3
_COMMAND = ("/bin/dd", "if=/dev/zero", "bs=1M", f"count={_SIZE // _MIB}", "status=none")
# What an encoding makes of one byte of output, at least.
_GROWTH = {"JSON": 4 / 3, "protobuf": 1.0}


def main():
    with wire.sandbox() as sandbox:
        floor = Floor(sandbox)
        messages = {"JSON": sandbox.start(*_COMMAND), "protobuf": sandbox.start_binary(*_COMMAND)}
        missing = [] if _served(sandbox.connection, sandbox.start_binary("/bin/true")) else ["protobuf"]
        for codec in missing:
            del messages[codec]
        bare, rates = [], {codec: [] for codec in messages}
        for _ in range(_ROUNDS):
            bare.append(floor.pipe(_SIZE, *_COMMAND) / _MIB)
            for codec, message in messages.items():
                rates[codec].append(_read(sandbox.connection, message, _GROWTH[codec]))
    rows = [
        report.rates(f"output of 256 MiB, {codec}", samples, "MiB/s", beside="bare pipe to TCP in the sandbox", floor=bare)
        for codec, samples in rates.items()
    ]
    return rows + [report.Row(f"output of 256 MiB, {codec}", "not served") for codec in missing]


def _served(connection, message):
    head, body = connection.exchange(message)
    wire.expect(head, 200)
    return b'"unimplemented"' not in body


def _read(connection, message, growth):
    def exchange():
        connection.socket.sendall(message)
        return connection.drain()

    seconds, (head, size, tail) = report.timed(exchange)
    wire.expect(head, 200)
    if size < _SIZE * growth or b"exit status 0" not in tail:
        raise wire.Failed(f"{size} bytes, ending in {tail[-200:]}")
    return _SIZE / _MIB / seconds


if __name__ == "__main__":
    report.run(main)
