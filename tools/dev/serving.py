# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Starting, watching and stopping one server on one data directory."""

import dataclasses
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import console
import paths

# The first start builds the default templates: three minutes on an ordinary machine, more on a slow one.
_READY_LIMIT = 1200
_STOP_LIMIT = 60
# What the server says of a template (src/main/template_preparer.cc).
_FAILED_TEMPLATE = re.compile(r"\btemplate (\S+) cannot be built: (.*)")


@dataclasses.dataclass(frozen=True)
class Server:
    data: Path
    listen: str = ""  # empty: the server's own default
    pool_size: str = ""
    dns: str = ""  # empty: the host's name servers
    templates: tuple = (paths.ROOT / "templates",)
    layers: Path = None  # a cache of built layers beside the data directory
    options: tuple = ()  # further arguments of `alcove serve`
    environ: dict = None  # None: this process's own
    program: Path = paths.program("alcove")

    @property
    def env_file(self):
        return self.data / "env"

    @property
    def plain_env_file(self):
        return self.data / "env-plain"

    @property
    def pid_file(self):
        return self.data / "server.pid"

    @property
    def log_file(self):
        return self.data / "log" / "server.log"

    def command(self):
        args = [self.program, "serve", "--data-dir", self.data]
        if self.listen:
            args += ["--listen", self.listen]
        if self.pool_size:
            args += ["--pool-size", self.pool_size]
        if self.dns:
            args += ["--dns", self.dns]
        for folder in self.templates:
            args += ["--templates", folder]
        if self.layers:
            args += ["--layers", self.layers]
        args += self.options
        return [str(a) for a in args]

    def pid(self):
        """The process id of the running server, or None."""
        try:
            pid = int(self.pid_file.read_text())
            program = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
            args = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except (OSError, ValueError):
            return None
        ours = os.path.basename(program) == "alcove" and str(self.data) in args
        return pid if ours else None

    def settings(self, *, mode="plain"):
        """The client settings: by plain HTTP URLs, or ("tls") with nothing but the domain."""
        file = self.env_file if mode == "tls" else self.plain_env_file
        names = [line.partition("=")[0] for line in file.read_text().splitlines() if line]
        # As a shell reads it: the user's own NO_PROXY is kept.
        read = console.output_of(["/bin/sh", "-euc", 'set -a; . "$0"; exec env -0', file.absolute()])
        found = dict(pair.split("=", 1) for pair in read.split("\0") if pair)
        return {name: found[name] for name in names}

    def run_in_foreground(self):
        """Becomes the server; does not return."""
        self._prepare()
        self.pid_file.write_text(f"{os.getpid()}\n")
        os.execv(self.program, self.command())

    def start_detached(self):
        self._prepare()
        self.log_file.parent.mkdir(exist_ok=True)
        with open(self.log_file, "ab") as log:
            before = log.tell()
            process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=self.environ
            )
        # Where in the log this server's own words begin.
        process.log_start = before
        self.pid_file.write_text(f"{process.pid}\n")
        return process

    def wait_until_ready(self, process=None, limit=_READY_LIMIT):
        """Returns when creates of the default templates would succeed; shows what the server is doing until then."""
        deadline = time.monotonic() + limit
        shown = None
        while time.monotonic() < deadline:
            gone = process.poll() is not None if process else self.pid() is None
            if gone:
                raise console.DevError(f"the server ended before it was ready:\n{console.tail_of(self.log_file)}")
            status, text = self._health()
            if status == 200:
                return
            if _FAILED_TEMPLATE.search(text):
                # The one without which no server gets ready.
                raise console.DevError(f"{text}\n{self._remedy()}")
            if text and text != shown:
                console.say(f"    {text}")
                shown = text
            time.sleep(0.1)
        raise console.DevError(
            f"the server was not ready within {console.minutes(limit)}:\n{console.tail_of(self.log_file)}"
        )

    def check_templates(self, process):
        """Fails if a template could not be built since the process was started: creates of it are refused."""
        with open(self.log_file, "rb") as log:
            log.seek(process.log_start)
            failures = dict(_FAILED_TEMPLATE.findall(log.read().decode(errors="replace")))
        if failures:
            told = "\n".join(f"template {name} cannot be built: {why}" for name, why in failures.items())
            raise console.DevError(f"{told}\nThe server runs without {' and '.join(failures)}. {self._remedy()}")

    def _remedy(self):
        return (
            f"What the build said is in {self.log_file}. Most often a download failed. Once its cause is removed,\n"
            "`./dev down` and `./dev up --detach` try again, and keep what was built already."
        )

    def stop(self):
        """Stops the server only; sandboxes go on. True if one was running."""
        pid = self.pid()
        if pid is None:
            self.pid_file.unlink(missing_ok=True)
            return False
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            handle = None
        if handle is not None:
            try:
                signal.pidfd_send_signal(handle, signal.SIGTERM)
                _wait_for_exit(pid, handle)
            except ProcessLookupError:
                pass
            finally:
                os.close(handle)
        self.pid_file.unlink(missing_ok=True)
        return True

    def admin(self, *args):
        """Runs another command of the program on this data directory."""
        console.run([self.program, *args, "--data-dir", self.data])

    def examine_machine(self):
        """Raises kernel settings that are too low and shows what else is not as it should be. The
        server itself says what it cannot do without."""
        listen = ["--listen", self.listen] if self.listen else []
        command = [self.program, "doctor", "--fix", "--quiet", "--data-dir", self.data, *listen]
        console.run(command, check=False)

    def _prepare(self):
        if os.geteuid() != 0:
            raise console.DevError("the server needs root: it makes namespaces, mounts and cgroups")
        self.data.mkdir(parents=True, exist_ok=True)

    def _health(self):
        try:
            url = self.settings()["E2B_API_URL"]
        except (OSError, KeyError):
            return None, ""
        # A settings file of an earlier start may name another port.
        port = self.listen.rpartition(":")[2]
        if port.isdigit() and int(port) != urllib.parse.urlsplit(url).port:
            return None, ""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{url}/health", timeout=10) as reply:
                return reply.status, ""
        except urllib.error.HTTPError as error:
            return error.code, _message(error.read())
        except OSError:
            return None, ""


