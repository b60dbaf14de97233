# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b import Sandbox

with Sandbox.create() as sandbox:
    # Relative names are below the user's home directory; folders are made on the way.
    sandbox.files.write("data/prices.csv", "pear,3\napple,2\n")
    sandbox.files.rename("data/prices.csv", "data/fruit.csv")
    for entry in sandbox.files.list("data"):
        print(entry.path, entry.size)
    print(sandbox.files.read("data/fruit.csv"), end="")

    # Large files are streamed; neither side holds them in memory.
    sandbox.commands.run("head -c 50M /dev/zero > /tmp/large")
    chunks = sandbox.files.read("/tmp/large", format="stream")
    print(sum(len(chunk) for chunk in chunks), "bytes")
