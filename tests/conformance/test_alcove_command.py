# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The `alcove` command against a real server: what people and scripts see of it."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import time

import pytest
from harness import API_KEY, API_URL, DATA_DIR, PROGRAM, SANDBOX_ID, SANITIZED, api

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(not PROGRAM, reason="needs the program (ALCOVE_BIN)"),
]

needs_data_dir = pytest.mark.skipif(not DATA_DIR, reason="needs the server's data directory (ALCOVE_DATA)")

MEGABYTE = 1 << 20


def alcove(*args, input=b"", env=None, timeout=50):
    """Runs the program; its output is bytes. Input is a pipe, as in a script."""
    return subprocess.run(
        [PROGRAM, *map(str, args)], input=input, capture_output=True, timeout=timeout, env=os.environ | (env or {})
    )


def succeeded(*args, **options):
    """Standard output, as text, of a run that must succeed without a word on standard error."""
    done = alcove(*args, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout.decode()


def failed(*args, code=1, **options):
    """The error text of a run that must fail, and say so in one line."""
    done = alcove(*args, **options)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    text = done.stderr.decode()
    if code == 1:
        assert text.startswith("alcove: ") and text.count("\n") == 1, text
    return text


@pytest.fixture
def sandbox_id(created):
    return created(timeout=120)["sandboxID"]


@pytest.fixture
def inside(sandbox_id):
    """Runs a shell line in the sandbox; its output."""

    def run(line, **options):
        return succeeded("sandbox", "exec", sandbox_id, "--", "bash", "-c", line, **options)

    return run


def processes_named(sandbox_id, name):
    done = alcove("sandbox", "exec", sandbox_id, "--", "pgrep", "-x", name)
    return done.stdout.split()


def eventually(probe, within=10):
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if probe():
            return True
        time.sleep(0.1)
    return False


# --- create, ls, info, kill ---------------------------------------------------------------------------------------


def test_a_sandbox_lives_from_create_to_kill():
    sandbox_id = succeeded("sandbox", "create", "--timeout", "2m", "-m", "job=a b&c=d", "-e", "N=7").strip()
    assert SANDBOX_ID.fullmatch(sandbox_id)
    assert succeeded("sandbox", "exec", sandbox_id, "--", "printenv", "N") == "7\n"

    table = succeeded("sandbox", "ls")
    assert table.splitlines()[0].split()[:3] == ["SANDBOX", "TEMPLATE", "STATE"]
    row = next(line for line in table.splitlines() if line.startswith(sandbox_id))
    assert row.split()[1:3] == ["base", "running"] and "job=a b&c=d" in row

    listed = json.loads(succeeded("sandbox", "ls", "--json", "-m", "job=a b&c=d"))
    assert [entry["sandboxID"] for entry in listed] == [sandbox_id]
    assert json.loads(succeeded("sandbox", "ls", "--json", "-m", "job=a b&c=e")) == []
    assert sandbox_id in succeeded("sandbox", "ls", "--quiet", "--template", "base").split()

    text = succeeded("sandbox", "info", sandbox_id)
    assert re.search(r"^state: +running$", text, re.M) and re.search(r"^ends: .*\(in (1m\d+s|2m)\)$", text, re.M)
    info = json.loads(succeeded("sandbox", "info", sandbox_id, "--json"))
    assert info["metadata"] == {"job": "a b&c=d"}

    assert succeeded("sandbox", "kill", sandbox_id) == f"{sandbox_id}\n"
    assert api("GET", f"/sandboxes/{sandbox_id}").status == 404


def test_create_prints_the_whole_answer_as_json():
    made = json.loads(succeeded("sandbox", "create", "base", "--json", "--no-internet"))
    try:
        assert made["envdAccessToken"]
        assert api("GET", f"/sandboxes/{made['sandboxID']}").json["allowInternetAccess"] is False
    finally:
        succeeded("sandbox", "kill", made["sandboxID"])


def test_list_has_all_pages(created):
    made = {created(metadata={"page": "x"})["sandboxID"] for _ in range(3)}
    assert set(succeeded("sandbox", "ls", "-q", "-m", "page=x").split()) == made


def test_kill_goes_on_after_one_that_does_not_exist(created):
    sandbox_id = created()["sandboxID"]
    done = alcove("sandbox", "kill", "nosuchsandbox", sandbox_id)
    assert done.returncode == 1
    assert done.stdout.decode() == f"{sandbox_id}\n"
    assert b"there is no sandbox nosuchsandbox" in done.stderr
    assert api("GET", f"/sandboxes/{sandbox_id}").status == 404


def test_kill_all_ends_only_those_of_the_key(created, other_key):
    mine = created()["sandboxID"]
    theirs = created(key=other_key)["sandboxID"]
    assert theirs in succeeded("sandbox", "kill", "--all", "--api-key", other_key).split()
    assert api("GET", f"/sandboxes/{mine}").status == 200
    assert api("GET", f"/sandboxes/{theirs}", key=other_key).status == 404


def test_tables_carry_no_escape_sequences(created):
    sandbox_id = created(metadata={"evil": "\x1b]0;pwned\x07\x1b[2J\u202e\nrow"})["sandboxID"]
    for args in (("sandbox", "ls"), ("sandbox", "info", sandbox_id)):
        text = succeeded(*args)
        assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
        assert "\\x1b[2J\\u202e\\x0arow" in text


def test_templates():
    table = succeeded("template", "ls")
    assert any(line.startswith("base ") and "ready" in line for line in table.splitlines())
    assert "base" in [name for entry in json.loads(succeeded("template", "ls", "--json")) for name in entry["names"]]


# --- exec ---------------------------------------------------------------------------------------------------------


def test_exec_passes_output_and_exit_code_on(sandbox_id):
    done = alcove("sandbox", "exec", sandbox_id, "--", "bash", "-c", "echo out; echo err >&2; exit 37")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 37)


