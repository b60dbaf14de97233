# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What counts as "yes" in docs/compatibility.md: a call that did something."""

import asyncio
import logging

import pytest
import recorder

pytestmark = pytest.mark.wire

_REFUSAL = "x is not available on this server yet."


class _Pages:
    def __init__(self, refused):
        self._refused = refused

    def next_items(self):
        if self._refused:
            raise RuntimeError(f"400: {_REFUSAL}")
        return []


class _Client:
    def answer(self, value):
        return value

    async def answer_later(self, value):
        return value

    def list(self, refused):
        return _Pages(refused)

    def inner(self):
        return self.answer(True)


@pytest.fixture
def record(monkeypatch):
    fresh = recorder.Record()
    monkeypatch.setattr(recorder, "record", fresh)
    for kind in (_Client, _Pages):
        for name in [name for name in vars(kind) if not name.startswith("_")]:
            monkeypatch.setattr(kind, name, recorder._Method(vars(kind)[name], (kind.__name__, name, "")))
    return fresh


def _names(keys):
    return {key[1] for key in keys}


def test_a_call_that_returned_counts(record):
    _Client().answer(None)
    asyncio.run(_Client().answer_later(0))
    assert _names(record.returned) == {"answer", "answer_later"}


def test_nothing_was_there_does_not(record):
    assert _Client().answer(False) is False
    assert asyncio.run(_Client().answer_later(False)) is False
    assert record.returned == set()


def test_what_the_client_calls_itself_does_not(record):
    assert _Client().inner() is True
    assert _names(record.returned) == {"inner"}


def test_a_list_counts_with_its_first_page(record):
    pages = _Client().list(refused=False)
    assert record.returned == set()
    pages.next_items()
    assert _names(record.returned) == {"list", "next_items"}


def test_a_list_whose_pages_are_refused_is_refused(record):
    pages = _Client().list(refused=True)
    with pytest.raises(RuntimeError):
        pages.next_items()
    assert record.returned == set()
    assert {(key[1], key[3]) for key in record.refused} == {("list", _REFUSAL), ("next_items", _REFUSAL)}


def test_a_refused_call_tells_of_its_request(record, monkeypatch):
    requests = recorder._Requests()
    monkeypatch.setattr(recorder, "_requests", requests)
    for status in ("GET /fine?a=b HTTP/1.1 200 OK", "POST /x HTTP/1.1 400 Bad Request"):
        method, path, rest = status.split(" ", 2)
        requests.emit(logging.LogRecord("httpx", logging.INFO, "", 0, f'HTTP Request: {method} http://host{path} "{rest}"', (), None))
    with pytest.raises(RuntimeError):
        _Client().list(refused=True).next_items()
    assert record.answered == {("GET", "/fine")}
    assert record.turned_down == {("POST", "/x", _REFUSAL)}


def test_a_refusal_is_of_the_request_that_failed_in_it(record):
    record.call_raised(("section", "call", ""), f"400: {_REFUSAL}", ("POST", "/x"))
    assert record.turned_down == {("POST", "/x", _REFUSAL)}


def test_a_refused_command_says_nothing_of_our_own_requests(record, monkeypatch):
    monkeypatch.setattr(recorder._requests, "failed", ("DELETE", "/sandboxes/i1"))
    record.command(("template", "create", "x"), 1, f"400: {_REFUSAL}")
    assert record.refused == {(recorder.CLI, "template create", "", _REFUSAL)}
    assert record.turned_down == set()
