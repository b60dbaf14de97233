# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The local authority, what programs make of it, and clients that abuse TLS."""

import contextlib
import os
import re
import resource
import socket
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import BY_DOMAIN, DATA_DIR, request, server_pid
from hostile import drain

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif("SSL_CERT_FILE" not in BY_DOMAIN, reason="needs a server with a local authority (ALCOVE_DATA)"),
]

_NAME, _, _PORT = BY_DOMAIN.get("E2B_DOMAIN", "alcove.localhost:443").partition(":")
_API = f"api.{_NAME}"
_TLS = Path(DATA_DIR or "/", "tls")
_AUTHORITY = _TLS / "ca.pem"
_HALF_OPEN = 5000


def _openssl(*args, **options):
    return subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, timeout=30, **options)


def _connect():
    return socket.create_connection(("127.0.0.1", int(_PORT)), timeout=30)


def _context(protocols=()):
    context = ssl.create_default_context(cafile=_AUTHORITY)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def _get_health(connection):
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    received = b""
    while piece := connection.recv(65536):
        received += piece
    return received.split(b"\r\n")[0]


_FINE = b"HTTP/1.1 200 OK"


# --- the authority --------------------------------------------------------------------------------


def test_keys_are_for_their_owner_only():
    for name in ("ca.key", "leaf.key"):
        status = (_TLS / name).stat()
        assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_uid == 0, name


def test_leaf_is_no_authority():
    text = _openssl("x509", "-in", _TLS / "leaf.pem", "-noout", "-text").stdout
    assert "CA:FALSE" in text and f"DNS:*.{_NAME}" in text
    assert _openssl("verify", "-CAfile", _AUTHORITY, "-purpose", "sslserver", "-verify_hostname", _API, _TLS / "leaf.pem").returncode == 0
    text = _openssl("x509", "-in", _AUTHORITY, "-noout", "-text").stdout
    assert "CA:TRUE, pathlen:0" in text and "X509v3 Name Constraints: critical" in text


@pytest.mark.parametrize("name", ["DNS:example.org", "DNS:*.localhost", "DNS:alcove.localhost.example.org", "IP:127.0.0.1", "IP:::1"])
def test_authority_vouches_for_nobody_else(tmp_path, name):
    """Even with its key in hand."""
    pair = tmp_path / "own"
    made = _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=x", "-keyout", f"{pair}.key", "-out", f"{pair}.csr")
    assert made.returncode == 0, made.stderr
    (tmp_path / "names").write_text(f"subjectAltName={name}\n")
    signed = _openssl("x509", "-req", "-in", f"{pair}.csr", "-CA", _AUTHORITY, "-CAkey", _TLS / "ca.key", "-extfile", tmp_path / "names", "-out", f"{pair}.pem")
    assert signed.returncode == 0, signed.stderr
    verdict = _openssl("verify", "-CAfile", _AUTHORITY, f"{pair}.pem")
    assert verdict.returncode != 0 and "subtree violation" in verdict.stderr + verdict.stdout


def test_bundle_holds_the_systems_certificates_too():
    """The variable replaces what a program trusts, and it must go on reaching everybody else."""
    bundle = Path(BY_DOMAIN["SSL_CERT_FILE"]).read_text()
    assert bundle.endswith(_AUTHORITY.read_text())
    system = Path(DATA_DIR, "ca-certificates.crt").read_text()
    assert system.count("BEGIN CERTIFICATE") > 50
    assert set(re.findall(r"-----BEGIN.*?-----END", system, re.S)) <= set(re.findall(r"-----BEGIN.*?-----END", bundle, re.S))


# --- what programs make of it ---------------------------------------------------------------------


def test_curl():
    url = f"https://{_API}:{_PORT}/health"
    asked = subprocess.run(["curl", "-sS", "--noproxy", "*", "--cacert", _AUTHORITY, url], capture_output=True, text=True)
    assert asked.stdout == "Health check successful", asked.stderr
    distrusting = subprocess.run(["curl", "-sS", "--noproxy", "*", "--cacert", "/dev/null", url], capture_output=True)
    assert distrusting.returncode != 0


def test_names_resolve():
    """Without libnss-myhostname neither Python nor Node finds them."""
    found = {entry[4][0] for entry in socket.getaddrinfo(f"8000-abc.{_NAME}", 443, type=socket.SOCK_STREAM)}
    assert found and found <= {"127.0.0.1", "::1"}


def test_python_with_nothing_but_the_variable():
    program = f"import urllib.request; print(urllib.request.urlopen('https://{_API}:{_PORT}/health').read().decode())"
    environ = {"PATH": os.environ["PATH"]} | BY_DOMAIN
    asked = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    assert asked.stdout == "Health check successful\n", asked.stderr


