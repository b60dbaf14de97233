# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Files by the official client: write, read, list, info, rename, remove, make_dir."""

import datetime
import email
import email.utils
import hashlib
import io
import gzip

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException, SandboxException
from harness import VERSION, got, raises, requires, to_sandbox
from memory import watch_memory
from pattern import Pattern

_has_metadata = requires(2, 40, why="has no file metadata")
_MEBIBYTE = 1 << 20


@pytest.mark.smoke
async def test_text_round_trip(sandbox):
    written = await got(sandbox.files.write("note.txt", "zwölf\n😀"))
    file_type = FileType.FILE if VERSION >= (2, 40) else "file"
    assert (written.name, written.path, written.type) == ("note.txt", "/home/user/note.txt", file_type)
    assert await got(sandbox.files.read("note.txt")) == "zwölf\n😀"
    assert await got(sandbox.files.read("/home/user/note.txt")) == "zwölf\n😀"
    assert (await got(sandbox.commands.run("cat note.txt"))).stdout == "zwölf\n😀"


@pytest.mark.smoke
async def test_bytes_round_trip(sandbox):
    data = bytes(range(256)) * 300
    await got(sandbox.files.write("/tmp/all-bytes", data))
    assert bytes(await got(sandbox.files.read("/tmp/all-bytes", format="bytes"))) == data


async def test_write_makes_parents_and_gives_them_to_the_user(sandbox):
    await got(sandbox.files.write("/srv/new/deep/file", "x"))
    shown = (await got(sandbox.commands.run("stat -c '%U:%G %a' /srv/new /srv/new/deep /srv/new/deep/file"))).stdout
    assert shown.splitlines() == ["user:user 755", "user:user 755", "user:user 644"]


async def test_write_replaces(sandbox):
    await got(sandbox.files.write("f", "a longer first text"))
    await got(sandbox.files.write("f", "short"))
    assert await got(sandbox.files.read("f")) == "short"


@pytest.mark.smoke
async def test_empty_file(sandbox):
    await got(sandbox.files.write("empty", ""))
    assert await got(sandbox.files.read("empty")) == ""
    assert bytes(await got(sandbox.files.read("empty", format="bytes"))) == b""
    assert (await got(sandbox.files.get_info("empty"))).size == 0


async def test_empty_file_as_stream(client, sandbox):
    await got(sandbox.files.write("empty", ""))
    assert b"".join([chunk async for chunk in client.read_stream(sandbox, "empty")]) == b""


@pytest.mark.smoke
async def test_write_many_files(sandbox):
    entries = [{"path": f"/many/{n}/file", "data": f"absolute {n}"} for n in range(5)]
    entries += [{"path": f"many-{n}.txt", "data": f"relative {n}".encode()} for n in range(5)]
    written = await got(sandbox.files.write_files(entries))
    expected = [f"/many/{n}/file" for n in range(5)] + [f"/home/user/many-{n}.txt" for n in range(5)]
    assert [info.path for info in written] == expected
    for entry in entries:
        data = entry["data"]
        content = await got(sandbox.files.read(entry["path"], format="bytes"))
        assert bytes(content) == (data.encode() if isinstance(data, str) else data)


async def test_write_no_files(sandbox):
    assert await got(sandbox.files.write_files([])) == []


async def test_write_file_objects(sandbox):
    await got(sandbox.files.write("b", io.BytesIO(b"\x00binary\xff")))
    await got(sandbox.files.write("t", io.StringIO("täxt")))
    assert bytes(await got(sandbox.files.read("b", format="bytes"))) == b"\x00binary\xff"
    assert await got(sandbox.files.read("t")) == "täxt"


@_has_metadata
@pytest.mark.parametrize("size", [300_000, 3_000_000])
async def test_streams_as_octets(client, sandbox, size):
    data = Pattern(size).read(size)
    written = await got(sandbox.files.write("streamed", io.BytesIO(data)))
    assert (written.path, written.name) == ("/home/user/streamed", "streamed")
    assert bytes(await got(sandbox.files.read("streamed", format="bytes"))) == data
    assert b"".join([chunk async for chunk in client.read_stream(sandbox, "streamed")]) == data


