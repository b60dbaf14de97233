# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b import Sandbox, SandboxQuery

# One program makes the sandbox, starts something and goes away.
sandbox = Sandbox.create(timeout=60, metadata={"job": "42"})
job = sandbox.commands.run("sleep 2; echo the job is done", background=True)
job.disconnect()

# Another one finds it, gives it more time and waits for the result.
[found] = Sandbox.list(query=SandboxQuery(metadata={"job": "42"})).next_items()
again = Sandbox.connect(found.sandbox_id, timeout=600)
[process] = again.commands.list()
print(again.commands.connect(process.pid).wait().stdout, end="")
print("killed:", again.kill())
