# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Debian packages that alcove needs. apt-get runs only when one of them is missing."""

import os
import subprocess

import console

# Groups by the task that needs them, so that `up` does not pull in the linters.
# libboost-dev and what depends on it must never be listed: it conflicts with libboost1.81-dev.
_PACKAGES = {
    "build": """
        cmake ninja-build ccache pkg-config clang-19 lld-19 libclang-rt-19-dev
        libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libexpected-dev libfmt-dev
        libspdlog-dev libcli11-dev libtomlplusplus-dev libssl-dev zlib1g-dev libsqlite3-dev
        libarchive-dev libseccomp-dev libprotozero-dev libgtest-dev libgmock-dev
        libnftnl-dev libmnl-dev libzmq3-dev
    """,
    "serve": """
        mmdebstrap debian-archive-keyring btrfs-progs ca-certificates python3-pip libnss-myhostname
    """,
    "test": """
        python3-venv busybox-static musl-dev iproute2 git openssl r-cran-irkernel
    """,
    "runners": """
        default-jdk-headless
    """,
    "browser": """
        chromium libnss3-tools
    """,
    "lint": """
        clang-format-19 clang-tidy-19
    """,
    "bench": """
        bubblewrap crun nginx-light podman wrk
    """,
}


def ensure(*groups):
    """Installs what is missing of the named groups."""
    wanted = sorted({package for group in groups for package in _PACKAGES[group].split()})
    missing = _missing(wanted)
    if not missing:
        return
    console.step(f"installing {len(missing)} Debian packages: {' '.join(missing)}")
    if os.geteuid() != 0:
        raise console.DevError(f"run as root: apt-get install {' '.join(missing)}")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    console.run(["apt-get", "update", "-q"], env=env)
    console.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], env=env)


def _missing(packages):
    query = ["dpkg-query", "-W", "-f", "${binary:Package} ${db:Status-Status}\\n", *packages]
    shown = subprocess.run(query, capture_output=True, text=True).stdout
    installed = {line.split()[0].split(":")[0] for line in shown.splitlines() if line.endswith(" installed")}
    return [package for package in packages if package not in installed]
