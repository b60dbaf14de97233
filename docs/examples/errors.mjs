// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import * as e2b from 'e2b'

const sandbox = await e2b.Sandbox.create({ timeoutMs: 60_000 })
try {
  await sandbox.commands.run('sleep 60', { timeoutMs: 1_000 })
} catch (error) {
  if (error instanceof e2b.TimeoutError) console.log('the command took too long and was killed')
}

try {
  await sandbox.files.read('/nowhere')
} catch (error) {
  if (error instanceof e2b.NotFoundError) console.log('no such file:', error.message)
}

await sandbox.kill()
try {
  await sandbox.commands.run('true')
} catch (error) {
  if (error instanceof e2b.SandboxNotFoundError) console.log('the sandbox is gone')
}

try {
  await e2b.Sandbox.create('no-such-template')
} catch (error) {
  console.log(error.message)
}
