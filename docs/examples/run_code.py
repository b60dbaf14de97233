# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
from e2b_code_interpreter import Sandbox

with Sandbox.create() as sandbox:
    # Variables, imports and functions live on from one run to the next.
    sandbox.run_code("prices = {'pear': 3, 'apple': 2}")
    execution = sandbox.run_code("print(len(prices)); sum(prices.values())")
    print(execution.logs.stdout, execution.text)

    # The code's own errors are no exceptions here.
    execution = sandbox.run_code("prices['plum']")
    print(execution.error.name, execution.error.value)
    print(execution.error.traceback.splitlines()[-1])
