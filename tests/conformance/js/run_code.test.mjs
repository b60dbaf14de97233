// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// runCode and contexts by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { NotFoundError, SandboxError } from 'e2b'
import { Sandbox } from '@e2b/code-interpreter'
import { rejects } from './support.mjs'
import { create, printed, succeed } from './run_code_support.mjs'

let sandbox
before(async () => {
  sandbox = await create()
})

test('the last expression is the result', async () => {
  const execution = await succeed(sandbox, 'x =1; x')
  assert.equal(execution.text, '1')
  assert.deepEqual(execution.results.map((result) => [result.isMainResult, result.text]), [[true, '1']])
  assert.equal((await succeed(sandbox, 'x+=1; x')).text, '2')
})

test('executions count, those that fail too', async () => {
  const own = await create()
  const first = await own.runCode('this is no Python')
  assert.deepEqual([first.error.name, first.executionCount], ['SyntaxError', 1])
  assert.equal((await succeed(own, '1')).executionCount, 2)
})

test('output, callbacks and strings of every kind', async () => {
  const seen = []
  const note = (kind) => (what) => void seen.push([kind, what])
  const code = 'import sys\nprint("ä😀\\u2028"); sys.stdout.flush()\nprint("e", file=sys.stderr); sys.stderr.flush()\ndisplay(5)\nundefined'
  const execution = await sandbox.runCode(code, {
    onStdout: note('stdout'), onStderr: note('stderr'), onResult: note('result'), onError: note('error'),
  })
  assert.deepEqual(seen.map(([kind]) => kind).sort(), ['error', 'result', 'stderr', 'stdout'])
  const of = Object.fromEntries(seen)
  assert.deepEqual([of.stdout.line, of.stdout.error], ['ä😀\u2028\n', false])
  assert.deepEqual([of.stderr.line, of.stderr.error], ['e\n', true])
  assert.equal(of.result.text, '5')
  assert.deepEqual([of.error.name, of.error.value], ['NameError', "name 'undefined' is not defined"])
  assert.deepEqual(execution.logs, { stdout: ['ä😀\u2028\n'], stderr: ['e\n'] })
  assert.match(execution.error.traceback, /NameError: name 'undefined' is not defined\s*$/)
})

test('output streams while the code runs', async () => {
  const arrivals = []
  await sandbox.runCode('import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.7)', {
    onStdout: ({ line }) => void arrivals.push([line, Date.now()]),
  })
  assert.deepEqual(arrivals.map(([line]) => line), ['0\n', '1\n', '2\n'])
  for (let i = 1; i < arrivals.length; i++) assert.ok(arrivals[i][1] - arrivals[i - 1][1] > 400, JSON.stringify(arrivals))
})

test('text without a line break streams', async () => {
  const seen = []
  const code = "import os, time\nfor token in 'abc': print(token, end='')\nwhile not os.path.exists('/tmp/seen'): time.sleep(0.05)"
  const { promise: arrived, resolve } = Promise.withResolvers()
  const run = succeed(sandbox, code, {
    onStdout: ({ line }) => {
      seen.push(line)
      if (seen.join('') === 'abc') resolve()
    },
  })
  await Promise.race([arrived, run])
  await sandbox.files.write('/tmp/seen', '')
  assert.equal((await run).logs.stdout.join(''), 'abc')
})

for (const flush of ['False', 'True']) {
  test(`no line is lost, flush=${flush}`, async () => {
    const text = await printed(sandbox, `for i in range(100_000): print("ü", i, flush=${flush})`)
    assert.equal(text, Array.from({ length: 100_000 }, (_, i) => `ü ${i}\n`).join(''))
  })
}

test('contexts', async () => {
  const own = await create()
  const context = await own.createCodeContext({ language: 'python', cwd: '/root' })
  assert.deepEqual([context.language, context.cwd], ['python', '/root'])
  const listed = await own.listCodeContexts()
  assert.deepEqual(listed.map(({ language, cwd }) => [language, cwd]), [
    ['python', '/home/user'], ['javascript', '/home/user'], ['python', '/root'],
  ])
  assert.equal(listed.at(-1).id, context.id)
  await succeed(own, 'x = 1', { context })
  assert.equal((await own.runCode('x')).error.name, 'NameError')
  await own.restartCodeContext(context)
  const again = await own.runCode('x', { context })
  assert.deepEqual([again.error.name, again.error.value], ['NameError', "name 'x' is not defined"])
  assert.equal((await succeed(own, 'import os; os.getcwd()', { context })).text, '/root')
  await own.removeCodeContext(context)
  assert.ok(!(await own.listCodeContexts()).some(({ id }) => id === context.id))
  await rejects(own.removeCodeContext(context), NotFoundError, `Context ${context.id} not found`)
  await rejects(own.runCode('1', { context }), NotFoundError, `Context ${context.id} not found`)
})

test('contexts run in parallel, and runs of one context in order', async () => {
  const contexts = await Promise.all([1, 2, 3].map(() => sandbox.createCodeContext()))
  const meet = "import os, time\nopen(f'/tmp/js-N', 'w').close()\nwhile sum(f.startswith('js-') for f in os.listdir('/tmp')) < 3: time.sleep(0.01)\nN"
  const met = await Promise.all(contexts.map((context, n) => succeed(sandbox, meet.replaceAll('N', String(n)), { context })))
  assert.deepEqual(met.map(({ text }) => text), ['0', '1', '2'])
  await succeed(sandbox, 'order = []')
  const runs = []
  for (let n = 0; n < 5; n++) {
    runs.push(succeed(sandbox, `import time; time.sleep(${n ? 0 : 1.5}); order.append(${n})`))
    await new Promise((resolve) => setTimeout(resolve, 150))
  }
  await Promise.all(runs)
  assert.equal((await succeed(sandbox, 'order')).text, '[0, 1, 2, 3, 4]')
})

test('variables of sandbox and execution', async () => {
  const own = await create({ envs: { OWN: "it's \"mine\"" } })
  const show = 'import os; print(os.environ.get("OWN"), os.environ.get("ONCE"))'
  assert.equal(await printed(own, show, { envs: { ONCE: "a'b\n😀" } }), "it's \"mine\" a'b\n😀\n")
  assert.equal(await printed(own, show, { envs: { OWN: 'other' } }), 'other None\n')
  assert.equal(await printed(own, show), "it's \"mine\" None\n")
})

test('refusals', async () => {
  await rejects(sandbox.runCode('1', { language: 'cobol' }), SandboxError, '500 Internal Server Error')
  await rejects(sandbox.createCodeContext({ cwd: '/no/such' }), SandboxError, '400 Bad Request')
})

test('secure sandbox with private traffic', async () => {
  const own = await create({ secure: true, network: { allowPublicTraffic: false } })
  assert.equal((await succeed(own, 'x = 1; x')).text, '1')
  const context = await own.createCodeContext()
  await own.restartCodeContext(context)
  await own.removeCodeContext(context)
})

test('reconnect', async () => {
  await succeed(sandbox, "kept = 'kept'")
  const again = await Sandbox.connect(sandbox.sandboxId)
  assert.equal((await succeed(again, 'kept')).text, 'kept')
})