@requires(2, 50, why="has no use_octet_stream")
@pytest.mark.parametrize("octets", [True, False])
async def test_the_way_of_an_upload_can_be_chosen(sandbox, octets):
    for name, data in (("text", "täxt\r\n--x--"), ("bytes", bytes(range(256)))):
        await got(sandbox.files.write(name, data, use_octet_stream=octets))
        expected = data if isinstance(data, bytes) else data.encode()
        assert bytes(await got(sandbox.files.read(name, format="bytes"))) == expected


@requires(2, 63, why="takes no iterators")
async def test_iterators_are_sent_in_chunks(client, sandbox):
    pieces = [b"one", b"", b"two" * 100_000, b"three"]

    async def one_by_one():
        for piece in pieces:
            yield piece

    await got(sandbox.files.write("pieces", iter(pieces) if client.flavour == "sync" else one_by_one()))
    assert bytes(await got(sandbox.files.read("pieces", format="bytes"))) == b"".join(pieces)


@pytest.mark.parametrize("name", ["with space.txt", "ünï😀.txt", "a'b\"c.txt", "per%cent+plus&and#.txt", "-dash", "trailing."])
async def test_odd_names(sandbox, name):
    written = await got(sandbox.files.write(f"/tmp/odd/{name}", name))
    assert written.path == f"/tmp/odd/{name}"
    assert await got(sandbox.files.read(f"/tmp/odd/{name}")) == name
    assert [entry.name for entry in await got(sandbox.files.list("/tmp/odd"))] == [name]


@pytest.mark.skipif(VERSION < (2, 40), reason="has no gzip uploads")
async def test_gzip_both_ways(sandbox):
    text = "compress me " * 1000
    await got(sandbox.files.write("z", text, gzip=True))
    assert (await got(sandbox.commands.run("wc -c < z"))).stdout.strip() == str(len(text))
    assert await got(sandbox.files.read("z", gzip=True)) == text
    assert await got(sandbox.files.read("z")) == text


@pytest.mark.skipif(VERSION < (2, 40), reason="has no gzip uploads")
async def test_gzip_of_bytes_streams_and_several_files(client, sandbox):
    data = bytes(range(256)) * 2000
    await got(sandbox.files.write("bytes", data, gzip=True))
    await got(sandbox.files.write("stream", io.BytesIO(data), gzip=True))
    several = [{"path": f"several/{n}", "data": data[n:]} for n in range(3)]
    written = await got(sandbox.files.write_files(several, gzip=True))
    assert [info.path for info in written] == [f"/home/user/several/{n}" for n in range(3)]
    for path, expected in [("bytes", data), ("stream", data), *((f"several/{n}", data[n:]) for n in range(3))]:
        assert (await got(sandbox.files.get_info(path))).size == len(expected)
        assert bytes(await got(sandbox.files.read(path, format="bytes", gzip=True))) == expected
        assert bytes(await got(sandbox.files.read(path, format="bytes"))) == expected
    reader = await got(sandbox.files.read("bytes", format="stream", gzip=True))
    chunks = list(reader) if client.flavour == "sync" else [chunk async for chunk in reader]
    assert b"".join(chunks) == data


async def test_file_whose_size_is_not_known(sandbox):
    # procfs files stat as size 0.
    boot_id = (await got(sandbox.commands.run("cat /proc/sys/kernel/random/boot_id"))).stdout
    assert await got(sandbox.files.read("/proc/sys/kernel/random/boot_id")) == boot_id
    assert len(boot_id.strip()) == 36


