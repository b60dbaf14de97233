# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""docs/errors.md: each answer is provoked and compared with its line, and no other words are in the
sources of the API. What needs a server in trouble is in tests/chaos/test_errors.py."""

import re
import time
import uuid

import e2b
import pytest
from error_rows import ROOT, ROWS, assert_is, row_of
from harness import API_KEY, Reply, api, eventually, request, to_sandbox
from hostile import dial, drain

# Cannot be brought about from outside: the room whose unit tests do it, and what they expect.
_ONLY_IN_UNIT_TESTS = {
    "Max instance length exceeded": ("api", "Max instance length exceeded"),
    "internal error": ("api", "internal error"),
    "The server cannot connect to the sandbox now; it runs out of resources": ("gateway", "The server cannot connect to the sandbox now"),
    "sandbox '<id>' could not be taken over yet; it is tried again": ("api", "could not be taken over yet"),
    "The sandbox could not be taken over yet; it is tried again": ("gateway", "could not be taken over yet"),
    "Too many requests wait for services of the sandbox to start": ("gateway", "Too many requests wait for services of the sandbox to start"),
    "Too many requests wait for services of sandboxes to start": ("gateway", "Too many requests wait for services of sandboxes to start"),
}
_INVALID = "validation error: "
_UNKNOWN = "i" + "0" * 20


def _create(**fields):
    return api("POST", "/v2/sandboxes", {"templateID": "base"} | fields)


def _create_v1(**fields):
    return api("POST", "/sandboxes", {"templateID": "base"} | fields)


def _list(query):
    return api("GET", f"/v2/sandboxes?{query}")


def _raw(text):
    """The answer to a request that no HTTP library would send."""
    with dial(timeout=45) as connection:
        connection.sendall(text.encode())
        head, _, body = drain(connection).partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    return Reply(int(status.split()[1]), dict(re.match("([^:]+): (.*)", field.lower()).groups() for field in fields), body)


_POST = f"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: {API_KEY}\r\nConnection: close\r\n"

# Message on the page: requests that are answered so. They get the id of a sandbox that runs.
_PROVOKED = {
    "the path is not properly encoded": [lambda box: api("GET", "/sandboxes/%zz")],
    "Invalid sandbox ID": [lambda box: api("GET", "/sandboxes/BAD"), lambda box: api("GET", "/sandboxes/metrics?sandbox_ids=BAD")],
    "the request body cannot be read: <why>": [lambda box: _raw(_POST + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n")],
    _INVALID + "the body is not valid JSON (<why>)": [lambda box: api("POST", "/v2/sandboxes", b"{")],
    _INVALID + "the body must be a JSON object": [lambda box: api("POST", "/v2/sandboxes", b"[]")],
    _INVALID + "'<field>' is required": [
        lambda box: api("POST", "/v2/sandboxes", {}),
        lambda box: api("POST", f"/sandboxes/{box}/timeout", {}),
        lambda box: api("GET", "/sandboxes/metrics"),
        lambda box: _create(autoResume={}),
    ],
    _INVALID + "'<field>' must be <what>": [
        lambda box: _create(timeout="1"),
        lambda box: _create(timeout=-1),
        lambda box: _create(timeout=2**31),
        lambda box: _create(metadata=[]),
        lambda box: _create(metadata={"a": 1}),
        lambda box: _create(network={"allowOut": [1]}),
        lambda box: api("POST", f"/sandboxes/{box}/refreshes", {"duration": 3601}),
        lambda box: _list("limit=0"),
        lambda box: _list("startedAfter=today"),
        lambda box: api("GET", f"/sandboxes/{box}/logs?start=x"),
    ],
    _INVALID + "'<field>' is <a> or <b>": [lambda box: _list("order=up"), lambda box: api("GET", f"/v2/sandboxes/{box}/logs?direction=up")],
    _INVALID + "'level' is debug, info, warn or error": [lambda box: api("GET", f"/v2/sandboxes/{box}/logs?level=loud")],
    _INVALID + "'state' knows running and paused, not '<state>'": [lambda box: _list("state=asleep")],
    _INVALID + "'search' has more than 256 characters": [lambda box: api("GET", f"/v2/sandboxes/{box}/logs?search={'x' * 257}")],
    _INVALID + "'sandbox_ids' has more than 100 ids": [lambda box: api("GET", "/sandboxes/metrics?sandbox_ids=" + ",".join(f"i{n}" for n in range(101)))],
    _INVALID + "'sandbox_ids' has <id> twice": [lambda box: api("GET", "/sandboxes/metrics?sandbox_ids=i1,i1")],
    _INVALID + "the query is not properly encoded": [lambda box: _list("state=%zz"), lambda box: api("GET", "/templates?teamID=%zz")],
    _INVALID + "Idempotency-Key must be one value of 1 to 255 characters of a-z, 0-9 and -": [
        lambda box: api("POST", "/v2/sandboxes", {"templateID": "base"}, headers={"Idempotency-Key": "UPPER"})
    ],
    "metadata filter is not properly encoded": [lambda box: _list("metadata=%25zz")],
    "metadata filter '<part>' is not of the form key=value": [lambda box: _list("metadata=a")],
    "invalid next token": [lambda box: _list("nextToken=xyz")],
    "invalid next token: it belongs to a list in the other order": [lambda box: _list(f"order=asc&nextToken={_page_token()}")],
    "the template filter takes no tag": [lambda box: _list("template=base:default")],
    "the start of the time range is later than its end": [lambda box: api("GET", f"/sandboxes/{box}/metrics?start=2&end=1")],
    "teamID is not the team of this API key": [lambda box: api("GET", "/templates?teamID=x")],
    "no route for <method> <path>": [lambda box: api("GET", "/no/such/route")],
    "method <method> is not allowed for <path>": [lambda box: api("PATCH", "/sandboxes")],
    "the request body did not arrive in time": [lambda box: _raw(_POST + "Content-Length: 10\r\n\r\n{")],
    "the request body is larger than 16 MiB": [lambda box: api("POST", "/v2/sandboxes", b" " * ((16 << 20) + 1))],
    "invalid template reference '<name>': it has the form [namespace/]name[:tag], of letters, digits, '-' and '_'": [
        lambda box: _create(templateID="a b"),
        lambda box: api("GET", "/templates/aliases/a%20b"),
        lambda box: _list("template=a%20b"),
    ],
    "timeout must be greater than 0 seconds": [lambda box: _create(timeout=0)],
    "timeout must not be greater than 86400 seconds (24 hours)": [
        lambda box: _create(timeout=86401),
        lambda box: api("POST", f"/v2/sandboxes/{box}/connect", {"timeout": 86401}),
    ],
    "<field>: names and values must not be longer than <n> bytes in all": [
        lambda box: _create(metadata={"a": "x" * (64 << 10)}),
        lambda box: _create(envVars={"a": "x" * (1 << 20)}),
    ],
    "envVars: a name must not be empty": [lambda box: _create(envVars={"": "x"})],
    "envVars: the name '<name>' must contain neither '=' nor a NUL byte": [lambda box: _create(envVars={"a=b": "x"})],
    "envVars: the value of '<name>' must not contain a NUL byte": [lambda box: _create(envVars={"a": "x\0y"})],
    "envVars: '<name>' and its value are longer than 131070 bytes": [lambda box: _create(envVars={"a": "x" * 131070})],
    "network.httpsPorts must be a list of at most 100 ports from 1 to 65535; 49983 is not allowed": [lambda box: _create(network={"httpsPorts": [49983]})],
    "network.maskRequestHost must be a host name or address, with or without a port": [lambda box: _create(network={"maskRequestHost": "a b"})],
    "network.allowPublicTraffic: false needs secure: true": [lambda box: _create_v1(network={"allowPublicTraffic": False})],
    "autoPauseMemory: false needs autoPause: true": [lambda box: _create(autoPauseMemory=False)],
    "autoPauseMemory: false cannot be combined with autoResume": [lambda box: _create(autoPause=True, autoPauseMemory=False, autoResume={"enabled": True})],
    "<feature> is not available on this server yet.": [
        lambda box: _create(autoPause=True),
        lambda box: api("POST", f"/sandboxes/{box}/pause"),
        lambda box: api("POST", "/v3/templates", {}),
    ],
    "Volume mounts are not enabled.": [lambda box: _create(volumeMounts=[{"name": "v", "path": "/v"}])],
    "network.egressProxy is not enabled on this server.": [lambda box: _create(network={"egressProxy": {"address": "198.51.100.1:1080"}})],
    "template '<name>' not found": [lambda box: _create(templateID="no-such-template"), lambda box: api("GET", "/templates/aliases/none")],
    "tag '<tag>' does not exist for template '<name>'": [lambda box: _create(templateID="base:none")],
    "This Idempotency-Key was used with another request.": [lambda box: _mismatch()],
    "API key is missing: send it in the X-API-Key header.": [lambda box: request("GET", "/v2/sandboxes")],
    "Invalid API key.": [lambda box: api("GET", "/v2/sandboxes", key="e2b_00")],
    "Volumes are not enabled.": [lambda box: api("GET", "/volumes")],
    "Secrets are not enabled.": [lambda box: api("GET", "/secrets")],
    "sandbox '<id>' was not found": [lambda box: api("GET", f"/sandboxes/{_UNKNOWN}"), lambda box: api("DELETE", f"/sandboxes/{_UNKNOWN}")],
    "The sandbox is running already.": [lambda box: api("POST", f"/sandboxes/{box}/resume", {"timeout": 10})],
    "no running sandbox signed this URL": [lambda box: request("GET", "/files?path=x&signature=v1_x")],
    "too many file URLs that are not valid": [lambda box: _guess_urls()],
    "The sandbox was not found": [lambda box: to_sandbox("GET", "/", _UNKNOWN, 80)],
    "The sandbox is running but port is not open": [lambda box: to_sandbox("GET", "/", box, 81, headers=box.token)],
    "The service in the sandbox closed the connection without an answer": [lambda box: to_sandbox("GET", "/", box, 8001, headers=box.token)],
    "The service in the sandbox did not take the connection in time": [lambda box: to_sandbox("GET", "/", box, 8004, headers=box.token)],
    "The service in the sandbox sent an answer that is not valid HTTP": [lambda box: to_sandbox("GET", "/", box, 8002, headers=box.token)],
    "The service in the sandbox does not speak TLS, but its port is in httpsPorts": [lambda box: to_sandbox("GET", "/", box, 8003, headers=box.token)],
    "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing": [lambda box: to_sandbox("GET", "/", box, 80)],
    "Sandbox is secured with traffic access token. Provided token in header 'e2b-traffic-access-token' is invalid": [
        lambda box: to_sandbox("GET", "/", box, 80, headers={"e2b-traffic-access-token": "x"})
    ],
}

_SERVICES = """
import socket, threading
def serve(port, answer):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(answer)
        connection.close()
