# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""One way through everything, by every generation of the Python client. Only names that all of
them have are used here."""

import threading
import time
import urllib.parse
from pathlib import Path

import e2b
import e2b_code_interpreter
import pytest
from e2b.sandbox.sandbox_api import SandboxQuery
from harness import SANDBOX_ID, TLS, VERSION, Client, eventually, got, raises, request, visit

pytestmark = pytest.mark.smoke

_SERVICE = Path(__file__).with_name("service.py").read_text()

_runs_code = pytest.mark.skipif(not TLS and VERSION < (2, 40), reason="run_code needs the TLS domain")


@pytest.fixture(params=["sync", "async"])
def interpreter(request):
    kind = e2b_code_interpreter.Sandbox if request.param == "sync" else e2b_code_interpreter.AsyncSandbox
    return Client(request.param, kind)


async def test_create_list_and_kill(client, make_sandbox):
    mark = f"walk-{time.time_ns()}"
    sandbox = await make_sandbox(metadata={"mark": mark}, envs={"FROM_SANDBOX": "yes"})
    assert SANDBOX_ID.fullmatch(sandbox.sandbox_id)
    assert await got(sandbox.is_running()) is True
    assert sandbox.get_host(3000).startswith(f"3000-{sandbox.sandbox_id}.")
    assert (await got(sandbox.commands.run("echo $FROM_SANDBOX"))).stdout == "yes\n"
    info = await got(sandbox.get_info())
    assert (info.sandbox_id, info.metadata) == (sandbox.sandbox_id, {"mark": mark})
    listed = await client.listed(query=SandboxQuery(metadata={"mark": mark}))
    assert [entry.sandbox_id for entry in listed] == [sandbox.sandbox_id]
    await got(sandbox.set_timeout(60))
    assert (await got(sandbox.get_info())).end_at < info.end_at
    assert await got(client.Sandbox.kill(sandbox.sandbox_id)) is True
    assert await got(sandbox.is_running()) is False
    assert await got(client.Sandbox.kill(sandbox.sandbox_id)) is False
    assert await client.listed(query=SandboxQuery(metadata={"mark": mark})) == []


async def test_with_ends_the_sandbox(client):
    if client.flavour == "sync":
        # `with Sandbox()` until 2.0.
        with await client.create() as sandbox:
            assert sandbox.commands.run("echo with").stdout == "with\n"
    else:
        async with await client.create() as sandbox:
            assert (await sandbox.commands.run("echo with")).stdout == "with\n"
    assert await got(sandbox.is_running()) is False


async def test_commands(sandbox):
    seen = []
    result = await got(sandbox.commands.run("echo out; echo oops >&2; pwd", cwd="/tmp", on_stdout=seen.append))
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n/tmp\n", "oops\n", 0)
    assert "".join(seen) == "out\n/tmp\n"
    with raises(e2b.CommandExitException) as failed:
        await got(sandbox.commands.run("exit 7"))
    assert failed.value.exit_code == 7
    handle = await got(sandbox.commands.run("sleep 300", background=True))
    assert handle.pid in [process.pid for process in await got(sandbox.commands.list())]
    assert await got(handle.kill()) is True
    other = await got(sandbox.commands.run("sleep 300", background=True))
    assert await got(sandbox.commands.kill(other.pid)) is True
    assert await got(sandbox.commands.kill(424242)) is False


async def test_input_of_a_command_and_its_end(sandbox):
    # Before 2.0 every command's input was open.
    options = {"stdin": True} if VERSION >= (2, 0) else {}
    handle = await got(sandbox.commands.run("read line; echo got $line; exit 3", background=True, **options))
    await got(handle.disconnect())
    again = await got(sandbox.commands.connect(handle.pid))
    await got(sandbox.commands.send_stdin(handle.pid, "grüße\n"))
    with raises(e2b.CommandExitException) as ended:
        await got(again.wait())
    assert (ended.value.stdout, ended.value.exit_code) == ("got grüße\n", 3)


async def test_terminal(client, sandbox):
    seen = bytearray()
    collect = {"on_data": seen.extend} if client.flavour == "async" else {}
    handle = await got(sandbox.pty.create(e2b.PtySize(rows=24, cols=80), **collect))
    await got(sandbox.pty.resize(handle.pid, e2b.PtySize(rows=50, cols=132)))
    await got(sandbox.pty.send_stdin(handle.pid, b"stty size; exit\n"))
    if client.flavour == "async":
        await handle.wait()
    else:
        handle.wait(on_pty=seen.extend)
    assert b"50 132\r\n" in seen
    other = await got(sandbox.pty.create(e2b.PtySize(rows=24, cols=80), **collect))
    assert await got(sandbox.pty.kill(other.pid)) is True


async def test_watching_a_directory(client, sandbox):
    await got(sandbox.files.make_dir("/home/user/watched"))
    seen = []
    if client.flavour == "async":
        handle = await sandbox.files.watch_dir("/home/user/watched", on_event=seen.append)
    else:
        handle = sandbox.files.watch_dir("/home/user/watched")
    await got(sandbox.files.write("/home/user/watched/new.txt", "x"))

    def happened():
        if client.flavour == "sync":
            seen.extend(handle.get_new_events())
        return ("create", "new.txt") in [(event.type.value, event.name) for event in seen]

    assert await eventually(happened, within=20), seen
    await got(handle.stop())


async def test_urls_of_files(client, make_sandbox):
    # By plain HTTP the signature is what tells the sandbox.
    options = {"secure": True} if VERSION < (2, 0) else {}
    sandbox = await make_sandbox(**options)
    up, down = (urllib.parse.urlsplit(url) for url in (sandbox.upload_url("signed.txt", user="user"), sandbox.download_url("signed.txt", user="user")))
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="signed.txt"\r\n\r\nsigned\r\n--x--\r\n'
    sent = request("POST", f"{up.path}?{up.query}", host=up.netloc, body=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert sent.status == 200, sent.body
    assert request("GET", f"{down.path}?{down.query}", host=down.netloc).body == b"signed"
    assert (await got(sandbox.files.get_info("signed.txt"))).size == 6


async def test_metrics(sandbox):
    async def measured():
        return await got(sandbox.get_metrics())

    assert await eventually(measured, within=20, every=0.5)
    assert (await got(sandbox.get_metrics()))[0].cpu_count == 2


async def test_files(sandbox):
    await got(sandbox.files.write("walk/note.txt", "zwölf"))
    assert await got(sandbox.files.read("walk/note.txt")) == "zwölf"
    assert bytes(await got(sandbox.files.read("walk/note.txt", format="bytes"))) == "zwölf".encode()
    assert [entry.name for entry in await got(sandbox.files.list("walk"))] == ["note.txt"]
    assert (await got(sandbox.files.rename("walk/note.txt", "walk/new.txt"))).path == "/home/user/walk/new.txt"
    assert await got(sandbox.files.exists("walk/new.txt")) is True
    assert await got(sandbox.files.exists("walk/note.txt")) is False
    assert await got(sandbox.files.make_dir("walk/more")) is True
    await got(sandbox.files.remove("walk"))
    # Newer clients raise a subclass.
    with pytest.raises(e2b.NotFoundException):
        await got(sandbox.files.read("walk/new.txt"))


async def test_connect(client, sandbox):
    await got(sandbox.files.write("/tmp/mark", "here"))
    other = await got(client.Sandbox.connect(sandbox.sandbox_id))
    assert other.sandbox_id == sandbox.sandbox_id
    # 2.22's connected handle sends no routing headers: over plain HTTP nothing tells its sandbox.
    if TLS or VERSION >= (2, 40):
        assert await got(other.files.read("/tmp/mark")) == "here"


async def test_services_by_get_host(sandbox):
    """Those too that nobody but the sandbox itself could reach, and a port without one."""
    await got(sandbox.files.write("/tmp/service.py", _SERVICE))
    for port, address in ((8001, "127.0.0.1"), (8002, "::1")):
        command = f"setsid python3 /tmp/service.py {address} {port} > /tmp/{port} 2>&1 & until grep -q ready /tmp/{port}; do sleep 0.05; done"
        await got(sandbox.commands.run(command))
        host = sandbox.get_host(port)
        assert host.startswith(f"{port}-{sandbox.sandbox_id}.")
        reply = visit(host, "/a%20b?c=d")
        assert (reply.status, reply.body.decode()) == (200, f"{host} /a%20b?c=d")
    closed = visit(sandbox.get_host(8123))
    assert (closed.status, closed.json["message"]) == (502, "The sandbox is running but port is not open")


@pytest.mark.skipif(VERSION < (2, 0), reason="knows no MCP gateway")
async def test_a_gateway_for_tools_is_where_its_url_says(sandbox):
    """No template of ours has one; something else stands in its place."""
    url = urllib.parse.urlsplit(sandbox.get_mcp_url())
    port, _, rest = url.netloc.partition("-")
    assert sandbox.get_host(int(port)) == url.netloc and rest.startswith(sandbox.sandbox_id)
    await got(sandbox.files.write("/tmp/service.py", _SERVICE))
    command = f"setsid python3 /tmp/service.py 127.0.0.1 {port} > /tmp/out 2>&1 & until grep -q ready /tmp/out; do sleep 0.05; done"
    await got(sandbox.commands.run(command))
    assert visit(url.netloc, url.path).body.decode() == f"{url.netloc} {url.path}"
    # Where a gateway leaves it, for root alone.
    await got(sandbox.commands.run("mkdir -p /etc/mcp-gateway && (umask 077; printf s3cret > /etc/mcp-gateway/.token)", user="root"))
    assert await got(sandbox.get_mcp_token()) == "s3cret"


async def test_killed_in_the_middle_of_a_command(client, sandbox):
    """Whoever waits is told at once, and not by an exit code."""
    # Clients before 2.40 do not ask what became of the sandbox, and pass on that the stream was cut.
    told_by = e2b.SandboxException if VERSION >= (2, 40) else (e2b.SandboxException, *_cut_streams())
    handle = await got(sandbox.commands.run("echo begun; sleep 60", background=True))
    killer = threading.Timer(0.5, e2b.Sandbox.kill, [sandbox.sandbox_id])
    killer.start()
    started = time.monotonic()
    with pytest.raises(told_by) as told:
        await got(handle.wait())
    killer.join()
    assert not isinstance(told.value, e2b.CommandExitException), told.value
    assert time.monotonic() - started < 20
    assert await got(sandbox.is_running()) is False


def _cut_streams():
    import httpcore

    return httpcore.ReadError, httpcore.RemoteProtocolError


@_runs_code
@pytest.mark.limit(120)
async def test_run_code(interpreter):
    sandbox = await interpreter.create()
    try:
        assert (await got(sandbox.run_code("x = 20; x + 1"))).text == "21"
        printed = []
        execution = await got(sandbox.run_code("print('zwölf', x)", on_stdout=printed.append))
        assert "".join(execution.logs.stdout) == "zwölf 20\n"
        assert "".join(message.line for message in printed) == "zwölf 20\n"
        failed = await got(sandbox.run_code("1 / 0"))
        assert (failed.error.name, failed.error.value) == ("ZeroDivisionError", "division by zero")
        context = await got(sandbox.create_code_context(cwd="/tmp"))
        assert (await got(sandbox.run_code("import os; os.getcwd()", context=context))).text == "/tmp"
        assert (await got(sandbox.run_code("1 + 1", language="javascript"))).text == "2"
        if hasattr(sandbox, "list_code_contexts"):
            assert [(entry.language, entry.cwd) for entry in await got(sandbox.list_code_contexts())][-1] == ("python", "/tmp")
            await got(sandbox.run_code("y = 1", context=context))
            await got(sandbox.restart_code_context(context))
            assert (await got(sandbox.run_code("y", context=context))).error.name == "NameError"
            await got(sandbox.remove_code_context(context))
            assert context.id not in [entry.id for entry in await got(sandbox.list_code_contexts())]
    finally:
        await got(sandbox.kill())
