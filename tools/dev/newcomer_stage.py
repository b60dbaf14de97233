# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A new user's path: README's first steps as written, on a machine where nothing was installed before.

The machine is a fresh Debian root in namespaces of its own (mounts, processes, cgroups), with the
host's network. What the host needs to reach its package mirrors is lent to it."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import console
import deps
import leftovers
import owners
import paths
import results
import serving

_LIMIT = 3600
_MARK = "@@ step"
# Settings of this machine, lent to the new root if they exist. Never part of the checkout.
_LENT = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/apt.conf.d",
    "/etc/apt/preferences.d",
    "/etc/apt/trusted.gpg",
    "/etc/apt/trusted.gpg.d",
    "/etc/apt/keyrings",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/local/share/ca-certificates",
)
_LENT_VARIABLES = re.compile(r"(https?|no|all|ftp)_proxy|PIP_.*|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE", re.I)

# Runs in the new namespaces, still with the host's root: $1 is the new root, the rest the command.
_ENTER = r"""
root=$1; shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sys sys
mount -t devtmpfs dev dev
mount -t devpts -o newinstance,ptmxmode=0666 pts dev/pts
mount -t tmpfs shm dev/shm
mount -t tmpfs -o mode=755 run run
# Blocks of host ids are kept apart between all servers of the machine by locks in this folder.
mkdir -p /run/alcove run/alcove
mount --bind /run/alcove run/alcove
eval "$ALCOVE_MOUNT_CGROUPS"
mkdir -p mnt
pivot_root . mnt
cd /
umount -l /mnt
unset ALCOVE_MOUNT_CGROUPS
exec "$@"
"""


def newcomer():
    """Returns the counts; says how long each step took."""
    deps.ensure("serve")
    place = Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp"))
    owners.mark(place)
    machine = _Machine(place)
    try:
        with console.timed("making a fresh Debian root"):
            machine.make()
        return machine.follow(_first_steps())
    finally:
        machine.remove()


def _first_steps():
    """The commands below README's heading "First steps"."""
    text = (paths.ROOT / "README.md").read_text()
    found = re.search(r"^## First steps\n.*?^```sh\n(.*?)^```$", text, re.S | re.M)
    if not found:
        raise console.DevError("README has no commands below `## First steps`")
    return _with_free_port(found[1].splitlines())


