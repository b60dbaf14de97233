# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b_code_interpreter import Sandbox

PROGRAMS = {
    "python": "sum(range(10))",
    "javascript": "const { sum } = await Promise.resolve({ sum: 45 }); sum",
    "typescript": "const numbers: number[] = [1, 2, 3]; numbers.length",
    "r": "mean(c(1, 2, 6))",
    "java": 'String.join("-", "a", "b")',
    "bash": "echo $((6 * 7))",
}

with Sandbox.create() as sandbox:
    for language, code in PROGRAMS.items():
        execution = sandbox.run_code(code, language=language)
        print(language, [result.text for result in execution.results], execution.logs.stdout)
