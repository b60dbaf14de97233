# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Parts of the Python runner."""
