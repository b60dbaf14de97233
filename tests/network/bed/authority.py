# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A certificate authority for one run, and the certificate of all the world's servers."""

import subprocess

from bed import addresses

_DAYS = "2"


def make(folder):
    """Writes ca.crt, server.crt and server.key into `folder`."""
    ca, ca_key = folder / "ca.crt", folder / "ca.key"
    request, extensions = folder / "server.csr", folder / "server.ext"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    _openssl(
        "req", "-x509", *curve, "-days", _DAYS, "-subj", "/CN=The test bed's authority",
        # Python 3.13 is strict about these.
        "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", ca_key, "-out", ca,
    )
    _openssl("req", *curve, "-subj", "/CN=The test bed's server", "-keyout", folder / "server.key", "-out", request)
    names = ",".join(f"DNS:{name}" for name in addresses.ZONE)
    extensions.write_text(
        f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    )
    _openssl(
        "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", _DAYS,
        "-extfile", extensions, "-out", folder / "server.crt",
    )


def _openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)
