# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The test bed itself, seen from the host: what the other tests take for granted. The host reaches
everything, so what a sandbox does not reach, the relay has refused."""

import errno
import hashlib
import json
import os
import socket
import ssl
import subprocess

import pytest
from bed import addresses as a
from bed import goods, web_server
from world_view import ask_name_server, fetch, seen, trusting

A, AAAA = 1, 28
SERVED = a.served()


def echo(address, kind):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as asker:
        asker.settimeout(5)
        asker.connect((address, a.ECHO_PORT))
        asker.sendall(b"are you there")
        return asker.recv(100)


def test_the_host_sees_nothing_but_the_world():
    assert sorted(name for _, name in socket.if_nameindex()) == ["lo", "up0"]


def test_names_are_answered():
    assert ask_name_server(a.PYPI, A)[1] == a.ZONE[a.PYPI][0]
    assert ask_name_server(a.PYPI, AAAA)[1] == a.ZONE[a.PYPI][1]
    assert ask_name_server(a.V4_ONLY, AAAA) == (0x8180, [])
    assert ask_name_server("nobody.test", A) == (0x8183, [])
    assert ["nobody.test", A] in seen()["names"]


def test_an_answer_that_is_too_long_for_udp_comes_by_tcp():
    flags, found = ask_name_server(a.MANY, A)
    assert flags & 0x0200 and not found
    flags, found = ask_name_server(a.MANY, A, tcp=True)
    assert not flags & 0x0200 and found == a.ZONE[a.MANY][0]


@pytest.mark.parametrize("address", SERVED)
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_the_host_reaches_every_address_private_ones_too(address, kind):
    assert echo(address, kind) == b"are you there"
    assert address in seen()["tcp" if kind == socket.SOCK_STREAM else "udp"]


def test_a_closed_port_is_refused():
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((a.ZONE[a.FILES][0][0], a.CLOSED_PORT), timeout=5)


@pytest.mark.parametrize(
    ("address", "error"), [(a.UNREACHABLE_V4, errno.EHOSTUNREACH), (a.UNREACHABLE_V6, errno.ENETUNREACH)]
)
def test_an_unreachable_address_is_reported_as_such(address, error):
    with pytest.raises(OSError) as info:
        socket.create_connection((address, 80), timeout=5)
    assert info.value.errno == error


@pytest.mark.parametrize("address", a.BLACKHOLES)
def test_a_black_hole_never_answers(address):
    with pytest.raises(TimeoutError):
        socket.create_connection((address, 80), timeout=1)


def test_only_who_knows_the_authority_trusts_the_servers(monkeypatch):
    # The clients' setting names the server's bundle, which holds what the bed's host trusts.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert fetch(a.FILES, "/hello", tls=trusting()) == (200, b"hello from the world\n")
    with pytest.raises(ssl.SSLCertVerificationError):
        fetch(a.FILES, "/hello", tls=ssl.create_default_context())


def test_downloads_are_of_known_content():
    size = (5 << 20) + 17
    status, body = fetch(a.FILES, f"/download?bytes={size}")
    assert status == 200 and len(body) == size
    assert hashlib.sha256(body).hexdigest() == web_server.download_digest(size)


def test_registries_are_filled():
    assert b"six-1.17.0-py2.py3-none-any.whl#sha256=" in fetch(a.PYPI, "/simple/six/")[1]
    assert fetch(a.PYPI, "/simple/nothing/")[0] == 404
    described = json.loads(fetch(a.NPM, "/is-odd")[1])
    assert described["versions"]["3.0.1"]["dependencies"] == {"is-number": "^6.0.0"}
    assert f"Package: {goods.OWN_PACKAGE}\n".encode() in fetch(a.DEBIAN, "/Packages")[1]


def test_git_serves_both_protocols(tmp_path):
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(tmp_path)}
    # This machine's resolver does not know the name.
    resolve = ["-c", f"http.curloptResolve={a.GIT}:80:{a.ZONE[a.GIT][0][0]}"]
    for number, url in enumerate([f"http://{a.GIT}/{goods.REPOSITORY}", f"git://{a.ZONE[a.GIT][0][0]}/{goods.REPOSITORY}"]):
        target = tmp_path / str(number)
        subprocess.run(["git", *resolve, "clone", "--quiet", url, target], env=environ, check=True, timeout=30)
        assert (target / "README.md").read_text() == f"revision {goods.COMMITS}\n"
