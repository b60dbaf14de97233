# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What `./dev up --detach` tells of templates that could not be built."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import console  # noqa: E402
import serving  # noqa: E402

# Stands for the server: says what {said} is, and answers /health with {status} and {message}.
_PROGRAM = """#!{python}
import http.server, json, sys

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(dict(message={message!r})).encode()
        self.send_response({status})
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass

print({said!r}, flush=True)
http.server.HTTPServer(("127.0.0.1", {port}), Health).serve_forever()
"""
_SLIM = "2026-11-19T12:00:00Z error template code-interpreter-v1 cannot be built: step 2 failed: no route to host"
_BASE = "template base cannot be built: no route to host"


@pytest.fixture
def start(tmp_path):
    """A function that starts a server on a data directory: (server, process)."""
    processes = []

    def begin(said, *, status=200, message=""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = tmp_path / "alcove"
        program.write_text(_PROGRAM.format(python=sys.executable, port=port, said=said, status=status, message=message))
        program.chmod(0o755)
        server = serving.Server(data=tmp_path / "data", program=program, templates=())
        server.data.mkdir(exist_ok=True)
        server.plain_env_file.write_text(f"E2B_API_URL=http://127.0.0.1:{port}\n")
        processes.append(server.start_detached())
        return server, processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.wait()


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a server needs root")


def test_a_template_that_failed_is_told_with_the_remedy(start):
    server, process = start(_SLIM)
    server.wait_until_ready(process, limit=30)
    with pytest.raises(console.DevError) as told:
        server.check_templates(process)
    text = str(told.value)
    assert "template code-interpreter-v1 cannot be built: step 2 failed: no route to host" in text
    assert "`./dev down` and `./dev up --detach` try again" in text
    assert str(server.log_file) in text


def test_failures_of_an_earlier_start_are_over(start):
    server, process = start(_SLIM)
    server.wait_until_ready(process, limit=30)
    process.kill()
    process.wait()
    server, process = start("template code-interpreter-v1 is ready")
    server.wait_until_ready(process, limit=30)
    server.check_templates(process)


def test_without_the_base_nobody_waits(start):
    server, process = start(_BASE, status=503, message=_BASE)
    begun = time.monotonic()
    with pytest.raises(console.DevError, match="try again"):
        server.wait_until_ready(process, limit=300)
    assert time.monotonic() - begun < 60


def test_up_ends_with_an_error(start, monkeypatch, tmp_path):
    """The command itself: the settings are shown, and its exit status is not that of success."""
    server, process = start(_SLIM)
    server.wait_until_ready(process, limit=30)
    server.env_file.write_text("E2B_API_KEY=x\n")
    code = f"""
import sys
sys.path.insert(0, {str(Path(serving.__file__).parent)!r})
import building, deps, main, serving
deps.ensure = building.build = lambda *a, **k: None
class Started(serving.Server):
    def pid(self): return None
    def examine_machine(self): pass
    def start_detached(self):
        class Process:
            log_start = 0
            def poll(self): return None
        return Process()
serving.Server = Started
sys.argv = ["dev", "up", "--detach", "--data-dir", {str(server.data)!r}]
sys.exit(main.main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode not in (0, None), done
    assert "E2B_API_KEY=x" in done.stdout
    assert "code-interpreter-v1 cannot be built" in done.stdout + done.stderr
