// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// A sandbox's life, by the JS client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AuthenticationError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError } from 'e2b'
import { atLeast, create, eventually, rejects, sleep } from './support.mjs'

const notBuilt = 'is not available on this server yet.'

async function all(options) {
  const paginator = Sandbox.list(options)
  const pages = []
  while (paginator.hasNext) pages.push((await paginator.nextItems()).map((entry) => entry.sandboxId))
  return pages
}

test('info', async () => {
  const sandbox = await create({ timeoutMs: 200_000, metadata: { a: '1', ü: 'ß & =' } })
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
  assert.deepEqual(info.metadata, { a: '1', ü: 'ß & =' })
  assert.deepEqual([info.state, info.cpuCount, info.memoryMB, info.envdVersion], ['running', 2, 1024, '0.6.13'])
  assert.ok(Math.abs(info.endAt - info.startedAt - 200_000) < 1000)
  assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).sandboxId, sandbox.sandboxId)
})

test('kill, and calls to a killed sandbox', async () => {
  const sandbox = await create()
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  assert.equal(await Sandbox.kill('nonexistingsandbox'), false)
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError)
  await rejects(sandbox.commands.list(), TimeoutError)
  await rejects(sandbox.files.read('/etc/hostname'), TimeoutError)
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
  await rejects(sandbox.setTimeout(1000), SandboxNotFoundError)
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
})

test('killed while a command runs', async () => {
  const sandbox = await create()
  const handle = await sandbox.commands.run('sleep 60', { background: true })
  const waiting = rejects(handle.wait(), TimeoutError, 'sandbox was killed or reached its end of life')
  await sleep(500)
  await sandbox.kill()
  await waiting
})

test('ends by itself at its time', async () => {
  const sandbox = await create({ timeoutMs: 3000 })
  const end = (await sandbox.getInfo()).endAt.getTime()
  await sleep(Math.max(0, end - Date.now() - 700))
  assert.equal(await sandbox.isRunning(), true)
  assert.ok(await eventually(async () => !(await sandbox.isRunning()), end - Date.now() + 1500))
  await rejects(sandbox.getInfo(), SandboxNotFoundError)
})

test('setTimeout lengthens and shortens', async () => {
  const sandbox = await create()
  for (const milliseconds of [500_000, 50_000]) {
    await sandbox.setTimeout(milliseconds)
    const left = (await sandbox.getInfo()).endAt - Date.now()
    assert.ok(Math.abs(left - milliseconds) < 3000, String(left))
  }
})

test('connect', async () => {
  const sandbox = await create({ timeoutMs: 300_000 })
  await sandbox.files.write('/tmp/mark', 'here')
  for (const id of [sandbox.sandboxId, `${sandbox.sandboxId}-6532622b`]) {
    const other = await Sandbox.connect(id, { timeoutMs: 10_000 })
    assert.equal(await other.files.read('/tmp/mark'), 'here')
    assert.equal((await other.commands.run('echo connected')).stdout, 'connected\n')
  }
  const end = (await sandbox.getInfo()).endAt.getTime()
  await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 10_000 })
  assert.equal((await sandbox.getInfo()).endAt.getTime(), end)
  await sandbox.connect({ timeoutMs: 1_000_000 })
  assert.ok((await sandbox.getInfo()).endAt.getTime() > end + 600_000)
  await rejects(Sandbox.connect('nonexistingsandbox'), SandboxNotFoundError)
})

test('list: metadata, pages, state', async () => {
  const mark = `m-${Date.now()}`
  const made = []
  for (let n = 0; n < 5; n++) made.push((await create({ metadata: { mark, 'my key': `a&b=c ${n}` } })).sandboxId)
  const query = { metadata: { mark } }
  assert.deepEqual(await all({ query, limit: 2 }), [[made[4], made[3]], [made[2], made[1]], [made[0]]])
  assert.deepEqual(await all({ query: { metadata: { mark, 'my key': 'a&b=c 3' } } }), [[made[3]]])
  assert.deepEqual(await all({ query: { ...query, state: ['running'] } }), [[...made].reverse()])
  assert.deepEqual(await all({ query: { ...query, state: ['paused'] } }), [[]])
})

test('list: order, start time, template', { skip: !atLeast(2, 40) && 'the client has no such filters' }, async () => {
  const mark = `m-${Date.now()}`
  const made = []
  for (let n = 0; n < 3; n++) made.push(await create({ metadata: { mark } }))
  const ids = made.map((sandbox) => sandbox.sandboxId)
  const query = { metadata: { mark } }
  assert.deepEqual(await all({ query, order: 'asc', limit: 2 }), [ids.slice(0, 2), ids.slice(2)])
  const { startedAt, templateId } = await made[2].getInfo()
  assert.deepEqual(await all({ query: { ...query, startedAfter: new Date(startedAt.getTime() + 1000) } }), [[]])
  assert.deepEqual(await all({ query: { ...query, template: templateId } }), [[...ids].reverse()])
  assert.deepEqual(await all({ query: { ...query, template: 'no-such-template' } }), [[]])
})

test('keys, templates, limits', async () => {
  await rejects(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), AuthenticationError)
  await rejects(Sandbox.create('no-such-template'), SandboxError, "404: template 'no-such-template' not found")
  await rejects(Sandbox.create({ timeoutMs: 25 * 3600 * 1000 }), SandboxError, '400: ')
})

test('private traffic', async () => {
  const sandbox = await create({ network: { allowPublicTraffic: false } })
  assert.ok(sandbox.trafficAccessToken)
  assert.equal((await sandbox.commands.run('echo ok')).stdout, 'ok\n')
})

test('what is not built says so', async () => {
  const sandbox = await create()
  await rejects(sandbox.pause ? sandbox.pause() : sandbox.betaPause(), SandboxError, notBuilt)
  await rejects(Sandbox.create({ network: { denyOut: ['0.0.0.0/0'] } }), SandboxError, notBuilt)
  assert.equal(await sandbox.isRunning(), true)
})
