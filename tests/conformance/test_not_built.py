# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the server does not have is refused by name, and the client tells its user so."""

import e2b
import pytest
from harness import got, raises, requires

pytestmark = requires(2, 40, why="has no secrets, forks and snapshots")

_UNBUILT = "is not available on this server yet."
_VOLUMES = "403: Volumes are not enabled."
_SECRETS = "403: Secrets are not enabled."
_BUILDS = f"400: building a template {_UNBUILT}"
_TAGS = f"400: tagging a template {_UNBUILT}"


@pytest.fixture
def kind(client):
    """A function that gives a class of the package in the client's flavour."""
    return lambda name: getattr(e2b, name if client.flavour == "sync" else f"Async{name}")


@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("pause", (), f"400: pause {_UNBUILT}"),
        ("beta_pause", (), f"400: pause {_UNBUILT}"),
        ("fork", (), f"400: fork {_UNBUILT}"),
        ("create_snapshot", (), f"400: snapshot {_UNBUILT}"),
        ("update_network", ({"deny_out": ["0.0.0.0/0"]},), f"400: network {_UNBUILT}"),
    ],
)
async def test_of_a_sandbox(sandbox, method, arguments, text):
    with raises(e2b.SandboxException, text):
        await got(getattr(sandbox, method)(*arguments))
    # What is refused changes nothing.
    assert await got(sandbox.is_running()) is True


async def test_unknown_snapshot_is_not_deleted(client):
    assert await got(client.Sandbox.delete_snapshot("no-such-snapshot")) is False


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("create", ("x",)), ("list", ()), ("connect", ("x",)), ("get_info", ("x",)), ("destroy", ("x",))],
)
async def test_volumes(kind, method, arguments):
    with raises(e2b.VolumeException, _VOLUMES):
        await got(getattr(kind("Volume"), method)(*arguments))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("create", ("x", "y")), ("get_info", ("x",)), ("update", ("x", "y")), ("destroy", ("x",)), ("exists", ("x",))],
)
async def test_secrets(kind, method, arguments):
    with raises(e2b.SecretException, _SECRETS):
        await got(getattr(kind("Secret"), method)(*arguments))


async def test_list_of_secrets(kind):
    with raises(e2b.SecretException, _SECRETS):
        await got(kind("Secret").list().next_items())


@pytest.mark.parametrize("method", ["build", "build_in_background"])
async def test_building_a_template(kind, method):
    Template = kind("Template")
    with raises(e2b.BuildException, _BUILDS):
        await got(getattr(Template, method)(Template().from_image("debian:13").run_cmd("true"), "mine"))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("get_tags", ("base",)), ("assign_tags", ("base:default", "v1")), ("remove_tags", ("base", "v1"))],
)
async def test_tagging_a_template(kind, method, arguments):
    with raises(e2b.TemplateException, _TAGS):
        await got(getattr(kind("Template"), method)(*arguments))


@pytest.mark.parametrize("method", ["exists", "alias_exists"])
async def test_templates_that_exist_are_found(kind, method):
    """Though none can be built here, those of the server can be asked for."""
    found = getattr(kind("Template"), method)
    assert await got(found("base")) is True
    assert await got(found("base:default")) is True
    assert await got(found("no-such-template")) is False
