# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Variables of the sandbox and of one execution, in every language."""

import pytest
from e2b import SandboxException
from harness import got, raises
from interpreter.client import LANGUAGES, client, needs_routing_headers, printed, run, start, succeed  # noqa: F401

pytestmark = [needs_routing_headers, pytest.mark.limit(120)]

_READ = {
    "python": "import os; print(os.environ.get('{}', '-'), end='')",
    "javascript": "process.stdout.write(process.env['{}'] ?? '-')",
    "typescript": "process.stdout.write(process.env['{}'] ?? '-' as string)",
    "r": "cat(Sys.getenv('{}', '-'))",
    "java": 'System.out.print(System.getProperty("{}", "-"))',
    "bash": "printf %s \"${{{}--}}\"",
}
_ODD = {
    "quotes": "it's \"quoted\" `twice`",
    "lines": "one\ntwo\r\n\tthree\n",
    "shell": "$HOME $(id) ${x} !! \\n \\ %s {} ; exit 1 #",
    "unicode": "ünï 日本 😀 \u2028",
    "code": "'); raise SystemExit('",
    "empty": "",
    "long": "x" * 100_000,
}


async def _value(sandbox, language, name, **options):
    return await printed(sandbox, _READ[language].format(name), language=language, **options)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_variables_of_sandbox_and_execution(make_sandbox, language):
    sandbox = await make_sandbox(envs={"OWN": "it's the sandbox's"})
    assert await _value(sandbox, language, "OWN") == "it's the sandbox's"
    # For one call, then gone; over the sandbox's, then back.
    assert await _value(sandbox, language, "ONCE", envs={"ONCE": "now"}) == "now"
    assert await _value(sandbox, language, "ONCE") == "-"
    assert await _value(sandbox, language, "OWN", envs={"OWN": "other"}) == "other"
    assert await _value(sandbox, language, "OWN") == "it's the sandbox's"
    for name, value in _ODD.items():
        assert await _value(sandbox, language, name, envs={name: value}) == value, name
        assert await _value(sandbox, language, name) == "-", name


async def test_the_sandbox_names_itself(sandbox):
    assert await _value(sandbox, "python", "E2B_SANDBOX") == "true"
    assert await _value(sandbox, "python", "E2B_SANDBOX_ID") == sandbox.sandbox_id


_FAIL = {
    "python": "raise ValueError",
    "javascript": "throw new Error('x')",
    "typescript": "throw new Error('x' as string)",
    "r": "stop('x')",
    "java": 'throw new RuntimeException("x");',
    "bash": "exit 3",
}
_WAIT = {
    "python": "import time; time.sleep(300)",
    "javascript": "await new Promise(() => setTimeout(() => {}, 300_000))",
    "typescript": "const n: number = 300_000; await new Promise(done => setTimeout(done, n))",
    "r": "Sys.sleep(300)",
    "java": "Thread.sleep(300_000)",
    "bash": "sleep 300",
}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_variables_are_back_after_errors_and_interrupts(make_sandbox, language):
    sandbox = await make_sandbox(envs={"OWN": "before"})
    assert (await run(sandbox, _FAIL[language], language=language, envs={"OWN": "during", "NEW": "n"})).error is not None
    assert await _value(sandbox, language, "OWN") + await _value(sandbox, language, "NEW") == "before-"
    with pytest.raises(Exception, match="timed out"):
        await run(sandbox, _WAIT[language], language=language, envs={"OWN": "during", "NEW": "n"}, timeout=1)
    assert await _value(sandbox, language, "OWN") + await _value(sandbox, language, "NEW") == "before-"


async def test_python_state_of_the_user_is_not_touched(sandbox):
    # No import, no name, no line of ours in the user's cell.
    execution = await run(sandbox, "1 / 0", envs={"A": "1"})
    assert "----> 1 1 / 0" in execution.error.traceback
    assert (await succeed(sandbox, "'os' in globals()", envs={"A": "1"})).text == "False"
    await succeed(sandbox, "import os as o\nos = 'mine'", envs={"A": "1"})
    assert (await succeed(sandbox, "os, o.environ.get('A')")).text == "('mine', None)"
    # What code sets itself is its own.
    await succeed(sandbox, "o.environ['KEPT'] = 'yes'", envs={"A": "1"})
    assert (await succeed(sandbox, "o.environ['KEPT']")).text == "yes"
    assert (await succeed(sandbox, "1")).execution_count == 7


async def test_cell_magics_stay_on_their_first_line(make_sandbox):
    sandbox = await make_sandbox(envs={"OWN": "own"})
    assert await printed(sandbox, "%%bash\necho $OWN $ONCE", envs={"ONCE": "once"}) == "own once\n"


async def test_processes_of_the_code_inherit_them(sandbox):
    for language, code in (
        ("python", "import subprocess; subprocess.run('echo $ONCE', shell=True);"),
        ("javascript", "require('child_process').spawnSync('sh', ['-c', 'echo $ONCE'], { stdio: 'inherit' }); undefined"),
        ("r", "invisible(system('echo $ONCE'))"),
        ("bash", "sh -c 'echo $ONCE'"),
    ):
        assert await printed(sandbox, code, language=language, envs={"ONCE": "there"}) == "there\n", language


async def test_names_that_cannot_be_are_refused(sandbox):
    for bad in ({"A=B": "x"}, {"": "x"}, {"A": "x\0y"}):
        with raises(SandboxException, "422"):
            await run(sandbox, "1", envs=bad)


async def test_each_context_has_its_own(sandbox):
    context = await got(sandbox.create_code_context())
    await succeed(sandbox, "import os; os.environ['MINE'] = '1'")
    task = start(sandbox, "import time, os; time.sleep(1); os.environ.get('ONCE')", envs={"ONCE": "1"})
    assert (await succeed(sandbox, "import os; (os.environ.get('MINE'), os.environ.get('ONCE'))", context=context)).text == "(None, None)"
    assert (await task).text == "1"
