# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Who is where in the made-up internet. Public addresses are of the documentation ranges."""

# The host's own addresses and, on the same link, the world's router.
HOST_V4 = "192.0.2.2"
HOST_V6 = "2001:db8:1::2"
ROUTER_V4 = "192.0.2.1"
ROUTER_V6 = "2001:db8:1::1"
NAME_SERVER = "192.0.2.53"

# Name -> IPv4 and IPv6 addresses.
PYPI = "pypi.test"
NPM = "npm.test"
GIT = "git.test"
DEBIAN = "deb.test"
FILES = "files.test"
V4_ONLY = "v4.test"
V6_ONLY = "v6.test"
# Its IPv6 address swallows everything; a client must get along with IPv4.
DEAD_V6 = "dead6.test"
# More addresses than fit into one UDP answer.
MANY = "many.test"

_BLACKHOLE_V6 = "2001:db8:dead::1"
_MANY_COUNT = 60

ZONE = {
    PYPI: (["198.51.100.10"], ["2001:db8:2::10"]),
    NPM: (["198.51.100.11"], ["2001:db8:2::11"]),
    GIT: (["198.51.100.12"], ["2001:db8:2::12"]),
    DEBIAN: (["203.0.113.13"], ["2001:db8:2::13"]),
    FILES: (["203.0.113.20"], ["2001:db8:2::20"]),
    V4_ONLY: (["203.0.113.40"], []),
    V6_ONLY: ([], ["2001:db8:2::60"]),
    DEAD_V6: (["203.0.113.40"], [_BLACKHOLE_V6]),
    MANY: ([f"203.0.113.{100 + i}" for i in range(_MANY_COUNT)], []),
}

# Answers from the router say that there is no way to these.
UNREACHABLE_V4 = "203.0.113.66"
UNREACHABLE_V6 = "2001:db8:66::1"
# Nothing ever answers from these.
BLACKHOLES = ("203.0.113.99", _BLACKHOLE_V6)

# No sandbox may reach these, although the host can: the same services listen there.
PRIVATE_V4 = ("10.20.30.40", "172.16.9.9", "192.168.77.1", "169.254.169.254", "100.64.1.1")
# The last two carry 10.20.30.40 in them, for a translator.
PRIVATE_V6 = ("fd00:77::1", "64:ff9b::a14:1e28", "2002:a14:1e28::1")

ECHO_PORT = 7007
# On every address, and nobody listens.
CLOSED_PORT = 7008
GIT_PORT = 9418


def served():
    """All addresses that the world's services listen on."""
    found = {NAME_SERVER, *PRIVATE_V4, *PRIVATE_V6}
    for name, (v4, v6) in ZONE.items():
        if name != MANY:
            found.update(v4, v6)
    return sorted(found - set(BLACKHOLES))
