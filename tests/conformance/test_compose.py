# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""POST /files/compose: no client calls it yet, so it is tested by plain HTTP."""

import pytest
from harness import static_agent, to_sandbox

pytestmark = pytest.mark.wire


def _compose(sandbox, sources, destination, *, token=None, method="POST", **fields):
    body = {"source_paths": sources, "destination": destination} | fields
    headers = {"X-Access-Token": token or sandbox["envdAccessToken"]}
    return to_sandbox(method, "/files/compose", sandbox["sandboxID"], body=body, headers=headers)


def _files(sandbox, method, path, **options):
    headers = {"X-Access-Token": sandbox["envdAccessToken"], "Content-Type": "application/octet-stream"}
    return to_sandbox(method, f"/files?path={path}", sandbox["sandboxID"], headers=headers, **options)


@pytest.fixture
def parts(created):
    """A sandbox with three parts of a file in the user's home."""
    sandbox = created(secure=True)
    for number in range(3):
        assert _files(sandbox, "POST", f"part{number}", body=bytes([65 + number]) * 1_000_000).status == 200
    return sandbox


def test_parts_become_one_file(parts):
    reply = _compose(parts, ["part0", "/home/user/part1", "~/part2"], "made/whole")
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "application/json"
    assert reply.json == {"path": "/home/user/made/whole", "name": "whole", "type": "file"}
    assert _files(parts, "GET", "made/whole").body == b"A" * 1_000_000 + b"B" * 1_000_000 + b"C" * 1_000_000
    for number in range(3):
        assert _files(parts, "GET", f"part{number}").status == 404


def test_the_destination_is_replaced(parts):
    assert _compose(parts, ["part1"], "part0").status == 200
    assert _files(parts, "GET", "part0").body == b"B" * 1_000_000


def test_paths_are_the_users(parts):
    assert _compose(parts, ["/home/user/part0"], "mine", username="root").json["path"] == "/root/mine"


@pytest.mark.parametrize(
    ("sources", "destination", "fields", "status"),
    [
        ([], "whole", {}, 400),
        (["part0"], "", {}, 400),
        (["part0", "part1"], "part1", {}, 400),
        (["/home/user/../user/part1"], "part1", {}, 400),
        (["/home/user"], "whole", {}, 400),
        (["/dev/zero"], "whole", {}, 400),
        (["part0", "missing"], "whole", {}, 404),
        (["part0"], "whole", {"username": "stranger"}, 401),
        ("part0", "whole", {}, 400),
    ],
)
def test_refusals_leave_all_as_it_was(parts, sources, destination, fields, status):
    reply = _compose(parts, sources, destination, **fields)
    assert reply.status == status, reply.body
    assert (reply.json["code"], bool(reply.json["message"])) == (status, True)
    assert _files(parts, "GET", "part0").body == b"A" * 1_000_000
    assert _files(parts, "GET", "whole").status == 404


def test_other_methods_bad_json_and_tokens(parts):
    assert _compose(parts, ["part0"], "whole", method="PUT").status == 405
    assert _compose(parts, ["part0"], "whole", token="wrong").status == 401
    headers = {"X-Access-Token": parts["envdAccessToken"]}
    assert to_sandbox("POST", "/files/compose", parts["sandboxID"], body=b"{", headers=headers).status == 400
    # A signature is for /files alone.
    reply = to_sandbox("POST", "/files/compose?signature=v1_x", parts["sandboxID"], body={})
    assert reply.status == 401


@static_agent
def test_a_full_disk(created):
    sandbox = created(templateID="busybox", secure=True)
    headers = {"X-Access-Token": sandbox["envdAccessToken"]}
    half = b"x" * (1 << 20)
    for name in ("a", "b"):
        assert _files(sandbox, "POST", f"/dev/shm/{name}", body=half).status == 200
    # The rest of the memory file system is filled, so that the sum of both has no room.
    filled = 0
    while (reply := _files(sandbox, "POST", f"/dev/shm/fill{filled}", body=half)).status == 200:
        filled += 1
        assert filled < 4096
    assert reply.status == 507
    assert _compose(sandbox, ["/dev/shm/a", "/dev/shm/b"], "/dev/shm/whole", username="root").status == 507
    listed = to_sandbox("POST", "/filesystem.Filesystem/ListDir", sandbox["sandboxID"], body={"path": "/dev/shm"}, headers=headers)
    names = {entry["name"] for entry in listed.json["entries"]}
    assert {"a", "b"} <= names
    assert not {name for name in names if "compose" in name or name == "whole"}
