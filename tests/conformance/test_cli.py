# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The official `e2b` command line program, as published, given nothing but the settings that `up`
writes: `env`, with the domain and its certificates, and `env-plain`, with URLs."""

import json
import os
import pty
import random
import re
import select
import subprocess
import time
from pathlib import Path

import e2b
import pytest
from harness import API_KEY, API_URL, BY_DOMAIN, SANDBOX_ID, SANDBOX_URL, eventually
from recorder import CLI, record

pytestmark = [pytest.mark.wire, pytest.mark.limit(90)]

_REQUEST_RECORDER = Path(__file__).with_name("js") / "request_recorder.mjs"
_COLOURS = re.compile(r"\x1b\[\d+m")


@pytest.fixture
def command():
    program, node = os.environ.get("ALCOVE_E2B_CLI"), os.environ.get("ALCOVE_NODE")
    if not (program and node):
        pytest.skip("needs the CLI and its Node (ALCOVE_E2B_CLI, ALCOVE_NODE)")
    return [node, program]


@pytest.fixture(params=["env", "env-plain"])
def settings(tmp_path, request):
    own = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    if "ALCOVE_RECORD" in os.environ:
        # Its requests show what endpoints do, as those of the packages.
        own |= {"ALCOVE_RECORD": os.environ["ALCOVE_RECORD"], "NODE_OPTIONS": f"--import {_REQUEST_RECORDER.as_uri()}"}
    if request.param == "env-plain":
        return own | {"E2B_API_KEY": API_KEY, "E2B_API_URL": API_URL, "E2B_SANDBOX_URL": SANDBOX_URL, "NO_PROXY": "127.0.0.1,localhost,::1"}
    if not BY_DOMAIN:
        pytest.skip("needs the server's data directory (ALCOVE_DATA)")
    return own | BY_DOMAIN


@pytest.fixture
def cli(command, settings):
    """A function that runs the CLI in an empty home and returns what it did."""

    def run(*args, stdin=None, code=0, text=True):
        # No stdin at all is /dev/null, which the CLI does not take for a pipe.
        source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        done = subprocess.run([*command, *args], **source, capture_output=True, env=settings, timeout=60)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        if text:
            done.stdout = _COLOURS.sub("", done.stdout.decode())
        done.stderr = _COLOURS.sub("", done.stderr.decode())
        record.command(args, done.returncode, done.stderr if isinstance(done.stdout, bytes) else done.stdout + done.stderr)
        return done

    return run


@pytest.fixture
def box(cli):
    sandbox_id = cli("sandbox", "create", "-d", "--timeout", "120").stdout.strip()
    yield sandbox_id
    e2b.Sandbox.kill(sandbox_id)


def test_help_lists_every_command(cli):
    def walk(*words):
        listed = cli(*words, "--help").stdout.partition("Commands:")[2]
        names = re.findall(r"^  (\w+)", listed, re.MULTILINE)
        if words and not names:
            record.command_exists(words)
        for name in names:
            if name != "help":
                walk(*words, name)

    walk()
    assert (CLI, "sandbox create", "") in record.methods


def test_create_list_info_kill(cli):
    sandbox_id = cli("sandbox", "create", "base", "--detach", "--timeout", "60").stdout.strip()
    assert SANDBOX_ID.fullmatch(sandbox_id)
    listed = json.loads(cli("sandbox", "list", "--format", "json").stdout)
    (mine,) = [entry for entry in listed if entry["sandboxId"] == sandbox_id]
    assert (mine["state"], mine["name"], mine["cpuCount"], mine["memoryMB"]) == ("running", "base", 2, 1024)
    table = cli("sandbox", "list").stdout
    (row,) = [line for line in table.splitlines() if sandbox_id in line]
    assert "base" in row and "Running" in row
    info = cli("sandbox", "info", sandbox_id).stdout
    assert f"Sandbox ID: {sandbox_id}" in info and "State: running" in info
    detail = json.loads(cli("sandbox", "info", "--format", "json", sandbox_id).stdout)
    assert (detail["sandboxId"], detail["state"]) == (sandbox_id, "running")

    assert cli("sandbox", "kill", sandbox_id).stdout.strip() == f"Sandbox {sandbox_id} has been killed"
    assert sandbox_id not in cli("sandbox", "list").stdout
    assert cli("sandbox", "kill", sandbox_id).stderr.strip() == f"Sandbox {sandbox_id} wasn't found"
    assert f"Sandbox {sandbox_id} wasn't found" in cli("sandbox", "info", sandbox_id, code=1).stderr


def test_list_filters_and_kill_all(cli, make_sandbox_with):
    first, second = make_sandbox_with(colour="red"), make_sandbox_with(colour="blue")
    red = json.loads(cli("sandbox", "list", "--metadata", "colour=red", "--format", "json").stdout)
    assert [entry["sandboxId"] for entry in red] == [first]
    assert cli("sandbox", "list", "--metadata", "colour=green").stdout.strip() == "No sandboxes found"
    assert "Killed 1 running sandboxes" in cli("sandbox", "kill", "--all", "--metadata", "colour=blue").stdout
    left = [entry["sandboxId"] for entry in json.loads(cli("sandbox", "list", "--format", "json").stdout)]
    assert first in left and second not in left


@pytest.fixture
def make_sandbox_with():
    made = []

    def make(**metadata):
        made.append(e2b.Sandbox.create(timeout=120, metadata=metadata))
        return made[-1].sandbox_id

    yield make
    for sandbox in made:
        sandbox.kill()


def test_exec(cli, box):
    assert cli("sandbox", "exec", box, "echo", "a b", "c'd", "ü").stdout == "a b c'd ü\n"
    assert cli("sandbox", "exec", box, "echo out; echo err >&2").stderr == "err\n"
    assert cli("sandbox", "exec", "-c", "/tmp", "-u", "root", "-e", "A=1 2", box, 'pwd; id -un; echo "$A"').stdout == "/tmp\nroot\n1 2\n"


@pytest.mark.parametrize("code", [1, 7, 255])
def test_exec_passes_the_exit_code_on(cli, box, code):
    assert cli("sandbox", "exec", box, f"echo seen; exit {code}", code=code).stdout == "seen\n"


def test_exec_in_the_background(cli, box):
    pid = int(cli("sandbox", "exec", "--background", box, "sleep 300").stderr.strip())
    assert cli("sandbox", "exec", box, f"kill -0 {pid} && echo alive").stdout == "alive\n"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 1_000_003, 5 << 20])
def test_exec_pipes_stdin_byte_by_byte(cli, box, size):
    data = random.Random(size).randbytes(size)
    with e2b.Sandbox.connect(box) as sandbox:
        done = cli("sandbox", "exec", box, "cat > /tmp/in && wc -c < /tmp/in", stdin=data)
        assert int(done.stdout) == size
        assert bytes(sandbox.files.read("/tmp/in", format="bytes")) == data


def test_exec_in_a_sandbox_that_is_gone(cli):
    assert "not found" in cli("sandbox", "exec", "nonexistingsandbox", "true", code=1).stderr


def test_logs(cli, box):
    cli("sandbox", "exec", box, "echo hello; exit 4", code=4)
    lines = [json.loads(line) for line in cli("sandbox", "logs", "--format", "json", box).stdout.splitlines() if line.strip()]
    assert lines[0]["message"] == "sandbox created from template base"
    assert all(line["level"] == "info" for line in lines)
    (start,) = [line for line in lines if line["event_type"] == "process_start"]
    (end,) = [line for line in lines if line["event_type"] == "process_end"]
    assert start["command"] == "/bin/bash -l -c echo hello; exit 4"
    assert end["exit_code"] == "4" and end["pid"] == start["pid"]
    pretty = cli("sandbox", "logs", box).stdout
    assert "INFO" in pretty and "sandbox created from template base" in pretty
    only = cli("sandbox", "logs", "--loggers", "process", box).stdout
    assert "process_start" in only and "sandbox_created" not in only
    assert "process_start" not in cli("sandbox", "logs", "--level", "WARN", box).stdout

    cli("sandbox", "kill", box)
    assert "sandbox killed by request" in cli("sandbox", "logs", box).stdout
    assert "not found" in cli("sandbox", "logs", "nonexistingsandbox", code=1).stderr


def test_logs_can_be_followed(cli):
    with e2b.Sandbox.create(timeout=5) as sandbox:
        sandbox.commands.run("echo first")
        logs = cli("sandbox", "logs", "--follow", sandbox.sandbox_id).stdout
    assert "echo first" in logs and "sandbox is closed" in logs


async def test_metrics(cli, box):
    assert await eventually(lambda: e2b.Sandbox.get_metrics(box), within=10)
    pretty = cli("sandbox", "metrics", box).stdout
    assert re.search(r"CPU: +[\d.]+% / +2 Cores \| Memory: +\d+ / 1024  MiB \| Disk: +\d+ / 10240 MiB", pretty), pretty
    lines = [json.loads(line) for line in cli("sandbox", "metrics", "--format", "json", box).stdout.splitlines() if line.strip()]
    assert lines[0]["memTotal"] == 1024 << 20 and lines[0]["memUsed"] > 0
    cli("sandbox", "kill", box)
    assert "sandbox not found" in cli("sandbox", "metrics", box).stdout


class Terminal:
    """The CLI on a terminal of its own, and what it shows there."""

    def __init__(self, command, *arguments, settings):
        self._arguments = arguments
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen([*command, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=settings | {"TERM": "xterm"}, start_new_session=True)
        os.close(theirs)
        self.shown = ""

    def type(self, text):
        os.write(self._ours, text.encode())

    def wait_for(self, text, within=20):
        deadline = time.monotonic() + within
        while text not in self.shown:
            assert time.monotonic() < deadline, (text, self.shown)
            if select.select([self._ours], [], [], 0.1)[0]:
                self.shown += os.read(self._ours, 65536).decode(errors="replace")

    def end(self):
        code = self._process.wait(timeout=20)
        os.close(self._ours)
        record.command(self._arguments, code)
        return code


def test_terminal_in_a_new_sandbox(cli, command, settings):
    terminal = Terminal(command, "sandbox", "create", settings=settings)
    terminal.wait_for("$ ")
    sandbox_id = SANDBOX_ID.search(terminal.shown).group()
    terminal.type("echo $((40 + 2)) in $(tty)\r")
    terminal.wait_for("42 in /dev/pts/")
    terminal.type("exit\r")
    terminal.wait_for("Closing terminal connection")
    assert terminal.end() == 0
    # Nobody is attached any more: it ends by itself.
    cli("sandbox", "logs", "--follow", sandbox_id)
    assert "sandbox ended: its timeout was reached" in cli("sandbox", "logs", sandbox_id).stdout


def test_terminal_in_a_sandbox_that_runs(command, settings, box):
    terminal = Terminal(command, "sandbox", "connect", box, settings=settings)
    terminal.wait_for("$ ")
    terminal.type("echo $E2B_SANDBOX_ID | tr a-z A-Z\r")
    terminal.wait_for(box.upper())
    terminal.type("exit\r")
    assert terminal.end() == 0


def test_templates_are_listed(cli):
    (row,) = [line for line in cli("template", "list").stdout.splitlines() if " base " in line]
    assert row.split()[0] == "Public" and "0.6.13" in row


def test_a_template_s_files_are_made(cli, tmp_path):
    """They need no server until they are built."""
    cli("template", "init", "-p", str(tmp_path), "-n", "fresh", "-l", "python-sync")
    assert "Template" in (tmp_path / "fresh" / "template.py").read_text()
    (tmp_path / "e2b.Dockerfile").write_text("FROM debian:13\nRUN echo hello\n")
    cli("template", "migrate", "-p", str(tmp_path), "-n", "old", "-l", "typescript")
    assert "echo hello" in (tmp_path / "template.ts").read_text()


def test_template_is_not_built(cli, tmp_path):
    (tmp_path / "e2b.Dockerfile").write_text("FROM debian:13\nRUN true\n")
    done = cli("template", "create", "mine", "-p", str(tmp_path), code=1)
    assert "400: building a template is not available on this server yet." in done.stdout + done.stderr


def test_what_is_not_built_says_so(cli, box):
    assert "400: pause is not available on this server yet." in cli("sandbox", "pause", box, code=1).stderr
    assert "400: snapshot is not available on this server yet." in cli("sandbox", "snapshot", "create", box, code=1).stderr
    assert cli("sandbox", "snapshot", "list").stdout.strip() == "No snapshots found"
    assert cli("sandbox", "resume", box).stdout.strip() == f"Sandbox {box} has been resumed"
    assert box in cli("sandbox", "list").stdout


def test_nobody_is_logged_in(cli):
    assert cli("auth", "info").stdout.strip() == "Not logged in"
