# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Contexts: create, list, restart, remove; defaults; queues and parallel runs."""

import asyncio

import pytest
from e2b import NotFoundException, SandboxException
from harness import eventually, got, raises
from interpreter.client import client, needs_routing_headers, printed, run, start, succeed  # noqa: F401

pytestmark = needs_routing_headers


async def _listed(sandbox):
    return [(context.id, context.language, context.cwd) for context in await got(sandbox.list_code_contexts())]


async def test_defaults_are_listed_first(sandbox):
    listed = await _listed(sandbox)
    assert [entry[1:] for entry in listed] == [("python", "/home/user"), ("javascript", "/home/user")]
    # One default each, used by all who name none.
    await succeed(sandbox, "x = 1")
    await succeed(sandbox, "var y = 1", language="js")
    await succeed(sandbox, "z=1", language="bash")
    assert (await succeed(sandbox, "x", language="python")).text == "1"
    assert (await _listed(sandbox))[:2] == listed
    assert [language for _, language, _ in await _listed(sandbox)] == ["python", "javascript", "bash"]


@pytest.mark.smoke
async def test_a_new_context_is_the_last_of_the_list(sandbox):
    plain = await got(sandbox.create_code_context())
    assert (plain.language, plain.cwd) == ("python", "/home/user")
    rooted = await got(sandbox.create_code_context(language="python", cwd="/root"))
    assert (rooted.language, rooted.cwd) == ("python", "/root")
    assert [entry[0] for entry in (await _listed(sandbox))[-2:]] == [plain.id, rooted.id]
    assert (await succeed(sandbox, "import os; os.getcwd()", context=rooted)).text == "/root"
    assert (await succeed(sandbox, "import os; os.getcwd()", context=plain)).text == "/home/user"


async def test_names_of_languages_are_normalised(sandbox):
    for asked, name in ((" Python ", "python"), ("JS", "javascript"), ("ts", "typescript"), ("BASH", "bash")):
        assert (await got(sandbox.create_code_context(language=asked))).language == name


async def test_contexts_are_independent(sandbox):
    await succeed(sandbox, "only_here = 1")
    context = await got(sandbox.create_code_context())
    error = (await run(sandbox, "only_here", context=context)).error
    assert (error.name, error.value) == ("NameError", "name 'only_here' is not defined")
    await succeed(sandbox, "only_there = 1; import os; os.chdir('/tmp'); os.environ['THERE'] = '1'", context=context)
    assert (await succeed(sandbox, "import os; ('only_there' in globals(), os.getcwd(), os.environ.get('THERE'))")).text == (
        "(False, '/home/user', None)"
    )


async def test_restart_forgets_state_and_keeps_the_rest(sandbox):
    context = await got(sandbox.create_code_context(cwd="/tmp"))
    await succeed(sandbox, "x = 1; import os; os.chdir('/')", context=context)
    before = await _listed(sandbox)
    await got(sandbox.restart_code_context(context))
    assert await _listed(sandbox) == before
    execution = await run(sandbox, "x", context=context)
    assert (execution.error.name, execution.error.value, execution.execution_count) == ("NameError", "name 'x' is not defined", 1)
    # In the context's own directory, not in the user's home.
    assert (await succeed(sandbox, "import os; os.getcwd()", context=context)).text == "/tmp"


async def test_restart_of_a_default(sandbox):
    await succeed(sandbox, "x = 1")
    python = (await got(sandbox.list_code_contexts()))[0]
    await got(sandbox.restart_code_context(python.id))
    assert (await run(sandbox, "x")).error.name == "NameError"
    assert (await _listed(sandbox))[0][0] == python.id


async def test_removed_contexts_are_gone(sandbox):
    context = await got(sandbox.create_code_context())
    await got(sandbox.remove_code_context(context))
    assert context.id not in [entry[0] for entry in await _listed(sandbox)]
    for call in (
        lambda: run(sandbox, "1", context=context),
        lambda: got(sandbox.restart_code_context(context)),
        lambda: got(sandbox.remove_code_context(context.id)),
    ):
        with raises(NotFoundException, f"Context {context.id} not found"):
            await call()


async def test_a_removed_default_comes_back_when_it_is_asked_for(sandbox):
    await succeed(sandbox, "x = 1")
    for entry in await got(sandbox.list_code_contexts()):
        await got(sandbox.remove_code_context(entry))
    assert await _listed(sandbox) == []
    assert (await run(sandbox, "x")).error.name == "NameError"
    assert (await succeed(sandbox, "2", language="python")).execution_count == 2
    assert await printed(sandbox, "console.log(3)", language="javascript") == "3\n"
    assert [language for _, language, _ in await _listed(sandbox)] == ["python", "javascript"]


async def test_a_directory_that_is_none_is_refused(sandbox):
    before = await _listed(sandbox)
    for cwd in ("/no/such/place", "/etc/passwd"):
        with raises(SandboxException, "400"):
            await got(sandbox.create_code_context(cwd=cwd))
    with raises(SandboxException, "500"):
        await got(sandbox.create_code_context(language="cobol"))
    assert await _listed(sandbox) == before


async def _start_blocked(sandbox, context=None):
    """A run that has begun and does not end by itself."""
    seen = []
    task = start(sandbox, "import time; print('on', flush=True); time.sleep(300)", context=context, on_stdout=seen.append)
    assert await eventually(lambda: seen, within=20)
    return task


async def test_removal_tells_those_who_run_and_wait(sandbox):
    context = await got(sandbox.create_code_context())
    tasks = [await _start_blocked(sandbox, context), start(sandbox, "1", context=context)]
    await asyncio.sleep(0.5)
    await got(sandbox.remove_code_context(context))
    for task in tasks:
        error = (await task).error
        assert (error.name, error.traceback) == ("UnexpectedEndOfExecution", "")
        assert error.value == "Connection to the execution was closed before the execution was finished"


async def test_restart_ends_what_runs_and_the_queue_goes_on(sandbox):
    context = await got(sandbox.create_code_context())
    await succeed(sandbox, "x = 1", context=context)
    first = await _start_blocked(sandbox, context)
    second = start(sandbox, "'x' in globals()", context=context)
    await asyncio.sleep(0.5)
    await got(sandbox.restart_code_context(context))
    error = (await first).error
    assert (error.name, error.value) == ("ContextRestarting", "Context was restarted")
    execution = await second
    assert (execution.text, execution.execution_count) == ("False", 1)


async def test_runs_of_a_context_queue_in_order(sandbox):
    await succeed(sandbox, "import time\norder = []")
    tasks = []
    for number in range(8):
        tasks.append(start(sandbox, f"time.sleep({0 if number else 2}); order.append({number})"))
        await asyncio.sleep(0.1)
    executions = await asyncio.gather(*tasks)
    assert (await succeed(sandbox, "order")).text == str(list(range(8)))
    assert [execution.execution_count for execution in executions] == list(range(2, 10))


async def test_contexts_run_in_parallel(sandbox):
    contexts = [await got(sandbox.create_code_context()) for _ in range(4)]
    # Each waits until all have come: one after the other would never end.
    code = """
import os, time
open('/tmp/here-%d', 'w').close()
while sum(name.startswith('here-') for name in os.listdir('/tmp')) < 4: time.sleep(0.01)
%d"""
    tasks = [start(sandbox, code % (number, number), context=context) for number, context in enumerate(contexts)]
    assert [execution.text for execution in await asyncio.gather(*tasks)] == ["0", "1", "2", "3"]
