# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What programs find in the `base` template, and how its machine looks to them."""

import base64
import hashlib
import io
import json
import re
import tarfile
import time
import zipfile

import pytest
from harness import got


async def _out(sandbox, command, **options):
    return (await got(sandbox.commands.run(command, **options))).stdout


def _wheel():
    """A minimal wheel: what `pip install` takes without a network."""
    info = "tiny_alcove-1.0.dist-info"
    files = {
        "tiny_alcove.py": "VALUE = 'from a wheel'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-alcove\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }

    def record(name, text):
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        return f"{name},sha256={digest},{len(text)}\n"

    lines = "".join(record(name, text) for name, text in files.items())
    files[f"{info}/RECORD"] = f"{lines}{info}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def _npm_package():
    """A minimal npm package with one program."""
    files = {
        "package/package.json": json.dumps({"name": "tiny-alcove", "version": "1.0.0", "bin": {"tiny-alcove": "run.js"}}),
        "package/run.js": "#!/usr/bin/env node\nconsole.log('from a package');\n",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            member.mode = 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.mark.smoke
async def test_user_and_sudo(sandbox):
    assert await _out(sandbox, "id -un; id -u; id -g; id -gn; echo $HOME") == "user\n1000\n1000\nuser\n/home/user\n"
    assert "sudo" in (await _out(sandbox, "id -Gn")).split()
    assert await _out(sandbox, "sudo -n id -u") == "0\n"
    assert await _out(sandbox, "sudo echo works") == "works\n"
    assert await _out(sandbox, "getent passwd user | cut -d: -f6,7") == "/home/user:/bin/bash\n"


async def test_tools(sandbox):
    tools = "bash sh python python3 pip pip3 node npm npx git curl sudo tput realpath ln touch wc ps tar gzip"
    for tool in tools.split():
        assert (await _out(sandbox, f"command -v {tool} || true")).strip(), f"{tool} is missing"
    assert (await _out(sandbox, "python --version")).startswith("Python 3.")
    assert int((await _out(sandbox, "node --version")).strip().removeprefix("v").split(".")[0]) >= 18
    assert await _out(sandbox, "TERM=xterm-256color tput -T xterm-256color colors") == "256\n"


@pytest.mark.limit(120)
@pytest.mark.parametrize("user", ["user", "root"])
async def test_pip_install(sandbox, user):
    await got(sandbox.files.write("/tmp/tiny_alcove-1.0-py3-none-any.whl", _wheel()))
    result = await got(sandbox.commands.run("pip install /tmp/tiny_alcove-1.0-py3-none-any.whl", user=user, timeout=90))
    assert "Successfully installed" in result.stdout
    show = "python -c 'import tiny_alcove; print(tiny_alcove.VALUE)'"
    assert await _out(sandbox, show, user=user) == "from a wheel\n"


@pytest.mark.limit(120)
@pytest.mark.parametrize("user", ["user", "root"])
async def test_npm_install_global(sandbox, user):
    await got(sandbox.files.write("/tmp/tiny.tgz", _npm_package()))
    await got(sandbox.commands.run("npm install -g --offline /tmp/tiny.tgz", user=user, timeout=90))
    assert await _out(sandbox, "tiny-alcove", user=user) == "from a package\n"


async def test_venv(sandbox):
    assert await _out(sandbox, "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'") == "1\n"


async def test_git_works(sandbox):
    commands = (
        "set -e; mkdir /tmp/repo; cd /tmp/repo; git init -q --initial-branch=main; "
        "git config --global user.email a@b.c; git config --global user.name n; "
        "echo x > f; git add f; git commit -qm first; git log --format=%s; git status --porcelain"
    )
    assert await _out(sandbox, commands) == "first\n"
    # A file written through the API belongs to the user, so git trusts its folder.
    await got(sandbox.files.write("/tmp/other/f", "x"))
    assert await _out(sandbox, "cd /tmp/other && git init -q && git status --porcelain") == "?? f\n"


async def test_places(sandbox):
    shown = await _out(sandbox, "stat -c '%n %U %a' /home/user /usr/local /code /tmp")
    assert re.fullmatch(r"/home/user user 7\d\d\n/usr/local \w+ 777\n/code \w+ 777\n/tmp root 1777\n", shown), shown
    assert (await _out(sandbox, "ls -A")).split() == [".bash_logout", ".bashrc", ".profile"]
    assert await _out(sandbox, "touch /usr/local/bin/x /code/x && echo ok") == "ok\n"


async def test_names_and_time(sandbox):
    assert (await _out(sandbox, "hostname")).strip()
    assert await _out(sandbox, "getent hosts localhost | head -1 | awk '{print $2}'") == "localhost\n"
    assert await _out(sandbox, "getent ahosts $(hostname) | wc -l") != "0\n"
    assert "nameserver" in await _out(sandbox, "cat /etc/resolv.conf")
    assert await _out(sandbox, "date +%Z") == "UTC\n"
    assert abs(int(await _out(sandbox, "date +%s")) - time.time()) < 5


async def test_text_encoding(sandbox):
    assert await _out(sandbox, "python3 -c 'import sys; print(sys.stdout.encoding, sys.getfilesystemencoding())'") == "utf-8 utf-8\n"
    assert await _out(sandbox, "echo $LANG") == "C.UTF-8\n"
    assert await _out(sandbox, "printf 'ü' | wc -m") == "1\n"


@pytest.mark.smoke
async def test_identity(sandbox):
    info = await got(sandbox.get_info())
    expected = {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": sandbox.sandbox_id, "E2B_TEMPLATE_ID": info.template_id}
    for name, value in expected.items():
        for user in ("user", "root"):
            assert await _out(sandbox, f"echo ${name}", user=user) == f"{value}\n"
        # The bare value, without a newline.
        assert await _out(sandbox, f"cat /run/e2b/.{name}") == value
        assert await _out(sandbox, f"stat -c %a /run/e2b/.{name}") == "444\n"
    team = await _out(sandbox, "echo $E2B_TEAM_ID")
    assert re.fullmatch(r"[0-9a-f-]{36}\n", team), team
    assert await _out(sandbox, "cat /run/e2b/.E2B_TEAM_ID") == team.strip()
    assert await _out(sandbox, "stat -c %a /run/e2b") == "755\n"


async def test_identity_cannot_be_changed_at_create(make_sandbox):
    sandbox = await make_sandbox(envs={"E2B_SANDBOX_ID": "forged", "E2B_SANDBOX": "false"})
    assert await _out(sandbox, "echo $E2B_SANDBOX_ID $E2B_SANDBOX") == f"{sandbox.sandbox_id} true\n"


async def test_environment_holds_nothing_else(sandbox):
    names = set((await _out(sandbox, "env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1")).split())
    allowed = set(
        "PATH HOME USER LOGNAME PWD OLDPWD SHLVL _ SHELL PS1 LANG E2B_SANDBOX E2B_SANDBOX_ID E2B_TEMPLATE_ID E2B_TEAM_ID".split()
    )
    assert names <= allowed, names - allowed


async def test_the_machine_looks_like_the_sandbox(sandbox):
    info = await got(sandbox.get_info())
    assert await _out(sandbox, "nproc") == f"{info.cpu_count}\n"
    assert await _out(sandbox, "python3 -c 'import os; print(os.cpu_count())'") == f"{info.cpu_count}\n"
    assert await _out(sandbox, "grep -c ^processor /proc/cpuinfo") == f"{info.cpu_count}\n"
    total = int(re.search(r"MemTotal:\s+(\d+) kB", await _out(sandbox, "cat /proc/meminfo")).group(1))
    assert total == info.memory_mb * 1024
    available = int(re.search(r"MemAvailable:\s+(\d+) kB", await _out(sandbox, "cat /proc/meminfo")).group(1))
    assert total // 2 < available <= total
    assert int((await _out(sandbox, "free -m | awk '/^Mem/ {print $2}'")).strip()) == info.memory_mb
    assert await _out(sandbox, "awk '/SwapTotal/ {print $2}' /proc/meminfo") == "0\n"


async def test_uptime_and_load_are_its_own(make_sandbox):
    sandbox = await make_sandbox()
    uptime = float((await _out(sandbox, "cat /proc/uptime")).split()[0])
    # A sandbox of the warm pool may have waited for some time, but not for the host's whole life.
    with open("/proc/uptime") as file:
        assert uptime < float(file.read().split()[0]) - 1
    load = (await _out(sandbox, "cat /proc/loadavg")).split()
    assert len(load) == 5 and float(load[0]) < 64


async def test_processes_are_its_own(sandbox):
    pids = [int(pid) for pid in (await _out(sandbox, "ls /proc | grep -E '^[0-9]+$'")).split()]
    assert 1 in pids and len(pids) < 12
    assert await _out(sandbox, "cat /proc/1/comm") == "alcove-agent\n"


async def test_orphans_are_reaped(sandbox):
    await got(sandbox.commands.run("for i in $(seq 20); do (sleep 0.2 &) ; done; true"))
    time.sleep(1)
    assert await _out(sandbox, "ps -eo stat= | grep -c ^Z || true") == "0\n"


@pytest.mark.limit(120)
async def test_disk_is_limited(make_sandbox):
    sandbox = await make_sandbox(timeout=120)
    result = await _out(sandbox, "fallocate -l 20G /tmp/huge 2>&1 || true; echo checked", timeout=60)
    assert "No space left on device" in result or "Disk quota exceeded" in result, result
    assert await _out(sandbox, "rm -f /tmp/huge; echo x > /tmp/small && cat /tmp/small") == "x\n"


async def test_memory_is_limited(make_sandbox):
    sandbox = await make_sandbox()
    shown = await _out(sandbox, "python3 -c 'x = b\"x\" * (1500 << 20)' 2>&1; echo $?")
    assert shown.strip().splitlines()[-1] in ("137", "1"), shown
    # Only the greedy process died.
    assert await _out(sandbox, "echo alive") == "alive\n"


async def test_processes_are_limited(make_sandbox):
    sandbox = await make_sandbox()
    script = (
        "import threading\n"
        "stop, made = threading.Event(), 0\n"
        "try:\n"
        "    for made in range(4000):\n"
        "        threading.Thread(target=stop.wait).start()\n"
        "except RuntimeError as error:\n"
        "    print(made, error)\n"
        "stop.set()\n"
    )
    await got(sandbox.files.write("/tmp/many.py", script))
    made, reason = (await _out(sandbox, "python3 /tmp/many.py")).split(maxsplit=1)
    assert 1900 < int(made) < 2048 and reason == "can't start new thread\n"
    assert await _out(sandbox, "echo alive") == "alive\n"
