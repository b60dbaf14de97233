# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Every method of sandbox.git, with a git daemon (git://) and an HTTP server with passwords in the
sandbox as the other side."""

import textwrap

import pytest
from e2b import CommandExitException, GitAuthException, GitUpstreamException, InvalidArgumentException
from harness import eventually, got, raises

_REPO = "/tmp/test-git/repo"
_SERVED = "/tmp/test-git/served"
_AUTHOR = {"author_name": "Ada", "author_email": "ada@example.com"}
_USER, _PASSWORD = "ada", "s3cret"

# `git http-backend` behind a password.
_HTTP_SERVER = textwrap.dedent(
    f"""
    import base64, http.server, os, subprocess
    WANTED = "Basic " + base64.b64encode(b"{_USER}:{_PASSWORD}").decode()
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.headers.get("Authorization") != WANTED:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environ = dict(os.environ, GIT_PROJECT_ROOT="{_SERVED}", GIT_HTTP_EXPORT_ALL="1",
                           PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=self.command,
                           REMOTE_USER="{_USER}", CONTENT_TYPE=self.headers.get("Content-Type", ""),
                           HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = subprocess.run(["git", "http-backend"], input=body, env=environ, stdout=subprocess.PIPE).stdout
            head, _, content = reply.partition(b"\\r\\n\\r\\n")
            fields = [line.split(": ", 1) for line in head.decode().split("\\r\\n")]
            self.send_response(next((int(v.split()[0]) for n, v in fields if n == "Status"), 200))
            for name, value in fields:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        do_POST = do_GET
    http.server.ThreadingHTTPServer(("127.0.0.1", 8418), Handler).serve_forever()
    """
)


async def _run(sandbox, command, **options):
    return (await got(sandbox.commands.run(command, **options))).stdout


async def _commit(sandbox, path, name, text, message):
    """Writes a file through the agent and commits it."""
    await got(sandbox.files.write(f"{path}/{name}", text))
    await got(sandbox.git.add(path))
    await got(sandbox.git.commit(path, message, **_AUTHOR))


async def _start(sandbox, command, port):
    """A server in the background, once it takes connections."""
    await got(sandbox.commands.run(command, background=True, timeout=0))

    async def answers():
        return "up" in await _run(sandbox, f"(: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null && echo up || true")

    assert await eventually(answers, within=20)


@pytest.fixture
def repo(sandbox, run_now):
    """A sandbox with a repository of one commit on `main`."""

    async def prepare():
        await got(sandbox.git.init(_REPO, initial_branch="main"))
        await _commit(sandbox, _REPO, "README.md", "hello\n", "first")

    run_now(prepare())
    return sandbox


@pytest.fixture
def remote(repo, run_now):
    """The same with an empty bare repository, which a git daemon serves."""

    async def prepare():
        await got(repo.git.init(f"{_SERVED}/project.git", bare=True, initial_branch="main"))
        options = "--reuseaddr --export-all --enable=receive-pack --listen=127.0.0.1 --port=9418"
        await _start(repo, f"git daemon {options} --base-path={_SERVED} {_SERVED}", 9418)

    run_now(prepare())
    return repo


@pytest.fixture
def guarded(repo, run_now):
    """The same behind HTTP with a password."""

    async def prepare():
        served = f"{_SERVED}/project.git"
        await got(repo.git.init(served, bare=True, initial_branch="main"))
        await _run(repo, f"git -C {served} config http.receivepack true")
        await got(repo.files.write("/tmp/test-git/server.py", _HTTP_SERVER))
        await _start(repo, "python3 /tmp/test-git/server.py 2> /dev/null", 8418)

    run_now(prepare())
    return repo


_GIT_URL = "git://127.0.0.1:9418/project.git"
_HTTP_URL = "http://127.0.0.1:8418/project.git"


async def test_init(sandbox):
    result = await got(sandbox.git.init(_REPO, initial_branch="trunk"))
    assert result.exit_code == 0
    assert "Initialized empty Git repository" in result.stdout
    assert await _run(sandbox, f"cat {_REPO}/.git/HEAD") == "ref: refs/heads/trunk\n"
    await got(sandbox.git.init("bare.git", bare=True, cwd="/tmp"))
    assert await _run(sandbox, "git -C /tmp/bare.git rev-parse --is-bare-repository") == "true\n"
    # Files of the agent belong to the user, or git would refuse the repository.
    await got(sandbox.files.write(f"{_REPO}/a", "1"))
    assert (await got(sandbox.git.status(_REPO))).current_branch == "trunk"


async def test_init_as_another_user(sandbox):
    await got(sandbox.git.init("/root/mine", user="root"))
    assert await _run(sandbox, "stat -c %U /root/mine/.git", user="root") == "root\n"


async def test_status_of_all_kinds(repo):
    clean = await got(repo.git.status(_REPO))
    assert (clean.current_branch, clean.upstream, clean.detached, clean.is_clean) == ("main", None, False, True)

    await _commit(repo, _REPO, "gone", "1\n2\n3\n4\n", "more")
    await _run(repo, "printf 'a\\nb\\nc\\nd\\n' > old && git add old && git commit -qm old", cwd=_REPO, envs=_identity())
    await _run(repo, "rm gone; git mv old new; echo more >> README.md; echo x > staged; echo y > 'un tracked'", cwd=_REPO)
    await got(repo.git.add(_REPO, files=["staged"]))
    status = await got(repo.git.status(_REPO))
    found = {each.name: (each.status, each.index_status, each.working_tree_status, each.staged) for each in status.file_status}
    assert found == {
        "README.md": ("modified", " ", "M", False),
        "gone": ("deleted", " ", "D", False),
        "new": ("renamed", "R", " ", True),
        "staged": ("added", "A", " ", True),
        '"un tracked"': ("untracked", "?", "?", False),
    }
    assert {each.name: each.renamed_from for each in status.file_status if each.renamed_from} == {"new": "old"}
    assert (status.total_count, status.staged_count, status.unstaged_count, status.untracked_count) == (5, 2, 3, 1)
    assert status.has_staged and status.has_untracked and status.has_changes and not status.has_conflicts


async def test_status_with_a_conflict(repo):
    await got(repo.git.create_branch(_REPO, "other"))
    await _commit(repo, _REPO, "README.md", "theirs\n", "theirs")
    await got(repo.git.checkout_branch(_REPO, "main"))
    await _commit(repo, _REPO, "README.md", "ours\n", "ours")
    with raises(CommandExitException) as info:
        await got(repo.commands.run("git merge other", cwd=_REPO, envs=_identity()))
    assert "CONFLICT" in info.value.stdout
    status = await got(repo.git.status(_REPO))
    assert (status.has_conflicts, status.conflict_count) == (True, 1)


async def test_status_of_a_detached_head(repo):
    await _run(repo, "git checkout -q --detach", cwd=_REPO)
    status = await got(repo.git.status(_REPO))
    assert (status.detached, status.current_branch) == (True, None)


async def test_status_outside_of_a_repository(sandbox):
    with raises(CommandExitException) as info:
        await got(sandbox.git.status("/tmp"))
    assert info.value.exit_code == 128
    # In English, whatever the sandbox's locale: the client compares such texts.
    assert "not a git repository" in info.value.stderr


async def test_add_chooses_files(repo):
    await _run(repo, "touch a b; rm README.md", cwd=_REPO)

    async def staged():
        return {each.name for each in (await got(repo.git.status(_REPO))).file_status if each.staged}

    await got(repo.git.add(_REPO, files=["a"]))
    assert await staged() == {"a"}
    await got(repo.git.add(_REPO, all=False))
    assert await staged() == {"a", "b", "README.md"}
    await got(repo.git.reset(_REPO))
    await got(repo.git.add(_REPO))
    assert await staged() == {"a", "b", "README.md"}
    with raises(CommandExitException) as info:
        await got(repo.git.add(_REPO, files=["missing"]))
    assert "did not match any files" in info.value.stderr


async def test_commit(repo):
    message = "second: it's \"quoted\" $HOME `id`\n\nbody ünï"
    await got(repo.git.commit(_REPO, message, **_AUTHOR, allow_empty=True))
    logged = await _run(repo, "git log -1 --format='%an|%ae|%cn|%B'", cwd=_REPO)
    assert logged.rstrip("\n") == f"Ada|ada@example.com|Ada|{message}"
    with raises(CommandExitException) as info:
        await got(repo.git.commit(_REPO, "nothing", **_AUTHOR))
    assert "nothing to commit" in info.value.stdout
    # The author of one commit is not remembered.
    with raises(CommandExitException) as info:
        await got(repo.git.commit(_REPO, "nobody", allow_empty=True))
    assert "Please tell me who you are" in info.value.stderr


@pytest.mark.smoke
async def test_branches(repo):
    await got(repo.git.create_branch(_REPO, "feature"))
    branches = await got(repo.git.branches(_REPO))
    assert (branches.branches, branches.current_branch) == (["feature", "main"], "feature")
    await _commit(repo, _REPO, "new", "1", "work")
    await got(repo.git.checkout_branch(_REPO, "main"))
    assert (await got(repo.git.branches(_REPO))).current_branch == "main"
    with raises(CommandExitException) as info:
        await got(repo.git.delete_branch(_REPO, "feature"))
    assert "not fully merged" in info.value.stderr
    await got(repo.git.delete_branch(_REPO, "feature", force=True))
    assert (await got(repo.git.branches(_REPO))).branches == ["main"]
    with raises(CommandExitException):
        await got(repo.git.checkout_branch(_REPO, "nowhere"))
    with raises(CommandExitException):
        await got(repo.git.create_branch(_REPO, "main"))


@pytest.mark.smoke
async def test_reset_in_all_modes(repo):
    await _commit(repo, _REPO, "file", "one\n", "one")
    await _commit(repo, _REPO, "file", "two\n", "two")

    async def state():
        status = await got(repo.git.status(_REPO))
        content = await got(repo.files.read(f"{_REPO}/file"))
        return [(each.index_status, each.working_tree_status) for each in status.file_status], content

    await got(repo.git.reset(_REPO, mode="soft", target="HEAD~1"))
    assert await state() == ([("M", " ")], "two\n")
    await got(repo.git.reset(_REPO, mode="mixed"))
    assert await state() == ([(" ", "M")], "two\n")
    await got(repo.git.add(_REPO))
    await got(repo.git.reset(_REPO, paths=["file"]))
    assert await state() == ([(" ", "M")], "two\n")
    await got(repo.git.reset(_REPO, mode="hard"))
    assert await state() == ([], "one\n")
    await got(repo.git.reset(_REPO, mode="keep", target="HEAD~1"))
    assert not await got(repo.files.exists(f"{_REPO}/file"))
    await got(repo.git.reset(_REPO, mode="merge", target="ORIG_HEAD"))
    assert await state() == ([], "one\n")
    with raises(InvalidArgumentException, "Reset mode must be one of"):
        await got(repo.git.reset(_REPO, mode="wild"))
    with raises(CommandExitException) as info:
        await got(repo.git.reset(_REPO, mode="hard", target="nowhere"))
    assert info.value.exit_code == 128


@pytest.mark.smoke
async def test_restore(repo):
    await _commit(repo, _REPO, "README.md", "second\n", "second")

    async def change():
        await got(repo.files.write(f"{_REPO}/README.md", "changed\n"))
        await got(repo.git.add(_REPO))

    async def state():
        status = await got(repo.git.status(_REPO))
        content = await got(repo.files.read(f"{_REPO}/README.md"))
        return [(each.index_status, each.working_tree_status) for each in status.file_status], content

    await change()
    await got(repo.git.restore(_REPO, ["README.md"], staged=True))
    assert await state() == ([(" ", "M")], "changed\n")
    await got(repo.git.restore(_REPO, ["."]))
    assert await state() == ([], "second\n")
    await change()
    await got(repo.git.restore(_REPO, ["README.md"], staged=True, worktree=True))
    assert await state() == ([], "second\n")
    await got(repo.git.restore(_REPO, ["README.md"], worktree=True, source="HEAD~1"))
    assert await state() == ([(" ", "M")], "hello\n")
    with raises(InvalidArgumentException, "At least one path"):
        await got(repo.git.restore(_REPO, []))
    with raises(InvalidArgumentException, "staged or worktree"):
        await got(repo.git.restore(_REPO, ["."], staged=False, worktree=False))
    with raises(CommandExitException):
        await got(repo.git.restore(_REPO, ["missing"]))


@pytest.mark.smoke
async def test_remotes(remote):
    assert await got(remote.git.remote_get(_REPO, "origin")) is None
    await got(remote.git.remote_add(_REPO, "origin", "git://127.0.0.1/elsewhere.git"))
    assert await got(remote.git.remote_get(_REPO, "origin")) == "git://127.0.0.1/elsewhere.git"
    with raises(CommandExitException) as info:
        await got(remote.git.remote_add(_REPO, "origin", _GIT_URL))
    assert "remote origin already exists" in info.value.stderr
    await _run(remote, f"git push -q {_GIT_URL} main", cwd=_REPO)
    await got(remote.git.remote_add(_REPO, "origin", _GIT_URL, overwrite=True, fetch=True))
    assert await got(remote.git.remote_get(_REPO, "origin")) == _GIT_URL
    assert await _run(remote, "git branch -r", cwd=_REPO) == "  origin/main\n"
    await got(remote.git.remote_add(_REPO, "second", _GIT_URL, fetch=True))
    assert "second/main" in await _run(remote, "git branch -r", cwd=_REPO)
    with raises(InvalidArgumentException):
        await got(remote.git.remote_add(_REPO, "", _GIT_URL))
    with raises(InvalidArgumentException):
        await got(remote.git.remote_get(_REPO, ""))


@pytest.mark.smoke
async def test_push_clone_and_pull(remote):
    await got(remote.git.remote_add(_REPO, "origin", _GIT_URL))
    await got(remote.git.push(_REPO, remote="origin", branch="main"))
    status = await got(remote.git.status(_REPO))
    assert (status.upstream, status.ahead, status.behind) == ("origin/main", 0, 0)

    await got(remote.git.clone(_GIT_URL, "/tmp/test-git/clone"))
    assert await got(remote.files.read("/tmp/test-git/clone/README.md")) == "hello\n"
    assert await got(remote.git.remote_get("/tmp/test-git/clone", "origin")) == _GIT_URL

    await _commit(remote, _REPO, "README.md", "changed\n", "second")
    assert (await got(remote.git.status(_REPO))).ahead == 1
    # With an upstream neither a remote nor a branch needs to be named.
    await got(remote.git.push(_REPO))
    await got(remote.git.pull("/tmp/test-git/clone"))
    assert await got(remote.files.read("/tmp/test-git/clone/README.md")) == "changed\n"
    await _commit(remote, _REPO, "third", "3", "third")
    await got(remote.git.push(_REPO, remote="origin", branch="main", set_upstream=False))
    await got(remote.git.pull("/tmp/test-git/clone", remote="origin", branch="main"))
    assert await got(remote.files.read("/tmp/test-git/clone/third")) == "3"
    await _run(remote, "git -C /tmp/test-git/clone reset -q --hard HEAD~2")
    assert (await got(remote.git.status("/tmp/test-git/clone"))).behind == 2


async def test_clone_of_one_branch_and_depth(remote):
    await _commit(remote, _REPO, "README.md", "changed\n", "second")
    await got(remote.git.create_branch(_REPO, "feature"))
    await got(remote.git.remote_add(_REPO, "origin", _GIT_URL))
    await got(remote.git.push(_REPO, remote="origin", branch="main"))
    await got(remote.git.push(_REPO, remote="origin", branch="feature"))
    result = await got(remote.git.clone(_GIT_URL, branch="feature", depth=1, cwd="/tmp/test-git"))
    assert "Cloning into 'project'" in result.stderr
    branches = await got(remote.git.branches("/tmp/test-git/project"))
    assert (branches.branches, branches.current_branch) == (["feature"], "feature")
    assert await _run(remote, "git rev-list --count HEAD", cwd="/tmp/test-git/project") == "1\n"


async def test_clone_failures(remote):
    # The daemon's answer: access denied or repository not exported.
    with raises(GitAuthException, "Git clone requires credentials"):
        await got(remote.git.clone("git://127.0.0.1:9418/missing.git", "/tmp/test-git/clone"))
    with raises(CommandExitException) as info:
        await got(remote.git.clone("git://127.0.0.1:1/project.git", "/tmp/test-git/clone"))
    assert "unable to connect" in info.value.stderr
    with raises(InvalidArgumentException, "Username is required"):
        await got(remote.git.clone(_HTTP_URL, password="x"))
    with raises(InvalidArgumentException, "Only http(s)"):
        await got(remote.git.clone(_GIT_URL, username="x", password="x"))


async def test_missing_upstream(remote):
    await got(remote.git.remote_add(_REPO, "origin", _GIT_URL))
    with raises(GitUpstreamException, "no upstream branch is configured"):
        await got(remote.git.push(_REPO))
    with raises(GitUpstreamException, "no upstream branch is configured"):
        await got(remote.git.pull(_REPO))
    await got(remote.git.push(_REPO, remote="origin", branch="main", set_upstream=False))
    assert (await got(remote.git.status(_REPO))).upstream is None


async def test_credentials_over_http(guarded):
    credentials = {"username": _USER, "password": _PASSWORD}
    await got(guarded.git.remote_add(_REPO, "origin", _HTTP_URL))
    await got(guarded.git.push(_REPO, remote="origin", branch="main", **credentials))
    # What was used for one call is not kept.
    assert await got(guarded.git.remote_get(_REPO, "origin")) == _HTTP_URL
    await got(guarded.git.clone(_HTTP_URL, cwd="/tmp/test-git", **credentials))
    assert await got(guarded.git.remote_get("/tmp/test-git/project", "origin")) == _HTTP_URL
    await got(guarded.git.clone(_HTTP_URL, "/tmp/test-git/kept", dangerously_store_credentials=True, **credentials))
    stored = f"http://{_USER}:{_PASSWORD}@127.0.0.1:8418/project.git"
    assert await got(guarded.git.remote_get("/tmp/test-git/kept", "origin")) == stored

    await _commit(guarded, _REPO, "README.md", "changed\n", "second")
    # The only remote is found by itself.
    await got(guarded.git.push(_REPO, **credentials))
    await got(guarded.git.pull("/tmp/test-git/project", **credentials))
    assert await got(guarded.files.read("/tmp/test-git/project/README.md")) == "changed\n"
    await got(guarded.git.pull("/tmp/test-git/kept"))
    assert await got(guarded.files.read("/tmp/test-git/kept/README.md")) == "changed\n"

    await got(guarded.git.remote_add(_REPO, "second", _HTTP_URL))
    with raises(InvalidArgumentException, "multiple remotes"):
        await got(guarded.git.push(_REPO, **credentials))


async def test_refused_credentials(guarded):
    await got(guarded.git.remote_add(_REPO, "origin", _HTTP_URL))
    # Nobody is asked: there is no terminal, and git says so at once.
    with raises(GitAuthException, "Git clone requires credentials"):
        await got(guarded.git.clone(_HTTP_URL, "/tmp/test-git/clone"))
    with raises(GitAuthException, "Git clone requires a password/token"):
        await got(guarded.git.clone(_HTTP_URL, "/tmp/test-git/clone", username=_USER))
    with raises(GitAuthException):
        await got(guarded.git.clone(_HTTP_URL, "/tmp/test-git/clone", username=_USER, password="wrong"))
    with raises(GitAuthException, "Git push requires credentials"):
        await got(guarded.git.push(_REPO, remote="origin", branch="main"))
    with raises(GitAuthException, "Git pull requires credentials"):
        await got(guarded.git.pull(_REPO, remote="origin", branch="main"))
    # With credentials the client passes git's own failure on, and still takes them out of the remote.
    with raises(CommandExitException) as info:
        await got(guarded.git.push(_REPO, branch="main", username=_USER, password="wrong"))
    assert "Authentication failed" in info.value.stderr
    assert await got(guarded.git.remote_get(_REPO, "origin")) == _HTTP_URL
    for call in (guarded.git.push, guarded.git.pull):
        with raises(InvalidArgumentException, "Username is required"):
            await got(call(_REPO, password="x"))


@pytest.mark.smoke
async def test_dangerously_authenticate(guarded):
    await got(guarded.git.dangerously_authenticate(_USER, _PASSWORD, host="127.0.0.1:8418", protocol="http"))
    assert await got(guarded.git.get_config("credential.helper")) == "store"
    assert await got(guarded.files.read("/home/user/.git-credentials")) == f"http://{_USER}:{_PASSWORD}@127.0.0.1%3a8418\n"
    await got(guarded.git.remote_add(_REPO, "origin", _HTTP_URL))
    await got(guarded.git.push(_REPO, remote="origin", branch="main"))
    await got(guarded.git.clone(_HTTP_URL, "/tmp/test-git/clone"))
    assert await got(guarded.files.read("/tmp/test-git/clone/README.md")) == "hello\n"
    with raises(InvalidArgumentException, "Both username and password"):
        await got(guarded.git.dangerously_authenticate(_USER, ""))


@pytest.mark.smoke
async def test_config_scopes(repo):
    git = repo.git
    assert await got(git.get_config("pull.rebase")) is None
    await got(git.set_config("pull.rebase", "false"))
    assert await got(git.get_config("pull.rebase")) == "false"
    assert await _run(repo, "git config --file /home/user/.gitconfig pull.rebase") == "false\n"
    await got(git.set_config("pull.rebase", "true", scope="local", path=_REPO))
    assert await got(git.get_config("pull.rebase", scope="local", path=_REPO)) == "true"
    assert await got(git.get_config("pull.rebase")) == "false"
    await got(git.set_config("alcove.test", "two words", scope="system", user="root"))
    assert await got(git.get_config("alcove.test", scope="system")) == "two words"
    with raises(CommandExitException) as info:
        await got(git.set_config("alcove.test", "x", scope="system"))
    assert "Permission denied" in info.value.stderr
    with raises(InvalidArgumentException, "Repository path is required"):
        await got(git.set_config("a.b", "x", scope="local"))
    with raises(InvalidArgumentException, "scope must be one of"):
        await got(git.get_config("a.b", scope="galaxy"))
    for call in (git.get_config, lambda key: git.set_config(key, "x")):
        with raises(InvalidArgumentException, "key is required"):
            await got(call(""))


@pytest.mark.smoke
async def test_configure_user(repo):
    await got(repo.git.configure_user("Grace", "grace@example.com"))
    await got(repo.git.commit(_REPO, "as configured", allow_empty=True))
    assert await _run(repo, "git log -1 --format='%an <%ae>'", cwd=_REPO) == "Grace <grace@example.com>\n"
    await got(repo.git.configure_user("Here", "here@example.com", scope="local", path=_REPO))
    await got(repo.git.commit(_REPO, "locally", allow_empty=True))
    assert await _run(repo, "git log -1 --format='%an <%ae>'", cwd=_REPO) == "Here <here@example.com>\n"
    with raises(InvalidArgumentException, "Both name and email"):
        await got(repo.git.configure_user("Grace", ""))


async def test_options_of_the_commands_are_passed_on(repo):
    await got(repo.git.commit(_REPO, "by variables", allow_empty=True, envs=_identity()))
    assert await _run(repo, "git log -1 --format=%an", cwd=_REPO) == "Eve\n"
    status = await got(repo.git.status("repo", cwd="/tmp/test-git"))
    assert status.current_branch == "main"


def _identity():
    return {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", "Eve"), ("EMAIL", "eve@example.com"))}
