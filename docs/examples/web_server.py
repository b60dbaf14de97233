# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
import time
import urllib.error
import urllib.request

from e2b import Sandbox


def fetch(sandbox, port, path="/"):
    """What the service on that port of the sandbox answers."""
    with urllib.request.urlopen(f"https://{sandbox.get_host(port)}{path}") as reply:
        return reply.read().decode()


with Sandbox.create() as sandbox:
    sandbox.files.write("site/index.html", "served from a sandbox\n")
    sandbox.commands.run("python -m http.server 8000 --directory site", background=True)
    for _ in range(50):
        try:
            print(fetch(sandbox, 8000), end="")
            break
        except urllib.error.HTTPError:  # 502 until somebody listens on the port
            time.sleep(0.1)
