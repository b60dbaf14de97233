# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Charts of matplotlib figures as data."""


def extract(figure):
    return {}
