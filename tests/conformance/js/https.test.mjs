// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// The domain with TLS, by Node's own clients: the SDK knows nothing but it and the authority, and
// services in a sandbox are reached by https://<getHost(port)>.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import tls from 'node:tls'
import { atLeast, countPattern, create, eventually, rejects, sleep, startService } from './support.mjs'

const skip = process.env.ALCOVE_DATA ? false : "needs the server's data directory (ALCOVE_DATA)"
const MEBIBYTES = process.env.ALCOVE_LOAD === 'full' ? 1024 : 100

if (!skip) {
  const lines = readFileSync(`${process.env.ALCOVE_DATA}/env`, 'utf8').trim().split('\n')
  const settings = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)))
  // The URL variables would win over the domain.
  delete process.env.E2B_API_URL
  delete process.env.E2B_SANDBOX_URL
  process.env.E2B_DOMAIN = settings.E2B_DOMAIN
  // What NODE_EXTRA_CA_CERTS does for a program that is started with it.
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), readFileSync(settings.NODE_EXTRA_CA_CERTS, 'utf8')])
}

let sandbox
before(async () => {
  if (skip) return
  sandbox = await create()
  await startService(sandbox)
})

const url = (box, path, port = 8000) => `https://${box.getHost(port)}${path}`

test('everyday calls', { skip }, async () => {
  const box = await create()
  assert.equal((await box.commands.run('echo by domain')).stdout, 'by domain\n')
  await box.files.write('/tmp/file', 'content')
  assert.equal(await box.files.read('/tmp/file'), 'content')
  assert.equal((await box.getInfo()).sandboxId, box.sandboxId)
  assert.equal(await box.isRunning(), true)
  await box.kill()
  assert.equal(await box.isRunning(), false)
})

test('HTTP', { skip }, async () => {
  assert.equal(sandbox.getHost(8000), `8000-${sandbox.sandboxId}.${process.env.E2B_DOMAIN}`)
  assert.equal(await (await fetch(url(sandbox, '/a%20b?c=d'))).text(), `${sandbox.getHost(8000)} /a%20b?c=d`)
})

for (const address of ['127.0.0.1', '::1']) {
  test(`a service bound to ${address} only`, { skip }, async () => {
    const box = await create()
    await startService(box, { address, port: 8001 })
    assert.equal((await fetch(url(box, '/', 8001))).status, 200)
  })
}

test('a closed port', { skip }, async () => {
  const reply = await fetch(url(sandbox, '/', 8123))
  assert.equal(reply.status, 502)
  assert.deepEqual(await reply.json(), { sandboxId: sandbox.sandboxId, message: 'The sandbox is running but port is not open', port: 8123, code: 502 })
})

async function openSocket(box) {
  const socket = new WebSocket(url(box, '/ws').replace('https', 'wss'))
  socket.binaryType = 'arraybuffer'
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  return socket
}

const echoed = (socket, message) =>
  new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => resolve(data)
    socket.onerror = reject
    socket.send(message)
  })

test('WebSocket: text and binary messages come back', { skip }, async () => {
  const socket = await openSocket(sandbox)
  assert.equal(await echoed(socket, 'grüße'), 'grüße')
  const large = new Uint8Array(1 << 20).map((_, n) => n % 251)
  assert.deepEqual(new Uint8Array(await echoed(socket, large)), large)
  const closed = new Promise((resolve) => (socket.onclose = resolve))
  socket.close(1000)
  assert.equal((await closed).code, 1000)
})

test('server-sent events arrive one by one', { skip }, async () => {
  const response = await fetch(url(sandbox, '/events'))
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let n = 0; n < 3; n++) {
    // The service sends no event before it is told to.
    await fetch(url(sandbox, '/step'))
    assert.equal((await reader.read()).value, `data: ${n}\n\n`)
  }
  assert.equal((await reader.read()).done, true)
})

test(`a download of ${MEBIBYTES} MiB is whole`, { skip }, async () => {
  const response = await fetch(url(sandbox, `/large/${MEBIBYTES}`))
  assert.equal(await countPattern(response.body), MEBIBYTES * 2 ** 20)
})

test('a service with TLS of its own: httpsPorts', { skip: skip || (!atLeast(2, 51) && 'the client does not know httpsPorts') }, async () => {
  const box = await create({ network: { httpsPorts: [8000] } })
  assert.deepEqual((await box.getInfo()).network.httpsPorts, [8000])
  await box.commands.run('openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=own -keyout /tmp/key -out /tmp/cert 2>&1')
  await startService(box, { pair: '/tmp/cert /tmp/key' })
  assert.equal(await (await fetch(url(box, '/a?b'))).text(), `${box.getHost(8000)} /a?b`)
  const socket = await openSocket(box)
  assert.equal(await echoed(socket, 'grüße'), 'grüße')
  socket.close(1000)
})

test('the host that a service sees: maskRequestHost', { skip: skip || (!atLeast(2, 0) && 'the client does not know maskRequestHost') }, async () => {
  const box = await create({ network: { maskRequestHost: 'localhost:${PORT}' } })
  await startService(box)
  const seen = await (await fetch(url(box, '/headers'))).json()
  assert.deepEqual([seen.host, seen['x-forwarded-host']], ['localhost:8000', box.getHost(8000)])
})

test('killed in the middle of a command: the documented error', { skip: skip || !atLeast(2, 40) }, async () => {
  const { TimeoutError } = await import('e2b')
  const victim = await create()
  const handle = await victim.commands.run('sleep 60', { background: true })
  const waiting = handle.wait()
  waiting.catch(() => {})
  await sleep(300)
  await victim.kill()
  await rejects(waiting, TimeoutError, 'killed or reached its end of life')
})

test('killed in the middle of a stream: the reader is told', { skip }, async () => {
  const victim = await create()
  await startService(victim)
  const reader = (await fetch(url(victim, '/events'))).body.getReader()
  await fetch(url(victim, '/step'))
  await reader.read()
  const socket = await openSocket(victim)
  const closed = new Promise((resolve) => (socket.onclose = resolve))
  await victim.kill()
  await assert.rejects(reader.read(), TypeError)
  assert.equal((await closed).wasClean, false)
  assert.ok(await eventually(async () => (await fetch(url(victim, '/'))).status === 502, 10_000))
})
