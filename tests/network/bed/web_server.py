# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""HTTP and HTTPS servers of all the world's sites, told apart by the Host header."""

import hashlib
import http.server
import json
import random
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from bed import addresses, git_server
from bed.echo_server import plain

_BLOCK = 1 << 20


def download_blocks(size):
    """The content of a download of that size. Every block is another one, so that a lost or repeated
    piece shows."""
    rest = memoryview(random.Random(7).randbytes(_BLOCK - 8))
    for number in range(-(-size // _BLOCK)):
        block = number.to_bytes(8, "big") + bytes(rest)
        yield block[: size - number * _BLOCK]


def download_digest(size):
    digest = hashlib.sha256()
    for block in download_blocks(size):
        digest.update(block)
    return digest.hexdigest()


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120
    # Set by start().
    folder = None
    seen = None
    tls = None

    def setup(self):
        if self.tls:
            self.request = self.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self):
        self._serve(b"")

    def do_POST(self):
        self._serve(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _serve(self, body):
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        parts = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(parts.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        match host:
            case addresses.PYPI:
                self._pypi(path)
            case addresses.NPM:
                self._npm(path)
            case addresses.DEBIAN:
                self._file(self.folder / "debian" / path.strip("/"))
            case addresses.GIT:
                self._git(path, parts.query, body)
            case _:
                self._other(path, query)

    def _pypi(self, path):
        if path.startswith("/files/"):
            return self._file(self.folder / "wheels" / path.removeprefix("/files/"))
        project = path.removeprefix("/simple/").strip("/")
        links = []
        for wheel in sorted((self.folder / "wheels").glob("*.whl")):
            if wheel.name.split("-")[0].lower().replace("_", "-") == project:
                digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
                links.append(f'<a href="/files/{wheel.name}#sha256={digest}">{wheel.name}</a>')
        if not links:
            return self._send(404, b"no such project")
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"
        return self._send(200, page.encode(), "text/html")

    def _npm(self, path):
        if path.endswith(".tgz"):
            return self._file(self.folder / "npm" / path.rsplit("/", 1)[1])
        described = self.folder / "npm" / f"{path.strip('/')}.json"
        return self._file(described, "application/json")

    def _git(self, path, query, body):
        """The smart protocol, as git itself serves it (git-http-backend(1))."""
        request = {
            "GIT_PROJECT_ROOT": str(self.folder / "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        environ = git_server.environ() | request
        done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        self._send(status, content, fields.get("Content-Type", "text/plain"))

    def _other(self, path, query):
        match path:
            case "/hello":
                self._send(200, b"hello from the world\n")
            case "/peer":
                self._send(200, plain(self.client_address[0]).encode())
            case "/seen":
                self._send(200, json.dumps(self.seen).encode(), "application/json")
            case "/download":
                self._download(int(query["bytes"]), float(query.get("rate", 0)))
            case _:
                self._send(404, b"not here")

    def _download(self, size, rate):
        """`rate`: bytes per second; 0 is as fast as it goes."""
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        start, sent = time.monotonic(), 0
        for block in download_blocks(size):
            self.wfile.write(block)
            sent += len(block)
            if rate:
                time.sleep(max(0.0, start + sent / rate - time.monotonic()))

    def _file(self, path, kind="application/octet-stream"):
        if ".." in path.parts or not path.is_file():
            return self._send(404, b"not here")
        return self._send(200, path.read_bytes(), kind)

    def _send(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """The tests look at what clients got."""


class _Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        """A client that goes away or distrusts us is no news."""


def start(folder, seen):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    for port, context in ((80, None), (443, tls)):
        handler = type("BoundSite", (Site,), {"folder": folder, "seen": seen, "tls": context})
        threading.Thread(target=_Server(("::", port), handler).serve_forever, daemon=True).start()
