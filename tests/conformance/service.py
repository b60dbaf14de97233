# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A web service that tests put into a sandbox: service.py ADDRESS PORT [CERTIFICATE KEY]. It prints
"ready" when it listens. Standard library only: this runs on what the template has."""

import base64
import hashlib
import http.server
import json
import socket
import ssl
import struct
import sys
import threading

# Server-sent events wait for a /step each.
steps = threading.Semaphore(0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/ws":
            return self.echo()
        if self.path.startswith("/large/"):
            return self.large(int(self.path.removeprefix("/large/")))
        if self.path == "/events":
            return self.events()
        if self.path == "/step":
            steps.release()
        if self.path == "/headers":
            return self.reply(json.dumps({name.lower(): value for name, value in self.headers.items()}).encode())
        self.reply(f"{self.headers['Host']} {self.path}".encode())

    def large(self, mebibytes):
        """Each MiB is filled with its number."""
        self.send_response(200)
        self.send_header("Content-Length", str(mebibytes << 20))
        self.end_headers()
        for n in range(mebibytes):
            self.wfile.write(bytes([n & 255]) * (1 << 20))

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for n in range(3):
            steps.acquire()
            event = b"data: %d\n\n" % n
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        """Answers with the digest of the body."""
        digest = hashlib.sha256()
        if length := self.headers["Content-Length"]:
            digest.update(self.rfile.read(int(length)))
        else:
            while size := int(self.rfile.readline(), 16):
                digest.update(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        self.reply(digest.hexdigest().encode())

    def echo(self):
        """A WebSocket that sends every message back."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            first, second = self.rfile.read(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4) * (size // 4 + 1)
            data = self.rfile.read(size)
            data = (int.from_bytes(data, "big") ^ int.from_bytes(mask[:size], "big")).to_bytes(size, "big")
            if size < 126:
                length = bytes([size])
            else:
                length = b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size)
            self.wfile.write(bytes([first]) + length + data)
            if first & 15 == 8:
                return

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 100


address, port, *pair = sys.argv[1:]
if ":" in address:
    Server.address_family = socket.AF_INET6
server = Server((address, int(port)), Handler)
if pair:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*pair)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
