# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The settings that a server wrote, as `./dev` hands them to clients."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import serving  # noqa: E402


def test_settings_are_read_as_a_shell_reads_them(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "mine.example")
    monkeypatch.setenv("OTHER", "not of the server")
    (tmp_path / "env").write_text("E2B_DOMAIN=alcove.localhost:3000\nNO_PROXY=127.0.0.1,${NO_PROXY-}\n")
    (tmp_path / "env-plain").write_text("E2B_API_URL=http://127.0.0.1:3000\n")
    server = serving.Server(data=tmp_path)
    assert server.settings(mode="tls") == {"E2B_DOMAIN": "alcove.localhost:3000", "NO_PROXY": "127.0.0.1,mine.example"}
    assert server.settings() == {"E2B_API_URL": "http://127.0.0.1:3000"}