@pytest.mark.smoke
async def test_read_missing_file(client, sandbox):
    with raises(FileNotFoundException, "path '/home/user/none' does not exist"):
        await got(sandbox.files.read("none"))
    with raises(FileNotFoundException):
        await got(sandbox.files.read("none", format="bytes"))
    with raises(FileNotFoundException):
        [chunk async for chunk in client.read_stream(sandbox, "none")]


async def test_read_a_directory(sandbox):
    with raises(InvalidArgumentException):
        await got(sandbox.files.read("/etc"))


async def test_write_onto_a_directory(sandbox):
    with raises(InvalidArgumentException):
        await got(sandbox.files.write("/etc", "x"))


async def test_user_decides_home_and_owner(sandbox):
    written = await got(sandbox.files.write("whose", "x", user="root"))
    assert written.path == "/root/whose"
    assert await got(sandbox.files.read("whose", user="root")) == "x"
    info = await got(sandbox.files.get_info("/root/whose"))
    assert (info.owner, info.group) == ("root", "root")
    assert (await got(sandbox.files.write("~/whose", "x"))).path == "/home/user/whose"


@pytest.mark.smoke
async def test_info_of_a_file(sandbox):
    before = datetime.datetime.now(datetime.timezone.utc)
    await got(sandbox.files.write("f.txt", "12345"))
    info = await got(sandbox.files.get_info("f.txt"))
    assert (info.name, info.path, info.type, info.size) == ("f.txt", "/home/user/f.txt", FileType.FILE, 5)
    assert (info.mode, info.permissions, info.owner, info.group) == (0o644, "-rw-r--r--", "user", "user")
    assert info.symlink_target is None
    # 2.22 gives UTC without saying so.
    utc = datetime.timezone.utc
    modified = info.modified_time if VERSION >= (2, 40) else info.modified_time.replace(tzinfo=utc)
    assert abs((modified - before).total_seconds()) < 30


async def test_info_of_a_directory(sandbox):
    await got(sandbox.files.make_dir("d"))
    info = await got(sandbox.files.get_info("d"))
    assert (info.name, info.path, info.type) == ("d", "/home/user/d", FileType.DIR)
    assert (info.mode, info.permissions, info.owner, info.group) == (0o755, "drwxr-xr-x", "user", "user")


async def test_size_and_time_of_a_directory(sandbox):
    await got(sandbox.files.write("d/f", "x"))
    info = await got(sandbox.files.get_info("d"))
    assert info.size > 0
    seconds = (await got(sandbox.commands.run("stat -c %Y d"))).stdout.strip()
    utc = datetime.timezone.utc
    assert int(info.modified_time.replace(tzinfo=info.modified_time.tzinfo or utc).timestamp()) == int(seconds)


@pytest.mark.parametrize(
    "path, permissions",
    [("/tmp", "dtrwxrwxrwx"), ("/dev/null", "Dcrw-rw-rw-"), ("/usr/bin/sudo", "urwxr-xr-x"), ("fifo", "prw-r--r--")],
)
async def test_permissions_are_written_as_go_does(sandbox, path, permissions):
    await got(sandbox.commands.run("mkfifo fifo"))
    assert (await got(sandbox.files.get_info(path))).permissions == permissions


async def test_info_of_links(sandbox):
    await got(sandbox.files.write("target.txt", "12345"))
    await got(sandbox.commands.run("ln -s target.txt link && ln -s nowhere broken"))
    link = await got(sandbox.files.get_info("link"))
    assert (link.path, link.symlink_target) == ("/home/user/link", "/home/user/target.txt")
    assert link.permissions == "Lrwxrwxrwx"
    # The newest client shows the link itself, older ones what it leads to.
    assert link.type == (FileType.SYMLINK if VERSION >= (2, 55) else FileType.FILE)
    assert (await got(sandbox.files.get_info("broken"))).symlink_target == "/home/user/broken"


