# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What all client tests use: both flavours of the Python client behind one way of calling, plain
HTTP requests, and facts about the server under test."""

import asyncio
import contextlib
import dataclasses
import http.client
import importlib.metadata
import inspect
import json
import os
import re
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import e2b
import pytest
from recorder import record

API_KEY = os.environ["E2B_API_KEY"]
# Where the tests' own requests go. What the clients know is another matter: these URLs, or the
# TLS domain and nothing else.
API_URL = SANDBOX_URL = os.environ["ALCOVE_ORIGIN"]
TLS = "E2B_DOMAIN" in os.environ
DATA_DIR = os.environ.get("ALCOVE_DATA")
PROGRAM = os.environ.get("ALCOVE_BIN")
TESTS = Path(__file__).parent


def _domain_settings():
    """The settings for clients by TLS, as the server wrote them; empty without its data directory."""
    if not DATA_DIR:
        return {}
    file = Path(DATA_DIR, "env")
    read = subprocess.run(["/bin/sh", "-euc", 'set -a; . "$0"; exec env -0', file], capture_output=True, text=True, check=True).stdout
    found = dict(pair.split("=", 1) for pair in read.split("\0") if pair)
    return {name: found[name] for name in (line.partition("=")[0] for line in file.read_text().splitlines()) if name}


BY_DOMAIN = _domain_settings()
# Clients read it once, with their first connection. It holds the system's certificates too.
if "SSL_CERT_FILE" in BY_DOMAIN:
    os.environ["SSL_CERT_FILE"] = BY_DOMAIN["SSL_CERT_FILE"]
# The preset of a server that was built with a sanitizer.
SANITIZED = os.environ.get("ALCOVE_SANITIZED")

VERSION = tuple(int(part) for part in importlib.metadata.version("e2b").split(".")[:2])

# From 2.55 on, the client tells a stopped sandbox from an unreachable one by the proxy's text.
NotRunning = getattr(e2b, "SandboxNotRunningException", e2b.TimeoutException)
Unreachable = getattr(e2b, "SandboxUnreachableException", e2b.TimeoutException)

SANDBOX_ID = re.compile(r"i[a-z0-9]{20}")
TEMPLATE_ID = re.compile(r"[a-z0-9]{20}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


async def got(value):
    """The value itself from the sync client, the awaited one from the async client. With it, one
    test body serves both."""
    return await value if inspect.isawaitable(value) else value


@contextlib.contextmanager
def raises(exception, text=""):
    """Like pytest.raises, but the type must be exactly this one, not a subclass."""
    with pytest.raises(exception) as info:
        yield info
    assert type(info.value) is exception, f"{type(info.value).__name__} instead of {exception.__name__}: {info.value}"
    assert text in str(info.value)


@dataclasses.dataclass
class Client:
    """One flavour of the Python client."""

    flavour: str
    Sandbox: type

    async def create(self, template=None, *, timeout=120, **options):
        # Until 2.0 the sync client's constructor is what creates.
        make = getattr(self.Sandbox, "create", self.Sandbox)
        return await got(make(template, timeout=timeout, **options))

    async def read_stream(self, sandbox, path):
        """Yields the chunks of a streamed download."""
        reader = await got(sandbox.files.read(path, format="stream"))
        if self.flavour == "sync":
            for chunk in reader:
                yield chunk
        else:
            async for chunk in reader:
                yield chunk

    async def pages(self, **options):
        """Yields the pages of Sandbox.list()."""
        paginator = self.Sandbox.list(**options)
        while paginator.has_next:
            yield await got(paginator.next_items())

    async def listed(self, **options):
        if VERSION < (2, 0):
            return await got(self.Sandbox.list(**options))
        return [entry async for page in self.pages(**options) for entry in page]


def requires(*version, why):
    return pytest.mark.skipif(VERSION < version, reason=f"e2b {'.'.join(map(str, VERSION))}: {why}")


# Linked to this machine's C library, as the address and thread sanitizers need it, an agent runs only
# in roots that have one like it.
static_agent = pytest.mark.skipif(SANITIZED in ("asan", "tsan"), reason="the agent is not static in this build")


@dataclasses.dataclass
class Reply:
    status: int
    headers: dict  # lower-case names; several of one name are joined
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["message"]


def request(method, path, *, body=None, headers=None, url=API_URL, host=None, key=None, chunked=False, timeout=30):
    """One plain HTTP request on a connection of its own. `body` may be bytes or something for
    JSON; `key` adds the API key header."""
    target = urllib.parse.urlsplit(url)
    fields = {name: str(value) for name, value in (headers or {}).items()}
    if key is not None:
        fields["X-API-Key"] = key
    data = body
    if body is not None and not isinstance(body, (bytes, str)):
        data = json.dumps(body).encode()
    if body is not None and "Content-Type" not in fields:
        fields["Content-Type"] = "application/json"
    connection = http.client.HTTPConnection(target.hostname, target.port, timeout=timeout)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or target.netloc)
        for name, value in fields.items():
            connection.putheader(name, value)
        payload = data.encode() if isinstance(data, str) else data
        if payload is not None:
            connection.putheader(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(payload)))))
        connection.endheaders(payload if not chunked else [payload], encode_chunked=chunked)
        response = connection.getresponse()
        fields = {}
        for name, value in response.getheaders():
            fields[name.lower()] = f"{fields[name.lower()]}, {value}" if name.lower() in fields else value
        reply = Reply(response.status, fields, response.read())
        record.reply(method, path, reply.status, reply.body)
        return reply
    finally:
        connection.close()


def api(method, path, body=None, **options):
    """A request to the API with the team's key."""
    return request(method, path, body=body, **({"key": API_KEY} | options))


