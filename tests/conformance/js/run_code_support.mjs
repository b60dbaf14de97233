// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What the Node tests of run_code use.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'

const made = []

/** Creates a code-interpreter sandbox that ends with the test file. */
export async function create(options = {}) {
  const sandbox = await Sandbox.create({ timeoutMs: 300_000, ...options })
  made.push(sandbox)
  return sandbox
}

after(async () => {
  for (const sandbox of made) await sandbox.kill()
})

/** Runs code that must not fail. */
export async function succeed(sandbox, code, options) {
  const execution = await sandbox.runCode(code, options)
  assert.equal(execution.error, undefined, JSON.stringify(execution.error))
  return execution
}

/** What the code printed; it must not fail. */
export async function printed(sandbox, code, options) {
  const { logs } = await succeed(sandbox, code, options)
  assert.deepEqual(logs.stderr, [])
  return logs.stdout.join('')
}