async def test_links_to_directories_and_the_rest(sandbox):
    await got(sandbox.commands.run("mkdir d && ln -s d link && mkfifo fifo && ln -s loop loop"))
    link = await got(sandbox.files.get_info("link"))
    assert (link.symlink_target, link.mode) == ("/home/user/d", 0o755)
    assert link.type == (FileType.SYMLINK if VERSION >= (2, 55) else FileType.DIR)
    assert (await got(sandbox.files.get_info("loop"))).symlink_target == "/home/user/loop"
    listed = {entry.name: entry.type for entry in await got(sandbox.files.list("."))}
    # What is neither file nor directory has no type, and the client leaves it out.
    assert "fifo" not in listed and listed["d"] == FileType.DIR and listed["link"] == link.type
    with raises(SandboxException, "cyclic symlink"):
        await got(sandbox.files.list("loop"))


async def test_info_of_a_missing_file(sandbox):
    with raises(FileNotFoundException):
        await got(sandbox.files.get_info("none"))


@pytest.mark.smoke
async def test_exists(sandbox):
    await got(sandbox.files.write("f", "x"))
    assert await got(sandbox.files.exists("f")) is True
    assert await got(sandbox.files.exists("/tmp")) is True
    assert await got(sandbox.files.exists("none")) is False


@pytest.mark.smoke
async def test_list_is_sorted_and_complete(sandbox):
    for name in ("b/2", "b/1", "a", "C", "b/inner/deep"):
        await got(sandbox.files.write(f"/tmp/tree/{name}", name))
    entries = await got(sandbox.files.list("/tmp/tree"))
    assert [(entry.name, entry.type) for entry in entries] == [
        ("C", FileType.FILE),
        ("a", FileType.FILE),
        ("b", FileType.DIR),
    ]
    first = entries[0]
    assert (first.path, first.size, first.mode, first.owner) == ("/tmp/tree/C", 1, 0o644, "user")


@pytest.mark.parametrize(
    "depth, expected",
    [
        (1, ["a", "b", "c"]),
        (2, ["a", "b", "b/1", "b/inner", "c"]),
        (3, ["a", "b", "b/1", "b/inner", "b/inner/deep", "c"]),
        (9, ["a", "b", "b/1", "b/inner", "b/inner/deep", "c"]),
    ],
)
async def test_list_depth_in_preorder(sandbox, depth, expected):
    for name in ("b/1", "a", "c", "b/inner/deep"):
        await got(sandbox.files.write(f"/tmp/tree/{name}", name))
    entries = await got(sandbox.files.list("/tmp/tree", depth=depth))
    assert [entry.path.removeprefix("/tmp/tree/") for entry in entries] == expected


async def test_list_through_a_link_keeps_the_asked_path(sandbox):
    await got(sandbox.files.write("/tmp/real/f", "x"))
    await got(sandbox.commands.run("ln -s /tmp/real /tmp/alias"))
    assert [entry.path for entry in await got(sandbox.files.list("/tmp/alias"))] == ["/tmp/alias/f"]


async def test_list_home_by_default(sandbox):
    await got(sandbox.files.write("visible", "x"))
    assert "visible" in [entry.name for entry in await got(sandbox.files.list(""))]
    assert "visible" in [entry.name for entry in await got(sandbox.files.list("~"))]


async def test_list_what_cannot_be_listed(sandbox):
    with raises(FileNotFoundException):
        await got(sandbox.files.list("none"))
    await got(sandbox.files.write("f", "x"))
    with raises(InvalidArgumentException):
        await got(sandbox.files.list("f"))
    with raises(InvalidArgumentException):
        await got(sandbox.files.list("~root"))


async def test_depth_of_none_is_refused(sandbox):
    with raises(InvalidArgumentException, "depth should be at least 1"):
        await got(sandbox.files.list("/", depth=0))


