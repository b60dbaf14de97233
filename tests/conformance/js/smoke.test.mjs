// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// One walk through everything, for every generation of the JS client.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as e2b from 'e2b'
import { atLeast, create, eventually, installed, rejects, sleep, startService, tls } from './support.mjs'

const { CommandExitError, NotFoundError, Sandbox, SandboxError } = e2b
// What 1.x throws instead of the newer classes.
const { FileNotFoundError = NotFoundError, SandboxNotFoundError = SandboxError } = e2b

const listed = async (query) => (atLeast(2, 0) ? Sandbox.list({ query }).nextItems() : Sandbox.list({ query }))

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

  assert.deepEqual((await listed({ metadata: { mark } })).map((entry) => entry.sandboxId), [sandbox.sandboxId])
  const other = await Sandbox.connect(sandbox.sandboxId)
  assert.equal(await other.files.read('note.txt'), 'zwölf')

  await sandbox.setTimeout(60_000)
  // The instance's own kill() of 2.23 does not say whether there was anything to kill.
  assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
})

test('handles, a terminal, a watched directory', async () => {
  const sandbox = await create()
  const handle = await sandbox.commands.run('read line; echo got $line; exit 3', { background: true, stdin: true })
  await handle.disconnect()
  const again = await sandbox.commands.connect(handle.pid)
  await sandbox.commands.sendStdin(handle.pid, 'grüße\n')
  const { exitCode, stdout } = await rejects(again.wait(), CommandExitError)
  assert.deepEqual([exitCode, stdout], [3, 'got grüße\n'])
  const sleeping = await sandbox.commands.run('sleep 300', { background: true })
  assert.equal(await sandbox.commands.kill(sleeping.pid), true)

  let shown = ''
  const onData = (data) => void (shown += new TextDecoder().decode(data))
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData })
  await sandbox.pty.resize(terminal.pid, { cols: 132, rows: 50 })
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit\n'))
  await terminal.wait()
  assert.ok(shown.includes('50 132\r\n'), shown)
  const other = await sandbox.pty.create({ cols: 80, rows: 24, onData })
  assert.equal(await sandbox.pty.kill(other.pid), true)

  const dir = '/home/user/watched'
  assert.equal(await sandbox.files.makeDir(dir), true)
  const events = []
  const watch = await sandbox.files.watchDir(dir, (event) => void events.push(`${event.type} ${event.name}`))
  await sandbox.files.write(`${dir}/new.txt`, 'x')
  assert.ok(await eventually(() => events.includes('create new.txt'), 20_000), String(events))
  await watch.stop()
  assert.equal((await sandbox.files.getInfo(`${dir}/new.txt`)).size, 1)
  assert.equal((await sandbox.files.rename(`${dir}/new.txt`, `${dir}/old.txt`)).name, 'old.txt')
  assert.equal(await sandbox.files.exists(dir), true)
  await sandbox.files.remove(dir)
  assert.equal(await sandbox.files.exists(dir), false)
  assert.ok(sandbox.getHost(3000).startsWith(`3000-${sandbox.sandboxId}.`))
  assert.equal((await sandbox.getInfo()).sandboxId, sandbox.sandboxId)
})

test('files in one call, input that ends, URLs, metrics', async () => {
  // By plain HTTP the signature is what tells the sandbox.
  const sandbox = await create({ secure: true })
  if (atLeast(2, 0)) {
    const written = await sandbox.files.writeFiles([{ path: 'one', data: '1' }, { path: '/tmp/two', data: new Blob(['2']) }])
    assert.deepEqual(written.map((info) => info.path), ['/home/user/one', '/tmp/two'])
    assert.deepEqual([await sandbox.files.read('one'), await sandbox.files.read('/tmp/two')], ['1', '2'])
    const counting = await sandbox.commands.run('wc -c', { background: true, stdin: true })
    await sandbox.commands.sendStdin(counting.pid, 'grüße')
    await sandbox.commands.closeStdin(counting.pid)
    assert.equal((await counting.wait()).stdout, '7\n')
    let shown = ''
    const first = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} })
    await sandbox.pty.connect(first.pid, { onData: (data) => void (shown += new TextDecoder().decode(data)) })
    await sandbox.pty.sendInput(first.pid, new TextEncoder().encode('echo both-$((1+1))\n'))
    assert.ok(await eventually(() => shown.includes('both-2\r\n'), 20_000), shown)
    await first.kill()
  }
  const form = new FormData()
  form.append('file', 'signed')
  const up = await sandbox.uploadUrl('signed.txt', { user: 'user' })
  const down = await sandbox.downloadUrl('signed.txt', { user: 'user' })
  // The URLs of 2.23 name the domain, whatever else it was given.
  if (tls || atLeast(2, 40)) {
    assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200)
    assert.equal(await (await fetch(down)).text(), 'signed')
  }
  assert.ok(await eventually(async () => (await sandbox.getMetrics()).length > 0, 20_000))
  assert.equal((await sandbox.getMetrics())[0].cpuCount, 2)
})

