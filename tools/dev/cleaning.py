# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev clean`: puts the machine back after any crash, of a server or of a test run."""

import os
import re
import shutil
import time
from pathlib import Path

import console
import leftovers
import owners
import serving

_TEST_DATA = Path("/var/tmp")
_TEST_PREFIX = "alcove-test-"
_NAMED_NAMESPACES = Path("/run/netns")
# What has no owner's mark is given this time to be in use without showing it.
_GRACE = 600


def clean(data, *, with_data=False):
    if os.geteuid() != 0:
        raise console.DevError("clean needs root: it ends processes and unmounts")
    if data.exists():
        _clean_one(data)
    else:
        console.say(f"nothing at {data}")
    for abandoned in _abandoned_runs():
        console.step(f"left by a test run that is gone: {abandoned}")
        # With them go the mounts and devices of a machine that it made for itself.
        for cgroup in filter(Path.is_dir, leftovers.test_cgroups(abandoned)):
            leftovers.remove_cgroups(cgroup)
            console.say(f"cgroup {cgroup} removed")
        _clean_one(abandoned)
        serving.remove_data(abandoned)
    for path in _abandoned_namespaces():
        leftovers.remove_network_namespace(path)
        console.say(f"network namespace {path.name} removed")
    freed = leftovers.free_id_blocks()
    if freed:
        console.say(f"{freed} unused blocks of host ids freed")
    if with_data and data.exists():
        serving.remove_data(data)
        console.say(f"{data} removed")


def _clean_one(data):
    steps = (
        ("processes ended", leftovers.end_processes),
        ("sandboxes ended", leftovers.end_sandboxes),
        ("file systems unmounted", lambda folder: len(leftovers.unmount(folder))),
        ("loop devices freed", lambda folder: len(leftovers.free_loops(folder))),
    )
    done = [f"{count} {what}" for what, step in steps if (count := step(data.resolve()))]
    (data / "server.pid").unlink(missing_ok=True)
    console.say(f"{data}: {', '.join(done) or 'nothing was left'}")


def _abandoned_runs():
    """Data directories of tests whose owner is gone. One that anybody may still use is left alone."""
    for path in sorted(_TEST_DATA.glob(f"{_TEST_PREFIX}*")):
        if not path.is_dir():
            continue
        alive = owners.is_alive(path)
        if alive is None:
            alive = time.time() - path.stat().st_mtime < _GRACE or bool(_users(path))
        if not alive:
            yield path


def _abandoned_namespaces():
    """Named namespaces of tests. Their names tell the process that made them, as in
    alcove-test-1234-web; one without is abandoned when no process is in it."""
    used = {_inode(f"/proc/{entry}/ns/net") for entry in os.listdir("/proc") if entry.isdigit()}
    for path in sorted(_NAMED_NAMESPACES.glob(f"{_TEST_PREFIX}*")):
        maker = re.match(r"(\d+)(-|$)", path.name.removeprefix(_TEST_PREFIX))
        alive = Path(f"/proc/{maker[1]}").exists() if maker else _inode(path) in used
        if not alive:
            yield path


def _users(path):
    """Processes that name the directory or have a file of it open."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            names = [(entry / "cmdline").read_bytes().decode(errors="replace")]
            names += [os.readlink(handle) for handle in (entry / "fd").iterdir()]
        except OSError:
            continue
        if any(str(path) in name for name in names):
            found.append(int(entry.name))
    return found


def _inode(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
