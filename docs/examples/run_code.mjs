// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create()

// Variables, imports and functions live on from one run to the next.
await sandbox.runCode("prices = {'pear': 3, 'apple': 2}")
let execution = await sandbox.runCode('print(len(prices)); sum(prices.values())')
console.log(execution.logs.stdout, execution.text)

// The code's own errors are no exceptions here.
execution = await sandbox.runCode("prices['plum']")
console.log(execution.error.name, execution.error.value)
console.log(execution.error.traceback.split('\n').at(-1))

await sandbox.kill()
