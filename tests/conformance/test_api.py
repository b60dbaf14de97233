# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The REST API by plain HTTP: what it accepts, what it refuses, and with which words."""

import datetime
import json
import time

import pytest
from harness import API_KEY, SANDBOX_ID, TEMPLATE_ID, TIMESTAMP, api, assert_error, request

pytestmark = pytest.mark.wire

_NOT_YET = " is not available on this server yet."


def _seconds_to_live(info):
    return (_time(info["endAt"]) - _time(info["startedAt"])).total_seconds()


def _time(text):
    assert TIMESTAMP.fullmatch(text), text
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_health():
    reply = request("GET", "/health")
    assert (reply.status, reply.body) == (200, b"Health check successful")


# --- create ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
def test_shape_of_a_created_sandbox(created, path):
    box = created(path)
    assert SANDBOX_ID.fullmatch(box["sandboxID"])
    assert TEMPLATE_ID.fullmatch(box["templateID"])
    assert box["envdVersion"] == "0.6.13"
    assert isinstance(box["clientID"], str) and box["clientID"]
    assert box.get("alias") == "base"
    assert "trafficAccessToken" not in box or box["trafficAccessToken"] is None


def test_old_route_defaults(created):
    box = created("/sandboxes")
    assert "envdAccessToken" not in box
    info = api("GET", f"/sandboxes/{box['sandboxID']}").json
    assert _seconds_to_live(info) == pytest.approx(15, abs=0.01)
    assert "envdAccessToken" not in info


def test_new_route_defaults(created):
    box = created("/v2/sandboxes")
    assert len(box["envdAccessToken"]) >= 32
    info = api("GET", f"/sandboxes/{box['sandboxID']}").json
    assert _seconds_to_live(info) == pytest.approx(300, abs=0.01)
    assert info["envdAccessToken"] == box["envdAccessToken"]


def test_old_route_can_be_secure(created):
    assert created("/sandboxes", secure=True)["envdAccessToken"]
    assert "envdAccessToken" not in created("/sandboxes", secure=False)


def test_new_route_is_always_secure(created):
    assert created("/v2/sandboxes", secure=False)["envdAccessToken"]


def test_tokens_are_stable_and_differ(created):
    first, second = created(), created()
    again = api("POST", f"/v2/sandboxes/{first['sandboxID']}/connect", {}).json
    assert again["envdAccessToken"] == first["envdAccessToken"] != second["envdAccessToken"]


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
def test_chunked_body(created, path):
    # JS clients send every JSON body chunked, without a length.
    reply = api("POST", path, {"templateID": "base", "metadata": {"k": "v"}}, chunked=True)
    assert reply.status == 201, reply.body
    assert api("GET", f"/sandboxes/{reply.json['sandboxID']}").json["metadata"] == {"k": "v"}
    assert api("DELETE", f"/sandboxes/{reply.json['sandboxID']}").status == 204


def test_unknown_fields_are_ignored(created):
    assert created(somethingFromTheFuture={"a": 1})


def test_mcp_is_accepted(created):
    assert created(mcp={"duckduckgo": {}})


def test_template_by_id_and_by_odd_spelling(created):
    template = created()["templateID"]
    assert created(templateID=template)["templateID"] == template
    assert created(templateID=" BASE:default ")["templateID"] == template


def test_unknown_template():
    assert_error(api("POST", "/v2/sandboxes", {"templateID": "nope"}), 404, "template 'nope' not found")


def test_unknown_tag():
    reply = api("POST", "/v2/sandboxes", {"templateID": "base:v9"})
    assert_error(reply, 404)
    assert reply.message.startswith("tag 'v9' does not exist for template 'base")


