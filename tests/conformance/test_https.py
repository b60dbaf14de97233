# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The domain with TLS: clients know nothing but it and the authority, and services in a sandbox are
reached by https://<get_host(port)>, with Python's own clients."""

import asyncio
import hashlib
import os
import ssl
import threading
from pathlib import Path

import httpx
import pytest
import websockets.asyncio.client
import websockets.exceptions
import websockets.sync.client
from harness import BY_DOMAIN, assert_kill_is_told, got, requires

_SERVICE = Path(__file__).with_name("service.py").read_text()
_PORT = 8000
_MEBIBYTES = 1024 if os.environ.get("ALCOVE_LOAD") == "full" else 100
_has_https_ports = requires(2, 51, why="does not know httpsPorts")

pytestmark = pytest.mark.skipif(not BY_DOMAIN, reason="needs the server's data directory (ALCOVE_DATA)")


@pytest.fixture(autouse=True)
def by_domain(monkeypatch):
    """What a user of `env` has: no URL variables, which would win over the domain."""
    for name in ("E2B_API_URL", "E2B_SANDBOX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("E2B_DOMAIN", BY_DOMAIN["E2B_DOMAIN"])


def _trust():
    return ssl.create_default_context(cafile=BY_DOMAIN["SSL_CERT_FILE"])


async def _serve(sandbox, address="127.0.0.1", port=_PORT, pair=""):
    """Returns when the service listens."""
    await got(sandbox.files.write("/tmp/service.py", _SERVICE))
    command = f"setsid python3 /tmp/service.py {address} {port} {pair} > /tmp/service.log 2>&1 & until grep -q ready /tmp/service.log; do sleep 0.05; done"
    await got(sandbox.commands.run(command))


class _Browser:
    """httpx in the flavour of the client under test, and nothing but the authority to trust."""

    def __init__(self, client, sandbox):
        kind = httpx.Client if client.flavour == "sync" else httpx.AsyncClient
        self.http = kind(verify=_trust(), base_url=f"https://{sandbox.get_host(_PORT)}", timeout=30, trust_env=False)

    async def get(self, path, **options):
        return await got(self.http.get(path, **options))

    async def read(self, path, use):
        """Calls `use` with each piece of the answer as it comes."""
        if isinstance(self.http, httpx.Client):
            with self.http.stream("GET", path) as reply:
                for piece in reply.iter_raw():
                    use(piece)
            return
        async with self.http.stream("GET", path) as reply:
            async for piece in reply.aiter_raw():
                use(piece)


async def test_everyday_calls(client, sandbox):
    assert (await got(sandbox.commands.run("echo by domain"))).stdout == "by domain\n"
    await got(sandbox.files.write("/tmp/file", "content"))
    assert await got(sandbox.files.read("/tmp/file")) == "content"
    assert (await got(sandbox.get_info())).sandbox_id == sandbox.sandbox_id
    assert sandbox.sandbox_id in [entry.sandbox_id for entry in await client.listed()]
    again = await got(client.Sandbox.connect(sandbox.sandbox_id))
    assert await got(again.is_running()) is True
    assert await got(sandbox.kill()) is True
    assert await got(again.is_running()) is False


@pytest.mark.smoke
@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "::1"])
async def test_http(client, sandbox, address):
    """Also of a service that nobody but the sandbox itself could reach."""
    await _serve(sandbox, address)
    assert sandbox.get_host(_PORT) == f"{_PORT}-{sandbox.sandbox_id}.{BY_DOMAIN['E2B_DOMAIN']}"
    reply = await _Browser(client, sandbox).get("/a%20b?c=d")
    assert (reply.status_code, reply.text) == (200, f"{sandbox.get_host(_PORT)} /a%20b?c=d")


async def test_upload(client, sandbox):
    await _serve(sandbox)
    content = os.urandom(1 << 20)
    browser = _Browser(client, sandbox)

    def pieces():
        for at in range(0, len(content), 100_000):
            yield content[at : at + 100_000]

    async def awaited_pieces():
        for piece in pieces():
            yield piece

    body = pieces() if client.flavour == "sync" else awaited_pieces()
    reply = await got(browser.http.post("/", content=body))
    assert reply.text == hashlib.sha256(content).hexdigest()


@pytest.mark.smoke
async def test_closed_port(client, sandbox):
    reply = await _Browser(client, sandbox).get("/")
    assert reply.status_code == 502
    assert reply.json() == {
        "sandboxId": sandbox.sandbox_id,
        "message": "The sandbox is running but port is not open",
        "port": _PORT,
        "code": 502,
    }


@pytest.mark.smoke
async def test_websocket(client, sandbox):
    await _serve(sandbox)
    url = f"wss://{sandbox.get_host(_PORT)}/ws"
    messages = ["grüße", bytes(range(256)) * 4096]
    if client.flavour == "sync":
        with websockets.sync.client.connect(url, ssl=_trust(), proxy=None) as socket:
            for message in messages:
                socket.send(message)
                assert socket.recv(timeout=30) == message
    else:
        async with websockets.asyncio.client.connect(url, ssl=_trust(), proxy=None) as socket:
            for message in messages:
                await socket.send(message)
                assert await asyncio.wait_for(socket.recv(), 30) == message


