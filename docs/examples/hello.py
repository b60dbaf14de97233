# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b import Sandbox

with Sandbox.create(timeout=300) as sandbox:
    sandbox.files.write("hello.py", "print('hello from a sandbox')")
    result = sandbox.commands.run("python hello.py")
    print(result.stdout, end="")
    print("exit code", result.exit_code)
