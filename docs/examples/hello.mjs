// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create({ timeoutMs: 300_000 })
await sandbox.files.write('hello.js', "console.log('hello from a sandbox')")
const result = await sandbox.commands.run('node hello.js')
process.stdout.write(result.stdout)
console.log('exit code', result.exitCode)
await sandbox.kill()
