# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Build steps reach the internet, and trust what the operator's machine trusts: the server of this
run was started with the bed's authority as its SSL_CERT_FILE."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bed import goods
from harness import DATA_DIR, PROGRAM, server_pid
from world_view import BED, CA

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO")
INSIDE = "/run/alcove/ca-certificates.crt"


def wait_for_template(log, name, within, process=None):
    """Returns when the template is ready; fails with the reason if it could not be built."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        text = log.read_text(errors="replace")
        failed = re.search(rf"template {name} cannot be built: [^\0]*", text)
        assert not failed, failed.group()
        if f"template {name} is ready" in text:
            return
        assert process is None or process.poll() is None, text
        time.sleep(0.1)
    raise TimeoutError(f"template {name} is not ready after {within} s")


@pytest.fixture(scope="module")
def built():
    """The name of the template whose steps need the world."""
    (folder,) = (BED / "templates").iterdir()
    wait_for_template(Path(DATA_DIR, "log", "server.log"), folder.name, within=120)
    return folder.name


def layers_of(name):
    """The directories that only this template has: its identity and its steps."""
    command = Path(f"/proc/{server_pid()}/cmdline").read_bytes().decode().split("\0")
    root = Path(command[command.index("--layers") + 1])
    builds = [json.loads(path.read_text()) for path in (root / "builds").glob("*.json")]
    (own,) = [build["layers"] for build in builds if build["name"] == name]
    (base,) = [build["layers"] for build in builds if build["name"] == "base" and set(build["layers"][1:]) < set(own)]
    return [root / "layers" / layer for layer in own if layer not in base]


@pytest.mark.limit(180)
def test_steps_install_from_the_world(built, make_box):
    box = make_box(template=built)
    assert box.run("python3 -c 'import dateutil; print(dateutil.__version__)'") == "2.9.0.post0\n"
    assert box.run("cat /opt/hello") == "hello from the world\n"
    assert box.run("cat /opt/cloned/README.md") == f"revision {goods.COMMITS}\n"
    assert box.run("""cd /opt/app && node -e 'console.log(require("is-odd")(3))'""") == "true\n"


@pytest.mark.limit(180)
def test_no_trace_of_the_machines_trust_is_left(built, make_box):
    box = make_box(template=built)
    shown = box.run("env; ls /run/alcove")
    assert not [name for name in VARIABLES if name in shown]
    assert "ca-certificates" not in shown
    certificate = CA.read_bytes()
    layers = layers_of(built)
    assert len(layers) == 2
    for layer in layers:
        for path in layer.rglob("*"):
            assert path.name != Path(INSIDE).name
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                assert certificate not in content and INSIDE.encode() not in content, path
    # A sandbox of it trusts the authority no more than any other one.
    assert box.run("curl -sS https://files.test/hello || echo $?").strip() == "60"


@pytest.fixture
def other_server(tmp_path):
    """A function that starts a server of its own and waits until it has built these steps."""
    data = Path(f"{DATA_DIR}-other")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ALCOVE_")}
    process = None

    def start(steps, *options):
        nonlocal process
        own = tmp_path / "templates"
        shutil.copytree(TEMPLATES / "busybox", own / "busybox")
        subprocess.run([TEMPLATES / "make-busybox-root", own], check=True)
        recipe = own / "busybox" / "recipe.toml"
        text = recipe.read_text()
        assert "steps" not in text
        recipe.write_text(f"steps = {json.dumps(steps)}\n{text}")
        data.mkdir()
        log = data / "server.log"
        command = [PROGRAM, "serve", "--data-dir", data, "--listen", "127.0.0.1:3199", "--pool-size", "1GiB"]
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [*command, "--templates", own, *options],
                env=environ | {"SSL_CERT_FILE": str(CA)}, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        wait_for_template(log, "busybox", within=50, process=process)

    yield start
    if process:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    subprocess.run([PROGRAM, "clean", "--data-dir", data], env=environ, check=True)
    shutil.rmtree(data)


def test_steps_see_the_bundle_and_cannot_change_it(other_server):
    steps = [f'test "${name}" = {INSIDE}' for name in VARIABLES]
    steps += [f"grep -q 'BEGIN CERTIFICATE' {INSIDE}", f"! rm {INSIDE}", f"! sh -c 'echo x >> {INSIDE}'"]
    other_server(steps)


def test_a_switch_keeps_the_machines_trust_out(other_server):
    steps = [f'test -z "${name}"' for name in VARIABLES] + [f"test ! -e {INSIDE}"]
    other_server(steps, "--no-build-ca")