def _with_free_port(steps):
    """The steps as they are, if the port of README is free on this machine."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 3000))
            return steps
        except OSError:
            pass
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    console.say(f"    port 3000 is taken on this machine: `up` gets --listen 127.0.0.1:{port}")
    return [f"{step} --listen 127.0.0.1:{port}" if step.startswith("./dev up") else step for step in steps]


class _Machine:
    def __init__(self, place):
        self.place = place
        self.root = place / "root"
        self.cgroups = [base / f"alcove-test-{os.getpid()}" for base, _, _ in _cgroup_mounts()]

    def make(self):
        bootstrap = ["mmdebstrap", "--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io", "bookworm", self.root]
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        console.run([*isolated, *bootstrap], log=self.place / "mmdebstrap.log")
        lent = [*_LENT, *(value for name, value in os.environ.items() if _is_lent(name) and value.startswith("/"))]
        for path in filter(os.path.exists, lent):
            _copy(path, self.root)
        checkout = self.root / "root" / "alcove"
        for name in console.output_of(["git", "ls-files", "-z"], cwd=paths.ROOT).split("\0"):
            if name and (paths.ROOT / name).exists():
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(paths.ROOT / name, checkout / name, follow_symlinks=False)

    def follow(self, steps):
        for cgroup in self.cgroups:
            _make_cgroup(cgroup)
        script = "cd /root/alcove\n"
        for number, step in enumerate(steps, 1):
            script += f"echo '{_MARK} {number}'\n{step}\n"
        script += f"echo '{_MARK} end'\n"
        command = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child", "--propagation=private"]
        command += ["sh", "-euc", _ENTER, "sh", self.root, "sh", "-euc", script]
        process = subprocess.Popen(
            [str(part) for part in command],
            env=_environ() | {"ALCOVE_MOUNT_CGROUPS": _mount_cgroups()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=self._join_cgroups,
        )
        try:
            took, last = _watch(process, steps)
        finally:
            process.kill()
            process.wait()
        expected = "hello from a sandbox\nexit code 0\n"
        reached = last == expected
        console.say(f"\n{'step':<60}{'time':>12}")
        for step, seconds in took:
            console.say(f"{step:<60}{console.minutes(seconds):>12}")
        console.say(f"{len(took)} steps of {len(steps)}, {console.minutes(sum(seconds for _, seconds in took))}\n")
        if not reached:
            end = "".join(last.splitlines(keepends=True)[-10:])
            console.say(f"the last step printed, instead of {expected!r}:\n{end}")
        return results.Counts(passed=int(reached), failed=int(not reached))

    def remove(self):
        """With its first process, all others of its pid namespace and all of its mounts are gone."""
        for cgroup in self.cgroups:
            leftovers.remove_cgroups(cgroup)
        leftovers.free_loops(self.place)
        serving.remove_data(self.place)

    def _join_cgroups(self):
        for cgroup in self.cgroups:
            (cgroup / "cgroup.procs").write_text("0")


def _watch(process, steps):
    """Shows what the steps print. Returns [(step, seconds)] and the output of the last one."""
    took, output, current, begun = [], "", None, time.monotonic()
    deadline = begun + _LIMIT
    for line in process.stdout:
        if time.monotonic() > deadline:
            raise console.DevError(f"the first steps took longer than {console.minutes(_LIMIT)}")
        if not line.startswith(_MARK):
            output += line
            sys.stdout.write(f"    | {line}")
            continue
        now = time.monotonic()
        if current is not None:
            took.append((steps[current], now - begun))
        mark = line.split()[-1]
        if mark == "end":
            return took, output
        current, begun, output = int(mark) - 1, now, ""
        console.step(f"$ {steps[current]}")
    return took, output


def _is_lent(name):
    return bool(_LENT_VARIABLES.fullmatch(name))


def _environ():
    lent = {name: value for name, value in os.environ.items() if _is_lent(name)}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return lent | {"PATH": path, "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb"}


def _copy(path, root):
    target = Path(f"{root}{path}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.isdir(path):
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        target.unlink(missing_ok=True)
        shutil.copy(path, target)


def _cgroup_mounts():
    """[(mount point, type, options)] of this machine's hierarchies."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind, _, options = fields[fields.index("-") + 1 :]
        if kind in ("cgroup", "cgroup2"):
            found.append((Path(fields[4]), kind, [name for name in options.split(",") if name not in ("rw", "ro")]))
    return found


def _mount_cgroups():
    """Shell commands that mount the same hierarchies below the current directory. In a cgroup
    namespace of its own, each shows only the new machine's part."""
    mounts = _cgroup_mounts()
    lines = []
    if all(point != Path("/sys/fs/cgroup") for point, _, _ in mounts):
        lines.append("mount -t tmpfs -o mode=755 cgroups sys/fs/cgroup")
    for point, kind, options in mounts:
        at = shlex.quote(f".{point}")
        chosen = f"-o {shlex.quote(','.join(options))}" if kind == "cgroup" else ""
        lines += [f"mkdir -p {at}", f"mount -t {kind} {chosen} cgroup {at}"]
        if kind == "cgroup2":
            # Limits may be set below only if no process is in the hierarchy's root.
            lines += [f"mkdir {at}/main", f"echo $$ > {at}/main/cgroup.procs"]
    return "\n".join(lines)


def _make_cgroup(path):
    path.mkdir()
    if (path / "cgroup.controllers").exists():
        for controller in (path.parent / "cgroup.controllers").read_text().split():
            (path.parent / "cgroup.subtree_control").write_text(f"+{controller}")
        return
    # A new v1 cpuset lets nobody in before it has CPUs and memory nodes.
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (path / name).exists():
            (path / name).write_text((path.parent / name).read_text())
