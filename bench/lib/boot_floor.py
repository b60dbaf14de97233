# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The kernel's floor of a create, measured by boot_floor.c on the machine of the server."""

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("boot_floor.c")


class BootFloor:
    def __init__(self, process):
        self._process = process

    def once(self):
        """Seconds of one boot until its program runs, and of its end."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"boot_floor ended with {self._process.wait()}")
        boot, end = line.split()
        return int(boot) / 1e9, int(end) / 1e9


@contextlib.contextmanager
def running():
    """None where the benchmark may not make namespaces: it is not root, or the server is elsewhere."""
    if os.geteuid() != 0:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="alcove-bench-") as folder:
        program = Path(folder, "boot_floor")
        subprocess.run(["cc", "-O2", "-static", "-o", program, _SOURCE], check=True)
        process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield BootFloor(process)
        finally:
            process.stdin.close()
            process.wait(10)
