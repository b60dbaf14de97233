# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The JavaScript client in a web page: bundled as pages are, in headless Chromium with a profile that
trusts the local authority and nothing else of ours, against the TLS domain."""

import http.server
import json
import os
import queue
import subprocess
import threading
from pathlib import Path

import pytest
from browser import chromium
from harness import BY_DOMAIN, SANDBOX_ID, TESTS

_PAGE = Path(__file__).with_name("page.js")
_HTML = b'<!doctype html><meta charset="utf-8"><title>page</title><script type="module" src="/page.js"></script>'
# Modules of Node that the client names and does not use in a page; bundlers leave them empty.
_OF_NODE = ("crypto", "fs", "os", "path", "stream", "url")
_PATIENCE = 50


class _Origin(http.server.ThreadingHTTPServer):
    """Where the page comes from: another origin than the API's and the sandboxes'."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), _Handler)
        service = (TESTS / "conformance" / "service.py").read_text()
        settings = {"apiKey": BY_DOMAIN["E2B_API_KEY"], "domain": BY_DOMAIN["E2B_DOMAIN"], "service": service}
        self.files = {
            "/": ("text/html", _HTML),
            "/page.js": ("text/javascript", script),
            "/settings": ("application/json", json.dumps(settings).encode()),
        }
        self.reports = queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, content = self.server.files.get(self.path, ("text/plain", b""))
        self._answer(kind, content)

    def do_POST(self):
        self.server.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer("text/plain", b"")

    def _answer(self, kind, content):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    if "SSL_CERT_FILE" not in BY_DOMAIN:
        pytest.skip("needs a server with a local authority (ALCOVE_DATA)")
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "empty.cjs").write_text("module.exports = {}\n")
    empty = [f"--alias:node:{name}={folder / 'empty.cjs'}" for name in _OF_NODE]
    modules = Path(os.environ["ALCOVE_NODE_MODULES"], "node_modules")
    command = [os.environ["ALCOVE_BUNDLER"], _PAGE, "--bundle", "--format=esm", "--platform=browser", "--log-level=warning", *empty]
    made = subprocess.run(command, env=os.environ | {"NODE_PATH": str(modules)}, capture_output=True)
    assert made.returncode == 0, made.stderr.decode()
    server = _Origin(made.stdout)
    yield server
    server.shutdown()
    server.server_close()


def _visit(origin, home, work):
    """What the page reports."""
    url = f"http://127.0.0.1:{origin.server_address[1]}/#{work}"
    with open(home / "chromium.log", "wb") as log:
        browser = subprocess.Popen(chromium.command(home, url), env=chromium.environ(home), stdout=log, stderr=log, start_new_session=True)
    try:
        return origin.reports.get(timeout=_PATIENCE)
    except queue.Empty:
        pytest.fail((home / "chromium.log").read_text()[-3000:])
    finally:
        # Its other processes end with it.
        browser.terminate()
        browser.wait(timeout=20)


@pytest.mark.limit(120)
def test_create_run_read_kill(origin, tmp_path):
    chromium.make_profile(tmp_path, BY_DOMAIN["NODE_EXTRA_CA_CERTS"])
    seen = _visit(origin, tmp_path, "sdk")
    assert SANDBOX_ID.fullmatch(seen.pop("id", "")), seen
    assert seen.pop("listed")
    assert "from-page" in seen.pop("entries")
    assert seen == {
        "streamed": "from a page\n",
        "result": [0, "from a page\n", "aside\n"],
        "content": "grüße",
        "missing": "FileNotFoundError",
        "killed": True,
        "running": [True, False],
        "afterwards": "SandboxNotFoundError",
        "wrongKey": "AuthenticationError",
    }


@pytest.mark.limit(120)
def test_service_in_the_sandbox(origin, tmp_path):
    chromium.make_profile(tmp_path, BY_DOMAIN["NODE_EXTRA_CA_CERTS"])
    seen = _visit(origin, tmp_path, "service")
    assert seen == {"echo": "grüße", "closed": [502, "The sandbox is running but port is not open"]}


@pytest.mark.limit(120)
def test_without_the_authority_nothing_works(origin, tmp_path):
    """The other tests would pass without a certificate too, if Chromium did not look at it."""
    seen = _visit(origin, tmp_path, "sdk")
    assert "Failed to fetch" in seen["failed"]