@pytest.mark.parametrize("reference", ["", "a b", "a/b/c", "base:", "ünï", ":tag", "/base"])
def test_malformed_template_reference(reference):
    assert_error(api("POST", "/v2/sandboxes", {"templateID": reference}), 400)


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
@pytest.mark.parametrize(
    "fields",
    [
        {"templateID": 7},
        {"templateID": None},
        {"timeout": "60"},
        {"timeout": 1.5},
        {"timeout": -1},
        {"timeout": 2**40},
        {"metadata": ["a"]},
        {"metadata": {"a": 1}},
        {"envVars": "A=b"},
        {"envVars": {"A": None}},
        {"allow_internet_access": "yes"},
        {"network": []},
        {"network": {"allowPublicTraffic": "no"}},
        {"autoPause": "true"},
        {"autoResume": True},
        {"volumeMounts": {}},
        {"iam": "x"},
        {"mcp": []},
    ],
    ids=json.dumps,
)
def test_wrong_types(path, fields):
    reply = api("POST", path, {"templateID": "base"} | fields)
    assert_error(reply, 400)
    assert reply.message.startswith("validation error: "), reply.message


def test_missing_template():
    reply = api("POST", "/v2/sandboxes", {})
    assert_error(reply, 400)
    assert reply.message.startswith("validation error: ")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"{'templateID':'base'}", b'{"templateID":"base"} x', b'\xff\xfe', b"[" * 5000]
)
def test_malformed_json(body):
    assert_error(api("POST", "/v2/sandboxes", body), 400)


