# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Runaway cells: a documented error, and nothing else in the sandbox is harmed."""

import asyncio
import os
import time

import e2b_code_interpreter
import pytest
from e2b import SandboxException, TimeoutException
from harness import Client, eventually, got, raises
from interpreter.client import printed, run, start, succeed

pytestmark = [pytest.mark.wire, pytest.mark.limit(300)]

_FULL = os.environ.get("ALCOVE_LOAD") == "full"
_OUTPUT_BYTES = 10**9 if _FULL else 10**8
# Seconds until a sandbox is usable after a fork bomb. Beside other work on the machine it takes longer.
_USABLE_WITHIN = 5 if _FULL else 20


@pytest.fixture
def client():
    """One flavour: this is about the sandbox."""
    return Client("sync", e2b_code_interpreter.Sandbox)


@pytest.fixture
def other(sandbox, run_now):
    """A second context, with state that must survive."""
    context = run_now(got(sandbox.create_code_context()))
    run_now(succeed(sandbox, "x = 'unharmed'", context=context))
    return context


async def _assert_unharmed(sandbox, other):
    assert (await succeed(sandbox, "x", context=other, timeout=30)).text == "unharmed"
    assert (await got(sandbox.commands.run("echo fine"))).stdout == "fine\n"


async def test_an_endless_loop(sandbox, other):
    with raises(TimeoutException):
        await run(sandbox, "while True: pass", timeout=1)
    assert (await succeed(sandbox, "1 + 1", timeout=20)).text == "2"
    await _assert_unharmed(sandbox, other)


_BOMBS = {
    "forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "shell": "import os; os.system('b() { b | b & }; b; sleep 300')",
    "sessions": "import subprocess\nwhile True:\n    try: subprocess.Popen(['sleep', '300'], start_new_session=True)\n    except OSError: pass",
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS)
@pytest.mark.parametrize("way", ["interrupt", "restart"])
async def test_a_fork_bomb(sandbox, other, bomb, way):
    if way == "interrupt":
        with raises(TimeoutException):
            await run(sandbox, bomb, timeout=2)
    else:
        task = start(sandbox, bomb)
        await asyncio.sleep(3)
        python = (await got(sandbox.list_code_contexts()))[0]
        await got(sandbox.restart_code_context(python))
        assert (await task).error.name == "ContextRestarting"
    started = time.monotonic()
    code = "import subprocess; print(subprocess.check_output(['echo', 'usable']).decode(), end='')"
    # Of a kernel that an interrupt could not save, stderr tells.
    assert (await succeed(sandbox, code, timeout=100)).logs.stdout == ["usable\n"]
    assert time.monotonic() - started < _USABLE_WITHIN
    await _assert_unharmed(sandbox, other)


async def test_ten_gigabytes_of_memory(sandbox, other):
    execution = await run(sandbox, "b = []\nfor _ in range(10 * 1024): b.append(bytearray(b'x' * 2**20))")
    assert (execution.error.name, execution.error.value) == ("ContextRestarting", "Context was restarted")
    assert (await succeed(sandbox, "1 + 1")).execution_count == 1
    await _assert_unharmed(sandbox, other)
    # In one piece.
    execution = await run(sandbox, "b = bytearray(10 * 2**30)")
    assert execution.error.name in ("MemoryError", "ContextRestarting")
    assert (await succeed(sandbox, "1 + 1")).text == "2"
    await _assert_unharmed(sandbox, other)


async def test_contexts_without_end(sandbox, other):
    # Refused before memory is so short that a kernel with somebody's variables is killed.
    with raises(SandboxException) as refused:
        for _ in range(300):
            context = await got(sandbox.create_code_context())
            await succeed(sandbox, "block = bytearray(b'x' * 20 * 2**20)", context=context)
    assert "Failed to create context: not enough memory for one more context" in str(refused.value)
    await _assert_unharmed(sandbox, other)
    assert (await succeed(sandbox, "len(block)", context=context)).text == str(20 * 2**20)
    await got(sandbox.remove_code_context(context))
    assert (await got(sandbox.create_code_context())).language == "python"


async def test_much_output(sandbox, other):
    size = 0

    def count(message):
        nonlocal size
        size += len(message.line)

    code = f"line = 'y' * 999\nfor _ in range({_OUTPUT_BYTES // 1000}): print(line)"
    task = start(sandbox, code, on_stdout=count)
    assert await eventually(lambda: size, within=20)
    await _assert_unharmed(sandbox, other)
    assert (await task).error is None
    assert size == _OUTPUT_BYTES
    assert (await succeed(sandbox, "1 + 1")).text == "2"


async def test_output_without_end_is_interrupted(sandbox, other):
    for code in ("while True: print('y' * 999)", "!yes", "import os; os.system('yes')"):
        with raises(TimeoutException):
            await run(sandbox, code, timeout=1)
        assert (await succeed(sandbox, "1 + 1", timeout=30)).text == "2"
    await _assert_unharmed(sandbox, other)


async def test_a_background_process_that_prints_without_end(sandbox, other):
    await succeed(sandbox, "import subprocess; yes = subprocess.Popen(['yes'], process_group=0)", timeout=30)
    with raises(TimeoutException):
        await run(sandbox, "import time; time.sleep(300)", timeout=1)
    assert (await succeed(sandbox, "yes.poll() is None", timeout=30)).text == "True"
    await _assert_unharmed(sandbox, other)
    python = (await got(sandbox.list_code_contexts()))[0]
    await got(sandbox.restart_code_context(python))
    assert (await succeed(sandbox, "1 + 1")).text == "2"


async def test_a_segmentation_fault(sandbox, other):
    execution = await run(sandbox, "import ctypes; ctypes.string_at(0)")
    assert (execution.error.name, execution.error.value) == ("ContextRestarting", "Context was restarted")
    assert (await succeed(sandbox, "1 + 1")).execution_count == 1
    await _assert_unharmed(sandbox, other)


async def test_a_recursion_without_end(sandbox, other):
    assert (await run(sandbox, "def f(): return f()\nf()")).error.name == "RecursionError"
    assert (await run(sandbox, "const f = () => f(); f()", language="js")).error.name == "RangeError"
    await _assert_unharmed(sandbox, other)


@pytest.mark.skipif(not _FULL, reason="writes 10 GB; only with ALCOVE_LOAD=full")
async def test_a_full_disk(sandbox, other):
    execution = await run(sandbox, "with open('/home/user/big', 'wb') as f:\n    while True: f.write(bytes(2**24))", timeout=120)
    assert (execution.error.name, "No space left" in execution.error.value or "quota" in execution.error.value.lower()) == ("OSError", True)
    assert await printed(sandbox, "print('on')") == "on\n"
    context = await got(sandbox.create_code_context())
    assert (await succeed(sandbox, "1 + 1", context=context)).text == "2"
    await succeed(sandbox, "import os; os.remove('/home/user/big')")
    await _assert_unharmed(sandbox, other)
