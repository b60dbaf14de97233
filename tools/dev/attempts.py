# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Work whose parts do not depend on each other: what stops one of them does not stop the rest."""

import console


class Attempts:
    """Goes on after a failure; finish() tells all of them."""

    def __init__(self):
        self.errors = []

    def run(self, step, *args):
        """The step's result, or None if it failed."""
        try:
            return step(*args)
        except (console.DevError, OSError) as error:
            self.errors.append(str(error))
            return None

    def finish(self):
        if self.errors:
            raise console.DevError("\n".join(self.errors))