async def test_server_sent_events_arrive_one_by_one(client, sandbox):
    await _serve(sandbox)
    browser, seen = _Browser(client, sandbox), []
    # The service sends no event before it is told to, by another connection.
    other = httpx.Client(verify=_trust(), base_url=browser.http.base_url, timeout=30, trust_env=False)

    def step(piece):
        seen.append(piece)
        if len(seen) < 3:
            other.get("/step")

    other.get("/step")
    await browser.read("/events", step)
    assert seen == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


@pytest.mark.limit(600)
async def test_large_download(client, sandbox):
    await _serve(sandbox)
    received, digest, expected = 0, hashlib.sha256(), hashlib.sha256()

    def take(piece):
        nonlocal received
        received += len(piece)
        digest.update(piece)

    await _Browser(client, sandbox).read(f"/large/{_MEBIBYTES}", take)
    for n in range(_MEBIBYTES):
        expected.update(bytes([n & 255]) * (1 << 20))
    assert received == _MEBIBYTES << 20
    assert digest.digest() == expected.digest()


@requires(2, 40, why="does not look at the sandbox's health")
async def test_killed_in_the_middle_of_a_command(client, sandbox):
    """The exception that the SDK documents for it."""
    await assert_kill_is_told(client, sandbox)
    assert await got(sandbox.is_running()) is False


@pytest.mark.smoke
async def test_killed_in_the_middle_of_a_stream(client, sandbox):
    """Whoever reads from a service is told that the transfer is not whole."""
    await _serve(sandbox)
    browser = _Browser(client, sandbox)
    other = httpx.Client(verify=_trust(), base_url=browser.http.base_url, timeout=30, trust_env=False)
    seen = []

    def kill(piece):
        seen.append(piece)
        threading.Thread(target=_kill, args=(sandbox.sandbox_id,)).start()

    other.get("/step")
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        await browser.read("/events", kill)
    assert seen == [b"data: 0\n\n"]
    reply = await browser.get("/")
    assert (reply.status_code, reply.json()["message"]) == (502, "The sandbox was not found")


async def test_killed_in_the_middle_of_a_websocket(client, sandbox):
    await _serve(sandbox)
    with websockets.sync.client.connect(f"wss://{sandbox.get_host(_PORT)}/ws", ssl=_trust(), proxy=None) as socket:
        socket.send("still there")
        assert socket.recv(timeout=30) == "still there"
        await got(sandbox.kill())
        with pytest.raises(websockets.exceptions.ConnectionClosedError):
            socket.recv(timeout=30)


# --- services that speak TLS themselves -----------------------------------------------------------

_OWN_PAIR = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=own -keyout /tmp/key -out /tmp/cert 2>&1"


@_has_https_ports
async def test_service_with_tls_of_its_own(client, make_sandbox):
    """httpsPorts: whatever certificate it has."""
    sandbox = await make_sandbox(network={"https_ports": [_PORT]})
    assert (await got(sandbox.get_info())).network["https_ports"] == [_PORT]
    await got(sandbox.commands.run(_OWN_PAIR))
    await _serve(sandbox, pair="/tmp/cert /tmp/key")
    browser = _Browser(client, sandbox)
    for path in ("/a", "/b"):
        assert (await browser.get(path)).text == f"{sandbox.get_host(_PORT)} {path}"
    content = os.urandom(1 << 20)
    assert (await got(browser.http.post("/", content=content))).text == hashlib.sha256(content).hexdigest()
    received = []
    await browser.read("/large/8", received.append)
    assert b"".join(received) == b"".join(bytes([n]) * (1 << 20) for n in range(8))
    with websockets.sync.client.connect(f"wss://{sandbox.get_host(_PORT)}/ws", ssl=_trust(), proxy=None) as socket:
        socket.send(bytes(70_000))
        assert socket.recv(timeout=30) == bytes(70_000)


@_has_https_ports
async def test_service_without_the_tls_that_it_announces(client, make_sandbox):
    sandbox = await make_sandbox(network={"https_ports": [_PORT]})
    await _serve(sandbox)
    reply = await _Browser(client, sandbox).get("/")
    assert (reply.status_code, reply.json()["port"]) == (502, _PORT)
    assert "does not speak TLS" in reply.json()["message"]


def _kill(sandbox_id):
    headers = {"X-API-Key": os.environ["E2B_API_KEY"]}
    url = f"https://api.{BY_DOMAIN['E2B_DOMAIN']}/sandboxes/{sandbox_id}"
    assert httpx.delete(url, headers=headers, verify=_trust(), trust_env=False).status_code == 204
