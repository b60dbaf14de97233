# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev clean` puts the machine back, whatever died."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from machine import cgroup_prefix, processes_naming

_ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(_ROOT / "tools" / "dev"))

import leftovers  # noqa: E402
import serving  # noqa: E402


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


@pytest.mark.limit(120)
def test_an_obstacle_does_not_stop_the_rest(fresh_host):
    host = fresh_host
    host.create()
    host.kill_launcher()
    host.kill()
    abandoned = Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp"))
    (abandoned / "owner").write_text(f"{_gone_pid()} 1\n")
    with subprocess.Popen(["sleep", "1000"], cwd=host.data / "pool") as sleeper:
        try:
            done = subprocess.run([_ROOT / "dev", "clean", "--data-dir", host.data, "--data"], capture_output=True, text=True, timeout=100)
        finally:
            sleeper.kill()
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert re.search(rf"{host.data}/pool: .*\b{sleeper.pid} \(sleep\)", said), said
    # Everything else is done, and what is in use is not deleted.
    assert "1 sandboxes ended" in said and not abandoned.exists(), said
    assert host.data.exists() and host.state().mounts
    assert not host.state().processes and not host.state().cgroups
    assert "1 file systems unmounted" in _clean("--data-dir", host.data)
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


# A newcomer's machine (tools/dev/newcomer_stage.py) without Debian, which does as it is told.
_NEWCOMER = """
import shutil, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import newcomer_stage, owners
place = Path(sys.argv[2])
owners.mark(place)
machine = newcomer_stage.Machine(place)
for name in ("bin", "dev", "etc", "proc", "root/alcove", "run", "sys", "tmp", "var"):
    (machine.root / name).mkdir(parents=True)
shutil.copy("/bin/busybox", machine.root / "bin" / "busybox")
for name in ("sh", "sleep", "umount"):
    (machine.root / "bin" / name).symlink_to("busybox")
machine.follow(sys.argv[3:])
"""


@pytest.fixture
def place():
    folder = Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp"))
    yield folder
    for cgroup in filter(Path.is_dir, leftovers.test_cgroups(folder)):
        leftovers.remove_cgroups(cgroup)
    shutil.rmtree(folder, ignore_errors=True)


def _cgroups(place):
    return [path for path in leftovers.test_cgroups(place) if path.is_dir()]


def _members(place):
    return {int(pid) for path in _cgroups(place) for pid in (path / "cgroup.procs").read_text().split()} | {
        int(pid) for path in _cgroups(place) for below in path.glob("*/cgroup.procs") for pid in below.read_text().split()
    }


def _wait(probe, within=20):
    deadline = time.monotonic() + within
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@contextlib.contextmanager
def _newcomer(place, *steps):
    command = [sys.executable, "-u", "-c", _NEWCOMER, _ROOT / "tools" / "dev", place, *steps]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            if "begun" in line and "echo" not in line:
                break
        else:
            raise AssertionError(f"the machine ended with {process.wait()}")
        yield process
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def test_after_a_newcomer_was_killed(place, tmp_path):
    with _newcomer(place, "echo begun; sleep 1000") as newcomer:
        assert _cgroups(place) and _members(place)
        assert str(place) not in _clean("--data-dir", tmp_path / "none"), "it is in use"
        newcomer.send_signal(signal.SIGKILL)
        newcomer.wait(10)
    # All that it had started ends with it.
    _wait(lambda: not _members(place))
    assert place.exists() and _cgroups(place)
    said = _clean("--data-dir", tmp_path / "none")
    assert str(place) in said
    assert not place.exists() and not _cgroups(place)
    assert not serving.mounts_below(place)


def test_processes_of_a_machine_whose_test_is_gone(place, tmp_path):
    """What did not end by itself, ends with the cgroup."""
    (place / "owner").write_text(f"{_gone_pid()} 1\n")
    for cgroup in leftovers.test_cgroups(place):
        (cgroup / "below").mkdir(parents=True)
    cgroup = next(path for path in leftovers.test_cgroups(place) if not (path / "cpuset.cpus").exists())
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        (cgroup / "below" / "cgroup.procs").write_text(f"{sleeper.pid}\n")
        _clean("--data-dir", tmp_path / "none")
        assert sleeper.wait(10) == -signal.SIGKILL
    assert not place.exists() and not _cgroups(place)


def test_machine_of_a_newcomer_is_not_this_one(place):
    """It has a data directory of the usual name, which `./dev clean` of the host must not mean."""
    data = place / "data"
    data.mkdir()
    program = place / "alcove-stand-in"
    shutil.copy("/bin/dash", program)
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen([program, "-c", "sleep 1000; true", data]) as here:
        with subprocess.Popen([*isolated, program, "-c", "sleep 1000; true", data]) as there:
            _wait(lambda: len(processes_naming(data)) >= 2)
            assert serving.processes_of(data) == [here.pid]
            there.kill()
        here.kill()
