// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Timeouts, dead kernels and killed sandboxes under runCode, by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { TimeoutError } from 'e2b'
import { eventually, rejects } from './support.mjs'
import { create, succeed } from './run_code_support.mjs'

let sandbox
before(async () => {
  sandbox = await create()
})

const endless = {
  python: ['x = 42', 'import time; time.sleep(300)', 'x'],
  javascript: ['var x = 42', 'for (;;) {}', 'x'],
  bash: ['x=42', 'sleep 300', 'echo $x'],
}

for (const [language, [keep, wait, show]] of Object.entries(endless)) {
  test(`a timeout interrupts ${language} and keeps its state`, async () => {
    await succeed(sandbox, keep, { language })
    await rejects(sandbox.runCode(wait, { language, timeoutMs: 1000 }), TimeoutError, "the 'timeoutMs' option")
    const { text, logs } = await succeed(sandbox, show, { language, timeoutMs: 30_000 })
    assert.equal(text ?? logs.stdout.join('').trim(), '42')
  })
}

test('only the timeout bounds a run', async () => {
  // 0 is no limit; and the limit of requests is over when the answer begins, though another run has the turn.
  const first = succeed(sandbox, 'import time; time.sleep(5); 1', { timeoutMs: 0 })
  await new Promise((resolve) => setTimeout(resolve, 500))
  const second = succeed(sandbox, 'time.sleep(2); 2', { requestTimeoutMs: 3000 })
  assert.deepEqual((await Promise.all([first, second])).map(({ text }) => text), ['1', '2'])
})

test('a dead kernel is told and replaced', async () => {
  const execution = await sandbox.runCode('import os; os._exit(1)')
  assert.deepEqual([execution.error.name, execution.error.value], ['ContextRestarting', 'Context was restarted'])
  assert.equal((await succeed(sandbox, '1')).executionCount, 1)
})

test('a killed interpreter is back', async () => {
  await sandbox.commands.run('kill -9 $(pgrep -x alcove-interp)', { user: 'root' })
  assert.equal((await succeed(sandbox, 'x = 1; x')).text, '1')
})

test('a sandbox killed in mid-run', async () => {
  const own = await create()
  let begun = false
  const run = own.runCode('import time; print(1, flush=True); time.sleep(300)', { onStdout: () => void (begun = true) })
  const refused = rejects(run, TimeoutError, 'sandbox was killed while the request was in progress')
  assert.ok(await eventually(() => begun, 20_000))
  await own.kill()
  await refused
  await rejects(own.runCode('1'), TimeoutError)
})
