# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Keeps a network namespace alive: holder.py NAME. Says when it runs, and ends with its starter."""

import sys

print("ready", flush=True)
sys.stdin.read()
