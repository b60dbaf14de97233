# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the server does not have is refused by name, and the client tells its user so."""

import e2b
import pytest
from harness import got, raises, requires

pytestmark = [pytest.mark.smoke, requires(2, 0, why="has none of this")]

_UNBUILT = "is not available on this server yet."
_VOLUMES = "403: Volumes are not enabled."
_SECRETS = "403: Secrets are not enabled."
_BUILDS = f"400: building a template {_UNBUILT}"
_TAGS = f"400: tagging a template {_UNBUILT}"

_has_secrets = pytest.mark.skipif(not hasattr(e2b, "Secret"), reason="the client has no secrets")


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
    if not hasattr(sandbox, method):
        pytest.skip("the client has no such method")
    with raises(e2b.SandboxException, text):
        await got(getattr(sandbox, method)(*arguments))
    # What is refused changes nothing.
    assert await got(sandbox.is_running()) is True


@pytest.mark.skipif(not hasattr(e2b.Sandbox, "beta_create"), reason="the client has no beta_create")
async def test_of_a_create(client):
    """What `create` takes, it takes too; that pauses are not there yet is said by it too."""
    sandbox = await got(client.Sandbox.beta_create(timeout=60))
    try:
        assert (await got(sandbox.commands.run("echo made"))).stdout == "made\n"
    finally:
        await got(sandbox.kill())
    with raises(e2b.SandboxException, f"400: autoPause {_UNBUILT}"):
        await got(client.Sandbox.beta_create(timeout=60, auto_pause=True))


async def test_there_are_no_snapshots(client):
    assert await got(client.Sandbox.list_snapshots().next_items()) == []


async def test_unknown_snapshot_is_not_deleted(client):
    assert await got(client.Sandbox.delete_snapshot("no-such-snapshot")) is False


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("create", ("x",)), ("list", ()), ("connect", ("x",)), ("get_info", ("x",)), ("destroy", ("x",))],
)
async def test_volumes(kind, method, arguments):
    with raises(e2b.VolumeException, _VOLUMES):
        await got(getattr(kind("Volume"), method)(*arguments))


@_has_secrets
@pytest.mark.parametrize(
    ("method", "arguments"),
    [("create", ("x", "y")), ("get_info", ("x",)), ("update", ("x", "y")), ("destroy", ("x",)), ("exists", ("x",))],
)
async def test_secrets(kind, method, arguments):
    with raises(e2b.SecretException, _SECRETS):
        await got(getattr(kind("Secret"), method)(*arguments))


@_has_secrets
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
