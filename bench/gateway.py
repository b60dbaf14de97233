# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""HTTP to a service in a sandbox, through the gateway, beside nginx's `proxy_pass` (upstream
keepalive, two workers) in front of the same program on the host, in turns; plain, and by TLS with the
same certificate. Driven by `wrk`; a new connection per request where the row says so, a body of 64 KiB
where it says POST. The first rows are the server's memory per idle connection."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

from lib import report, wire

_SOURCE = pathlib.Path(__file__).with_name("lib") / "http_service.c"
_PORT = 8000
_CONNECTIONS = (1, 16, 256)
_SECONDS = 2
_ROUNDS = 3
_IDLE = 2000
# Before them: what the first connections make is there for all that follow.
_WARM_UP = 200

_POST = """
wrk.method = "POST"
wrk.body = string.rep("b", 65536)
"""

_NGINX = """
worker_processes 2;
daemon off;
pid {folder}/pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  keepalive_requests 100000000;
  # As ours: a body goes on as it comes.
  proxy_request_buffering off;
  # As ours: older versions resume sessions with this client, 1.3 does not.
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_certificate {certificates}/leaf.pem; ssl_certificate_key {certificates}/leaf.key;
  upstream service {{ server 127.0.0.1:{service}; keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} reuseport backlog=4096;
    listen 127.0.0.1:{tls_port} ssl reuseport backlog=4096;
    location / {{ proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; }}
  }}
}}
"""


def main():
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alcove-bench-gateway-")))
        nginx = stack.enter_context(_nginx(folder))
        sandbox = stack.enter_context(wire.sandbox())
        sandbox.put("/tmp/http_service.c", _SOURCE.read_bytes())
        sandbox.run("/bin/sh", "-c", f"cc -O2 -o /tmp/http_service /tmp/http_service.c && (setsid /tmp/http_service {_PORT} >/dev/null 2>&1 </dev/null &)")
        headers = {"E2b-Sandbox-Id": sandbox.headers["E2b-Sandbox-Id"], "E2b-Sandbox-Port": _PORT}
        # First: what a load leaves behind in the heap would be used again and not be seen.
        rows = _idle_memory()
        _load(wire.SANDBOX_URL, headers, 16, keep=True)
        post = folder / "post.lua"
        post.write_text(_POST)
        for tls in (False, True):
            # One port of the gateway speaks both.
            ours = wire.SANDBOX_URL.replace("http:", "https:") if tls else wire.SANDBOX_URL
            for keep in (True, False):
                for connections in _CONNECTIONS:
                    rows += _compare((ours, headers), (nginx[tls], {}), connections, keep, "TLS, " if tls else "")
            rows += _compare((ours, headers), (nginx[tls], {}), 16, True, "TLS, POST, " if tls else "POST, ", post)
    return rows


def _compare(gateway, nginx, connections, keep, prefix, script=None):
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        ours.append(_load(*gateway, connections, keep, script))
        theirs.append(_load(*nginx, connections, keep, script))
    name = f"{prefix}{connections} {'kept' if keep else 'new'}"
    rates = report.rates(f"{name}: requests", [run[0] for run in ours], "/s", beside="nginx", floor=[run[0] for run in theirs])
    middle = [_median([run[1] for run in runs]) for runs in (ours, theirs)]
    slow = [_median([run[2] for run in runs]) for runs in (ours, theirs)]
    latency = report.Row(f"{name}: latency", _ms(middle[0]), _ms(slow[0]), str(_ROUNDS), "nginx (p50, p99)", f"{_ms(middle[1])}, {_ms(slow[1])}", f"{middle[0] / middle[1]:.2f}, {slow[0] / slow[1]:.2f}")
    return [rates, latency, report.Row(f"{name}: p99 above nginx's", p99=f"{slow[0] - slow[1]:+.2f} ms", n=str(_ROUNDS))]


def _load(url, headers, connections, keep, script=None):
    """(requests per second, p50 and p99 in ms) of one run."""
    fields = [f"-H{name}: {value}" for name, value in headers.items()] + ([] if keep else ["-HConnection: close"])
    if script:
        fields += ["-s", script]
    threads = min(2, connections)
    done = subprocess.run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{_SECONDS}s", "--latency", *fields, url + "/"],
        capture_output=True, text=True, check=True,
    ).stdout
    if "Non-2xx" in done:
        raise wire.Failed(done)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done)[1])
    p50, p99 = (_to_ms(*re.search(rf"{share}%\s+([\d.]+)(us|ms|s)", done).groups()) for share in (50, 99))
    return rate, p50, p99


@contextlib.contextmanager
def _nginx(folder):
    if not (program := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")):
        raise wire.Failed("nginx is not installed")
    port, tls_port, service = _free_port(), _free_port(), _free_port()
    certificates = pathlib.Path(os.environ["ALCOVE_DATA"], "tls")
    subprocess.run(["cc", "-O2", "-o", folder / "http_service", _SOURCE], check=True)
    settings = folder / "nginx.conf"
    settings.write_text(_NGINX.format(folder=folder, port=port, tls_port=tls_port, service=service, certificates=certificates))
    with contextlib.ExitStack() as stack:
        for argv in ([folder / "http_service", str(service)], [program, "-p", folder, "-c", settings]):
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        for _ in range(100):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"


def _idle_memory():
    """What connections cost that have had an answer and wait for their next request. All stay open to
    the end: one kind must not live in what another left behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * (_IDLE + _WARM_UP))), hard))
    pid = int(pathlib.Path(os.environ["ALCOVE_DATA"], "server.pid").read_text())
    rows, opened = [], []
    try:
        for tls in (False, True):
            _open(_WARM_UP, tls, opened)
            before = _private_memory(pid)
            _open(_IDLE, tls, opened)
            each = (_private_memory(pid) - before) / _IDLE
            rows.append(report.Row("TLS, idle connection" if tls else "idle connection", f"{each:,.0f} B", n=str(_IDLE)))
    finally:
        for connection in opened:
            connection.close()
    return rows


def _open(count, tls, opened):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for _ in range(count):
        connection = wire.Connection(wire.SANDBOX_URL)
        opened.append(connection)
        if tls:
            connection.socket = context.wrap_socket(connection.socket)
        connection.exchange(connection.message("GET", "/health"))


def _private_memory(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(r"Private_\w+:\s+(\d+) kB", text)) * 1024


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _to_ms(number, unit):
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def _median(values):
    return sorted(values)[len(values) // 2]


def _ms(value):
    return f"{value:.2f} ms"


if __name__ == "__main__":
    report.run(main)
