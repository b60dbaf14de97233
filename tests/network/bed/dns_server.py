# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A small name server: A and AAAA of a fixed zone, over UDP and TCP."""

import socket
import socketserver
import struct
import threading

_A, _AAAA = 1, 28
_QUERY = 0x8180  # answer, recursion desired and available
_NAME_ERROR = 3
_TRUNCATED = 0x0200
_UDP_LIMIT = 512
_TTL = 5


class NameServer:
    def __init__(self, zone, address, seen):
        self._zone = zone
        self._seen = seen  # list that gets (name, type) of each question
        server = self

        class OnUdp(socketserver.BaseRequestHandler):
            def handle(self):
                data, reply_socket = self.request
                answer = server.answer(data, _UDP_LIMIT)
                if answer:
                    reply_socket.sendto(answer, self.client_address)

        class OnTcp(socketserver.StreamRequestHandler):
            def handle(self):
                while len(size := self.rfile.read(2)) == 2:
                    answer = server.answer(self.rfile.read(struct.unpack("!H", size)[0]), 65535)
                    if not answer:
                        return
                    self.wfile.write(struct.pack("!H", len(answer)) + answer)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        for kind, handler in ((socketserver.ThreadingUDPServer, OnUdp), (socketserver.ThreadingTCPServer, OnTcp)):
            listener = kind((address, 53), handler)
            listener.daemon_threads = True
            threading.Thread(target=listener.serve_forever, daemon=True).start()

    def answer(self, query, limit):
        """The reply to one query; nothing if it is no query."""
        if len(query) < 17:
            return b""
        (number,) = struct.unpack("!H", query[:2])
        labels, at = [], 12
        while at < len(query) and query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode(errors="replace"))
            at += 1 + query[at]
        question = query[12 : at + 5]
        if len(question) < 5:
            return b""
        (kind,) = struct.unpack("!H", question[-4:-2])
        name = ".".join(labels).lower()
        self._seen.append((name, kind))
        known = self._zone.get(name)
        records = [_record(kind, address) for address in _addresses(known, kind)]
        flags = _QUERY | (0 if known else _NAME_ERROR)
        body = b"".join(records)
        if 12 + len(question) + len(body) > limit:
            return struct.pack("!HHHHHH", number, flags | _TRUNCATED, 1, 0, 0, 0) + question
        return struct.pack("!HHHHHH", number, flags, 1, len(records), 0, 0) + question + body


def _addresses(known, kind):
    if not known:
        return []
    return {_A: known[0], _AAAA: known[1]}.get(kind, [])


def _record(kind, address):
    data = socket.inet_pton(socket.AF_INET if kind == _A else socket.AF_INET6, address)
    # 0xc00c: the name of the question.
    return struct.pack("!HHHIH", 0xC00C, kind, 1, _TTL, len(data)) + data
