// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create()

// Each context has its own process, variables and working directory.
await sandbox.files.makeDir('work')
const context = await sandbox.createCodeContext({ cwd: '/home/user/work' })
await sandbox.runCode('x = 1')
await sandbox.runCode('x = 2', { context })
console.log((await sandbox.runCode('import os; x, os.getcwd()')).text)
console.log((await sandbox.runCode('import os; x, os.getcwd()', { context })).text)

// A restart forgets its variables, and keeps its id and directory.
await sandbox.restartCodeContext(context)
console.log((await sandbox.runCode('x', { context })).error.value)

await sandbox.removeCodeContext(context)
console.log((await sandbox.listCodeContexts()).map(({ language }) => language))

await sandbox.kill()
