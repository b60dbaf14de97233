# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The tables of docs/errors.md: what the server is said to answer, and whether an answer is that."""

import dataclasses
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "errors.md"

_ROW = re.compile(r"^\| (\d{3}) \| `(.+?)` \| (?:`(\w+)`)? *\| (.+) \|$", re.M)


@dataclasses.dataclass(frozen=True)
class Row:
    status: int
    message: str  # <...> stands for what varies
    error_code: str
    remedy: str

    def fits(self, status, message, error_code=""):
        parts = re.split(r"<[\w ]+>", self.message)
        pattern = "(.+)".join(re.escape(part) for part in parts)
        return (status, error_code) == (self.status, self.error_code) and re.fullmatch(pattern, message) is not None


ROWS = [Row(int(status), message, code, remedy) for status, message, code, remedy in _ROW.findall(PAGE.read_text())]


def row_of(message):
    """The row whose message is written so on the page."""
    (found,) = [row for row in ROWS if row.message == message]
    return found


def assert_is(message, reply):
    """The reply is what the page says with these words, headers included."""
    row = row_of(message)
    body = reply.json
    assert reply.headers["content-type"].startswith("application/json"), reply.headers
    assert row.fits(reply.status, body["message"], body.get("error_code", "")), (row, reply.status, body)
    assert body["code"] == reply.status
    assert reply.headers.get("retry-after") == ("1" if reply.status in (429, 503) else None)
    final = row.error_code in ("sandbox_create_failed", "idempotency_outcome_unknown")
    # "internal error" alone may come from a create as well as from anything else.
    if row.message != "internal error":
        assert reply.headers.get("should-retry") == ("false" if final else None)