def test_node_with_nothing_but_the_variable():
    node = os.environ.get("ALCOVE_NODE")
    if not node:
        pytest.skip("this generation brings no Node")
    program = f"fetch('https://{_API}:{_PORT}/health').then(async (r) => console.log(await r.text()))"
    asked = subprocess.run([node, "-e", program], env={"PATH": os.environ["PATH"]} | BY_DOMAIN, capture_output=True, text=True)
    assert asked.stdout == "Health check successful\n", asked.stderr


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(version):
    context = _context()
    context.minimum_version = context.maximum_version = version
    with context.wrap_socket(_connect(), server_hostname=_API) as connection:
        assert _get_health(connection) == _FINE


def test_old_versions_are_refused():
    context = _context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="(?i)protocol version|unsupported protocol"):
        context.wrap_socket(_connect(), server_hostname=_API)


@pytest.mark.parametrize("offered, chosen", [([], None), (["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), (["http/1.0", "http/1.1"], "http/1.1")])
def test_protocol_is_http_1_1(offered, chosen):
    with _context(offered).wrap_socket(_connect(), server_hostname=_API) as connection:
        assert connection.selected_alpn_protocol() == chosen
        assert _get_health(connection) == _FINE


def test_only_http_2_is_refused():
    """As RFC 7301 says it, so that a client knows why."""
    with pytest.raises(ssl.SSLError, match="(?i)no application protocol"):
        _context(["h2"]).wrap_socket(_connect(), server_hostname=_API)


def test_plain_and_tls_on_one_port():
    with _connect() as plain, _context().wrap_socket(_connect(), server_hostname=_API) as connection:
        assert _get_health(plain) == _FINE
        assert _get_health(connection) == _FINE


# --- abuse ----------------------------------------------------------------------------------------


def _hello(name=_API):
    """The first message of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = _context().wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def _assert_serves():
    assert request("GET", "/health").status == 200
    with _context().wrap_socket(_connect(), server_hostname=_API) as connection:
        assert _get_health(connection) == _FINE


@pytest.mark.parametrize(
    "data",
    [
        b"\x16" * 1000,
        b"\x16\x03\x01\xff\xff" + b"a" * 70000,
        b"\x16\x03\x01\x00\x00" * 1000,
        b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\x00" + b"\x16\x03\x01\x40\x00" + b"a" * 16384,
        b"\x16\x03\x01\x02\x00" + os.urandom(512),
    ],
    ids=["one byte again and again", "too long a record", "empty records", "too long a message", "noise"],
)
def test_garbage_is_refused(data):
    with _connect() as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        answer = drain(connection)
    # An alert or nothing.
    assert answer == b"" or answer[0] == 0x15, answer[:100]
    _assert_serves()


def test_broken_records_after_the_handshake_end_the_connection():
    raw = _connect()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = _context().wrap_bio(incoming, outgoing, server_hostname=_API)
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            raw.sendall(outgoing.read())
            incoming.write(raw.recv(65536))
    raw.sendall(outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
    drain(raw)
    raw.close()
    _assert_serves()


def test_no_renegotiation():
    """A client could make the server work for it over and over again."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{_PORT}", "-servername", _API, "-tls1_2", "-CAfile", _AUTHORITY]
    # "R" on a line of its own asks for it.
    done = subprocess.run(command, input="R\nR\nR\n", capture_output=True, text=True, timeout=60)
    assert "RENEGOTIATING" in done.stderr and "no renegotiation" in done.stderr, done.stderr
    _assert_serves()


@pytest.mark.limit(180)
def test_thousands_of_half_open_handshakes():
    """None is waited for longer than ten seconds, others are served meanwhile, and what they hold is bounded."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * _HALF_OPEN), hard))
    pid, hello, opened = server_pid(), _hello(), []
    before, fds = _private_memory(pid), len(os.listdir(f"/proc/{pid}/fd"))
    try:
        for number in range(_HALF_OPEN):
            connection = _connect()
            # Some stop within their first message, some after it.
            connection.sendall(hello if number % 2 else hello[:100])
            opened.append(connection)
        _assert_serves()
        grown = _private_memory(pid) - before
        started = time.monotonic()
        for connection in opened:
            drain(connection)
        assert time.monotonic() - started < 60
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert grown < 192 << 20, grown
    deadline = time.monotonic() + 30
    while len(os.listdir(f"/proc/{pid}/fd")) > fds + 20 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(os.listdir(f"/proc/{pid}/fd")) <= fds + 20
    _assert_serves()


def _private_memory(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(r"Private_\w+:\s+(\d+) kB", text)) << 10
