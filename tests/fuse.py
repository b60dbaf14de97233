# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A file system in user space that a test runs inside a sandbox, as root: `fuse.py POINT plain` has
an empty directory; `fuse.py POINT hung` never answers, so who asks it for anything cannot even be
killed until it ends; `fuse.py POINT deadlocked` asks itself, in a process that has the file system open,
so that neither ends."""

import textwrap

PROGRAM = textwrap.dedent(
    """
    import ctypes, errno, os, struct, sys
    point, behaviour = sys.argv[1:]
    fd = os.open("/dev/fuse", os.O_RDWR)
    os.makedirs(point, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"test", point.encode(), b"fuse", 0, options) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))

    GETATTR, STATFS, INIT = 3, 17, 26
    NO_ANSWER = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET

    def receive():
        message = os.read(fd, 1 << 20)
        _, opcode, unique = struct.unpack_from("<IIQ", message)
        return opcode, unique

    def answer(unique, body=b"", error=0):
        os.write(fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)

    opcode, unique = receive()
    assert opcode == INIT
    answer(unique, struct.pack("<IIIIHHI", 7, 31, 0, 0, 0, 0, 65536).ljust(64, bytes(1)))
    print("mounted", flush=True)
    if behaviour == "deadlocked" and os.fork() == 0:
        os.stat(point)
    while True:
        opcode, unique = receive()
        if behaviour == "deadlocked":
            print("asked", flush=True)
        if behaviour in ("hung", "deadlocked") or opcode in NO_ANSWER:
            continue
        if opcode == GETATTR:
            attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
            answer(unique, struct.pack("<QII", 1, 0, 0) + attributes)
        elif opcode == STATFS:
            answer(unique, bytes(80))
        else:
            answer(unique, error=errno.ENOSYS)
    """
)
