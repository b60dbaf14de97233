# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The package managers and git as people use them, over HTTPS against registries of the world."""

import e2b
import pytest
from bed import addresses as a
from bed import goods


def test_pip_installs_a_package_with_its_dependency(trusting_box):
    trusting_box.run(f"pip install --index-url https://{a.PYPI}/simple/ python-dateutil")
    shown = trusting_box.run("python3 -c 'import dateutil, six; print(dateutil.__version__, six.__version__)'")
    assert shown == "2.9.0.post0 1.17.0\n"


def test_npm_installs_a_package_with_its_dependency(trusting_box):
    trusting_box.run(f"mkdir app && cd app && npm install --registry https://{a.NPM}/ is-odd")
    shown = trusting_box.run("""cd app && node -e 'console.log(require("is-odd")(3), require("is-number/package.json").version)'""")
    assert shown == "true 6.0.0\n"


@pytest.mark.parametrize("scheme", ["https", "git"])
def test_git_clones(trusting_box, scheme):
    trusting_box.run(f"git clone {scheme}://{a.GIT}/{goods.REPOSITORY} cloned")
    assert trusting_box.run("cat cloned/README.md") == f"revision {goods.COMMITS}\n"
    assert trusting_box.run("git -C cloned rev-list --count HEAD").strip() == str(goods.COMMITS)


def test_apt_installs_a_package_with_its_dependency(trusting_box):
    trusting_box.run("rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*", user="root")
    source = f"deb [trusted=yes] https://{a.DEBIAN}/ ./"
    trusting_box.sandbox.files.write("/etc/apt/sources.list", f"{source}\n", user="root")
    trusting_box.run(f"sudo apt-get update && sudo apt-get install -y {goods.OWN_PACKAGE}")
    assert trusting_box.run("greet-from-bed") == "greetings from the test bed\n"


def test_a_sandbox_does_not_trust_what_its_user_did_not(box):
    """Neither the host's trust nor another sandbox's gets in."""
    with pytest.raises(e2b.CommandExitException) as info:
        box.run(f"curl -sS --max-time 10 https://{a.FILES}/hello")
    assert info.value.exit_code == 60, info.value.stderr
