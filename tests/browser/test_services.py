# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Pages that a sandbox serves, opened by curl and by headless Chromium: by get_host(), where each has
an origin of its own, and by the path of the shared origin, where they have none."""

import html
import json
import re
import subprocess

import e2b
import pytest
from browser import chromium
from harness import API_URL, BY_DOMAIN

_PORT, _CLOSED = 8000, 8123
# What a page may do, told in its own text.
_PAGE = """<!doctype html><meta charset="utf-8"><title>inside</title><p id="seen">no script ran</p>
<script type="module">
const seen = { origin: self.origin }
const attempt = async (name, work) => (seen[name] = await work().catch((error) => error.name))
await attempt('cookie', async () => ((document.cookie = 'a=b'), document.cookie))
await attempt('storage', async () => (localStorage.setItem('a', 'b'), localStorage.getItem('a')))
await attempt('worker', async () => typeof navigator.serviceWorker.register)
document.getElementById('seen').textContent = JSON.stringify(seen)
</script>"""


@pytest.fixture(scope="module")
def sandbox():
    if "SSL_CERT_FILE" not in BY_DOMAIN:
        pytest.skip("needs a server with a local authority (ALCOVE_DATA)")
    made = e2b.Sandbox.create(timeout=300)
    made.files.write("page/index.html", _PAGE)
    # Nobody but the sandbox itself could reach it there.
    made.commands.run(f"python3 -m http.server {_PORT} --bind 127.0.0.1 --directory page", background=True, timeout=0)
    made.commands.run(f"until curl -s localhost:{_PORT} > /dev/null; do sleep 0.1; done")
    yield made
    made.kill()


@pytest.fixture
def home(tmp_path):
    chromium.make_profile(tmp_path, BY_DOMAIN["NODE_EXTRA_CA_CERTS"])
    return tmp_path


def _host(sandbox, port):
    """As get_host() gives it to clients of the domain, whatever this client was given."""
    return f"{port}-{sandbox.sandbox_id}.{BY_DOMAIN['E2B_DOMAIN']}"


def _seen(page):
    text = re.search(r'<p id="seen">(.*?)</p>', page)[1]
    return json.loads(html.unescape(text))


def _curl(url, **settings):
    """Status and body, by the system's curl with nothing but these variables."""
    command = ["curl", "-sS", "--max-time", "20", "-w", "\n%{http_code}", url]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"} | settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def test_curl_with_the_settings_of_env(sandbox):
    assert _curl(f"https://{_host(sandbox, _PORT)}/", **BY_DOMAIN) == (200, _PAGE)
    status, body = _curl(f"https://{_host(sandbox, _CLOSED)}/", **BY_DOMAIN)
    assert (status, json.loads(body)) == (
        502,
        {"sandboxId": sandbox.sandbox_id, "message": "The sandbox is running but port is not open", "port": _CLOSED, "code": 502},
    )


def test_curl_does_not_trust_us_by_itself(sandbox):
    with pytest.raises(AssertionError, match="certificate"):
        _curl(f"https://{_host(sandbox, _PORT)}/")


@pytest.mark.limit(120)
def test_a_page_by_get_host_has_an_origin(sandbox, home):
    seen = _seen(chromium.page_of(home, f"https://{_host(sandbox, _PORT)}/"))
    assert seen == {"origin": f"https://{_host(sandbox, _PORT)}", "cookie": "a=b", "storage": "b", "worker": "function"}


@pytest.mark.limit(120)
def test_a_page_of_the_shared_origin_runs_scripts_and_has_none(sandbox, home):
    """Cookies and service workers would be those of all sandboxes, and of the API."""
    seen = _seen(chromium.page_of(home, f"{API_URL}/_sandbox/{sandbox.sandbox_id}/{_PORT}/"))
    assert seen == {"origin": "null", "cookie": "SecurityError", "storage": "SecurityError", "worker": "SecurityError"}


@pytest.mark.limit(120)
@pytest.mark.parametrize("way", ["get_host", "path"])
def test_a_closed_port_is_a_page_that_says_so(sandbox, home, way):
    url = f"https://{_host(sandbox, _CLOSED)}/" if way == "get_host" else f"{API_URL}/_sandbox/{sandbox.sandbox_id}/{_CLOSED}/"
    page = chromium.page_of(home, url)
    for text in ("no service running on port", str(_CLOSED), sandbox.sandbox_id):
        assert text in page, page
