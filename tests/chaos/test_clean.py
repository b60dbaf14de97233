# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev clean` puts the machine back, whatever died."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from machine import cgroup_prefix, processes_naming

_ROOT = Path(__file__).resolve().parents[2]


def _clean(*args, root=_ROOT):
    done = subprocess.run([root / "dev", "clean", *args], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _nothing_is_left(host):
    deadline = time.monotonic() + 30
    # Another program's new mount namespace may hold the pool a little longer.
    while (now := host.state()).loops and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not now.processes and not now.cgroups and not now.mounts and not now.loops, now
    assert not processes_naming(host.data)
    assert not list(Path("/sys/fs/cgroup").rglob(cgroup_prefix(host.data)))


@pytest.fixture
def bare_checkout(tmp_path):
    """The task runner alone: nothing is built there."""
    shutil.copy(_ROOT / "dev", tmp_path)
    for part in ("tools", "tests/network/bed"):
        shutil.copytree(_ROOT / part, tmp_path / part)
    return tmp_path


@pytest.mark.limit(180)
def test_after_server_and_launcher_were_killed(fresh_host, bare_checkout):
    host = fresh_host
    files = host.state().files
    boxes = [host.create() for _ in range(5)]
    for box in boxes:
        box.commands.run("sleep 1000", background=True)
    host.kill_launcher()
    host.kill()
    before = host.state()
    assert len(before.sandboxes()) == 5 and before.loops and before.mounts

    said = _clean("--data-dir", host.data, root=bare_checkout)
    assert "5 sandboxes ended" in said and "1 file systems unmounted" in said
    _nothing_is_left(host)
    # The data is untouched: the next start knows keys and templates, and forgets the dead.
    assert host.state().files >= files
    key = host.options["api_key"]
    host.start()
    assert host.options["api_key"] == key
    assert host.listed() == set()
    assert host.create().commands.run("echo back").stdout == "back\n"

    # With everything alive it does the same.
    said = _clean("--data-dir", host.data)
    assert re.search(r"[1-9] processes ended, 1 sandboxes ended", said), said
    _nothing_is_left(host)
    assert "nothing was left" in _clean("--data-dir", host.data)
    host.start()


def test_data_goes_only_when_told(fresh_host):
    host = fresh_host
    host.create()
    host.kill()
    _clean("--data-dir", host.data, "--data")
    assert not host.data.exists()
    host.data.mkdir()
    _nothing_is_left(host)
    host.start()


def _gone_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_leftovers_of_aborted_tests(tmp_path):
    made = [Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp")) for _ in range(4)]
    abandoned, owned, unmarked, fresh = made
    (abandoned / "owner").write_text(f"{_gone_pid()} 1\n")
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    (owned / "owner").write_text(f"{os.getpid()} {started}\n")
    # Without a mark, time and open files decide.
    long_ago = time.time() - 3600
    held = open(owned / "held", "w")
    used = open(unmarked / "used", "w")
    os.utime(unmarked, (long_ago, long_ago))
    spaces = {f"alcove-test-{_gone_pid()}-a": False, f"alcove-test-{os.getpid()}-b": True}
    try:
        for name in spaces:
            subprocess.run(["ip", "netns", "add", name], check=True)
        said = _clean("--data-dir", tmp_path / "none")
        assert f"nothing at {tmp_path / 'none'}" in said and str(abandoned) in said
        assert [path.exists() for path in made] == [False, True, True, True]
        assert {name: Path("/run/netns", name).exists() for name in spaces} == spaces
        used.close()
        os.utime(unmarked, (long_ago, long_ago))
        _clean("--data-dir", tmp_path / "none")
        assert [path.exists() for path in made] == [False, True, False, True]
    finally:
        held.close()
        used.close()
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
        for name in spaces:
            if Path("/run/netns", name).exists():
                subprocess.run(["ip", "netns", "del", name], check=True)
