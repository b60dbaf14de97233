// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// commands.run and what belongs to it, by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError, TimeoutError } from 'e2b'
import { atLeast, create, eventually, rejects } from './support.mjs'

let sandbox
before(async () => {
  sandbox = await create()
})

test('output is exact', async () => {
  const text = '!@#$%^&*() "q" ünï 😀\tx\n second'
  const result = await sandbox.commands.run(`cat <<'EOF'\n${text}\nEOF\necho oops >&2`)
  assert.equal(result.stdout, `${text}\n`)
  assert.equal(result.stderr, 'oops\n')
  assert.equal(result.exitCode, 0)
  assert.equal(result.error, undefined)
})

test('large output is complete and in order', async () => {
  const { stdout } = await sandbox.commands.run('seq 1 200000')
  assert.equal(stdout, Array.from({ length: 200000 }, (_, n) => `${n + 1}\n`).join(''))
})

test('output streams while the command runs', async () => {
  const arrivals = []
  const note = (text) => void arrivals.push([text, Date.now()])
  await sandbox.commands.run('for i in 1 2 3; do echo line$i; sleep 0.7; done; echo late >&2', { onStdout: note, onStderr: note })
  assert.deepEqual(arrivals.map(([text]) => text), ['line1\n', 'line2\n', 'line3\n', 'late\n'])
  for (let i = 1; i < arrivals.length; i++) assert.ok(arrivals[i][1] - arrivals[i - 1][1] > 400, JSON.stringify(arrivals))
})

for (const code of [1, 42, 255]) {
  test(`exit code ${code} throws`, async () => {
    const error = await rejects(sandbox.commands.run(`echo out; echo err >&2; exit ${code}`), CommandExitError)
    assert.deepEqual([error.exitCode, error.stdout, error.stderr, error.error], [code, 'out\n', 'err\n', `exit status ${code}`])
  })
}

test('a killed background command says so', async () => {
  const handle = await sandbox.commands.run('sleep 300', { background: true })
  assert.equal(await handle.kill(), true)
  const error = await rejects(handle.wait(), CommandExitError)
  assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed'])
  await rejects(sandbox.commands.run(`kill -0 ${handle.pid}`), CommandExitError)
  assert.equal(await sandbox.commands.kill(999999), false)
})

test('processes are listed as they were started', async () => {
  const handle = await sandbox.commands.run('sleep 300', { background: true, cwd: '/tmp', envs: { A: 'b' } })
  const found = (await sandbox.commands.list()).find((process) => process.pid === handle.pid)
  assert.equal(found.cmd, '/bin/bash')
  assert.deepEqual(found.args, ['-l', '-c', 'sleep 300'])
  assert.equal(found.cwd, '/tmp')
  assert.deepEqual({ ...found.envs }, { A: 'b' })
  await handle.kill()
})

test('connect to a running command', async () => {
  const handle = await sandbox.commands.run('sleep 1; echo later; exit 3', { background: true })
  await handle.disconnect()
  const again = await sandbox.commands.connect(handle.pid)
  assert.equal(again.pid, handle.pid)
  const error = await rejects(again.wait(), CommandExitError)
  assert.deepEqual([error.exitCode, error.stdout], [3, 'later\n'])
  await rejects(sandbox.commands.connect(999999), NotFoundError)
})

test('stdin', async () => {
  const handle = await sandbox.commands.run('head -n 1', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, '')
  await sandbox.commands.sendStdin(handle.pid, 'ünï & <b>\n')
  assert.equal((await handle.wait()).stdout, 'ünï & <b>\n')
  await rejects(sandbox.commands.sendStdin(999999, 'x'), NotFoundError)
})

test('stdin can be closed', { skip: !atLeast(2, 40) && 'the client has no closeStdin' }, async () => {
  const handle = await sandbox.commands.run('wc -c', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, 'x'.repeat(65536))
  await sandbox.commands.sendStdin(handle.pid, 'y')
  await sandbox.commands.closeStdin(handle.pid)
  assert.equal((await handle.wait()).stdout.trim(), '65537')
})

test('stdin by the handle', { skip: !atLeast(2, 40) && 'the handle has no sendStdin' }, async () => {
  const handle = await sandbox.commands.run('cat; echo end', { background: true, stdin: true })
  await handle.sendStdin('by the handle\n')
  await handle.sendStdin(new TextEncoder().encode('ü\n'))
  await handle.closeStdin()
  assert.equal((await handle.wait()).stdout, 'by the handle\nü\nend\n')
})

test('environment of sandbox and command', async () => {
  const own = await create({ envs: { FROM_SANDBOX: 'a b', BOTH: 'sandbox' } })
  const show = 'echo "$FROM_SANDBOX|$BOTH|$FROM_COMMAND"'
  assert.equal((await own.commands.run(show, { envs: { FROM_COMMAND: "$x 'y'", BOTH: 'command' } })).stdout, "a b|command|$x 'y'\n")
  assert.equal((await own.commands.run(show)).stdout, 'a b|sandbox|\n')
})

