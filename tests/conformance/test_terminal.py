# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Terminals (sandbox.pty) by the official client."""

import asyncio
import threading

import pytest
from e2b import CommandExitException, NotFoundException, PtySize
from harness import eventually, got, requires

_streams = requires(2, 58, why="has no stream_input")


class _Terminal:
    """A terminal whose output is collected while the test goes on."""

    def __init__(self, client, sandbox):
        self.client = client
        self.sandbox = sandbox
        self.output = b""

    async def open(self, cols=80, rows=24, **options):
        size = PtySize(rows=rows, cols=cols)
        await self._take(self.sandbox.pty.create, size=size, **options)
        return self

    async def join(self, pid):
        await self._take(self.sandbox.pty.connect, pid)
        return self

    async def _take(self, method, *args, **options):
        if self.client.flavour == "async":
            self.handle = await method(*args, on_data=self._add, **options)
            return
        self.handle = method(*args, **options)
        # The sync handle gives output only to who waits for the end.
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def _collect(self):
        try:
            for _, _, data in self.handle:
                self._add(data or b"")
        except Exception:
            # The stream of a killed terminal ends with an error; the test looks at the output.
            pass

    async def exit_code(self):
        """How it ended, when it has."""
        if self.client.flavour == "sync":
            assert await eventually(lambda: not self._collector.is_alive(), within=20)
        try:
            return (await got(self.handle.wait())).exit_code
        except CommandExitException as error:
            return error.exit_code

    def _add(self, data):
        self.output += data

    @property
    def pid(self):
        return self.handle.pid

    async def type(self, text):
        await got(self.sandbox.pty.send_stdin(self.pid, text.encode()))

    async def until(self, text):
        assert await eventually(lambda: text.encode() in self.output, within=20), self.output


@pytest.fixture
def terminal(client, sandbox):
    return _Terminal(client, sandbox)


@pytest.mark.smoke
async def test_shell_answers(terminal):
    await terminal.open()
    await terminal.type("echo $((6*7))-$TERM\n")
    await terminal.until("42-xterm-256color\r\n")
    await terminal.type("exit\n")


@pytest.mark.smoke
async def test_exit_code(terminal):
    await terminal.open(cwd="/", envs={"CODE": "7"})
    await terminal.type("pwd; exit $CODE\n")
    assert await terminal.exit_code() == 7
    assert b"\r/\r\n" in terminal.output


async def test_size_and_resize(terminal, sandbox):
    await terminal.open(cols=101, rows=33)
    await terminal.type("stty size\n")
    await terminal.until("33 101\r\n")
    await got(sandbox.pty.resize(terminal.pid, PtySize(rows=50, cols=132)))
    await terminal.type("stty size\n")
    await terminal.until("50 132\r\n")


async def test_resize_right_after_the_start(terminal, sandbox):
    await terminal.open()
    await got(sandbox.pty.resize(terminal.pid, PtySize(rows=24, cols=100)))
    await terminal.type("tput cols\n")
    await terminal.until("\r100\r\n")


async def test_environment_directory_and_user(terminal):
    await terminal.open(cwd="/tmp", envs={"MARK": "here"}, user="root")
    await terminal.type("echo $MARK:$PWD:$(id -un):$(tty | cut -c1-9)\n")
    await terminal.until("here:/tmp:root:/dev/pts/\r\n")


async def test_control_characters_reach_the_foreground(terminal):
    await terminal.open()
    await terminal.type("sleep 1000\n")
    await terminal.until("sleep 1000")
    await asyncio.sleep(0.5)
    await terminal.type("\x03")
    await terminal.type("echo status=$?\n")
    await terminal.until("status=130\r\n")


@pytest.mark.smoke
async def test_second_client_joins(client, sandbox, terminal):
    await terminal.open()
    other = await _Terminal(client, sandbox).join(terminal.pid)
    await other.type("echo both-$((1+1))\n")
    await terminal.until("both-2\r\n")
    await other.until("both-2\r\n")


