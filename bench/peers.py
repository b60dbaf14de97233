# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A new sandbox, one command in it and its end, beside programs that do the same from Debian:
what is not installed is only named."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib import report, wire

_RUNS = 50
_COMMAND = "/bin/true"
_LONGEST_REASON = 120
_TREES = ("/usr", "/bin", "/sbin", "/lib", "/lib64")


def main():
    rows = []
    with tempfile.TemporaryDirectory(prefix="alcove-bench-") as folder:
        for name, argv in _peers(Path(folder)).items():
            if not shutil.which(argv[0]):
                rows.append(report.Row(f"beside {name}", "not installed"))
            elif problem := _problem(argv):
                rows.append(report.Row(f"beside {name}", "does not run here", beside=_readable(problem, folder)))
            else:
                rows.append(_compare(name, argv))
    return rows


def _compare(name, argv):
    api = wire.Api()
    ours, theirs = [], []
    for _ in range(_RUNS):
        ours.append(report.timed(lambda: _once(api))[0])
        theirs.append(report.timed(lambda: subprocess.run(argv, check=True, capture_output=True))[0])
    return report.times(f"create + {_COMMAND} + kill, raw HTTP", ours, beside=name, floor=theirs)


def _once(api):
    created = api.create()
    try:
        sandbox = wire.Sandbox(created)
        sandbox.run(_COMMAND)
        sandbox.connection.close()
    finally:
        api.kill(created)


def _problem(argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def _readable(problem, folder):
    """Fit for a table that is kept: no separators, no paths of this machine."""
    return problem.replace(folder, "DIR").replace("|", "/")[-_LONGEST_REASON:]


def _peers(folder):
    root = folder / "root"
    for path in _TREES:
        (root / path[1:]).mkdir(parents=True)
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir()
    (folder / "config.json").write_text(json.dumps(_oci()))
    binds = [text for path in _TREES for text in ("--ro-bind-try", path, path)]
    volumes = [f"--volume={path}:{path}:ro" for path in _TREES if os.path.isdir(path)]
    return {
        "unshare": ["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--mount-proc", _COMMAND],
        "bwrap": ["bwrap", *binds, "--proc", "/proc", "--dev", "/dev", "--unshare-all", _COMMAND],
        # Without cgroups: the benchmark does not know how this machine wants them laid out.
        "crun run": [
            *("crun", f"--root={folder}/state", "--cgroup-manager=disabled"),
            *("run", f"--bundle={folder}", f"bench-{os.getpid()}"),
        ],
        "podman run": [
            *("podman", f"--root={folder}/store", f"--runroot={folder}/run", "--storage-driver=vfs"),
            *("--cgroup-manager=cgroupfs", "--events-backend=none", "run", "--rm", "--runtime=crun", "--cgroups=disabled"),
            *("--network=none", "--ulimit=host", *volumes, "--rootfs", str(root), _COMMAND),
        ],
    }


def _oci():
    trees = [path for path in _TREES if os.path.isdir(path)]
    binds = [{"destination": path, "source": path, "type": "none", "options": ["rbind", "ro"]} for path in trees]
    return {
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 0, "gid": 0}, "args": [_COMMAND], "env": ["PATH=/usr/bin:/bin"], "cwd": "/"},
        "root": {"path": "root"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            *binds,
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "network", "ipc", "uts")]},
    }


if __name__ == "__main__":
    report.run(main)
