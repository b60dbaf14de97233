# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the newcomer's stage runs, and how it judges."""

import re
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import console  # noqa: E402
import newcomer_stage as stage  # noqa: E402

_HELLO = "venv/bin/python docs/examples/hello.py"
_RUN_CODE = "venv/bin/python docs/examples/run_code.py"
_SAID = {_HELLO: "hello from a sandbox\nexit code 0\n"}


def _printed(step):
    expected = stage.expected_of(step)
    return re.sub(r"\\(.)", r"\1", expected, flags=re.S) if expected else "whatever\n"


def test_steps_are_those_of_the_readme_with_commands_and_code():
    steps = stage.first_steps()
    assert steps[0] == "./dev up --detach"
    assert [step for step in steps if stage.expected_of(step)] == [_HELLO, _RUN_CODE]
    # What the examples need is what the steps install.
    assert any(step.endswith("pip install e2b-code-interpreter") for step in steps)
    for step in (_HELLO, _RUN_CODE):
        assert (Path(stage.paths.ROOT) / step.split()[1]).exists()


def test_an_example_prints_what_its_page_says():
    assert re.fullmatch(stage.expected_of(_HELLO), _SAID[_HELLO])
    assert not re.fullmatch(stage.expected_of(_HELLO), "hello from a sandbox\nexit code 1\n")
    assert stage.expected_of("./dev up --detach") is None


def test_steps_are_watched(capsys):
    lines = ["before\n", f"{stage._MARK} 1\n", "one\n", "more\n", f"{stage._MARK} 2\n", f"{stage._MARK} end\n"]
    took, printed = stage.watch(iter(lines), ["a", "b"])
    assert (len(took), printed) == (2, ["one\nmore\n", ""])
    assert "$ a" in capsys.readouterr().out


def test_steps_that_end_early(capsys):
    took, printed = stage.watch(iter([f"{stage._MARK} 1\n", "one\n", f"{stage._MARK} 2\n", "oops\n"]), ["a", "b", "c"])
    assert (len(took), printed) == (1, ["one\n", "oops\n"])
    counts = stage.judge(["a", "b", "c"], took, printed)
    assert (counts.passed, counts.failed) == (1, 2)
    said = capsys.readouterr().out
    assert "1 steps of 3" in said and "the steps ended in `b`:\noops" in said


def test_judging(capsys):
    steps = [*stage.first_steps(), *stage._AGAIN]
    took = [600.0 if step.startswith("./dev up") else 1.0 for step in steps]
    printed = [_printed(step) for step in steps]
    counts = stage.judge(steps, took, printed)
    assert (counts.passed, counts.failed) == (len(steps), 0)
    said = capsys.readouterr().out
    assert "from a fresh checkout: 10 min 00 s, within 14 min" in said
    assert "from a built tree: 10 min 00 s, MORE THAN 5 min" in said

    for step in (_HELLO, _RUN_CODE):
        wrong = [output if other != step else "nonsense\n" for other, output in zip(steps, printed)]
        assert stage.judge(steps, took, wrong).failed == 1
        assert f"`{step}` printed something else" in capsys.readouterr().out


def test_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        first, other = stage.with_free_port(["./dev up --detach", "true"], port=port)
    assert re.fullmatch(r"./dev up --detach --listen 127.0.0.1:\d+", first) and other == "true"
    assert not first.endswith(f":{port}")
    assert stage.with_free_port(["./dev up --detach"], port=port) == ["./dev up --detach"]


def test_what_is_lent_is_named_and_not_shown(tmp_path, monkeypatch, capsys):
    bundle = tmp_path / "bundle.crt"
    bundle.write_text("certificates")
    for name in [name for name in stage.os.environ if stage._is_lent(name)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy.example:1")
    monkeypatch.setattr(stage, "_LENT", {"the resolver": (str(bundle), "/no/such/file"), "nothing": ("/no/such/file",)})
    machine = stage.Machine(tmp_path / "alcove-test-x")
    machine.lend()
    said = capsys.readouterr().out
    assert f"lent to it, the resolver: {bundle}\n" in said and "lent to it, nothing: nothing\n" in said
    assert "lent to it, variables: HTTPS_PROXY, SSL_CERT_FILE\n" in said and "secret" not in said
    assert Path(f"{machine.root}{bundle}").read_text() == "certificates"


def test_readme_without_steps(monkeypatch, tmp_path):
    (tmp_path / "README.md").write_text("## First steps\n\nnone\n")
    monkeypatch.setattr(stage.paths, "ROOT", tmp_path)
    with pytest.raises(console.DevError, match="no commands"):
        stage.first_steps()