async def test_entries_of_a_list_are_complete(sandbox):
    await got(sandbox.files.write("/tmp/l/f", "12345"))
    await got(sandbox.files.make_dir("/tmp/l/sub"))
    directory, file = sorted(await got(sandbox.files.list("/tmp/l")), key=lambda entry: entry.name, reverse=True)
    assert (file.mode, file.permissions, file.owner, file.group, file.size) == (0o644, "-rw-r--r--", "user", "user", 5)
    assert (directory.mode, directory.permissions, directory.owner) == (0o755, "drwxr-xr-x", "user")
    assert file.symlink_target is None and file.modified_time.year >= 2024 and directory.modified_time.year >= 2024


@pytest.mark.smoke
async def test_make_dir(sandbox):
    assert await got(sandbox.files.make_dir("x/y/z")) is True
    assert await got(sandbox.files.make_dir("x/y/z")) is False
    assert (await got(sandbox.files.get_info("x/y"))).owner == "user"
    await got(sandbox.files.write("f", "x"))
    with raises(InvalidArgumentException):
        await got(sandbox.files.make_dir("f"))
    with raises(SandboxException):
        await got(sandbox.files.make_dir("f/below"))


@pytest.mark.smoke
async def test_rename(sandbox):
    await got(sandbox.files.write("old", "text"))
    info = await got(sandbox.files.rename("old", "new/place"))
    assert (info.name, info.path, info.size) == ("place", "/home/user/new/place", 4)
    assert await got(sandbox.files.exists("old")) is False
    assert await got(sandbox.files.read("new/place")) == "text"
    await got(sandbox.files.write("other", "2"))
    await got(sandbox.files.rename("other", "new/place"))
    assert await got(sandbox.files.read("new/place")) == "2"
    with raises(FileNotFoundException):
        await got(sandbox.files.rename("none", "anywhere"))


@pytest.mark.smoke
async def test_remove(sandbox):
    await got(sandbox.files.write("dir/deep/f", "x"))
    await got(sandbox.files.remove("dir"))
    assert await got(sandbox.files.exists("dir")) is False
    await got(sandbox.files.remove("dir"))
    await got(sandbox.commands.run("echo x > kept && ln -s kept link"))
    await got(sandbox.files.remove("link"))
    assert await got(sandbox.files.read("kept")) == "x\n"


@_has_metadata
async def test_metadata_is_kept_on_the_file(sandbox):
    written = await got(sandbox.files.write("f", "x", metadata={"Author": "me", "note": "a b"}))
    expected = {"author": "me", "note": "a b"}
    assert written.metadata == expected
    assert (await got(sandbox.files.get_info("f"))).metadata == expected
    assert (await got(sandbox.files.list(".")))[-1].metadata == expected
    assert (await got(sandbox.files.rename("f", "g"))).metadata == expected
    # A later write without metadata clears it.
    assert (await got(sandbox.files.write("g", "y"))).metadata is None
    assert (await got(sandbox.files.get_info("g"))).metadata is None


@_has_metadata
async def test_metadata_of_several_files(sandbox):
    files = [{"path": f"m/{n}", "data": str(n)} for n in range(3)]
    written = await got(sandbox.files.write_files(files, metadata={"Kind": "test", "n": "1"}))
    expected = {"kind": "test", "n": "1"}
    assert [info.metadata for info in written] == [expected] * 3
    assert [entry.metadata for entry in await got(sandbox.files.list("m"))] == [expected] * 3


@_has_metadata
@pytest.mark.parametrize("metadata", [{"": "x"}, {"a b": "x"}, {"k": "new\nline"}, {"k": "ümlaut"}], ids=repr)
async def test_metadata_that_is_none_leaves_no_file(sandbox, metadata):
    with raises(InvalidArgumentException):
        await got(sandbox.files.write("refused", "x", metadata=metadata))
    assert await got(sandbox.files.exists("refused")) is False


@_has_metadata
async def test_too_much_metadata_leaves_no_file(sandbox):
    for metadata in ({"k": "x" * 5000}, {"k" * 247: "x"}):
        with raises(InvalidArgumentException):
            await got(sandbox.files.write("refused", "x", metadata=metadata))
    assert await got(sandbox.files.exists("refused")) is False


