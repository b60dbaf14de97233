# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Runs inside sandboxes: tries the network as programs do and prints what came of it as JSON."""

import concurrent.futures
import errno
import json
import socket
import sys
import time

LIMIT = 5


def attempt(work):
    """The outcome of `work()`: its value, or the name of its error; and how long it took."""
    start = time.monotonic()
    try:
        outcome = {"value": work(), "error": None}
    except TimeoutError:
        outcome = {"value": None, "error": "timeout"}
    except socket.gaierror as error:
        outcome = {"value": None, "error": f"gai {error.errno}"}
    except OSError as error:
        outcome = {"value": None, "error": errno.errorcode.get(error.errno, str(error))}
    outcome["seconds"] = time.monotonic() - start
    return outcome


def open_socket(address, kind, from_port=0, limit=LIMIT):
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    made.settimeout(limit)
    if from_port:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("", from_port))
    return made


def read_exactly(stream, size):
    data = b""
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            raise OSError(errno.ECONNRESET, "the connection ended early")
        data += piece
    return data


def tcp(address, port, text="are you there", from_port=0, rounds=1):
    """Sends the text and expects it back, `rounds` times on one connection."""

    def work():
        with open_socket(address, socket.SOCK_STREAM, from_port) as stream:
            stream.connect((address, port))
            for _ in range(rounds):
                stream.sendall(text.encode())
                answer = read_exactly(stream, len(text.encode()))
                if answer != text.encode():
                    return f"got {answer[:100]!r}"
            return text[:100]

    return attempt(work)


def udp(address, port, text="are you there", from_port=0, rounds=1, limit=LIMIT):
    def work():
        with open_socket(address, socket.SOCK_DGRAM, from_port, limit) as asker:
            asker.connect((address, port))
            for _ in range(rounds):
                asker.send(text.encode())
                answer = asker.recv(65536)
                if answer != text.encode():
                    return f"got {answer[:100]!r}"
            return text[:100]

    return attempt(work)


def names(name, family="any"):
    wanted = {"any": socket.AF_UNSPEC, "4": socket.AF_INET, "6": socket.AF_INET6}[family]
    return attempt(lambda: sorted({entry[4][0] for entry in socket.getaddrinfo(name, 80, wanted, socket.SOCK_STREAM)}))


def many(address, port, count):
    """That many connections at once; all are open before the first one is used."""

    def work():
        streams = [open_socket(address, socket.SOCK_STREAM) for _ in range(count)]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda stream: stream.connect((address, port)), streams))

            def echo(numbered):
                number, stream = numbered
                text = f"connection {number}".encode() * 100
                stream.sendall(text)
                return read_exactly(stream, len(text)) == text

            return sum(pool.map(echo, enumerate(streams)))

    return attempt(work)


def half_close(address, port, size):
    """Ends its own direction first; everything must still come back."""

    def work():
        with open_socket(address, socket.SOCK_STREAM) as stream:
            stream.connect((address, port))
            with concurrent.futures.ThreadPoolExecutor(1) as pool:

                def send():
                    stream.sendall(b"x" * size)
                    stream.shutdown(socket.SHUT_WR)

                sending = pool.submit(send)
                got = 0
                while piece := stream.recv(65536):
                    got += len(piece)
                sending.result()
            return got

    return attempt(work)


def keep_talking(address, port, seconds):
    """One connection on which something is said every few milliseconds: how often it was heard back,
    and what ended it too early."""
    end, heard = time.monotonic() + seconds, 0

    def work():
        nonlocal heard
        with open_socket(address, socket.SOCK_STREAM) as stream:
            stream.connect((address, port))
            while time.monotonic() < end:
                text = f"still there {heard}".encode()
                stream.sendall(text)
                if read_exactly(stream, len(text)) != text:
                    raise OSError(errno.EBADMSG, "another text")
                heard += 1
                time.sleep(0.05)

    return attempt(work) | {"heard": heard}


def keep_trying(address, port, seconds):
    """A new connection every few milliseconds, whatever became of the earlier ones: when each was
    tried, and what came of it."""

    def work():
        at = time.time()
        outcome = tcp(address, port)
        return {"at": at, "error": outcome["error"], "seconds": outcome["seconds"]}

    end, tries = time.monotonic() + seconds, []
    with concurrent.futures.ThreadPoolExecutor(256) as pool:
        while time.monotonic() < end:
            tries.append(pool.submit(work))
            time.sleep(0.02)
        return [attempt.result() for attempt in tries]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*json.loads(sys.argv[2]))))