for port, answer in ((8001, b""), (8002, b"HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\nContent-Length: 2\\r\\n\\r\\nab"), (8003, b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")):
    threading.Thread(target=serve, args=(port, answer)).start()
# Takes nothing, and its queue is full.
busy = socket.socket()
busy.bind(("127.0.0.1", 8004))
busy.listen(0)
waiting = [socket.socket() for _ in range(4)]
for each in waiting:
    each.setblocking(False)
    each.connect_ex(("127.0.0.1", 8004))
print("serving", flush=True)
"""


class _Box(str):
    """A sandbox's id, and the header that opens its ports."""

    token = {}


def _page_token():
    made = [_create(timeout=60).json["sandboxID"] for _ in range(2)]
    token = _list("limit=1").headers["x-next-token"]
    for sandbox_id in made:
        api("DELETE", f"/sandboxes/{sandbox_id}")
    return token


def _mismatch():
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60}, headers=key)
    second = api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 61}, headers=key)
    api("DELETE", f"/sandboxes/{first.json['sandboxID']}")
    return second


def _guess_urls():
    for number in range(400):
        reply = request("GET", f"/files?path=x&signature=v1_{number}")
        if reply.status == 429:
            # It comes back by itself; other tests use this address too.
            time.sleep(2)
            return reply
    return reply