@_has_metadata
async def test_metadata_that_a_program_inside_sets(sandbox):
    await got(sandbox.files.write("f", "x"))
    await got(sandbox.commands.run("python3 -c 'import os; os.setxattr(\"f\", \"user.e2b.author\", b\"inside\")'"))
    assert (await got(sandbox.files.get_info("f"))).metadata == {"author": "inside"}


@pytest.mark.limit(180)
async def test_hundred_megabytes_stream_in_flat_memory(client, make_sandbox):
    sandbox = await make_sandbox(timeout=300)
    size = 100 * _MEBIBYTE
    # Before the measured transfer one small one, so that buffers and connections exist.
    await got(sandbox.files.write("/tmp/warm", b"x" * _MEBIBYTE))
    source = io.BufferedReader(Pattern(size), buffer_size=_MEBIBYTE)
    with watch_memory() as memory:
        await got(sandbox.files.write("/tmp/big", source))
        digest, total = hashlib.sha256(), 0
        async for chunk in client.read_stream(sandbox, "/tmp/big"):
            digest.update(chunk)
            total += len(chunk)
    assert total == size
    assert digest.digest() == source.raw.digest.digest()
    inside = (await got(sandbox.commands.run("sha256sum < /tmp/big"))).stdout.split()[0]
    assert inside == digest.hexdigest()
    assert memory.growth("alcove") < 24 * _MEBIBYTE, memory
    assert memory.growth("alcove-agent") < 8 * _MEBIBYTE, memory


