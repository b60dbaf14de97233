# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Sandboxes in the test bed. One flavour of the client is enough here: it is the network that is
tested."""

import json
import shlex
from pathlib import Path

import e2b
import pytest
from world_view import CA

_PROBE = Path(__file__).with_name("probe.py").read_text()
_PROBE_INSIDE = "/tmp/probe.py"
_CA_INSIDE = "/usr/local/share/ca-certificates/bed.crt"
# Node trusts what it was built with, and this.
_NODE_TRUST = {"NODE_EXTRA_CA_CERTS": _CA_INSIDE}


def _probe_command(name, args):
    return shlex.join(["python3", _PROBE_INSIDE, name, json.dumps(args)])


class Box:
    """A sandbox with the probe in it."""

    def __init__(self, **options):
        self.sandbox = e2b.Sandbox.create(timeout=600, **options)
        self.sandbox.files.write(_PROBE_INSIDE, _PROBE)

    def run(self, command, *, user=None, timeout=60):
        return self.sandbox.commands.run(command, user=user, timeout=timeout).stdout

    def probe(self, name, *args, timeout=60):
        """What a function of probe.py returned inside."""
        return json.loads(self.run(_probe_command(name, args), timeout=timeout))

    def start_probe(self, name, *args):
        """The same in the background: a function that waits for the outcome."""
        command = self.sandbox.commands.run(_probe_command(name, args), background=True)
        return lambda: json.loads(command.wait().stdout)

    def leave_probe(self, name, *args, result):
        """The same with nobody who waits; the outcome will be in the file `result`."""
        self.leave(_probe_command(name, args), result=result)

    def leave(self, command, *, result):
        """Runs a command with nobody who waits; when it has ended, what it printed is in `result`."""
        whole = f"({command}) > {result}.new; mv {result}.new {result}"
        self.run(f"setsid sh -c {shlex.quote(whole)} < /dev/null > /dev/null 2>&1 &")

    def read_if_there(self, path):
        return self.sandbox.files.read(path) if self.sandbox.files.exists(path) else None

    def trust_the_bed(self):
        self.sandbox.files.write(_CA_INSIDE, CA.read_text(), user="root")
        self.run("update-ca-certificates", user="root")


@pytest.fixture
def make_box():
    made = []

    def make(**options):
        box = Box(**options)
        made.append(box)
        return box

    yield make
    for box in made:
        box.sandbox.kill()


@pytest.fixture
def box(make_box):
    return make_box()


@pytest.fixture
def trusting_box(make_box):
    """Knows the test bed's authority, as its user made it known."""
    box = make_box(envs=_NODE_TRUST)
    box.trust_the_bed()
    return box