def test_exec_uses_no_shell(sandbox_id):
    assert succeeded("sandbox", "exec", sandbox_id, "--", "echo", "$HOME; a  b", "--json", "-u") == "$HOME; a  b --json -u\n"


def test_exec_user_directory_and_environment(sandbox_id):
    line = 'echo "$(id -un) $PWD $A $B"'
    assert succeeded("sandbox", "exec", sandbox_id, "--", "bash", "-c", line) == "user /home/user  \n"
    args = ("-u", "root", "-w", "/tmp", "-e", "A=1=2", "-e", "B=x y")
    assert succeeded("sandbox", "exec", sandbox_id, *args, "--", "bash", "-c", line) == "root /tmp 1=2 x y\n"


def test_exec_pipes_input_through(sandbox_id):
    data = os.urandom(5 * MEGABYTE)
    done = alcove("sandbox", "exec", sandbox_id, "--", "cat", input=data)
    assert done.returncode == 0, done.stderr
    assert done.stdout == data


def test_exec_takes_input_from_a_file_and_from_nothing(sandbox_id, tmp_path):
    source = tmp_path / "input"
    source.write_bytes(b"from a file")
    for stdin, expected in ((source.open("rb"), b"from a file"), (subprocess.DEVNULL, b"")):
        command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "cat"]
        assert subprocess.run(command, stdin=stdin, capture_output=True, timeout=30).stdout == expected


def test_exec_ends_with_the_command_though_input_stays_open(sandbox_id):
    with subprocess.Popen([PROGRAM, "sandbox", "exec", sandbox_id, "--", "true"], stdin=subprocess.PIPE) as process:
        assert process.wait(timeout=20) == 0


def test_exec_does_not_wait_for_input_that_nobody_reads(sandbox_id):
    started = time.monotonic()
    done = alcove("sandbox", "exec", sandbox_id, "--", "head", "-c", "3", input=b"abc" + bytes(20 * MEGABYTE))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"abc", b"")
    assert time.monotonic() - started < 20


