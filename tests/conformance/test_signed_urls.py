# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Signed file URLs (download_url, upload_url): who has one needs no headers. On the shared origin
nothing but the signature tells the sandbox."""

import time
import urllib.parse
import uuid

import pytest
from harness import SANDBOX_URL, assert_error, eventually, got, request


def _get(url, **options):
    target = urllib.parse.urlsplit(url)
    return request("GET", f"{target.path}?{target.query}", url=SANDBOX_URL, **options)


def _upload(url, content, name="; filename=x"):
    boundary = uuid.uuid4().hex
    body = f'--{boundary}\r\nContent-Disposition: form-data; name="file"{name}\r\n\r\n'.encode()
    body += content + f"\r\n--{boundary}--\r\n".encode()
    target = urllib.parse.urlsplit(url)
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return request("POST", f"{target.path}?{target.query}", url=SANDBOX_URL, body=body, headers=headers)


@pytest.mark.smoke
async def test_download(sandbox):
    await got(sandbox.files.write("a b+c.txt", "signed"))
    reply = _get(sandbox.download_url("a b+c.txt"))
    assert (reply.status, reply.body) == (200, b"signed")


@pytest.mark.smoke
async def test_upload(sandbox):
    reply = _upload(sandbox.upload_url("/home/user/up.txt"), b"content")
    assert reply.status == 200, reply.body
    assert await got(sandbox.files.read("up.txt")) == "content"


async def test_upload_of_a_text_field(sandbox):
    reply = _upload(sandbox.upload_url("up.txt", user="root"), b"by form", name="")
    assert (reply.status, reply.json) == (200, [{"path": "/root/up.txt", "name": "up.txt", "type": "file"}])
    assert await got(sandbox.files.read("/root/up.txt")) == "by form"


async def test_upload_url_without_a_path_takes_the_forms(sandbox):
    reply = _upload(sandbox.upload_url(""), b"named", name="; filename=named.txt")
    assert (reply.status, reply.json[0]["path"]) == (200, "/home/user/named.txt")


async def test_each_url_leads_to_its_own_sandbox(make_sandbox):
    sandboxes = [await make_sandbox() for _ in range(3)]
    for number, sandbox in enumerate(sandboxes):
        await got(sandbox.files.write("f", f"of {number}"))
    for number, sandbox in reversed(list(enumerate(sandboxes))):
        assert _get(sandbox.download_url("f")).body == f"of {number}".encode()


async def test_user(sandbox):
    await got(sandbox.files.write("f", "root's", user="root"))
    assert _get(sandbox.download_url("f", user="root")).body == b"root's"


async def test_expiration(sandbox):
    await got(sandbox.files.write("f", "for a while"))
    url = sandbox.download_url("f", use_signature_expiration=1)
    assert _get(url).body == b"for a while"
    assert await eventually(lambda: _get(url).status == 401, within=5)
    assert_error(_get(url), 401, "signature is already expired")
    before_it_began = sandbox.download_url("f", use_signature_expiration=-120)
    assert _get(before_it_began).json == {"code": 401, "message": "signature is already expired"}
    assert_error(_upload(sandbox.upload_url("f", use_signature_expiration=-120), b"y"), 401, "signature is already expired")


async def test_url_of_another_path_or_operation_is_refused(sandbox):
    await got(sandbox.files.write("f", "x"))
    url = sandbox.download_url("f")
    assert_error(_get(url.replace("path=f", "path=%2Fetc%2Fpasswd")), 401)
    assert_error(_upload(url, b"y"), 401)
    assert await got(sandbox.files.read("f")) == "x"


async def test_url_of_a_killed_sandbox(sandbox):
    await got(sandbox.files.write("f", "x"))
    url = sandbox.download_url("f")
    assert _get(url).status == 200
    await got(sandbox.kill())
    assert_error(_get(url), 401, "no running sandbox signed this URL")


@pytest.mark.wire
def test_guessing_is_limited():
    replies = [request("GET", f"/files?path=x&signature=v1_{n}", url=SANDBOX_URL) for n in range(400)]
    assert {reply.status for reply in replies} == {401, 429}
    for reply in replies:
        assert_error(reply, reply.status)
        assert reply.headers.get("retry-after") == ("1" if reply.status == 429 else None)
    # It comes back by itself; other tests use this address too.
    time.sleep(2)
    assert request("GET", "/files?path=x&signature=v1_x", url=SANDBOX_URL).status == 401
