# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Jupyter on this machine, outside of any sandbox: ipykernel driven by jupyter_client, and by a
Jupyter Server over its WebSocket. Run by an interpreter that has them; lib/jupyter.py talks to it by
lines: `kernel N` and `server N` run `1+1` N times, `start` starts one more kernel; the answer is a
JSON list of seconds. `facts` answers with versions and the kernel's process id."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path

import ipykernel
import IPython
import jupyter_server
import websocket
from jupyter_client.manager import start_new_kernel

_CODE = "1+1"
_LIMIT = 60


class Kernel:
    """An ipykernel of our own, over ZeroMQ."""

    def __init__(self):
        self.manager, self.client = start_new_kernel(kernel_name="python3", stderr=subprocess.DEVNULL)

    def run(self):
        asked = self.client.execute(_CODE)
        seen_result = False
        while True:
            message = self.client.get_iopub_msg(timeout=_LIMIT)
            if message["parent_header"].get("msg_id") != asked:
                continue
            seen_result = seen_result or message["msg_type"] == "execute_result"
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while self.client.get_shell_msg(timeout=_LIMIT)["parent_header"].get("msg_id") != asked:
            pass
        if not seen_result:
            raise RuntimeError("no result")

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


class Server:
    """A Jupyter Server with one kernel, over its WebSocket."""

    def __init__(self, folder):
        self._token = secrets.token_hex(16)
        environ = os.environ | {"JUPYTER_RUNTIME_DIR": folder, "JUPYTER_CONFIG_DIR": folder, "JUPYTER_DATA_DIR": folder}
        arguments = ["--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", "--ServerApp.allow_root=True"]
        arguments += [f"--IdentityProvider.token={self._token}", f"--ServerApp.root_dir={folder}"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._url = self._wait_for_url(Path(folder))
        kernel = self._ask("POST", "api/kernels", {"name": "python3"})["id"]
        address = f"{self._url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
        self._socket = websocket.create_connection(
            address, timeout=_LIMIT, header=self._headers(), enable_multithread=False
        )
        self._session = uuid.uuid4().hex
        # Answered once the kernel is ready.
        self._exchange("kernel_info_request", {})

    def run(self):
        kinds = self._exchange("execute_request", {"code": _CODE, "silent": False, "store_history": True})
        if "execute_result" not in kinds:
            raise RuntimeError("no result")

    def close(self):
        self._process.terminate()
        self._process.wait()

    def _exchange(self, kind, content):
        """Types of the messages up to the reply and the kernel being idle again."""
        asked = uuid.uuid4().hex
        header = {"msg_id": asked, "msg_type": kind, "username": "", "session": self._session, "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self._socket.send(json.dumps(message))
        kinds, idle = [], False
        while not (idle and kind.replace("_request", "_reply") in kinds):
            answer = json.loads(self._socket.recv())
            if answer["parent_header"].get("msg_id") != asked:
                continue
            kinds.append(answer["msg_type"])
            idle = idle or answer["content"].get("execution_state") == "idle"
        return kinds

    def _wait_for_url(self, folder):
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            for file in folder.glob("jpserver-*.json"):
                with contextlib.suppress(ValueError):
                    return json.loads(file.read_text())["url"]
            time.sleep(0.05)
        raise RuntimeError("the Jupyter Server did not start")

    def _ask(self, method, path, body):
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode(), self._headers() | {"Content-Type": "application/json"}, method=method
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_LIMIT) as reply:
            return json.loads(reply.read())

    def _headers(self):
        return {"Authorization": f"token {self._token}"}


def _timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _start_kernel():
    made = []
    seconds = _timed(lambda: made.append(Kernel()))
    first = _timed(made[0].run)
    made[0].close()
    return [seconds, first]


def main():
    with tempfile.TemporaryDirectory(prefix="alcove-bench-") as folder:
        kernel, server = Kernel(), Server(folder)
        try:
            for line in sys.stdin:
                what, *rest = line.split()
                if what == "facts":
                    versions = f"ipykernel {ipykernel.__version__}, IPython {IPython.__version__}"
                    answer = {
                        "versions": f"{versions}, jupyter_server {jupyter_server.__version__}",
                        "pid": kernel.manager.provisioner.process.pid,
                    }
                elif what == "start":
                    answer = _start_kernel()
                else:
                    peer = {"kernel": kernel, "server": server}[what]
                    answer = [_timed(peer.run) for _ in range(int(rest[0]))]
                print(json.dumps(answer), flush=True)
        finally:
            kernel.close()
            server.close()


if __name__ == "__main__":
    main()
