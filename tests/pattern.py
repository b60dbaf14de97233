# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Content for large transfers."""

import hashlib
import io


class Pattern(io.RawIOBase):
    """A readable file of a given size that is never in memory as a whole."""

    def __init__(self, size):
        self._left = size
        self.digest = hashlib.sha256()

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self._left)
        block = (self._left.to_bytes(8, "little") * (count // 8 + 1))[:count]
        buffer[:count] = block
        self.digest.update(block)
        self._left -= count
        return count
