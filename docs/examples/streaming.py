# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b import TimeoutException
from e2b_code_interpreter import Sandbox

CODE = """
import os, sys, time
for i in range(3):
    print(os.environ["GREETING"], i, flush=True)
    time.sleep(0.2)
print("careful", file=sys.stderr)
display("shown")
"""

with Sandbox.create() as sandbox:
    # Output and results as they come; the variable is there for this run only.
    sandbox.run_code(
        CODE,
        envs={"GREETING": "it's"},
        on_stdout=lambda message: print("out:", message.line, end=""),
        on_stderr=lambda message: print("err:", message.line, end=""),
        on_result=lambda result: print("result:", result.text),
    )
    print(sandbox.run_code("'GREETING' in os.environ").text)

    # A run that takes too long is interrupted; the context goes on.
    try:
        sandbox.run_code("n = 0\nwhile True: n += 1", timeout=1)
    except TimeoutException:
        print(sandbox.run_code("n > 0").text)