def to_sandbox(method, path, sandbox_id, port=49983, *, headers=None, **options):
    """A request to a port of a sandbox, routed by headers as the clients do it."""
    routing = {"E2b-Sandbox-Id": sandbox_id, "E2b-Sandbox-Port": port}
    return request(method, path, headers=routing | (headers or {}), url=SANDBOX_URL, **options)


def visit(host, path="/"):
    """What somebody gets who opens the URL that `get_host()` is for: by the domain's TLS, or by the
    name alone where the client knows no more."""
    if not TLS:
        return request("GET", path, host=host)
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted())]
    try:
        response = urllib.request.build_opener(*handlers).open(f"https://{host}{path}", timeout=30)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, response.read())


def trusted():
    """The certificates that clients of the domain trust."""
    return ssl.create_default_context(cafile=BY_DOMAIN["SSL_CERT_FILE"])


def assert_error(reply, status, text=None):
    """The error shape that every client relies on; `text` is the exact message."""
    assert reply.status == status, (reply.status, reply.body)
    assert reply.headers["content-type"].startswith("application/json"), reply.headers
    assert reply.json["code"] == status, reply.json
    assert isinstance(reply.json["message"], str) and reply.json["message"], reply.json
    if text is not None:
        assert reply.json["message"] == text


def server_pid():
    if not DATA_DIR:
        pytest.skip("needs the server's data directory (ALCOVE_DATA)")
    return int(Path(DATA_DIR, "server.pid").read_text())


def run_alcove(*args):
    """Runs a command of the `alcove` program on the server's data directory."""
    if not (DATA_DIR and PROGRAM):
        pytest.skip("needs the server's data directory and program (ALCOVE_DATA, ALCOVE_BIN)")
    done = subprocess.run([PROGRAM, *args, "--data-dir", DATA_DIR], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def eventually(probe, *, within, every=0.05):
    """Waits until `probe()` (sync or async) is true; False if it never was."""
    deadline = time.monotonic() + within
    while True:
        if await got(probe()):
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(every)


async def assert_kill_is_told(client, sandbox):
    """Kills the sandbox while a command runs in it; the wait must end with the documented exception."""
    text = "The sandbox was killed or reached its end of life while the request was in flight."
    handle = await got(sandbox.commands.run("sleep 60", background=True))
    if client.flavour == "sync":
        killer = threading.Timer(0.5, lambda: client.Sandbox.kill(sandbox.sandbox_id))
        killer.start()
        with raises(NotRunning, text):
            handle.wait()
        killer.join()
    else:
        waiting = asyncio.ensure_future(handle.wait())
        await asyncio.sleep(0.5)
        await sandbox.kill()
        with raises(NotRunning, text):
            await waiting
