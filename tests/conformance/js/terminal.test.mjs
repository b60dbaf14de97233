// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Terminals, by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { CommandExitError, NotFoundError } from 'e2b'
import { create, eventually, rejects, sleep } from './support.mjs'

let sandbox
before(async () => {
  sandbox = await create({ timeoutMs: 300_000 })
})

/** Opens a terminal, or joins one, and collects what it shows. */
async function open(options = {}, pid = undefined) {
  let output = ''
  const decoder = new TextDecoder()
  const onData = (data) => (output += decoder.decode(data, { stream: true }))
  const handle = pid
    ? await sandbox.pty.connect(pid, { onData })
    : await sandbox.pty.create({ cols: 80, rows: 24, onData, ...options })
  return {
    handle,
    type: (text) => sandbox.pty.sendInput(handle.pid, new TextEncoder().encode(text)),
    shown: () => output,
    until: async (text) => assert.ok(await eventually(() => output.includes(text), 20_000), JSON.stringify(output)),
  }
}

test('a shell answers, and its exit code arrives', async () => {
  const terminal = await open()
  await terminal.type('echo $((6*7))-$TERM\n')
  await terminal.until('42-xterm-256color\r\n')
  await terminal.type('exit 0\n')
  assert.equal((await terminal.handle.wait()).exitCode, 0)
})

test('size and resize', async () => {
  const terminal = await open({ cols: 101, rows: 33 })
  await terminal.type('stty size\n')
  await terminal.until('33 101\r\n')
  await sandbox.pty.resize(terminal.handle.pid, { cols: 132, rows: 50 })
  await terminal.type('stty size\n')
  await terminal.until('50 132\r\n')
  assert.equal(await sandbox.pty.kill(terminal.handle.pid), true)
})

test('a second client joins', async () => {
  const first = await open({ envs: { MARK: 'here' }, cwd: '/tmp' })
  const second = await open({}, first.handle.pid)
  await second.type('echo $MARK:$PWD\n')
  await first.until('here:/tmp\r\n')
  await second.until('here:/tmp\r\n')
  assert.equal(await first.handle.kill(), true)
})

test('variables, directory and exit code', async () => {
  const terminal = await open({ envs: { CODE: '7' }, cwd: '/' })
  await terminal.type('pwd; exit $CODE\n')
  const error = await rejects(terminal.handle.wait(), CommandExitError)
  assert.equal(error.exitCode, 7)
  await terminal.until('\r/\r\n')
})

test('resized right after the start', async () => {
  const terminal = await open()
  await sandbox.pty.resize(terminal.handle.pid, { cols: 100, rows: 24 })
  await terminal.type('tput cols\n')
  await terminal.until('\r100\r\n')
  await terminal.handle.kill()
})

test('work goes on while nobody watches', async () => {
  const first = await open()
  await first.type('touch /tmp/ready; read line; seq 1 200000; touch /tmp/done\n')
  assert.ok(await eventually(() => sandbox.files.exists('/tmp/ready'), 10_000))
  await first.handle.disconnect()
  await sandbox.pty.sendInput(first.handle.pid, new TextEncoder().encode('\n'))
  assert.ok(await eventually(() => sandbox.files.exists('/tmp/done'), 20_000))
  const again = await open({}, first.handle.pid)
  await again.type('echo still-$((40+2))\n')
  await again.until('still-42\r\n')
  await again.type('exit\n')
  assert.equal((await again.handle.wait()).exitCode, 0)
})

test('killed terminals are gone at once', async () => {
  const { handle } = await open()
  assert.equal(await sandbox.pty.kill(handle.pid), true)
  await rejects(sandbox.commands.run(`kill -0 ${handle.pid}`), CommandExitError)
  assert.equal(await sandbox.pty.kill(999999), false)
  await rejects(sandbox.pty.sendInput(999999, new Uint8Array([10])), NotFoundError)
})

test('an editor writes a file', async () => {
  const terminal = await open()
  await terminal.type('vi poem.txt; echo closed=$?\n')
  // Its line at the bottom: it has taken the screen.
  await terminal.until('"poem.txt"')
  await sleep(1000)
  await terminal.type('iroses are red\rviolets are blue\x1b:wq\r')
  await terminal.until('closed=0\r\n')
  assert.equal(await sandbox.files.read('poem.txt'), 'roses are red\nviolets are blue\n')
  await terminal.handle.kill()
})

test('top shows one screen', async () => {
  const terminal = await open()
  await terminal.type('top -n 1; echo status=$?\n')
  await terminal.until('status=0\r\n')
  // One refresh of the whole screen, placed by escape sequences.
  assert.ok(terminal.shown().includes('load average') && terminal.shown().includes('\x1b[H'), JSON.stringify(terminal.shown()))
  await terminal.handle.kill()
})

test("Python's prompt", async () => {
  const terminal = await open()
  await terminal.type('python3 -q; echo back-$?\n')
  await terminal.until('>>> ')
  await terminal.type('x = 6\n')
  await terminal.type("print('result', x * 7)\n")
  await terminal.until('result 42')
  await terminal.type('exit()\n')
  await terminal.until('back-0\r\n')
  await terminal.handle.kill()
})

test('a password is not echoed', async () => {
  const terminal = await open()
  await terminal.type("read -rsp 'Password: ' secret; echo; echo length=${#secret}\n")
  await terminal.until('Password: ')
  await sleep(300)
  const before = terminal.shown().length
  await terminal.type('hunter2\n')
  await terminal.until('length=7\r\n')
  assert.ok(!terminal.shown().slice(before).includes('hunter2'), terminal.shown())
  await terminal.handle.kill()
})
