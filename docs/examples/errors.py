# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
import e2b

sandbox = e2b.Sandbox.create(timeout=60)
try:
    sandbox.commands.run("sleep 60", timeout=1)
except e2b.TimeoutException:
    print("the command took too long and was killed")

try:
    sandbox.files.read("/nowhere")
except e2b.NotFoundException as error:
    print("no such file:", error)

sandbox.kill()
try:
    sandbox.commands.run("true")
except e2b.SandboxNotRunningException:
    print("the sandbox is gone")

try:
    e2b.Sandbox.create("no-such-template")
except e2b.SandboxException as error:
    print(error)
