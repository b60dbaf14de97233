# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The test bed: a made-up internet in network namespaces of its own.

Two namespaces are joined by a pair of virtual devices: the "host", where the server under test, its
relay and the tests run, and the "world", which has the public addresses of `addresses.py` and on
them a name server, package registries, git, downloads and echoes. Nothing else is within reach."""
