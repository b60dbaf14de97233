# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""One sandbox for all tests of a file, for each flavour of the client: the libraries that results come
from take seconds to import."""

import e2b_code_interpreter
import pytest
from harness import got


@pytest.fixture(scope="module", params=["sync", "async"])
def shared(request, run_now):
    kind = e2b_code_interpreter.Sandbox if request.param == "sync" else e2b_code_interpreter.AsyncSandbox
    sandbox = run_now(_create(kind, request.module.__name__))
    yield sandbox
    run_now(_kill(sandbox))


async def _create(kind, name):
    return await got(kind.create(timeout=1800, metadata={"test": name}))


async def _kill(sandbox):
    await got(sandbox.kill())
