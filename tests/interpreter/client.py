# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The code-interpreter clients, in place of the plain ones: `from interpreter.client import client`."""

import asyncio

import e2b_code_interpreter
import pytest
from harness import Client, got, requires

# Older ones find port 49999 by its host name only, below the TLS domain.
needs_routing_headers = requires(2, 45, why="its run_code knows no E2B_SANDBOX_URL")

LANGUAGES = ("python", "javascript", "typescript", "r", "java", "bash")


@pytest.fixture(params=["sync", "async"])
def client(request):
    flavours = {"sync": e2b_code_interpreter.Sandbox, "async": e2b_code_interpreter.AsyncSandbox}
    return Client(request.param, flavours[request.param])


async def run(sandbox, code, **options):
    return await got(sandbox.run_code(code, **options))


async def succeed(sandbox, code, **options):
    """Runs code that must not fail."""
    execution = await run(sandbox, code, **options)
    assert execution.error is None, execution.error
    return execution


async def printed(sandbox, code, **options):
    """What the code printed; it must not fail."""
    execution = await succeed(sandbox, code, **options)
    assert execution.logs.stderr == [], execution.logs.stderr
    return "".join(execution.logs.stdout)


def start(sandbox, code, **options):
    """Runs code beside the test: a task, for either flavour."""
    if asyncio.iscoroutinefunction(sandbox.run_code):
        return asyncio.ensure_future(sandbox.run_code(code, **options))
    return asyncio.ensure_future(asyncio.to_thread(sandbox.run_code, code, **options))
