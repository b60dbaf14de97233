# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the task runner says, and how it runs other programs."""

import contextlib
import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path


class DevError(Exception):
    """A failure that is told to the user as one text, without a stack trace."""


_lock = threading.Lock()


def say(text=""):
    with _lock:
        print(text, flush=True)


def step(text):
    say(f"==> {text}")


def minutes(seconds):
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


@contextlib.contextmanager
def timed(text):
    """Says what begins, and how long it took."""
    step(text)
    start = time.monotonic()
    yield
    say(f"    {text}: {minutes(time.monotonic() - start)}")


def clean_environ():
    """The caller's environment without settings that would change what a child builds or tests."""
    drop = ("E2B_", "ALCOVE_", "PYTHONPATH", "PYTHONHOME", "NODE_PATH", "NODE_OPTIONS", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(drop)}


def run(args, *, cwd=None, env=None, log=None, check=True, timeout=None):
    """Runs a program to its end. With `log`, its output goes to that file, and the tail of it is
    shown when the program fails; without, the user sees it as it comes."""
    args = [str(a) for a in args]
    if log is None:
        sys.stdout.flush()
        code = _wait(subprocess.Popen(args, cwd=cwd, env=env, stdin=subprocess.DEVNULL), timeout)
    else:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as out:
            out.write(f"$ {shlex.join(args)}\n".encode())
            out.flush()
            code = _wait(
                subprocess.Popen(args, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out),
                timeout,
            )
    if check and code != 0:
        tail = f"\n{tail_of(log)}" if log else ""
        raise DevError(f"`{shlex.join(args)}` failed with exit code {code}{tail}")
    return code


def output_of(args, **kwargs):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        raise DevError(f"`{shlex.join(map(str, args))}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def tail_of(path, lines=40):
    try:
        text = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"    | {line}" for line in text[-lines:])


def _wait(process, timeout):
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise DevError(f"`{shlex.join(process.args)}` did not end within {minutes(timeout)}") from None
    except BaseException:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
