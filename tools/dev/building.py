# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Configures and compiles a preset of CMakePresets.json into build/<preset>."""

import os

import cache
import console
import paths

PRESETS = ("release", "debug", "asan", "tsan", "ubsan")


def build(preset="release", targets=()):
    directory = paths.build_dir(preset)
    log = directory / "configure.log"
    log.unlink(missing_ok=True)
    with console.timed(f"building {preset}"):
        console.run(["cmake", "--preset", preset], cwd=paths.ROOT, env=_environ(), log=log)
        console.run(["ninja", "-C", directory, *targets], env=_environ())
    return directory


def _environ():
    return dict(
        os.environ,
        CCACHE_DIR=str(cache.folder("ccache")),
        # Hits must survive a move of the checkout: CI builds in a fresh clone.
        CCACHE_BASEDIR=str(paths.ROOT),
        CCACHE_NOHASHDIR="1",
        NINJA_STATUS="[%f/%t %es] ",
    )
