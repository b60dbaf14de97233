# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The Python runner: executes the cells that come in on fd 3. See README.md."""

import os
import sys

# The script's own folder is not on the path of user code; what the package needs later is found
# through its __path__. The empty entry is the current directory, as in an interactive Python.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = _FOLDER

from alcove_runner import loop  # noqa: E402

sys.path[0] = ""

if __name__ == "__main__":
    loop.main()