def test_huge_body_is_refused():
    reply = api("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"k": "x" * (17 << 20)}})
    assert reply.status in (400, 413)
    assert_error(reply, reply.status)


@pytest.mark.parametrize("timeout", [0, 24 * 3600 + 1])
@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
def test_timeout_out_of_range(path, timeout):
    assert_error(api("POST", path, {"templateID": "base", "timeout": timeout}), 400)


def test_longest_timeout(created):
    box = created(timeout=24 * 3600)
    assert _seconds_to_live(api("GET", f"/sandboxes/{box['sandboxID']}").json) == pytest.approx(86400, abs=0.01)


@pytest.mark.parametrize(
    "variables", [{"": "x"}, {"A=B": "x"}, {"A\0B": "x"}, {"A": "x\0y"}], ids=["empty", "equals", "nul in name", "nul in value"]
)
def test_variables_that_no_process_can_have(variables):
    assert_error(api("POST", "/v2/sandboxes", {"templateID": "base", "envVars": variables}), 400)


# --- what is not built yet ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
@pytest.mark.parametrize(
    "field, value",
    [
        ("allowOut", ["1.1.1.1"]),
        ("denyOut", ["0.0.0.0/0"]),
        ("rules", {"example.com": [{"transform": {"headers": {"a": "b"}}}]}),
        ("dnsServers", ["8.8.8.8"]),
    ],
)
def test_network_field_not_built(path, field, value):
    reply = api("POST", path, {"templateID": "base", "secure": True, "network": {field: value}})
    assert_error(reply, 400)
    assert reply.message in (f"{field}{_NOT_YET}", f"network.{field}{_NOT_YET}")


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
@pytest.mark.parametrize(
    "field, fields",
    [
        ("autoPause", {"autoPause": True}),
        ("autoPause", {"autoPause": True, "autoPauseMemory": True}),
        ("autoPause", {"autoPause": True, "autoPauseMemory": False}),
        ("autoResume", {"autoResume": {"enabled": True}}),
        ("iam", {"iam": {"tokens": {"aws": {"audience": "sts", "tokenType": "JWT-SVID"}}}}),
    ],
)
def test_field_not_built(path, field, fields):
    assert_error(api("POST", path, {"templateID": "base"} | fields), 400, f"{field}{_NOT_YET}")


def test_egress_proxy_is_refused():
    body = {"templateID": "base", "network": {"egressProxy": {"address": "proxy.example.com:1080"}}}
    assert_error(api("POST", "/v2/sandboxes", body), 403)


def test_volume_mounts_are_off():
    body = {"templateID": "base", "volumeMounts": [{"name": "v", "path": "/mnt/v"}]}
    assert_error(api("POST", "/v2/sandboxes", body), 400, "Volume mounts are not enabled.")


@pytest.mark.parametrize(
    "fields",
    [
        {"autoPause": False},
        {"autoPause": False, "autoPauseMemory": True},
        {"autoResume": {"enabled": False}},
        {"network": {}},
        {"network": {"allowPublicTraffic": True}},
        {"network": {"egressProxy": None}},
        {"mcp": None},
        {"volumeMounts": []},
        {"iam": {"tokens": {}}},
        {"allow_internet_access": True},
    ],
    ids=json.dumps,
)
def test_the_same_fields_switched_off_are_accepted(created, fields):
    assert created(**fields)


def test_memory_of_a_pause_that_is_not_asked_for():
    assert_error(api("POST", "/v2/sandboxes", {"templateID": "base", "autoPauseMemory": False}), 400)


@pytest.mark.parametrize(
    "method, route, body",
    [
        ("POST", "pause", {}),
        ("POST", "pause", None),
        ("POST", "fork", {"count": 1}),
        ("POST", "snapshots", {}),
        ("PUT", "network", {"denyOut": ["0.0.0.0/0"]}),
        ("PUT", "network", {}),
    ],
)
def test_route_not_built(created, method, route, body):
    box = created()
    reply = api(method, f"/sandboxes/{box['sandboxID']}/{route}", body)
    assert_error(reply, 400)
    assert reply.message.endswith(_NOT_YET)
    assert api("GET", f"/sandboxes/{box['sandboxID']}").json["state"] == "running"


@pytest.mark.parametrize("body", [{"timeout": 10}, None])
def test_resume_of_what_runs(created, body):
    box = created()
    id, end = box["sandboxID"], api("GET", f"/sandboxes/{box['sandboxID']}").json["endAt"]
    assert_error(api("POST", f"/sandboxes/{id}/resume", body), 409, "The sandbox is running already.")
    assert api("GET", f"/sandboxes/{id}").json["endAt"] == end


def test_snapshots_are_an_empty_list(created):
    box = created()
    for query in ("", "?limit=10", f"?sandboxID={box['sandboxID']}", "?name=x"):
        reply = api("GET", f"/snapshots{query}")
        assert (reply.status, reply.json) == (200, [])
        assert "x-next-token" not in reply.headers


def test_volumes_and_secrets_are_off():
    assert_error(api("POST", "/volumes", {"name": "v"}), 403)
    for method, path, body in (
        ("GET", "/secrets", None),
        ("POST", "/secrets", {"name": "s", "value": "v"}),
        ("GET", "/secrets/s", None),
        ("DELETE", "/secrets/s", None),
    ):
        assert_error(api(method, path, body), 403)


def test_unknown_route_and_method():
    assert_error(api("GET", "/no/such/route"), 404)
    assert_error(api("PATCH", "/sandboxes"), 405)


# --- keys and teams -------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "", "e2b_" + "0" * 40, "e2b_xyz", API_KEY + "0", API_KEY[:-1], API_KEY.upper()])
@pytest.mark.parametrize(
    "method, path", [("GET", "/v2/sandboxes"), ("POST", "/v2/sandboxes"), ("GET", "/sandboxes/iaaaaaaaaaaaaaaaaaaaa"), ("GET", "/snapshots")]
)
def test_bad_key(method, path, key):
    body = {"templateID": "base"} if method == "POST" else None
    assert_error(api(method, path, body, key=key), 401)


def test_another_team_sees_nothing(created, other_key):
    box = created()["sandboxID"]
    for method, route, body in (
        ("GET", "", None),
        ("POST", "/timeout", {"timeout": 1}),
        ("POST", "/connect", {"timeout": 1}),
        ("POST", "/refreshes", {"duration": 1}),
        ("DELETE", "", None),
    ):
        assert_error(api(method, f"/sandboxes/{box}{route}", body, key=other_key), 404)
    assert_error(api("POST", f"/v2/sandboxes/{box}/connect", {}, key=other_key), 404)
    for path in ("/sandboxes", "/v2/sandboxes"):
        assert box not in [entry["sandboxID"] for entry in api("GET", path, key=other_key).json]
    assert api("GET", f"/sandboxes/{box}").status == 200


def test_teams_have_their_own_sandboxes(created, other_key):
    theirs = created(key=other_key)["sandboxID"]
    assert_error(api("GET", f"/sandboxes/{theirs}"), 404)
    assert api("GET", f"/sandboxes/{theirs}", key=other_key).status == 200


def test_each_key_is_told_its_own_team(other_key):
    for key, name in ((API_KEY, "default"), (other_key, "neighbours")):
        reply = api("GET", "/teams", key=key)
        (team,) = reply.json
        assert reply.status == 200 and set(team) == {"teamID", "name", "apiKey", "isDefault"}
        assert (team["name"], team["apiKey"], team["isDefault"]) == (name, key, True)
        # The CLI shows an access token where the SDKs show a key.
        assert request("GET", "/teams", headers={"Authorization": f"Bearer {key}"}).json == reply.json
    assert api("GET", "/teams").json[0]["teamID"] != api("GET", "/teams", key=other_key).json[0]["teamID"]
    assert_error(request("GET", "/teams", headers={"Authorization": "Bearer e2b_00"}), 401)


def test_common_templates_are_everybodys(other_key):
    def base(key, query=""):
        reply = api("GET", f"/templates{query}", key=key)
        assert reply.status == 200 and all(entry["public"] is True for entry in reply.json)
        (found,) = [entry for entry in reply.json if entry["names"] == ["base"]]
        return found

    assert base(API_KEY) == base(other_key) and base(API_KEY)["buildStatus"] == "ready"
    teams = [api("GET", "/teams", key=key).json[0]["teamID"] for key in (API_KEY, other_key)]
    # The CLI asks by team; only its own is listed.
    assert base(API_KEY, f"?teamID={teams[0]}") == base(API_KEY)
    assert_error(api("GET", f"/templates?teamID={teams[1]}"), 400, "teamID is not the team of this API key")


# --- one sandbox ----------------------------------------------------------------------------------


def test_info_has_every_field(created):
    box = created(timeout=100, metadata={"k": "v"}, allow_internet_access=False)
    info = api("GET", f"/sandboxes/{box['sandboxID']}").json
    assert info["sandboxID"] == box["sandboxID"]
    assert info["templateID"] == box["templateID"]
    assert info["clientID"] == box["clientID"]
    assert info["state"] == "running"
    assert info["envdVersion"] == "0.6.13"
    assert (info["cpuCount"], info["memoryMB"]) == (2, 1024)
    assert isinstance(info["diskSizeMB"], int) and info["diskSizeMB"] == 10240
    assert info["metadata"] == {"k": "v"}
    assert info["allowInternetAccess"] is False
    assert info["lifecycle"] == {"autoResume": False, "onTimeout": "kill"}
    assert _seconds_to_live(info) == pytest.approx(100, abs=0.01)
    # null breaks the Python client here.
    assert info.get("network", {}) is not None


def test_info_without_metadata(created):
    info = api("GET", f"/sandboxes/{created()['sandboxID']}").json
    assert info.get("metadata", {}) == {}
    assert "allowInternetAccess" not in info


@pytest.mark.parametrize("sandbox_id", ["nonexistingsandbox", "iaaaaaaaaaaaaaaaaaaaa", "iaaaaaaaaaaaaaaaaaaaa-6532622b"])
def test_unknown_sandbox(sandbox_id):
    for method, path, body in (
        ("GET", f"/sandboxes/{sandbox_id}", None),
        ("DELETE", f"/sandboxes/{sandbox_id}", None),
        ("POST", f"/sandboxes/{sandbox_id}/timeout", {"timeout": 10}),
        ("POST", f"/sandboxes/{sandbox_id}/connect", {"timeout": 10}),
        ("POST", f"/v2/sandboxes/{sandbox_id}/connect", {}),
    ):
        assert_error(api(method, path, body), 404)


@pytest.mark.parametrize("sandbox_id", ["UPPER", "a-b-c", "with_underscore", "a%2Fb", "a.b", "%C3%BC"])
def test_malformed_id(sandbox_id):
    assert_error(api("GET", f"/sandboxes/{sandbox_id}"), 400, "Invalid sandbox ID")
    assert_error(api("DELETE", f"/sandboxes/{sandbox_id}"), 400, "Invalid sandbox ID")


def test_id_with_suffix(created):
    box = created()["sandboxID"]
    assert api("GET", f"/sandboxes/{box}-6532622b").json["sandboxID"] == box
    assert api("POST", f"/sandboxes/{box}-anything1/timeout", {"timeout": 20}).status == 204
    assert api("DELETE", f"/sandboxes/{box}-6532622b").status == 204


def test_kill_is_empty_204(created):
    reply = api("DELETE", f"/sandboxes/{created()['sandboxID']}")
    assert (reply.status, reply.body) == (204, b"")


def test_connect_routes(created):
    box = created(timeout=1000)
    end = api("GET", f"/sandboxes/{box['sandboxID']}").json["endAt"]
    for path, body in (
        (f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 10}),
        (f"/v2/sandboxes/{box['sandboxID']}/connect", {}),
        (f"/v2/sandboxes/{box['sandboxID']}/connect", {"timeout": 60, "memory": False}),
        (f"/v2/sandboxes/{box['sandboxID']}/connect", None),
    ):
        reply = api("POST", path, body)
        assert reply.status == 200
        assert reply.json["sandboxID"] == box["sandboxID"]
        assert reply.json["envdAccessToken"] == box["envdAccessToken"]
        # A shorter time leaves the end exactly as it was.
        assert api("GET", f"/sandboxes/{box['sandboxID']}").json["endAt"] == end