@pytest.mark.wire
def test_gzip_body_of_a_plain_upload(created):
    box = created()
    token = {"X-Access-Token": box["envdAccessToken"]}
    upload = to_sandbox(
        "POST",
        "/files?path=/tmp/z&username=user",
        box["sandboxID"],
        body=gzip.compress(b"unpacked"),
        headers=token | {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"},
    )
    assert (upload.status, upload.json) == (200, [{"path": "/tmp/z", "name": "z", "type": "file"}])
    download = to_sandbox("GET", "/files?path=/tmp/z&username=user", box["sandboxID"], headers=token)
    assert (download.status, download.body) == (200, b"unpacked")


@pytest.mark.wire
def test_part_of_a_file(created):
    box = created()
    token = {"X-Access-Token": box["envdAccessToken"]}
    octets = {"Content-Type": "application/octet-stream"}
    to_sandbox("POST", "/files?path=/tmp/f&username=user", box["sandboxID"], body=b"0123456789", headers=token | octets)
    part = to_sandbox("GET", "/files?path=/tmp/f&username=user", box["sandboxID"], headers=token | {"Range": "bytes=2-4"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")


@pytest.mark.wire
def test_conditional_downloads(created):
    box = created()
    token = {"X-Access-Token": box["envdAccessToken"]}
    octets = {"Content-Type": "application/octet-stream"}
    to_sandbox("POST", "/files?path=/tmp/f.txt&username=user", box["sandboxID"], body=b"0123456789", headers=token | octets)

    def download(method="GET", **headers):
        fields = token | {name.replace("_", "-"): value for name, value in headers.items()}
        return to_sandbox(method, "/files?path=/tmp/f.txt&username=user", box["sandboxID"], headers=fields)

    plain = download()
    modified = plain.headers["last-modified"]
    then = email.utils.parsedate_to_datetime(modified)
    earlier, later = (email.utils.format_datetime(then + datetime.timedelta(hours=h), usegmt=True) for h in (-1, 1))
    assert (plain.status, plain.headers["accept-ranges"], plain.headers["vary"]) == (200, "bytes", "Accept-Encoding, Origin")
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    assert plain.headers["content-disposition"] == "inline; filename=f.txt"
    assert "etag" not in plain.headers
    assert (download(If_Modified_Since=modified).status, download(If_Modified_Since=modified).body) == (304, b"")
    assert download(If_Modified_Since=later).status == 304
    assert download(If_Modified_Since=earlier).body == b"0123456789"
    assert download(If_Unmodified_Since=modified).status == 200
    assert download(If_Unmodified_Since=earlier).status == 412
    # There are no entity tags, so none matches.
    assert download(If_Match='"x"').status == 412
    assert download(If_None_Match='"x"').status == 200
    assert download(If_None_Match="*").status == 304
    # A part only of the file as it was then.
    assert download(Range="bytes=0-1", If_Range=modified).status == 206
    assert download(Range="bytes=0-1", If_Range=earlier).status == 200
    assert download(Range="bytes=5-", If_Range='"x"').body == b"0123456789"
    assert download("HEAD").status == 405


@pytest.mark.wire
def test_encodings_of_a_download(created):
    box = created()
    token = {"X-Access-Token": box["envdAccessToken"]}
    octets = {"Content-Type": "application/octet-stream"}
    content = b"again and " * 1000
    to_sandbox("POST", "/files?path=/tmp/f&username=user", box["sandboxID"], body=content, headers=token | octets)

    def download(accept, **headers):
        fields = token | {"Accept-Encoding": accept} | headers
        return to_sandbox("GET", "/files?path=/tmp/f&username=user", box["sandboxID"], headers=fields)

    reply = download("gzip")
    assert (reply.headers["content-encoding"], gzip.decompress(reply.body)) == ("gzip", content)
    for accept in ("gzip, deflate", "br, gzip, deflate", "*", "identity", "", "zstd"):
        reply = download(accept)
        assert (reply.status, reply.headers.get("content-encoding"), reply.body) == (200, None, content), accept
    assert download("identity;q=0, gzip").headers["content-encoding"] == "gzip"
    assert download("identity;q=0").status == 406
    assert download("*;q=0").status == 406
    # A range is one of the plain bytes.
    assert download("gzip", Range="bytes=0-4").body == b"again"
    assert download("gzip, identity;q=0", Range="bytes=0-4").status == 406


@pytest.mark.wire
@pytest.mark.parametrize("size", [1000, 3_000_000], ids=["small", "large"])
def test_several_parts_of_a_file(created, size):
    box = created()
    token = {"X-Access-Token": box["envdAccessToken"]}
    octets = {"Content-Type": "application/octet-stream"}
    content = (b"0123456789abcde\n" * (size // 16 + 1))[:size]
    to_sandbox("POST", "/files?path=/tmp/f&username=user", box["sandboxID"], body=content, headers=token | octets)

    def download(ranges):
        return to_sandbox("GET", "/files?path=/tmp/f&username=user", box["sandboxID"], headers=token | {"Range": ranges})

    reply = download(f"bytes=700-900, 0-4,{size}-,-7")
    assert (reply.status, reply.headers["content-length"]) == (206, str(len(reply.body)))
    assert "content-range" not in reply.headers
    # The standard library reads the parts as any client would.
    message = email.message_from_bytes(b"Content-Type: " + reply.headers["content-type"].encode() + b"\r\n\r\n" + reply.body)
    assert message.get_content_type() == "multipart/byteranges"
    parts = [(part["Content-Range"], part["Content-Type"], part.get_payload().encode()) for part in message.get_payload()]
    plain = "text/plain; charset=utf-8"
    assert parts == [
        (f"bytes 700-900/{size}", plain, content[700:901]),
        (f"bytes 0-4/{size}", plain, content[:5]),
        (f"bytes {size - 7}-{size - 1}/{size}", plain, content[-7:]),
    ]

    # What would make the answer longer than the file gets the file; as does a flood of ranges.
    for greedy in ("bytes=0-,0-", "bytes=" + ",".join(f"{n}-{n}" for n in range(200))):
        reply = download(greedy)
        assert (reply.status, reply.body) == (200, content)
    reply = download(f"bytes={size}-,{size + 5}-")
    assert (reply.status, reply.headers["content-range"]) == (416, f"bytes */{size}")
