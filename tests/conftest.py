# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Fixtures of all client tests. Tests are coroutines; each runs once per flavour of the client."""

import asyncio
import faulthandler
import inspect
import os
import signal

import e2b
import pytest
import recorder
from harness import API_KEY, Client, api, got, run_alcove

# The async client keeps connections per event loop, so there is one for the whole session.
_LOOP = asyncio.new_event_loop()
_DEFAULT_LIMIT = 60


# Where stack traces go: pytest keeps what a test writes to the usual place, and a run that ends
# within a test shows nothing of it.
_stderr = None


def pytest_configure(config):
    global _stderr
    _stderr = os.fdopen(os.dup(2), "w")
    if "ALCOVE_RECORD" in os.environ:
        recorder.start()


def pytest_sessionfinish(session):
    if "ALCOVE_RECORD" in os.environ:
        recorder.record.save(os.environ["ALCOVE_RECORD"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    _LOOP.run_until_complete(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("limit")
    limit = marker.args[0] if marker else _DEFAULT_LIMIT

    def expire(number, frame):
        raise TimeoutError(f"the test took longer than {limit} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(limit)
    # A call that blocks in native code sees no signal: then the whole run ends, with a stack trace.
    faulthandler.dump_traceback_later(limit + 130, exit=True, file=_stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["sync", "async"])
def client(request):
    return Client(request.param, e2b.Sandbox if request.param == "sync" else e2b.AsyncSandbox)


@pytest.fixture
def make_sandbox(client, request):
    """A function that creates sandboxes, which end with the test."""
    made = []

    async def make(*args, **options):
        options.setdefault("metadata", {"test": request.node.name})
        sandbox = await client.create(*args, **options)
        made.append(sandbox)
        return sandbox

    yield make

    async def kill_all():
        for sandbox in made:
            await got(sandbox.kill())

    _LOOP.run_until_complete(kill_all())


@pytest.fixture
def sandbox(make_sandbox):
    return _LOOP.run_until_complete(make_sandbox())


@pytest.fixture(scope="session")
def run_now():
    """A function that runs a coroutine to its end, for fixtures that prepare something."""
    return _LOOP.run_until_complete


@pytest.fixture
def created():
    """A function that creates sandboxes by plain HTTP, which end with the test."""
    made = []

    def create(path="/v2/sandboxes", key=API_KEY, **fields):
        reply = api("POST", path, {"templateID": "base"} | fields, key=key)
        assert reply.status == 201, (reply.status, reply.body)
        made.append((reply.json["sandboxID"], key))
        return reply.json

    yield create
    for sandbox_id, key in made:
        api("DELETE", f"/sandboxes/{sandbox_id}", key=key)


@pytest.fixture(scope="session")
def other_key():
    """An API key of another team."""
    return run_alcove("key", "create", "--team", "neighbours")