test('full information, and where a gateway for tools would be', { skip: !atLeast(2, 0) && 'the client knows neither' }, async () => {
  const sandbox = await create({ metadata: { mark: 'full' } })
  const info = await Sandbox.getFullInfo(sandbox.sandboxId)
  assert.deepEqual([info.sandboxId, { ...info.metadata }, info.cpuCount], [sandbox.sandboxId, { mark: 'full' }, 2])
  const { host } = new URL(sandbox.getMcpUrl())
  const port = Number(host.split('-')[0])
  assert.equal(sandbox.getHost(port), host)
  if (tls) {
    await startService(sandbox, { port })
    assert.equal(await (await fetch(sandbox.getMcpUrl())).text(), `${host} ${new URL(sandbox.getMcpUrl()).pathname}`)
  }
  // Where a gateway leaves it, for root alone.
  await sandbox.commands.run('mkdir -p /etc/mcp-gateway && (umask 077; printf s3cret > /etc/mcp-gateway/.token)', { user: 'root' })
  assert.equal(await sandbox.getMcpToken(), 's3cret')
})

test('services by getHost()', { skip: !tls && 'no name leads to the server by plain HTTP' }, async () => {
  const sandbox = await create()
  const places = [{ address: '127.0.0.1', port: 8001 }, { address: '::1', port: 8002 }]
  for (const place of places) {
    await startService(sandbox, place)
    const host = sandbox.getHost(place.port)
    assert.equal(await (await fetch(`https://${host}/a%20b?c=d`)).text(), `${host} /a%20b?c=d`)
  }
  const closed = await fetch(`https://${sandbox.getHost(8123)}/`)
  assert.deepEqual([closed.status, (await closed.json()).message], [502, 'The sandbox is running but port is not open'])
})

test('killed in the middle of a command', async () => {
  const sandbox = await create()
  const handle = await sandbox.commands.run('echo begun; sleep 60', { background: true })
  const waiting = handle.wait().then((result) => result, (error) => error)
  await sleep(300)
  await Sandbox.kill(sandbox.sandboxId)
  const told = await waiting
  // A documented error, and not an exit code.
  assert.ok(told instanceof SandboxError && !(told instanceof CommandExitError), String(told))
  assert.equal(await sandbox.isRunning(), false)
})

const why =
  (!installed('@e2b/code-interpreter') && 'the generation has no code interpreter') ||
  (!tls && !atLeast(2, 40) && 'run_code needs the TLS domain')
test('run_code', { skip: why }, async () => {
  const { Sandbox: Interpreter } = await import('@e2b/code-interpreter')
  const sandbox = await Interpreter.create({ timeoutMs: 120_000 })
  after(() => sandbox.kill())
  assert.equal((await sandbox.runCode('x = 20; x + 1')).text, '21')
  const printed = []
  const execution = await sandbox.runCode("print('zwölf', x)", { onStdout: ({ line }) => void printed.push(line) })
  assert.deepEqual([execution.logs.stdout.join(''), printed.join('')], ['zwölf 20\n', 'zwölf 20\n'])
  const { error } = await sandbox.runCode('1 / 0')
  assert.deepEqual([error.name, error.value], ['ZeroDivisionError', 'division by zero'])
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  assert.equal((await sandbox.runCode('import os; os.getcwd()', { context })).text, '/tmp')
  assert.equal((await sandbox.runCode('1 + 1', { language: 'javascript' })).text, '2')
  if (!sandbox.listCodeContexts) return
  assert.ok((await sandbox.listCodeContexts()).some(({ id }) => id === context.id))
  await sandbox.runCode('y = 1', { context })
  await sandbox.restartCodeContext(context)
  assert.equal((await sandbox.runCode('y', { context })).error.name, 'NameError')
  await sandbox.removeCodeContext(context)
  assert.ok(!(await sandbox.listCodeContexts()).some(({ id }) => id === context.id))
})
