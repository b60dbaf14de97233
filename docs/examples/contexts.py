# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b_code_interpreter import Sandbox

with Sandbox.create() as sandbox:
    # Each context has its own process, variables and working directory.
    sandbox.files.make_dir("work")
    context = sandbox.create_code_context(cwd="/home/user/work")
    sandbox.run_code("x = 1")
    sandbox.run_code("x = 2", context=context)
    print(sandbox.run_code("import os; x, os.getcwd()").text)
    print(sandbox.run_code("import os; x, os.getcwd()", context=context).text)

    # A restart forgets its variables, and keeps its id and directory.
    sandbox.restart_code_context(context)
    print(sandbox.run_code("x", context=context).error.value)

    sandbox.remove_code_context(context)
    print([context.language for context in sandbox.list_code_contexts()])