@pytest.fixture(scope="module")
def box(run_now):
    made = _create(timeout=600, network={"allowPublicTraffic": False, "httpsPorts": [8003]}).json
    box = _Box(made["sandboxID"])
    box.token = {"e2b-traffic-access-token": made["trafficAccessToken"]}
    sandbox = e2b.Sandbox.connect(box)
    sandbox.files.write("/tmp/services.py", _SERVICES)
    sandbox.commands.run("python3 /tmp/services.py > /tmp/out 2>&1", background=True, timeout=0)
    assert run_now(eventually(lambda: sandbox.files.exists("/tmp/out") and "serving" in sandbox.files.read("/tmp/out"), within=10))
    yield box
    sandbox.kill()


@pytest.mark.parametrize("message", sorted(_PROVOKED))
def test_answer_is_as_the_page_says(box, message):
    for provoke in _PROVOKED[message]:
        assert_is(message, provoke(box))


def test_each_line_is_provoked_somewhere():
    in_trouble = re.search(r"PROVOKED_HERE = \{\n(.*?)^\}", (ROOT / "tests" / "chaos" / "test_errors.py").read_text(), re.S | re.M)
    elsewhere = set(re.findall(r'^    "(.*)",$', in_trouble[1], re.M))
    assert len({row.message for row in ROWS}) == len(ROWS)
    assert {row.message for row in ROWS} == set(_PROVOKED) | elsewhere | set(_ONLY_IN_UNIT_TESTS)
    for message, (room, text) in _ONLY_IN_UNIT_TESTS.items():
        tests = (path.read_text() for path in (ROOT / "src" / room).glob("*_test.cc"))
        assert row_of(message) and any(f'"{text}"' in source for source in tests), message
    for row in ROWS:
        assert row.remedy.strip()


