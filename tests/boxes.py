# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Sandboxes and services in them by bare requests: what the tests of the gateway share. A `box` is the
answer to a create."""

import base64
import json
import struct
import time
import urllib.parse

from harness import SANDBOX_URL, to_sandbox

ORIGIN = urllib.parse.urlsplit(SANDBOX_URL)
UNKNOWN = "iaaaaaaaaaaaaaaaaaaaa"
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "Accept": "text/html,*/*"}


def host_of(port, sandbox_id, domain="box.localhost"):
    return f"{port}-{sandbox_id}.{domain}"


def token_of(box):
    return {"X-Access-Token": box["envdAccessToken"]} if "envdAccessToken" in box else {}


def run(box, command):
    """Runs a command by one bare Connect call; returns its output when it ended."""
    message = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": False}).encode()
    reply = to_sandbox(
        "POST",
        "/process.Process/Start",
        box["sandboxID"],
        body=struct.pack(">BI", 0, len(message)) + message,
        headers=token_of(box) | {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"},
    )
    assert reply.status == 200, reply.body
    output, at = b"", 0
    while at < len(reply.body):
        _, size = struct.unpack(">BI", reply.body[at : at + 5])
        event = json.loads(reply.body[at + 5 : at + 5 + size]).get("event", {})
        output += base64.b64decode(event.get("data", {}).get("stdout", ""))
        at += 5 + size
    return output.decode()


def serve(box, source, name="server.py"):
    """Puts a Python program into the sandbox and leaves it running."""
    upload = to_sandbox(
        "POST",
        f"/files?path=/tmp/{name}&username=user",
        box["sandboxID"],
        body=source.encode(),
        headers=token_of(box) | {"Content-Type": "application/octet-stream"},
    )
    assert upload.status == 200, upload.body
    run(box, f"setsid python3 /tmp/{name} >/tmp/{name}.log 2>&1 </dev/null &")


_ECHO_SERVER = """
import http.server, json, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.dumps({"method": self.command, "path": self.path, "body": self.rfile.read(length).decode(),
                           "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-From", "inside")
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = answer
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in "ADDRESS" else socket.AF_INET
Server(("ADDRESS", PORT), Handler).serve_forever()
"""


def serve_echo(box, address, port):
    serve(box, _ECHO_SERVER.replace("ADDRESS", address).replace("PORT", str(port)), f"echo-{port}.py")


def until_open(send, within=10):
    """Repeats a request until the service in the sandbox listens."""
    deadline = time.monotonic() + within
    while True:
        reply = send()
        if reply.status != 502 or time.monotonic() > deadline:
            return reply
        time.sleep(0.1)


def assert_page(reply, status, *texts):
    assert reply.status == status
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = reply.body.decode()
    assert page.startswith("<html") and page.endswith("</html>")
    for text in texts:
        assert text in page