def test_connect_needs_a_timeout_on_the_old_route(created):
    box = created()["sandboxID"]
    assert_error(api("POST", f"/sandboxes/{box}/connect", {}), 400)
    assert_error(api("POST", f"/sandboxes/{box}/connect", {"timeout": 24 * 3600 + 1}), 400)


@pytest.mark.parametrize("body", [{}, {"timeout": -1}, {"timeout": "1"}, [], b"{"])
def test_bad_timeout_request(created, body):
    assert_error(api("POST", f"/sandboxes/{created()['sandboxID']}/timeout", body), 400)


def test_timeout_is_capped_at_the_longest_life(created):
    box = created()["sandboxID"]
    assert api("POST", f"/sandboxes/{box}/timeout", {"timeout": 10 * 86400}).status == 204
    assert _seconds_to_live(api("GET", f"/sandboxes/{box}").json) <= 86400


def test_refreshes_never_shorten(created):
    box = created(timeout=500)["sandboxID"]
    end = api("GET", f"/sandboxes/{box}").json["endAt"]
    assert api("POST", f"/sandboxes/{box}/refreshes", {"duration": 10}).status == 204
    assert api("GET", f"/sandboxes/{box}").json["endAt"] == end
    assert api("POST", f"/sandboxes/{box}/refreshes", {"duration": 3000}).status == 204
    assert _time(api("GET", f"/sandboxes/{box}").json["endAt"]) > _time(end)
    assert_error(api("POST", f"/sandboxes/{box}/refreshes", {"duration": 3601}), 400)


