# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The other end of lib/jupyter_peer.py."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

from lib import wire

_PROGRAM = Path(__file__).with_name("jupyter_peer.py")


class Jupyter:
    def __init__(self, process):
        self._process = process

    def kernel(self, n):
        """Seconds of each run of `1+1` by ipykernel."""
        return self._ask(f"kernel {n}")

    def server(self, n):
        """The same through a Jupyter Server."""
        return self._ask(f"server {n}")

    def start(self):
        """(seconds until a new ipykernel is ready, seconds of its first run)"""
        return tuple(self._ask("start"))

    def facts(self):
        return self._ask("facts")

    def _ask(self, line):
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise wire.Failed("the Jupyter peer ended")
        return json.loads(answer)


@contextlib.contextmanager
def running():
    command = [os.environ["ALCOVE_BENCH_JUPYTER"], "-B", _PROGRAM]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Jupyter(process)
    finally:
        # It ends its kernels at the end of its input.
        process.stdin.close()
        process.wait()
