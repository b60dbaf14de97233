# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b import Sandbox

sandbox = Sandbox.create(allow_internet_access=False)
result = sandbox.commands.run("getent hosts example.com || echo no names, no addresses")
print(result.stdout, end="")
sandbox.kill()
