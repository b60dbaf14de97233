# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The stage of `./dev test` that builds all of `code-interpreter-v1` and uses it."""

import client_stages
import console
import results


def run(*, extra=()):
    counts = results.Counts()
    server = client_stages.TestServer(slim=False)
    try:
        server.start()
        server.wait_until_ready()
        counts = client_stages.full_template(server.environ(), extra=extra)
    finally:
        for text in server.close():
            console.say(text)
            counts.failed += 1
    return counts