def _calls(source):
    """The arguments of every call that makes an error, as source text."""
    for found in re.finditer(r"\b(?:refuse|refuse_invalid|error_response|final_error_response|ApiError)\s*([({])", source):
        depth = 1
        for token in re.finditer(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|[(){}]', source[found.end() :]):
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token[0], 0)
            if depth == 0:
                yield source[found.end() :][: token.start()]
                break


def test_the_api_has_no_other_words():
    known = "\n".join(f"{row.message}\n{row.error_code}" for row in ROWS)
    texts = set()
    for path in (ROOT / "src" / "api").glob("*.cc"):
        if path.stem.endswith(("_test", "_fuzz")):
            continue
        for call in _calls(path.read_text()):
            # What they are given is the <feature> and the <doing> of a line.
            call = re.sub(r"\b(?:not_available|internal_error)\((?:[^()]|\([^()]*\))*\)", "", call)
            # Neighbours are one text.
            for run in re.findall(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*', call):
                texts.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', run)))
    assert len(texts) > 60
    # Some are the middle of a text, or go on with a number.
    invalid = {text for text in texts for whole in (text, f"{text}0", f"'x{text}0") if any(row.fits(400, _INVALID + whole) for row in ROWS)}
    assert {text for text in texts - invalid if text not in known} == set()


def test_the_gateway_has_no_other_pages():
    source = (ROOT / "src" / "gateway" / "error_page.cc").read_text().partition("Words words_for(")[2].partition('"Unknown trouble"')[0]
    # The first text of each; neighbours are one.
    texts = re.findall(r'return \{[\w()]+,\s*((?:"(?:[^"\\]|\\.)*"\s*)+),', source)
    messages = {"".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)) for text in texts}
    assert len(messages) >= 10
    assert messages <= {row.message for row in ROWS}
