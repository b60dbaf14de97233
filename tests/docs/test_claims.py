# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the pages say of commands, options and messages is what the programs know and print."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import DATA_DIR, PROGRAM
from pages import PAGES, ROOT

_COMMANDS = (ROOT / "docs" / "command.md").read_text()
_TROUBLES = (ROOT / "docs" / "troubleshooting.md").read_text()
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def _help(*command):
    done = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _subcommands(*command):
    listed = re.search(r"^(?:Subcommands|SUBCOMMANDS):\n((?:  .*\n?)+)", _help(*command), re.M)
    return re.findall(r"^  (\w[\w-]*)", listed[1], re.M) if listed else []


def _shown_commands():
    """Each line of a page that runs `alcove`, as (page, words)."""
    for page in PAGES:
        text = re.sub(r"\\\n *", "", page.read_text())
        for line in re.findall(r"^(?:    |)(?:\$ )?(.*\balcove (?:serve|doctor|sandbox|template|key|completion|end-all|clean|version)\b.*)$", text, re.M):
            if line.startswith("|") or "`" in line:
                continue
            called = re.search(r"\balcove (?!up)(\w.*?)(?: > .*|\)+)?(?:  +# .*)?$", line)
            yield page.name, shlex.split(called[1].replace(")", ""))


@pytest.mark.skipif(not PROGRAM, reason="needs the server's program (ALCOVE_BIN)")
@pytest.mark.parametrize(("page", "words"), list(_shown_commands()), ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_options_of_a_shown_command_exist(page, words):
    # Behind -- is another program's business.
    words = words[: words.index("--")] if "--" in words else words
    deeper = 2 if words[0] in ("sandbox", "template", "key") else 1
    known = set(_OPTION.findall(_help(*words[:deeper])))
    assert {word.split("=")[0] for word in words[deeper:] if _OPTION.fullmatch(word)} <= known


@pytest.mark.skipif(not PROGRAM, reason="needs the server's program (ALCOVE_BIN)")
def test_every_command_is_on_its_page():
    said = re.findall(r"`alcove ([^`]+)`", "\n".join(re.findall(r"^\| (`alcove .*?) \|", _COMMANDS, re.M)))
    told = {}
    for text in said:
        first, _, rest = text.partition(" ")
        told[first] = set(rest.split(", ")) if rest else set()
    assert set(told) == set(_subcommands())
    for first in ("sandbox", "template", "key"):
        assert told[first] == set(_subcommands(first)), first


def test_every_option_of_up_is_in_the_readme():
    # Unless the lines are long, names are broken at their hyphens.
    wide = os.environ | {"COLUMNS": "1000"}
    done = subprocess.run([ROOT / "dev", "up", "--help"], capture_output=True, text=True, timeout=20, env=wide)
    known = set(re.findall(r"--[a-z][\w-]*", done.stdout)) - {"--help"}
    table = (ROOT / "README.md").read_text().partition("## Options of `./dev up`")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(--[a-z][\w-]*)", table))
    assert told | {"--detach"} == known


# --- troubleshooting.md ---------------------------------------------------------------------------


def _told_troubles():
    table = _TROUBLES.partition("| it says | what to do |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(.+?)` \|", table, re.M)


def _serve(data, *options):
    """What a server that cannot start prints."""
    command = [PROGRAM, "serve", "--data-dir", data, "--templates", ROOT / "templates", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=50)
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.fixture
def fresh_data():
    folder = Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp"))
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    (folder / "owner").write_text(f"{os.getpid()} {started}\n")
    yield folder
    subprocess.run([PROGRAM, "end-all", "--data-dir", folder], check=False, capture_output=True, timeout=50)
    shutil.rmtree(folder)


def _in_use(folder):
    return _serve(DATA_DIR)


def _port_is_taken(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        return _serve(folder, "--listen", f"127.0.0.1:{port}", "--pool-size", "512M").replace(str(port), "3000")


def _small_pool(folder):
    return _serve(folder, "--pool-size", "1M")


def _newer(folder):
    (folder / "version").write_text("99\n")
    said = _serve(folder)
    (folder / "version").unlink()
    return said


_TROUBLE_MAKERS = {
    "another alcove server uses the data directory": _in_use,
    "listen on 127.0.0.1 port 3000: ... Address already in use": _port_is_taken,
    "a disk pool of ... MiB is too small": _small_pool,
    "was written by a newer alcove": _newer,
    # Nobody unmounts the machine's cgroups for a test: src/sys/cgroup_layout.cc, which puts the name in.
    "no cgroup hierarchy with the memory controller is mounted": None,
    # A build that fails takes minutes to do so: tests/dev/test_serving.py has what `./dev up` makes of the server's words.
    "template code-interpreter-v1 cannot be built: ...": None,
}


def test_every_trouble_is_made():
    assert set(_told_troubles()) == set(_TROUBLE_MAKERS)
    source = (ROOT / "src" / "sys" / "cgroup_layout.cc").read_text()
    assert '"no cgroup hierarchy with the "' in source and '" controller is mounted' in source
    source = (ROOT / "src" / "main" / "template_preparer.cc").read_text()
    assert '"template ", recipe.name, " cannot be built: "' in source


@pytest.mark.skipif(not (PROGRAM and DATA_DIR), reason="needs the server's program and data directory")
@pytest.mark.parametrize("told", sorted(told for told, make in _TROUBLE_MAKERS.items() if make))
def test_program_says_what_the_page_tells(told, fresh_data):
    said = _TROUBLE_MAKERS[told](fresh_data)
    assert re.search(".*".join(re.escape(part) for part in told.split("...")), said), said