# --- lists ----------------------------------------------------------------------------------------


@pytest.fixture
def mark():
    return f"m{time.time_ns()}"


def _ids(reply):
    assert reply.status == 200, reply.body
    return [entry["sandboxID"] for entry in reply.json]


def test_list_pages_and_headers(created, mark):
    made = [created(metadata={"mark": mark})["sandboxID"] for _ in range(3)]
    query = f"/v2/sandboxes?metadata=mark%3D{mark}"
    whole = api("GET", query)
    assert _ids(whole) == made[::-1]
    assert whole.headers["x-total-running"] == "3"
    assert "x-next-token" not in whole.headers
    first = api("GET", f"{query}&limit=2")
    assert (_ids(first), first.headers["x-total-running"]) == (made[:0:-1], "3")
    token = first.headers["x-next-token"]
    second = api("GET", f"{query}&limit=2&nextToken={token}")
    assert _ids(second) == [made[0]]
    assert "x-next-token" not in second.headers
    # A page token belongs to one order.
    assert_error(api("GET", f"{query}&limit=2&order=asc&nextToken={token}"), 400)


def test_page_that_ends_exactly(created, mark):
    made = [created(metadata={"mark": mark})["sandboxID"] for _ in range(2)]
    reply = api("GET", f"/v2/sandboxes?metadata=mark%3D{mark}&limit=2")
    assert _ids(reply) == made[::-1]
    assert "x-next-token" not in reply.headers


