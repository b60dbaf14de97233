# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A domain of one's own: certificate files that are replaced while the server runs."""

import dataclasses
import os
import ssl
import subprocess
import urllib.parse

import pytest
from harness import eventually


def _make_pair(folder, number):
    key, certificate = folder / f"key{number}", folder / f"certificate{number}"
    names = ["-addext", "subjectAltName=DNS:*.example.org", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj", "/CN=example.org", *names, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    return key, certificate


@pytest.mark.limit(180)
async def test_files_are_read_again_when_they_change(fresh_host, tmp_path):
    pairs = [_make_pair(tmp_path, number) for number in (1, 2)]
    key, certificate = tmp_path / "privkey.pem", tmp_path / "fullchain.pem"

    def put(source, target):
        """As tools do it that renew certificates: another file under the same name."""
        (tmp_path / "new").write_bytes(source.read_bytes())
        os.rename(tmp_path / "new", target)

    def shown():
        address = urllib.parse.urlsplit(fresh_host.server.settings()["E2B_API_URL"])
        return ssl.get_server_certificate((address.hostname, address.port))

    put(pairs[0][0], key)
    put(pairs[0][1], certificate)
    fresh_host.stop()
    own = ("--domain", "example.org", "--tls-cert", str(certificate), "--tls-key", str(key))
    fresh_host.server = dataclasses.replace(fresh_host.server, options=(*fresh_host.server.options, *own))
    fresh_host.start()
    assert shown() == pairs[0][1].read_text()
    settings = (fresh_host.data / "env").read_text()
    # A public authority needs no introduction.
    assert "E2B_DOMAIN=example.org:" in settings and "SSL_CERT_FILE" not in settings

    put(pairs[1][1], certificate)
    log = fresh_host.server.log_file
    assert await eventually(lambda: "the TLS certificate is not replaced" in log.read_text(), within=60)
    assert shown() == pairs[0][1].read_text(), "a certificate without its key"
    put(pairs[1][0], key)
    assert await eventually(lambda: shown() == pairs[1][1].read_text(), within=60)
