# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""All services of the world, in one process: world.py NAME FOLDER. Ends with its starter."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bed import addresses, dns_server, echo_server, git_server, web_server  # noqa: E402


def main():
    folder = Path(sys.argv[2])
    seen = {"names": [], "tcp": [], "udp": []}
    dns_server.NameServer(addresses.ZONE, addresses.NAME_SERVER, seen["names"])
    web_server.start(folder, seen)
    echo_server.start_tcp(addresses.ECHO_PORT, seen["tcp"])
    for address in addresses.served():
        echo_server.start_udp(addresses.ECHO_PORT, address, seen["udp"])
    git_server.start(addresses.GIT_PORT, folder / "git")
    print("ready", flush=True)
    sys.stdin.read()


main()
