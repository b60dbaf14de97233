# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a hostile or clumsy client sends to the API: bodies, ids, queries and keys."""

import pytest
from harness import API_KEY, api, assert_error, request
from hostile import error_of, raw

pytestmark = pytest.mark.usefixtures("server_is_unharmed")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"templateID":"base"} and more',
        b'\xef\xbb\xbf{"templateID":"base"}',
        b'{"templateID":"\xff\xfe"}',
        b'{"templateID":"\\ud800"}',
        b'{"templateID":"base\\u0000"}',
        b'{"templateID":7}',
        b'{"templateID":null}',
        b'{"templateID":""}',
        b'{"templateID":"../../etc"}',
        b'{"templateID":"base","timeout":"15"}',
        b'{"templateID":"base","timeout":true}',
        b'{"templateID":"base","timeout":-1}',
        b'{"templateID":"base","timeout":0}',
        b'{"templateID":"base","timeout":1.5}',
        b'{"templateID":"base","timeout":1e400}',
        b'{"templateID":"base","timeout":2147483647}',
        b'{"templateID":"base","timeout":99999999999999999999999}',
        b'{"templateID":"base","metadata":[]}',
        b'{"templateID":"base","metadata":{"a":1}}',
        b'{"templateID":"base","envVars":{"a":{}}}',
        b'{"templateID":"base","envVars":{"":"x"}}',
        b'{"templateID":"base","envVars":{"a=b":"x"}}',
        b'{"templateID":"base","envVars":{"a":"x\\u0000y"}}',
        b'{"templateID":"base","network":7}',
        b'{"templateID":"base","network":{"allowOut":[1]}}',
        b'{"templateID":"base","autoPause":1}',
        b'{"templateID":"base","volumeMounts":{}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda body: body[:60].decode(errors="replace"),
)
def test_bodies_that_are_not_a_create(body):
    reply = api("POST", "/v2/sandboxes", body)
    assert_error(reply, 400)


def test_unknown_template_with_a_long_name():
    reply = api("POST", "/v2/sandboxes", {"templateID": "x" * 1_000_000})
    assert reply.status in (400, 404)
    assert_error(reply, reply.status)
    assert len(reply.body) < 4096


def test_body_over_the_limit():
    assert_error(api("POST", "/v2/sandboxes", b" " * (17 << 20)), 413)


@pytest.mark.parametrize("chunked", [False, True])
def test_body_is_not_read_for_a_stranger(chunked):
    assert_error(request("POST", "/v2/sandboxes", body=b" " * (1 << 20), key="e2b_" + "0" * 40, chunked=chunked), 401)


@pytest.mark.parametrize("path", ["/sandboxes/%ff%fe", "/sandboxes/%00", "/sandboxes/..%2f..%2fetc", "/sandboxes/" + "a" * 5000, "/sandboxes/%zz", "/nothing/%ff", "/sandboxes/i'--"])
def test_ids_that_are_none(path):
    reply = api("GET", path)
    assert reply.status in (400, 404)
    assert_error(reply, reply.status)


@pytest.mark.parametrize("query", ["state=%ff", "nextToken=%ff", "nextToken=" + "A" * 5000, "limit=1e3", "limit=99999999999999999999", "metadata=a", "metadata=%zz"])
def test_queries_that_are_none(query):
    assert_error(api("GET", "/v2/sandboxes?" + query), 400)


def test_bytes_above_ascii_in_the_request_line_and_fields():
    key = f"X-API-Key: {API_KEY}\r\n".encode()
    assert error_of(raw(b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n" + key + b"Connection: close\r\n\r\n")) == 404
    assert error_of(raw(b"GET /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: \xff\xfe\r\nConnection: close\r\n\r\n")) == 401
    assert error_of(raw(b"G\xffT /sandboxes HTTP/1.1\r\nHost: x\r\n\r\n")) == 400


@pytest.mark.parametrize("field", ["metadata", "envVars"])
def test_maps_of_megabytes_are_refused(field):
    reply = api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 15, field: {"a": "x" * 10_000_000}})
    if reply.status == 201:
        api("DELETE", f"/sandboxes/{reply.json['sandboxID']}")
    assert_error(reply, 400)
