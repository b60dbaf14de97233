# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What belongs to one team does not exist for another: every route that names something answers a
foreign key exactly as it answers for a name that never was."""

import re
from pathlib import Path

import pytest
from harness import api, assert_error

_ROUTES = Path(__file__).resolve().parents[2] / "src" / "api" / "routes.cc"
_NAMING = [route for route in re.findall(r'\{"(\w+)", "(/[^"]*)", Access::', _ROUTES.read_text()) if "{" in route[1]]
_UNKNOWN = "i" + "0" * 20
# What each route takes; the others take an empty object.
_BODIES = {"timeout": {"timeout": 1}, "connect": {"timeout": 1}, "refreshes": {"duration": 3600}, "fork": {"count": 1}, "network": {"denyOut": ["0.0.0.0/0"]}}
# The protocol has no such thing as an unknown sandbox there.
_EMPTY = {("GET", "/sandboxes/{id}/metrics"): []}
# Nobody can make one of these yet: there is nothing to hide.
_UNBUILT = {"templates": (400, "is not available on this server yet."), "volumes": (403, "are not enabled."), "secrets": (403, "are not enabled.")}


def _ask(method, pattern, name, key):
    path = re.sub(r"\{\w+\}", name, pattern)
    body = _BODIES.get(path.rpartition("/")[2], {}) if method in ("POST", "PUT") else None
    return api(method, path, body, key=key)


@pytest.fixture(scope="module")
def foreign():
    """A sandbox of the first team."""
    reply = api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600, "metadata": {"owner": "first"}})
    assert reply.status == 201, reply.body
    yield reply.json["sandboxID"]
    api("DELETE", f"/sandboxes/{reply.json['sandboxID']}")


def test_all_routes_were_found():
    assert len(_NAMING) > 20 and ("DELETE", "/sandboxes/{id}") in _NAMING


@pytest.mark.parametrize(("method", "pattern"), _NAMING, ids=lambda part: part)
def test_is_told_the_same_as_of_what_never_was(foreign, other_key, method, pattern):
    before = api("GET", f"/sandboxes/{foreign}").json
    theirs, nobodys = (_ask(method, pattern, name, other_key) for name in (foreign, _UNKNOWN))
    kind = pattern.removeprefix("/v2").split("/")[1]
    if (method, pattern) in _EMPTY:
        assert (theirs.status, theirs.json) == (nobodys.status, nobodys.json) == (200, _EMPTY[method, pattern])
    elif kind == "sandboxes":
        assert_error(theirs, 404, f"sandbox '{foreign}' was not found")
    elif (method, pattern) == ("GET", "/templates/aliases/{reference}"):
        assert_error(theirs, 404, f"template '{foreign}' not found")
    else:
        status, text = _UNBUILT[kind]
        assert_error(theirs, status)
        assert theirs.message.endswith(text)
    assert theirs.status == nobodys.status
    assert theirs.body.replace(foreign.encode(), b"") == nobodys.body.replace(_UNKNOWN.encode(), b"")
    assert theirs.headers.keys() == nobodys.headers.keys()
    # And nothing has happened to it.
    assert api("GET", f"/sandboxes/{foreign}").json == before


@pytest.mark.parametrize("suffix", ["-6532622b", "-x"])
def test_old_form_of_the_id_is_no_way_in(foreign, other_key, suffix):
    assert_error(api("GET", f"/sandboxes/{foreign}{suffix}", key=other_key), 404, f"sandbox '{foreign}' was not found")


def test_no_list_shows_it(foreign, other_key):
    for path in ("/sandboxes", "/v2/sandboxes", "/v2/sandboxes?state=running", "/v2/sandboxes?metadata=owner%3Dfirst"):
        assert foreign in [entry["sandboxID"] for entry in api("GET", path).json], path
        assert foreign not in [entry["sandboxID"] for entry in api("GET", path, key=other_key).json], path
    assert api("GET", f"/sandboxes/metrics?sandbox_ids={foreign}", key=other_key).json == {"sandboxes": {}}
    assert api("GET", f"/snapshots?sandboxID={foreign}", key=other_key).json == []


def test_another_teams_page_token_shows_only_ones_own(foreign, created, other_key):
    """A token says where a list goes on, not whose list it is."""
    created()
    token = api("GET", "/v2/sandboxes?limit=1").headers["x-next-token"]
    mine = created(key=other_key)["sandboxID"]
    for order in ("", "&order=desc"):
        shown = api("GET", f"/v2/sandboxes?nextToken={token}{order}", key=other_key)
        assert shown.status == 200 and {entry["sandboxID"] for entry in shown.json} <= {mine}