def test_exec_streams(sandbox_id):
    """Lines arrive while the command still runs, and what it is told decides how it goes on."""
    line = "echo ready; read word; echo got $word; read word"
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "bash", "-c", line]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got hello\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(timeout=20) == 1


def test_exec_writes_everything_to_a_reader_that_is_slow(sandbox_id):
    """Also to a pipe that somebody made non-blocking."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "head", "-c", str(3 * MEGABYTE), "/dev/zero"]
    with subprocess.Popen(command, stdout=writer) as process:
        os.close(writer)
        time.sleep(0.5)
        with open(reader, "rb") as file:
            assert file.read() == bytes(3 * MEGABYTE)
        assert process.wait(timeout=20) == 0


def test_exec_reports_what_it_cannot_run(sandbox_id):
    assert alcove("sandbox", "exec", sandbox_id, "--", "nosuchprogram").returncode == 127
    assert "'nobodyhere' does not exist" in failed("sandbox", "exec", sandbox_id, "-u", "nobodyhere", "--", "true")
    assert "/no/such/dir" in failed("sandbox", "exec", sandbox_id, "-w", "/no/such/dir", "--", "true")


def test_exec_by_signal_and_by_timeout(sandbox_id):
    done = alcove("sandbox", "exec", sandbox_id, "--", "bash", "-c", "kill -9 $$")
    assert done.returncode == 137 and b"signal: killed" in done.stderr
    done = alcove("sandbox", "exec", sandbox_id, "--timeout", "1", "--", "sleep", "30")
    assert done.returncode == 124 and b"--timeout" in done.stderr
    assert eventually(lambda: not processes_named(sandbox_id, "sleep"))


@pytest.mark.parametrize("number,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_exec_interrupted_ends_the_command(sandbox_id, number, code):
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "bash", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        assert process.wait(timeout=20) == code
    assert eventually(lambda: not processes_named(sandbox_id, "sleep"))


def test_exec_interrupted_twice_ends_a_command_that_does_not_want_to(sandbox_id):
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "bash", "-c", "trap 'echo no' TERM; echo up; while :; do sleep 0.1; done"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"no\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_exec_whose_reader_is_gone_ends_the_command(sandbox_id):
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.wait(timeout=20) == 141
    assert eventually(lambda: not processes_named(sandbox_id, "yes"))


def test_exec_in_a_sandbox_that_ends_meanwhile(sandbox_id):
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "--", "bash", "-c", "echo up; sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        succeeded("sandbox", "kill", sandbox_id)
        assert process.wait(timeout=20) == 1
        assert process.stderr.read() == b"alcove: the sandbox ended while the command ran\n"


# --- cp -----------------------------------------------------------------------------------------------------------


def test_cp_moves_binary_files_both_ways(sandbox_id, inside, tmp_path):
    data = os.urandom(3 * MEGABYTE + 17)
    (tmp_path / "up.bin").write_bytes(data)
    succeeded("sandbox", "cp", tmp_path / "up.bin", f"{sandbox_id}:/tmp/x/y.bin")
    assert inside("stat -c '%s %U' /tmp/x/y.bin") == f"{len(data)} user\n"
    assert succeeded("sandbox", "cp", f"{sandbox_id}:/tmp/x/y.bin", tmp_path / "down.bin") == ""
    assert (tmp_path / "down.bin").read_bytes() == data


def test_cp_names_follow_the_rules_of_cp(sandbox_id, inside, tmp_path):
    (tmp_path / "f").write_text("1")
    # Relative paths start in the home of the user, an existing directory is copied into.
    succeeded("sandbox", "cp", tmp_path / "f", f"{sandbox_id}:")
    succeeded("sandbox", "cp", tmp_path / "f", f"{sandbox_id}:/tmp")
    succeeded("sandbox", "cp", "-u", "root", tmp_path / "f", f"{sandbox_id}:new/")
    assert inside("sudo cat ~/f /tmp/f /root/new/f") == "111"
    (tmp_path / "dir").mkdir()
    succeeded("sandbox", "cp", f"{sandbox_id}:f", tmp_path / "dir")
    succeeded("sandbox", "cp", f"{sandbox_id}:f", tmp_path / "dir" / "g")
    assert sorted(path.name for path in (tmp_path / "dir").iterdir()) == ["f", "g"]


def test_cp_moves_directories_both_ways(sandbox_id, inside, tmp_path):
    tree = tmp_path / "tree"
    (tree / "sub" / "empty").mkdir(parents=True)
    names = ["plain", "with space", "-rf", "ünï", "a:b", "\x1b[31mred", "new\nline", "100%?&#"]
    for name in names:
        (tree / "sub" / name).write_text(name)
    (tree / "run").write_text("#!/bin/sh\necho ran\n")
    (tree / "run").chmod(0o755)
    (tree / "private").write_text("p")
    (tree / "private").chmod(0o600)
    (tree / "file-link").symlink_to("run")
    (tree / "dir-link").symlink_to("sub")
    (tree / "broken").symlink_to("nowhere")
    done = alcove("sandbox", "cp", "--json", tree, f"{sandbox_id}:/home/user")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert (counts["files"], counts["leftOut"]) == (len(names) + 3, 2)
    assert b"entries left out: 2" in done.stderr
    assert inside("tree/run; stat -c %a tree/private; ls -A tree/sub | wc -l") == f"ran\n600\n{len(names) + 2}\n"

    inside("ln -s /etc tree/etc; mkfifo tree/pipe; ln -s run tree/again")
    back = tmp_path / "back"
    done = alcove("sandbox", "cp", "--json", f"{sandbox_id}:tree", back)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["leftOut"] == 2
    assert {path.name for path in (back / "sub").iterdir()} == {*names, "empty"}
    assert all((back / "sub" / name).read_text() == name for name in names)
    assert (back / "run").stat().st_mode & 0o777 == 0o755
    assert (back / "private").stat().st_mode & 0o777 == 0o600
    assert (back / "again").read_text() == (tree / "run").read_text() and not (back / "again").is_symlink()
    assert not (back / "etc").exists() and not (back / "pipe").exists()


@pytest.mark.skipif(bool(SANITIZED), reason="memory is not measured under a sanitizer")
@pytest.mark.limit(180)
def test_cp_of_100_mb_needs_little_memory(sandbox_id, tmp_path):
    size = 100 * MEGABYTE
    source = tmp_path / "big"
    block = os.urandom(MEGABYTE)
    with open(source, "wb") as file:
        for _ in range(size // MEGABYTE):
            file.write(block)

    def copy(*args):
        limit = 32 * MEGABYTE
        command = [PROGRAM, "sandbox", "cp", *map(str, args)]
        subprocess.run(command, check=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))

    copy(source, f"{sandbox_id}:/tmp/big")
    copy(f"{sandbox_id}:/tmp/big", tmp_path / "back")
    assert subprocess.run(["cmp", source, tmp_path / "back"], check=False).returncode == 0


def test_cp_tells_what_it_cannot_copy(sandbox_id, tmp_path):
    assert "the sandbox has no /no/such" in failed("sandbox", "cp", f"{sandbox_id}:/no/such", tmp_path)
    assert "No such file" in failed("sandbox", "cp", tmp_path / "nosuch", f"{sandbox_id}:/tmp")
    assert "No such file" in failed("sandbox", "cp", f"{sandbox_id}:/etc/hostname", tmp_path / "no" / "such")
    evil = tmp_path / "\x1b[31mname"
    evil.write_text("x")
    assert "\\x1b[31mname" in failed("sandbox", "cp", evil, f"{sandbox_id}:/proc/version")
    assert "exactly one" in failed("sandbox", "cp", "a", "b", code=2)
    assert "exactly one" in failed("sandbox", "cp", f"{sandbox_id}:a", f"{sandbox_id}:b", code=2)


def test_cp_to_a_full_disk_is_an_error(sandbox_id):
    """A device that takes nothing: what is not complete is not called copied."""
    assert "not complete" in failed("sandbox", "cp", f"{sandbox_id}:/etc/passwd", "/dev/full")


# --- logs and metrics ---------------------------------------------------------------------------------------------


def test_logs(sandbox_id, inside):
    inside("true")
    lines = succeeded("sandbox", "logs", sandbox_id).splitlines()
    assert lines and all(re.match(r"\d{4}-\d\d-\d\dT\S+Z  [A-Z]+ +\S", line) for line in lines)
    entries = [json.loads(line) for line in succeeded("sandbox", "logs", "--json", sandbox_id).splitlines()]
    assert len(entries) >= len(lines) and {"timestamp", "level", "message", "fields"} <= entries[0].keys()


def test_metrics(sandbox_id):
    succeeded("sandbox", "metrics", sandbox_id)
    assert eventually(lambda: succeeded("sandbox", "metrics", "--json", sandbox_id), within=30)
    header, *lines = succeeded("sandbox", "metrics", "-n", "1", sandbox_id).splitlines()
    assert header.split() == ["TIME", "CPU", "MEMORY", "CACHE", "DISK"]
    assert len(lines) == 1 and "%" in lines[0]


# --- errors, keys, the rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [("info", "i0000"), ("exec", "i0000", "--", "true"), ("cp", "i0000:x", "."), ("kill", "i0000")])
def test_unknown_sandbox(args):
    assert "`alcove sandbox ls`" in failed("sandbox", *args)


def test_unknown_template_names_the_remedy():
    assert "`alcove template ls`" in failed("sandbox", "create", "no-such-template")


def test_wrong_key_names_the_remedy():
    text = failed("sandbox", "ls", "--api-key", "e2b_" + "0" * 40)
    assert "refuses the API key" in text and "alcove key create" in text


def test_server_that_is_down_names_the_remedy():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    text = failed("sandbox", "ls", "--url", url)
    assert url in text and "Connection refused" in text and "./dev up" in text


def test_no_settings_at_all(tmp_path):
    env = {"E2B_API_URL": "", "E2B_API_KEY": "", "ALCOVE_DATA": str(tmp_path)}
    text = failed("sandbox", "ls", env=env)
    assert "E2B_API_URL" in text and f"{tmp_path}/env" in text


def test_settings_come_from_the_data_directory(tmp_path):
    (tmp_path / "env").write_text(f"E2B_API_KEY={API_KEY}\nE2B_API_URL={API_URL}\nE2B_SANDBOX_URL={API_URL}\n")
    nowhere = {"E2B_API_URL": "http://127.0.0.1:9", "E2B_API_KEY": "e2b_x"}
    assert isinstance(json.loads(succeeded("sandbox", "ls", "--json", "--data-dir", tmp_path, env=nowhere)), list)
    unset = {"E2B_API_URL": "", "E2B_API_KEY": "", "ALCOVE_DATA": str(tmp_path)}
    assert isinstance(json.loads(succeeded("sandbox", "ls", "--json", env=unset)), list)


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("nosuch",),
        ("sandbox",),
        ("sandbox", "info"),
        ("sandbox", "create", "--timeout", "soon"),
        ("sandbox", "create", "-m", "novalue"),
        ("sandbox", "exec", "i0000"),
        ("sandbox", "kill"),
        ("sandbox", "ls", "--nosuch"),
    ],
)
def test_wrong_usage_is_2(args):
    done = alcove(*args)
    assert done.returncode == 2 and done.stderr and not done.stdout


@pytest.mark.parametrize("args", [(), ("sandbox",), ("sandbox", "exec"), ("sandbox", "cp"), ("key",), ("completion",)])
def test_help_teaches_with_examples(args):
    text = succeeded(*args, "--help")
    assert "Usage: alcove" in text
    if args != ("key",):
        assert "Examples:\n" in text


@needs_data_dir
def test_keys_are_made_listed_and_revoked():
    made = json.loads(succeeded("key", "create", "--json", "--team", "revokers", "--name", "for a test"))
    key = made["key"]
    assert json.loads(succeeded("sandbox", "ls", "--json", "--api-key", key)) == []
    listed = {entry["id"]: entry for entry in json.loads(succeeded("key", "ls", "--json"))}
    assert listed[made["id"]]["team"] == "revokers" and listed[made["id"]]["name"] == "for a test"
    table = succeeded("key", "ls")
    assert made["id"] in table and key not in table
    assert f"{key[:6]}...{key[-4:]}" in table
    assert succeeded("key", "revoke", made["id"]) == f"{made['id']}\n"
    assert eventually(lambda: alcove("sandbox", "ls", "--api-key", key).returncode == 1, within=15)
    assert "`alcove key ls`" in failed("key", "revoke", made["id"])


def test_data_dir_flag_goes_before_the_environment(tmp_path):
    text = failed("key", "ls", "--data-dir", tmp_path / "nosuch", env={"ALCOVE_DATA": str(tmp_path)})
    assert f"there is no {tmp_path}/nosuch/alcove.db" in text
    assert f"there is no {tmp_path}/alcove.db" in failed("key", "ls", env={"ALCOVE_DATA": str(tmp_path)})


@needs_data_dir
def test_doctor_finds_this_machine_usable():
    """Beside a running server, which is the one that has the port."""
    listen = API_URL.removeprefix("http://")
    text = succeeded("doctor", "--listen", listen)
    assert "is in use by the server of" in text
    assert re.search(r"^ok +overlayfs +works$", text, re.M) and re.search(r"missing: 0$", text, re.M)
    report = json.loads(succeeded("doctor", "--json", "--listen", listen))
    assert report["usable"] is True
    assert len(report["findings"]) > 25
    for finding in report["findings"]:
        assert finding["verdict"] in ("ok", "warning")
        assert ("remedy" in finding) == (finding["verdict"] != "ok"), finding


def test_doctor_fails_when_something_essential_is_missing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = alcove("doctor", "--quiet", "--data-dir", "/var/tmp/alcove-no-such-dir", "--listen", address)
    assert done.returncode == 1
    assert re.search(rb"^missing +address .*in use\n +lost: .*\n +remedy: .*--listen$", done.stdout, re.M), done.stdout
    assert not os.path.exists("/var/tmp/alcove-no-such-dir")


def test_version():
    assert re.fullmatch(r"alcove \d+\.\d+\.\d+\n", succeeded("version"))
    assert set(json.loads(succeeded("version", "--json"))) == {"version"}


def test_completion_scripts(sandbox_id, tmp_path):
    for shell in ("bash", "zsh", "fish"):
        assert "alcove" in succeeded("completion", shell)
    failed("completion", "tcsh")
    script = tmp_path / "alcove.bash"
    script.write_text(succeeded("completion", "bash"))
    subprocess.run(["bash", "-n", script], check=True)

    def completed(*words):
        line = " ".join(f"'{word}'" for word in words)
        text = f"source {script}; COMP_WORDS=(alcove {line}); COMP_CWORD={len(words)}; _alcove; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        path = f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True, env=os.environ | {"PATH": path})
        return done.stdout.split()

    assert completed("sand") == ["sandbox"]
    assert {"create", "ls", "info", "exec", "cp", "logs", "metrics", "kill"} <= set(completed("sandbox", ""))
    assert completed("key", "create", "--te") == ["--team"]
    assert completed("sandbox", "exec", sandbox_id[:10]) == [sandbox_id]
