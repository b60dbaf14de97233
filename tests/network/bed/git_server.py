# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""git:// by git itself, a process per connection."""

import os
import socket
import socketserver
import subprocess
import threading


def environ():
    """For every git that serves: no settings but that any owner of the repositories will do."""
    return {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def start(port, folder):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            command = ["git", "daemon", "--inetd", "--export-all", f"--base-path={folder}"]
            subprocess.run(command, stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, env=environ(), check=False)

    class Server(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6
        allow_reuse_address = True
        daemon_threads = True

    threading.Thread(target=Server(("::", port), Handler).serve_forever, daemon=True).start()
