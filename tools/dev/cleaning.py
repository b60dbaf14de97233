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
from attempts import Attempts

_TEST_DATA = Path("/var/tmp")
_TEST_PREFIX = "alcove-test-"
_NAMED_NAMESPACES = Path("/run/netns")
# What has no owner's mark is given this time to be in use without showing it.
_GRACE = 600


def clean(data, *, with_data=False):
    if os.geteuid() != 0:
        raise console.DevError("clean needs root: it ends processes and unmounts")
    attempts = Attempts()
    if data.exists():
        attempts.run(_clean_one, data)
    else:
        console.say(f"nothing at {data}")
    with_data = with_data and data.exists() and not attempts.errors
    for abandoned in _abandoned_runs():
        attempts.run(_remove_run, abandoned)
    for path in _abandoned_namespaces():
        attempts.run(_remove_namespace, path)
    freed = attempts.run(leftovers.free_id_blocks)
    if freed:
        console.say(f"{freed} unused blocks of host ids freed")
    if with_data:
        attempts.run(_remove_data, data)
    attempts.finish()


def _remove_run(abandoned):
    console.step(f"left by a test run that is gone: {abandoned}")
    attempts = Attempts()
    # With them go the mounts and devices of a machine that it made for itself.
    for cgroup in filter(Path.is_dir, leftovers.test_cgroups(abandoned)):
        attempts.run(_remove_cgroups, cgroup)
    attempts.run(_clean_one, abandoned)
    attempts.finish()
    serving.remove_data(abandoned)


def _remove_cgroups(cgroup):
    leftovers.remove_cgroups(cgroup)
    console.say(f"cgroup {cgroup} removed")


def _remove_namespace(path):
    leftovers.remove_network_namespace(path)
    console.say(f"network namespace {path.name} removed")


def _remove_data(data):
    serving.remove_data(data)
    console.say(f"{data} removed")


def _clean_one(data):
    attempts = Attempts()
    steps = (
        ("processes ended", leftovers.end_processes),
        ("sandboxes ended", leftovers.end_sandboxes),
        ("file systems unmounted", lambda folder: len(leftovers.unmount(folder))),
        ("loop devices freed", lambda folder: len(leftovers.free_loops(folder))),
    )
    done = [f"{count} {what}" for what, step in steps if (count := attempts.run(step, data.resolve()))]
    (data / "server.pid").unlink(missing_ok=True)
    if done or not attempts.errors:
        console.say(f"{data}: {', '.join(done) or 'nothing was left'}")
    attempts.finish()


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
    """Processes that name the directory or are in it."""
    found = set(leftovers.users_below(path))
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(path) in command:
            found.add(int(entry.name))
    return found


def _inode(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