test('working directory and user', async () => {
  assert.equal((await sandbox.commands.run('pwd')).stdout, '/home/user\n')
  assert.equal((await sandbox.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
  assert.equal((await sandbox.commands.run('id -un; pwd', { user: 'root' })).stdout, 'root\n/root\n')
  await rejects(sandbox.commands.run('pwd', { cwd: '/no/such/place' }), InvalidArgumentError, '/no/such/place')
  await rejects(sandbox.commands.run('true', { user: 'nobody-of-that-name' }), AuthenticationError)
})

test('timeout throws and kills', async () => {
  const started = Date.now()
  await rejects(sandbox.commands.run('echo $$ > /tmp/pid; exec sleep 300', { timeoutMs: 2000 }), TimeoutError)
  assert.ok(Date.now() - started < 6000)
  const pid = (await sandbox.files.read('/tmp/pid')).trim()
  const gone = await eventually(() => sandbox.commands.run(`kill -0 ${pid}`).then(() => false, (error) => error instanceof CommandExitError), 3000)
  assert.ok(gone)
})

test('stdin that was not asked for is an error', async () => {
  const handle = await sandbox.commands.run('sleep 300', { background: true, stdin: false })
  await rejects(sandbox.commands.sendStdin(handle.pid, 'x'), SandboxError)
  await handle.kill()
})

test('many commands at once', async () => {
  const results = await Promise.all(Array.from({ length: 30 }, (_, n) => sandbox.commands.run(`sleep 0.2; echo ${n}`)))
  assert.deepEqual(results.map((result) => result.stdout), Array.from({ length: 30 }, (_, n) => `${n}\n`))
})

test('bytes pass unchanged, and a cut character becomes one replacement', async () => {
  const { stdout } = await sandbox.commands.run("printf 'a%.0s' $(seq 8191); printf '\\xe2'")
  assert.equal(stdout, 'a'.repeat(8191) + '\ufffd')
})

test('a missing command exits 127', async () => {
  const error = await rejects(sandbox.commands.run('no-such-command-anywhere'), CommandExitError)
  assert.equal(error.exitCode, 127)
})

test('two watchers of one command see the same, a late one nothing from before', async () => {
  const handle = await sandbox.commands.run('echo early; touch /tmp/said; sleep 2; seq 1 1000', { background: true })
  assert.ok(await eventually(() => sandbox.files.exists('/tmp/said'), 10_000))
  const late = await sandbox.commands.connect(handle.pid)
  const numbers = Array.from({ length: 1000 }, (_, n) => `${n + 1}\n`).join('')
  assert.equal((await handle.wait()).stdout, `early\n${numbers}`)
  assert.equal((await late.wait()).stdout, numbers)
})

test('connect after the end gives the retained result', async () => {
  const handle = await sandbox.commands.run('exit 5', { background: true })
  await rejects(handle.wait(), CommandExitError)
  const again = await sandbox.commands.connect(handle.pid)
  assert.equal((await rejects(again.wait(), CommandExitError)).exitCode, 5)
})

test('the end waits for everybody who holds the output', async () => {
  assert.equal((await sandbox.commands.run('(sleep 1; echo child) & echo parent')).stdout, 'parent\nchild\n')
})

test('a kill does not wait for those who hold the output', async () => {
  const handle = await sandbox.commands.run('sleep 300 & wait', { background: true })
  assert.equal(await handle.kill(), true)
  const error = await rejects(handle.wait(), CommandExitError)
  assert.deepEqual([error.exitCode, error.error], [-1, 'signal: killed'])
})

test('timeout of connect ends the watching only', async () => {
  const handle = await sandbox.commands.run('sleep 300', { background: true })
  const again = await sandbox.commands.connect(handle.pid, { timeoutMs: 1000 })
  await rejects(again.wait(), TimeoutError)
  assert.ok((await sandbox.commands.list()).some((process) => process.pid === handle.pid))
  assert.equal(await handle.kill(), true)
})

test('timeout of a background command kills it too, without anybody there', async () => {
  const handle = await sandbox.commands.run('sleep 300', { background: true, timeoutMs: 2000 })
  await handle.disconnect()
  const gone = async () => !(await sandbox.commands.list()).some((process) => process.pid === handle.pid)
  assert.equal(await gone(), false)
  assert.ok(await eventually(gone, 10_000))
})

test('no timeout with zero', async () => {
  assert.equal((await sandbox.commands.run('sleep 3; echo ok', { timeoutMs: 0 })).stdout, 'ok\n')
})

test('input in several pieces is counted exactly', { skip: !atLeast(2, 40) && 'the client has no closeStdin' }, async () => {
  for (const pieces of [[], ['ünï & <b>\n'], ['x'.repeat(65536), 'x'.repeat(65536), 'y']]) {
    const handle = await sandbox.commands.run('wc -c', { background: true, stdin: true })
    for (const piece of pieces) await sandbox.commands.sendStdin(handle.pid, piece)
    await sandbox.commands.closeStdin(handle.pid)
    assert.equal(Number((await handle.wait()).stdout), Buffer.byteLength(pieces.join('')))
  }
})

test('a gateway that the template lacks', { skip: !atLeast(2, 40) && 'the client takes no mcp configuration' }, async () => {
  const error = await Sandbox.create('base', { timeoutMs: 60_000, mcp: { duckduckgo: {} } }).catch((caught) => caught)
  assert.equal(error.constructor, SandboxError)
  assert.ok(error.message.includes('Failed to start MCP gateway'), error.message)
})
