# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Sends back what it gets, over TCP and UDP."""

import socket
import socketserver
import threading


def start_tcp(port, seen):
    """`seen` gets the address that each connection was made to."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            seen.append(plain(self.request.getsockname()[0]))
            while data := self.request.recv(65536):
                self.request.sendall(data)

    class Server(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 1024

        def handle_error(self, request, client_address):
            """A client that resets is no news."""

    threading.Thread(target=Server(("::", port), Handler).serve_forever, daemon=True).start()


def start_udp(port, address, seen):
    """One socket per address, so that answers come from the address that was asked."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_DGRAM)
    listener.bind((address, port))

    def serve():
        while True:
            data, peer = listener.recvfrom(65536)
            seen.append(address)
            listener.sendto(data, peer)

    threading.Thread(target=serve, daemon=True).start()


def plain(address):
    return address.removeprefix("::ffff:")
