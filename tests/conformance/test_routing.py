# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""API and sandbox traffic share one origin. Python 2.22.0 sends the sandbox's routing headers on
its API connect call too; whatever the client, the call must reach the API."""

import http.server
import threading
import urllib.error
import urllib.request

import pytest
from harness import API_URL, SANDBOX_URL, VERSION, got


class _Recorder(http.server.ThreadingHTTPServer):
    """Passes API calls on to the server under test and remembers their heads."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, {name.lower() for name in self.headers}))
        fields = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        onward = urllib.request.Request(API_URL + self.path, data=body or None, headers=fields, method=self.command)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            reply = opener.open(onward, timeout=30)
        except urllib.error.HTTPError as error:
            reply = error
        content = reply.read()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _pass_on

    def log_message(self, *arguments):
        pass


@pytest.fixture
def recorder():
    server = _Recorder()
    yield server
    server.shutdown()
    server.server_close()


def test_one_origin():
    assert API_URL == SANDBOX_URL


@pytest.mark.smoke
async def test_connect_reaches_the_api(client, make_sandbox, recorder):
    """Through a recorder, to be sure that the client under test really does what the rule is for."""
    sandbox = await make_sandbox()
    other = await got(client.Sandbox.connect(sandbox.sandbox_id, api_url=recorder.url))
    (method, path, headers) = recorder.seen[0]
    version = "/v2" if VERSION >= (2, 51) else ""
    assert (method, path) == ("POST", f"{version}/sandboxes/{sandbox.sandbox_id}/connect")
    if VERSION == (2, 22):
        assert {"e2b-sandbox-id", "e2b-sandbox-port"} <= headers
        # The handle that this client makes then sends no routing headers at all: without the TLS
        # domain nothing tells its sandbox, so only the connect itself can be checked.
        assert other.sandbox_id == sandbox.sandbox_id
        return
    assert (await got(other.commands.run("echo routed"))).stdout == "routed\n"


@pytest.mark.smoke
async def test_instance_connect_reaches_the_api(sandbox):
    """On the shared origin itself."""
    again = await got(sandbox.connect())
    assert again.sandbox_id == sandbox.sandbox_id
    assert (await got(again.commands.run("echo routed"))).stdout == "routed\n"


@pytest.mark.smoke
async def test_calls_of_both_kinds_in_turn(client, make_sandbox):
    """One pool of connections carries API calls and traffic of different sandboxes."""
    boxes = [await make_sandbox() for _ in range(3)]
    for turn in range(3):
        for box in boxes:
            shown = (await got(box.commands.run("echo $E2B_SANDBOX_ID"))).stdout
            assert shown == f"{box.sandbox_id}\n"
            assert (await got(box.get_info())).sandbox_id == box.sandbox_id
            assert await got(box.is_running()) is True
            await got(box.files.write("/tmp/turn", f"{turn}"))
            assert await got(box.files.read("/tmp/turn")) == f"{turn}"