def _message(body):
    try:
        return json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()


def _wait_for_exit(pid, handle):
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    if not poller.poll(_STOP_LIMIT * 1000):
        raise console.DevError(f"the server (pid {pid}) did not stop within {_STOP_LIMIT} s")
    # A server that is our own child stays a zombie until it is waited for.
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def remove_data(data):
    """Deletes a data directory, and refuses while anything is still mounted in it."""
    left = mounts_below(data)
    if left:
        raise console.DevError(f"still mounted below {data}: {', '.join(left)}; run `./dev clean` first")
    shutil.rmtree(data, ignore_errors=False)


def mounts_below(data):
    prefix = f"{Path(data).resolve()}/"
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return [point for point in points if f"{point}/".startswith(prefix)]


def processes_of(data):
    """Host processes of ours that name this data directory, or hold its lock. One in another pid
    namespace means a directory of its own by that name: the newcomer's machine has such."""
    here = os.readlink("/proc/self/ns/pid")
    paths_of_data = {str(data), str(Path(data).resolve())}
    wanted = paths_of_data | {f"--data-dir={path}" for path in paths_of_data}
    locks = {f"{path}/lock" for path in paths_of_data}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            program = os.path.basename(os.readlink(entry / "exe"))
            if not program.startswith("alcove") or os.readlink(entry / "ns" / "pid") != here:
                continue
            args = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if wanted.isdisjoint(args) and locks.isdisjoint(map(os.readlink, (entry / "fd").iterdir())):
                continue
        except OSError:
            continue
        found.append(int(entry.name))
    return found