def test_sandboxes_that_come_and_go_do_not_disturb_the_pages(created, mark):
    made = [created(metadata={"mark": mark})["sandboxID"] for _ in range(4)]
    query = f"/v2/sandboxes?metadata=mark%3D{mark}&limit=2"
    first = api("GET", query)
    created(metadata={"mark": mark})
    api("DELETE", f"/sandboxes/{made[2]}")
    assert _ids(api("GET", f"{query}&nextToken={first.headers['x-next-token']}")) == [made[1], made[0]]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=-1",
        "order=up",
        "state=sleeping",
        "state=running,sleeping",
        "nextToken=garbage",
        "metadata=novalue",
        "metadata=a%3Db%3Dc",
        "startedAfter=yesterday",
        "template=base%3Av1",
    ],
)
def test_bad_list_query(query):
    assert_error(api("GET", f"/v2/sandboxes?{query}"), 400)


def test_metadata_filter_is_encoded_three_times(created):
    value = created(metadata={"my key": "a&b=c d"})["sandboxID"]
    for path in ("/sandboxes", "/v2/sandboxes"):
        found = _ids(api("GET", f"{path}?metadata=my%252520key%3Da%252526b%25253Dc%252520d"))
        assert value in found


def test_states_in_one_query(created, mark):
    box = created(metadata={"mark": mark})["sandboxID"]
    query = f"/v2/sandboxes?metadata=mark%3D{mark}"
    assert _ids(api("GET", f"{query}&state=running,paused")) == [box]
    assert _ids(api("GET", f"{query}&state=running")) == [box]
    paused = api("GET", f"{query}&state=paused")
    assert _ids(paused) == []
    assert "x-total-running" not in paused.headers


def test_started_after_in_both_spellings(created, mark):
    box = created(metadata={"mark": mark})["sandboxID"]
    started = _time(api("GET", f"/sandboxes/{box}").json["startedAt"])
    query = f"/v2/sandboxes?metadata=mark%3D{mark}&startedAfter="
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    same = started.astimezone(zone).isoformat().replace("+", "%2B")
    assert _ids(api("GET", query + same)) == [box]
    later = (started + datetime.timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    earlier = (started - datetime.timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert _ids(api("GET", query + later)) == []
    assert _ids(api("GET", query + earlier)) == [box]


def test_old_list_has_running_sandboxes_newest_first(created, mark):
    made = [created(metadata={"mark": mark})["sandboxID"] for _ in range(2)]
    assert _ids(api("GET", f"/sandboxes?metadata=mark%3D{mark}")) == made[::-1]


def test_listed_fields(created, mark):
    box = created(metadata={"mark": mark})
    (entry,) = api("GET", f"/v2/sandboxes?metadata=mark%3D{mark}").json
    expected = {"sandboxID", "templateID", "clientID", "startedAt", "endAt", "cpuCount", "memoryMB", "diskSizeMB", "state", "envdVersion"}
    assert expected <= set(entry)
    assert entry["templateID"] == box["templateID"]
    assert TIMESTAMP.fullmatch(entry["startedAt"]) and TIMESTAMP.fullmatch(entry["endAt"])
    assert "envdAccessToken" not in entry