async def test_work_goes_on_while_nobody_watches(client, sandbox):
    callback = {} if client.flavour == "sync" else {"on_data": lambda data: None}
    first = await got(sandbox.pty.create(PtySize(rows=24, cols=80), **callback))
    await got(sandbox.pty.send_stdin(first.pid, b"touch /tmp/ready; read line; seq 1 200000; touch /tmp/done\n"))
    assert await eventually(lambda: sandbox.files.exists("/tmp/ready"), within=10)
    await got(first.disconnect())
    await got(sandbox.pty.send_stdin(first.pid, b"\n"))
    # Far more than a terminal buffers: somebody drains it.
    assert await eventually(lambda: sandbox.files.exists("/tmp/done"), within=20)
    again = await _Terminal(client, sandbox).join(first.pid)
    assert again.pid == first.pid
    await again.type("echo still-$((40+2))\n")
    await again.until("still-42\r\n")
    await again.type("exit\n")
    assert await again.exit_code() == 0


async def test_listed_and_killed(sandbox, terminal):
    await terminal.open()
    listed = {process.pid: process for process in await got(sandbox.commands.list())}
    assert (listed[terminal.pid].cmd, listed[terminal.pid].args) == ("/bin/bash", ["-i", "-l"])
    assert await got(sandbox.pty.kill(terminal.pid)) is True
    with pytest.raises(CommandExitException):
        await got(sandbox.commands.run(f"kill -0 {terminal.pid}"))

    async def gone():
        return terminal.pid not in [process.pid for process in await got(sandbox.commands.list())]

    assert await eventually(gone, within=5)
    assert await got(sandbox.pty.kill(terminal.pid)) is False


async def test_unknown_terminal(sandbox):
    with pytest.raises(NotFoundException):
        await got(sandbox.pty.send_stdin(999999, b"x"))
    with pytest.raises(NotFoundException):
        await got(sandbox.pty.resize(999999, PtySize(rows=1, cols=1)))


async def test_python_prompt(terminal):
    await terminal.open()
    await terminal.type("python3 -q; echo back-$?\n")
    await terminal.until(">>> ")
    await terminal.type("x = 6\n")
    await terminal.type("print('result', x * 7)\n")
    await terminal.until("result 42")
    await terminal.type("exit()\n")
    await terminal.until("back-0\r\n")


async def test_password_is_not_echoed(terminal):
    await terminal.open()
    await terminal.type("read -rsp 'Password: ' secret; echo; echo length=${#secret}\n")
    await terminal.until("Password: ")
    await asyncio.sleep(0.3)
    before = len(terminal.output)
    await terminal.type("hunter2\n")
    await terminal.until("length=7\r\n")
    assert b"hunter2" not in terminal.output[before:]


async def test_full_screen_program(terminal):
    await terminal.open()
    await terminal.type("top -n 1; echo status=$?\n")
    await terminal.until("status=0\r\n")
    # One refresh of the whole screen, placed by escape sequences.
    assert b"load average" in terminal.output and b"\x1b[H" in terminal.output


async def test_editor_writes_a_file(terminal, sandbox):
    await terminal.open()
    await terminal.type("vi poem.txt; echo closed=$?\n")
    await terminal.until("poem.txt")
    await asyncio.sleep(1)
    await terminal.type("iroses are red\rviolets are blue\x1b:wq\r")
    await terminal.until("closed=0\r\n")
    assert await got(sandbox.files.read("poem.txt")) == "roses are red\nviolets are blue\n"


@_streams
async def test_streamed_input(client, sandbox, terminal):
    await terminal.open()
    if client.flavour == "sync":
        sandbox.pty.stream_input(terminal.pid, iter([b"echo one-$((1))\n", b"echo two-$((2))\n"]))
    else:
        handle = sandbox.pty.stream_input(terminal.pid)
        await handle.send(b"echo one-$((1))\n")
        # It arrives while the call goes on.
        await terminal.until("one-1\r\n")
        await handle.send(b"echo two-$((2))\n")
        await handle.close()
    await terminal.until("one-1\r\n")
    await terminal.until("two-2\r\n")
