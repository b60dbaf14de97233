# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""File names, forms and files that a hostile client or program chooses."""

import gzip
import os
import urllib.parse
from pathlib import Path

import pytest
from harness import assert_error
from hostile import BYTES, call

pytestmark = pytest.mark.usefixtures("server_is_unharmed")


def test_names_that_are_not_text(box):
    box.commands.run("mkdir -p /tmp/names")
    source = "import os\nfor name in (b'new\\nline', b'inv\\xff\\xfe', b'\\xed\\xa0\\x80', b'quo\"te\\\\', b'\\x01\\x7f', b'a' * 255):\n    open(b'/tmp/names/' + name, 'w').close()\n"
    box.files.write("/tmp/names.py", source)
    box.commands.run("python3 /tmp/names.py")
    names = {entry.name for entry in box.files.list("/tmp/names")}
    assert len(names) == 6 and {"new\nline", 'quo"te\\', "\x01\x7f", "a" * 255} <= names
    for name in (b"new\nline", b"inv\xff\xfe", b'quo"te\\', b"\x01\x7f"):
        path = urllib.parse.quote(b"/tmp/names/" + name)
        reply = call(box, "POST", "/files?path=" + path, b"content", BYTES)
        assert reply.status == 200 and reply.json[0]["type"] == "file"
        reply = call(box, "GET", "/files?path=" + path)
        assert (reply.status, reply.body) == (200, b"content")
        assert all(c.isprintable() for c in reply.headers["content-disposition"])


@pytest.mark.parametrize("name", ["a" * 256, "a/" * 3000, "a" * 60_000])
def test_names_that_are_too_long(box, name):
    for method, body in (("GET", None), ("POST", b"x")):
        reply = call(box, method, "/files?path=/tmp/" + name, body, BYTES)
        assert 400 <= reply.status <= 500
        assert_error(reply, reply.status)


def _form(*parts, boundary=b"limit"):
    return b"".join(b"--" + boundary + b'\r\nContent-Disposition: form-data; name="file"; filename="' + name + b'"\r\n\r\n' + data + b"\r\n" for name, data in parts) + b"--" + boundary + b"--\r\n"


_FORM = {"Content-Type": "multipart/form-data; boundary=limit"}


def test_file_names_of_a_form_stay_inside_the_sandbox(box):
    mark = f"alcove-traversal-{os.getpid()}"
    reply = call(box, "POST", "/files", _form((b"../" * 40 + b"tmp/" + mark.encode(), b"inside")), _FORM)
    assert reply.status == 200 and reply.json[0]["path"] == f"/tmp/{mark}"
    assert box.files.read(f"/tmp/{mark}") == "inside"
    assert not Path("/tmp", mark).exists()


def test_form_with_ten_thousand_parts(box):
    reply = call(box, "POST", "/files", _form(*((b"/tmp/parts/%d" % number, b"x") for number in range(10_000))), _FORM, timeout=50)
    assert reply.status == 200 and len(reply.json) == 10_000
    assert box.commands.run("ls /tmp/parts | wc -l; rm -r /tmp/parts").stdout == "10000\n"


@pytest.mark.parametrize(
    "body, status",
    [
        (b"", 500),
        (b"--limit", 500),
        (b"--limit\r\n", 500),
        (b"no delimiter", 500),
        (_form((b"/tmp/cut", b"x"))[:-12], 500),
        (b"--limit\r\nContent-Disposition: form-data; name=file; filename=x\r\n" + b"A: b\r\n" * 10_000 + b"\r\nx\r\n--limit--", 500),
        (_form((b"/tmp/same", b"1"), (b"/tmp/same", b"2")), 400),
        (_form((b"/tmp", b"a directory")), 400),
        (_form((b"/tmp/a\0b", b"NUL")), 400),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else str(value),
)
def test_forms_that_are_none(box, body, status):
    assert_error(call(box, "POST", "/files", body, _FORM), status)


def test_gzip_bomb_as_a_file_is_stored_piece_by_piece(victim):
    """200 MB of zeros in 200 kB: neither the agent nor the server may hold them in memory."""
    reply = call(victim, "POST", "/files?path=/tmp/bomb", gzip.compress(bytes(200_000_000)), BYTES | {"Content-Encoding": "gzip"}, timeout=50)
    assert reply.status == 200
    assert victim.commands.run("stat -c %s /tmp/bomb").stdout == "200000000\n"
    peak = victim.commands.run("sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/1/status", user="root").stdout
    assert int(peak) < 32 * 1024, f"{peak} KiB"


def test_files_that_are_none(box):
    for path in ("/dev/full", "/proc/1/mem", "/proc/sysrq-trigger"):
        assert call(box, "POST", f"/files?path={path}", b"x", BYTES).status >= 400, path
    box.commands.run("mkfifo -m 666 /tmp/fifo")
    # Nobody is at the other end: it must not hang.
    assert call(box, "POST", "/files?path=/tmp/fifo", b"x", BYTES, timeout=10).status >= 400
    assert call(box, "GET", "/files?path=/tmp/fifo", timeout=10).status < 600
