# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A new user's path: README's first steps as written, on a machine where nothing was installed before;
then `up` once more, with everything built and an empty data directory.

The machine is a fresh Debian root in namespaces of its own (mounts, processes, cgroups), with the
host's network. What the host needs to reach its package mirrors is lent to it, and named."""

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
_LENT = {
    "the resolver": ("/etc/resolv.conf", "/etc/hosts"),
    "the CA bundle": ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates"),
    "where packages come from, and their cache": (
        "/etc/pip.conf",
        "/etc/apt/sources.list",
        "/etc/apt/sources.list.d",
        "/etc/apt/apt.conf.d",
        "/etc/apt/preferences.d",
        "/etc/apt/trusted.gpg",
        "/etc/apt/trusted.gpg.d",
        "/etc/apt/keyrings",
    ),
}
# Not README's: from a built tree to a server with templates.
_AGAIN = ("./dev down --all", "rm -rf /var/lib/alcove", "./dev up --detach")
# What `up` is to take on an ordinary machine. Said beside the times; a busy machine is no failure.
_FRESH_GOAL = 14 * 60
_BUILT_GOAL = 5 * 60
# What is started ends with this process, however that ends.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")
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
    machine = Machine(place)
    try:
        with console.timed("making a fresh Debian root"):
            machine.make()
        steps = with_free_port([*first_steps(), *_AGAIN])
        return judge(steps, *machine.follow(steps))
    finally:
        machine.remove()


def first_steps():
    """The commands below README's heading "First steps"."""
    text = (paths.ROOT / "README.md").read_text()
    found = re.search(r"^## First steps\n.*?^```sh\n(.*?)^```$", text, re.S | re.M)
    if not found:
        raise console.DevError("README has no commands below `## First steps`")
    return found[1].splitlines()


def with_free_port(steps, port=3000):
    """The steps as they are, if the port of README is free on this machine."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return steps
        except OSError:
            pass
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    console.say(f"    port {port} is taken on this machine: `up` gets --listen 127.0.0.1:{free}")
    return [f"{step} --listen 127.0.0.1:{free}" if step.startswith("./dev up") else step for step in steps]


def expected_of(step):
    """What the pages say that an example prints, as a pattern; None for a step that is no example."""
    example = re.search(r"docs/examples/([\w.]+)$", step)
    if not example:
        return None
    # Not needed by `./dev clean`, which works without the tests.
    sys.path.append(str(paths.ROOT / "tests" / "docs"))
    import pages

    (said,) = {block.prints for block in pages.blocks() if block.example == example[1] and block.prints is not None}
    return ".*".join(re.escape(part) for part in said.split("..."))


def judge(steps, took, printed):
    """Shows the times; an example that did not print what its page says, or a step that was not
    reached, is a failure."""
    console.say(f"\n{'step':<60}{'time':>12}")
    for step, seconds in zip(steps, took):
        console.say(f"{step:<60}{console.minutes(seconds):>12}")
    console.say(f"{len(took)} steps of {len(steps)}, {console.minutes(sum(took))}")
    ups = [seconds for step, seconds in zip(steps, took) if step.startswith("./dev up")]
    for seconds, goal, where in zip(ups, (_FRESH_GOAL, _BUILT_GOAL), ("a fresh checkout", "a built tree")):
        console.say(f"`./dev up --detach` from {where}: {console.minutes(seconds)}, {'within' if seconds <= goal else 'MORE THAN'} {goal // 60} min")
    failed = len(steps) - len(took)
    if failed:
        end = "".join(printed[-1].splitlines(keepends=True)[-10:]) if printed else ""
        console.say(f"the steps ended in `{steps[len(took)]}`:\n{end}")
    for step, output in zip(steps[: len(took)], printed):
        expected = expected_of(step)
        if expected is not None and not re.fullmatch(expected, output, re.S):
            failed += 1
            console.say(f"`{step}` printed something else than its page says:\n{output}")
    return results.Counts(passed=len(steps) - failed, failed=failed)


class Machine:
    def __init__(self, place):
        self.place = place
        self.root = place / "root"
        # By the name of the directory, so that `./dev clean` finds them when this process is killed.
        self.cgroups = leftovers.test_cgroups(place)

    def make(self):
        bootstrap = ["mmdebstrap", "--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io", "bookworm", self.root]
        isolated = [*_WITH_US, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        console.run([*isolated, *bootstrap], log=self.place / "mmdebstrap.log")
        self.lend()
        checkout = self.root / "root" / "alcove"
        for name in console.output_of(["git", "ls-files", "-z"], cwd=paths.ROOT).split("\0"):
            if name and (paths.ROOT / name).exists():
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(paths.ROOT / name, checkout / name, follow_symlinks=False)

    def lend(self):
        """Says what, but not what is in it: that is this machine's business."""
        for kind, files in _LENT.items():
            there = [path for path in files if os.path.exists(path)]
            console.say(f"    lent to it, {kind}: {', '.join(there) or 'nothing'}")
            for path in there:
                _copy(path, self.root)
        variables = sorted(filter(_is_lent, os.environ))
        console.say(f"    lent to it, variables: {', '.join(variables) or 'none'}")
        for name in variables:
            if os.environ[name].startswith("/") and os.path.exists(os.environ[name]):
                _copy(os.environ[name], self.root)

    def follow(self, steps):
        """Runs the steps. Returns how long each took and what each printed, of those reached."""
        for cgroup in self.cgroups:
            _make_cgroup(cgroup)
        script = "cd /root/alcove\n"
        for number, step in enumerate(steps, 1):
            script += f"echo '{_MARK} {number}'\n{step}\n"
        script += f"echo '{_MARK} end'\n"
        command = [*_WITH_US, "unshare", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child", "--propagation=private"]
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
            return watch(process.stdout, steps)
        finally:
            process.kill()
            process.wait()

    def remove(self):
        """With its first process, all others of its pid namespace and all of its mounts are gone."""
        for cgroup in self.cgroups:
            leftovers.remove_cgroups(cgroup)
        leftovers.free_loops(self.place)
        serving.remove_data(self.place)

    def _join_cgroups(self):
        for cgroup in self.cgroups:
            (cgroup / "cgroup.procs").write_text("0")


def watch(lines, steps):
    """Shows what the steps print. Returns the seconds of each that ended, and the output of each that
    began."""
    took, printed, begun = [], [], time.monotonic()
    deadline = begun + _LIMIT
    for line in lines:
        if time.monotonic() > deadline:
            raise console.DevError(f"the first steps took longer than {console.minutes(_LIMIT)}")
        if not line.startswith(_MARK):
            if printed:
                printed[-1] += line
            sys.stdout.write(f"    | {line}")
            continue
        now = time.monotonic()
        if printed:
            took.append(now - begun)
        if len(printed) == len(steps):
            break
        begun = now
        console.step(f"$ {steps[len(printed)]}")
        printed.append("")
    return took, printed


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
