// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// One walk through everything, for every generation of the JS client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandExitError, FileNotFoundError, Sandbox, SandboxNotFoundError } from 'e2b'
import { create, rejects } from './support.mjs'

test('a sandbox from create to kill', async () => {
  const mark = `smoke-${Date.now()}`
  const sandbox = await create({ metadata: { mark }, envs: { FROM_SANDBOX: 'yes' } })
  assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/)
  assert.equal(await sandbox.isRunning(), true)

  const seen = []
  const result = await sandbox.commands.run('echo $FROM_SANDBOX; echo oops >&2', { onStdout: (text) => void seen.push(text) })
  assert.deepEqual([result.stdout, result.stderr, result.exitCode, seen], ['yes\n', 'oops\n', 0, ['yes\n']])
  const failure = await rejects(sandbox.commands.run('exit 7'), CommandExitError)
  assert.equal(failure.exitCode, 7)

  const background = await sandbox.commands.run('sleep 300', { background: true })
  assert.ok((await sandbox.commands.list()).some((process) => process.pid === background.pid))
  assert.equal(await background.kill(), true)

  await sandbox.files.write('note.txt', 'zwölf')
  assert.equal(await sandbox.files.read('note.txt'), 'zwölf')
  assert.ok((await sandbox.files.list('.')).some((entry) => entry.name === 'note.txt'))
  await rejects(sandbox.files.read('none'), FileNotFoundError)

  const paginator = Sandbox.list({ query: { metadata: { mark } } })
  assert.deepEqual((await paginator.nextItems()).map((entry) => entry.sandboxId), [sandbox.sandboxId])
  const other = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(await other.files.read('note.txt'), 'zwölf')

  await sandbox.setTimeout(60_000)
  // The instance's own kill() of 2.23 does not say whether there was anything to kill.
  assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
})
