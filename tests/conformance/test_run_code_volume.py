# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""100,000 lines in every language, on stdout, on stderr, on both in turn, and flushed one by one: each stream
arrives complete and in order, and callbacks see the same."""

import e2b_code_interpreter
import pytest
from harness import Client
from interpreter.client import LANGUAGES, needs_routing_headers, succeed

# What the server does; one flavour of one generation is enough.
pytestmark = [needs_routing_headers, pytest.mark.wire, pytest.mark.limit(300)]

_COUNT = 100_000
# R's kernel makes a message of each flush, which takes it a millisecond.
_R_FLUSHES = 10_000
# How a language loops, and prints the number as a line on either stream, with or without a flush.
_LOOP = {
    "python": "import sys\nfor i in range(100_000):\n    {body}",
    "javascript": "for (let i = 0; i < 100_000; i++) {{ {body} }}",
    "typescript": "for (let i: number = 0; i < 100_000; i++) {{ {body} }}",
    "r": "for (i in 0:99999) {{ {body} }}",
    "java": "for (int i = 0; i < 100_000; i++) {{ {body} }}",
    "bash": "for ((i = 0; i < 100000; i++)); do {body}; done",
}
_OUT = {
    "python": "print(i)",
    "javascript": "console.log(i);",
    "typescript": "console.log(i);",
    "r": "cat(sprintf('%d\\n', i));",
    "java": "System.out.println(i);",
    "bash": "echo $i",
}
_ERR = {
    "python": "print(i, file=sys.stderr)",
    "javascript": "console.error(i);",
    "typescript": "console.error(i);",
    "r": "cat(sprintf('%d\\n', i), file = stderr());",
    "java": "System.err.println(i);",
    "bash": "echo $i >&2",
}
_FLUSHED = {
    "python": "print(i, flush=True)",
    "javascript": "process.stdout.write(`${i}\\n`);",
    "typescript": "process.stdout.write(`${i}\\n`);",
    "r": "cat(sprintf('%d\\n', i)); flush(stdout());",
    "java": "System.out.print(i + \"\\n\"); System.out.flush();",
    "bash": "printf '%d\\n' $i",
}
_WAYS = {
    "stdout": (_OUT, None, True, False),
    "stderr": (_ERR, None, False, True),
    "both": (_OUT, _ERR, True, True),
    "flushed": (_FLUSHED, None, True, False),
}


@pytest.fixture
def client():
    return Client("sync", e2b_code_interpreter.Sandbox)


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_line_arrives_in_order(sandbox, language, way):
    first, second, on_stdout, on_stderr = _WAYS[way]
    body = first[language] + ("; " + second[language] if second else "")
    code = _LOOP[language].format(body=body)
    count = _COUNT
    if (language, way) == ("r", "flushed"):
        count = _R_FLUSHES
        code = code.replace("99999", str(count - 1))
    seen = {"stdout": [], "stderr": []}
    execution = await succeed(
        sandbox,
        code,
        language=language,
        timeout=250,
        on_stdout=lambda message: seen["stdout"].append(message.line),
        on_stderr=lambda message: seen["stderr"].append(message.line),
    )
    lines = "".join(f"{i}\n" for i in range(count))
    for stream, used, texts in (("stdout", on_stdout, execution.logs.stdout), ("stderr", on_stderr, execution.logs.stderr)):
        got = "".join(texts)
        wanted = lines if used else ""
        # Not compared by pytest, which would explain the difference of a megabyte.
        assert len(got) == len(wanted), (stream, len(got))
        is_exact = got == wanted
        assert is_exact, stream
        assert seen[stream] == texts
