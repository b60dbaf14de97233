# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Creates that are repeated under an Idempotency-Key: one sandbox, one answer."""

import concurrent.futures
import uuid

import e2b
import pytest
from harness import API_KEY, api, assert_error, got, raises, requires

_has_key = requires(2, 61, why="has no idempotency_key")
_BODY = {"templateID": "base", "timeout": 60}


@pytest.fixture
def key():
    return f"test-{uuid.uuid4()}"


@pytest.fixture
def create():
    """A function that creates by plain HTTP under a key; what it makes ends with the test."""
    made = set()

    def send(key, body=_BODY, path="/v2/sandboxes", caller=API_KEY):
        reply = api("POST", path, body, headers={"Idempotency-Key": key}, key=caller)
        if reply.status == 201:
            made.add((reply.json["sandboxID"], caller))
        return reply

    yield send
    for sandbox_id, caller in made:
        api("DELETE", f"/sandboxes/{sandbox_id}", key=caller)


def _assert_refused(reply, status, error_code):
    assert_error(reply, status)
    assert reply.json["error_code"] == error_code


# --- by the client --------------------------------------------------------------------------------


@_has_key
async def test_client_gets_the_same_sandbox_again(make_sandbox, key):
    first = await make_sandbox(idempotency_key=key)
    await got(first.files.write("/home/user/mark", "first"))
    second = await make_sandbox(idempotency_key=key)
    assert second.sandbox_id == first.sandbox_id
    # The repeated answer carries working credentials.
    assert await got(second.files.read("/home/user/mark")) == "first"


@_has_key
async def test_client_sees_a_mismatch(make_sandbox, key):
    await make_sandbox(idempotency_key=key, timeout=60)
    with raises(e2b.SandboxException, "422"):
        await make_sandbox(idempotency_key=key, timeout=61)


# --- by plain HTTP --------------------------------------------------------------------------------


@pytest.mark.wire
@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
def test_same_answer(create, key, path):
    first = create(key, path=path)
    assert first.status == 201, first.body
    second = create(key, path=path)
    assert (second.status, second.body) == (201, first.body)
    assert second.headers["content-type"] == first.headers["content-type"]


@pytest.mark.wire
def test_same_answer_after_the_sandbox_died(create, key):
    first = create(key)
    sandbox_id = first.json["sandboxID"]
    assert api("DELETE", f"/sandboxes/{sandbox_id}").status == 204
    second = create(key)
    assert (second.status, second.body) == (201, first.body)
    assert_error(api("GET", f"/sandboxes/{sandbox_id}"), 404)


@pytest.mark.wire
def test_another_request_is_refused(create, key):
    assert create(key).status == 201
    _assert_refused(create(key, _BODY | {"timeout": 61}), 422, "idempotency_request_mismatch")
    _assert_refused(create(key, path="/sandboxes"), 422, "idempotency_request_mismatch")


@pytest.mark.wire
def test_without_a_key_nothing_is_remembered(created):
    assert created()["sandboxID"] != created()["sandboxID"]


@pytest.mark.wire
def test_failed_create_frees_the_key(create, key):
    assert_error(create(key, {"templateID": "nope"}), 404)
    assert_error(create(key, b"{"), 400)
    assert create(key).status == 201


@pytest.mark.wire
@pytest.mark.parametrize("bad", ["", "UPPER", "a_b", "a b", "a" * 256])
def test_malformed_key(create, bad):
    reply = create(bad)
    assert_error(reply, 400)
    assert "Idempotency-Key" in reply.message


@pytest.mark.wire
def test_longest_key(create, key):
    assert create(key.ljust(255, "x")).status == 201


@pytest.mark.wire
def test_keys_belong_to_teams(create, key, other_key):
    mine, theirs = create(key), create(key, caller=other_key)
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json["sandboxID"] != theirs.json["sandboxID"]


@pytest.mark.wire
def test_many_at_once_make_one_sandbox(create, key):
    body = _BODY | {"metadata": {"mark": key}}
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(lambda _: create(key, body), range(10)))
    answered = [reply for reply in replies if reply.status == 201]
    assert answered and len({reply.body for reply in answered}) == 1
    for reply in replies:
        if reply.status != 201:
            _assert_refused(reply, 409, "idempotency_in_progress")
    assert len(api("GET", f"/v2/sandboxes?metadata=mark%3D{key}").json) == 1
    assert create(key, body).body == answered[0].body
