# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the world's registries offer: a few small real packages, fetched with their ordinary clients,
and a git repository and a Debian package of our own."""

import base64
import hashlib
import json
import os
import subprocess
import tarfile

from bed import addresses

# Of each kind one package that needs another.
WHEELS = ("python-dateutil==2.9.0.post0", "six==1.17.0")
NPM_PACKAGES = ("is-odd@3.0.1", "is-number@6.0.0")
DEBIAN_PACKAGE = "hello"
# Depends on DEBIAN_PACKAGE.
OWN_PACKAGE = "alcove-bed-greeter"
REPOSITORY = "project.git"
COMMITS = 3


def pins():
    return [*WHEELS, *NPM_PACKAGES, DEBIAN_PACKAGE]


def fetch(folder, run, python, npm):
    """Downloads packages into `folder`. `run(args, cwd)` runs a program and raises if it fails;
    `python` and `npm` are argument lists that start pip's Python and npm."""
    for name in ("wheels", "npm", "debian"):
        (folder / name).mkdir()
    run([*python, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", "wheels", *WHEELS], folder)
    run([*npm, "pack", "--pack-destination", "npm", *NPM_PACKAGES], folder)
    # A fresh machine may have no lists yet.
    run(["apt-get", "update", "-q"], folder)
    # `hello` of any Debian runs on the sandboxes' newer one.
    run(["apt-get", "download", DEBIAN_PACKAGE], folder / "debian")


def arrange(folder):
    """Makes registries of the packages in `folder`, and the repository."""
    for archive in (folder / "npm").glob("*.tgz"):
        _describe_npm(archive)
    _build_own_package(folder)
    _index_debian(folder / "debian")
    _make_repository(folder)


def _describe_npm(archive):
    with tarfile.open(archive) as content:
        package = json.load(content.extractfile("package/package.json"))
    name, version, data = package["name"], package["version"], archive.read_bytes()
    package["dist"] = {
        "tarball": f"https://{addresses.NPM}/{name}/-/{archive.name}",
        "shasum": hashlib.sha1(data).hexdigest(),
        "integrity": f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}",
    }
    described = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
    (archive.parent / f"{name}.json").write_text(json.dumps(described))


def _build_own_package(folder):
    root = folder / OWN_PACKAGE
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        f"Package: {OWN_PACKAGE}\nVersion: 1.0\nArchitecture: all\nMaintainer: the test bed <nobody@deb.test>\n"
        f"Depends: {DEBIAN_PACKAGE}\nDescription: greets\n"
    )
    program = root / "usr" / "bin" / "greet-from-bed"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec hello --greeting='greetings from the test bed'\n")
    program.chmod(0o755)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", root, folder / "debian" / f"{OWN_PACKAGE}.deb"],
        check=True, capture_output=True,
    )


def _index_debian(folder):
    """A flat repository: sources.list(5), "Exact path"."""
    entries = []
    for package in sorted(folder.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "--field", package], check=True, capture_output=True, text=True).stdout
        data = package.read_bytes()
        entries.append(
            f"{control.strip()}\nFilename: ./{package.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        )
    (folder / "Packages").write_text("\n".join(entries))


def _make_repository(folder):
    work = folder / "work"
    work.mkdir()
    identity = ["-c", "user.name=bed", "-c", "user.email=bed@git.test"]
    _git(work, "init", "--quiet", "--initial-branch=main")
    for number in range(1, COMMITS + 1):
        (work / "README.md").write_text(f"revision {number}\n")
        _git(work, "add", "README.md")
        _git(work, *identity, "commit", "--quiet", "-m", f"revision {number}")
    (folder / "git").mkdir()
    _git(folder, "clone", "--quiet", "--bare", work, folder / "git" / REPOSITORY)


def _git(folder, *args):
    # Neither this user's settings nor a repository that a hook runs in.
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *map(str, args)], cwd=folder, env=environ, check=True, capture_output=True)
