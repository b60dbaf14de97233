# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b import CommandExitException, Sandbox

with Sandbox.create() as sandbox:
    # Output as it comes.
    sandbox.commands.run(
        "for i in 1 2 3; do echo $GREETING $i; sleep 0.2; done",
        envs={"GREETING": "hello"},
        cwd="/tmp",
        on_stdout=lambda text: print(text, end=""),
    )

    # An exit code other than 0 is an exception.
    try:
        sandbox.commands.run("ls /nowhere")
    except CommandExitException as error:
        print("exit code", error.exit_code)

    # In the background, with input.
    sorting = sandbox.commands.run("sort", background=True, stdin=True)
    sandbox.commands.send_stdin(sorting.pid, "pear\napple\n")
    sandbox.commands.close_stdin(sorting.pid)
    print(sorting.wait().stdout, end="")
