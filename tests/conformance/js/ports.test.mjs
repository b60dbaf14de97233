// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Services in a sandbox, reached by Node's own clients: fetch, http, WebSocket.
import assert from 'node:assert/strict'
import http from 'node:http'
import { before, test } from 'node:test'
import { countPattern, create, startService } from './support.mjs'

const ORIGIN = new URL(process.env.ALCOVE_ORIGIN)
const MEBIBYTES = 256

let sandbox
before(async () => {
  sandbox = await create()
  await startService(sandbox)
})

// Without DNS: the path names the sandbox.
function url(box, path, port = 8000) {
  return `${ORIGIN.origin}/_sandbox/${box.sandboxId}/${port}${path}`
}

// By name, with the name resolved to where the server is.
function get(host, path) {
  const lookup = (name, options, done) => (options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4))
  return new Promise((resolve, reject) => {
    const request = http.get({ host: host.split(':')[0], port: ORIGIN.port, path, lookup, headers: { Host: host } }, async (response) => {
      let body = ''
      for await (const piece of response) body += piece
      resolve({ status: response.statusCode, headers: response.headers, body })
    })
    request.on('error', reject)
  })
}

test('getHost() names a service', async () => {
  const host = sandbox.getHost(8000)
  assert.match(host, new RegExp(`^8000-${sandbox.sandboxId}`))
  assert.equal((await get(host, '/a?b=c')).body, `${host} /a?b=c`)
})

test('a closed port says so', async () => {
  const { status, body } = await get(sandbox.getHost(8123), '/')
  assert.equal(status, 502)
  assert.deepEqual(JSON.parse(body), { sandboxId: sandbox.sandboxId, message: 'The sandbox is running but port is not open', port: 8123, code: 502 })
})

test('the path names a service too, of no origin', async () => {
  const response = await fetch(url(sandbox, '/a?b=c'), { headers: { Cookie: 'a=b' } })
  assert.equal(await response.text(), `${ORIGIN.host} /a?b=c`)
  assert.equal(response.headers.get('content-security-policy'), 'sandbox allow-scripts allow-forms')
  assert.equal((await fetch(url(sandbox, ''))).url, url(sandbox, '/'))
})

test('WebSocket: text and binary messages come back', async () => {
  const socket = new WebSocket(url(sandbox, '/ws').replace('http', 'ws'))
  socket.binaryType = 'arraybuffer'
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  const echoed = (message) =>
    new Promise((resolve, reject) => {
      socket.onmessage = ({ data }) => resolve(data)
      socket.onerror = reject
      socket.send(message)
    })
  assert.equal(await echoed('grüße'), 'grüße')
  const large = new Uint8Array(1 << 20).map((_, n) => n % 251)
  assert.deepEqual(new Uint8Array(await echoed(large)), large)
  const closed = new Promise((resolve) => (socket.onclose = resolve))
  socket.close(1000)
  assert.equal((await closed).code, 1000)
})

test('server-sent events arrive one by one', async () => {
  const response = await fetch(url(sandbox, '/events'))
  assert.equal(response.headers.get('content-type'), 'text/event-stream')
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let n = 0; n < 3; n++) {
    // The service sends no event before it is told to.
    await fetch(url(sandbox, '/step'))
    assert.equal((await reader.read()).value, `data: ${n}\n\n`)
  }
  assert.equal((await reader.read()).done, true)
})

test('a large download is whole', async () => {
  const response = await fetch(url(sandbox, `/large/${MEBIBYTES}`))
  assert.equal(await countPattern(response.body), MEBIBYTES << 20)
})

test('an upload is streamed', async () => {
  const pieces = Array.from({ length: 64 }, (_, n) => new Uint8Array(100_000).fill(n))
  const body = ReadableStream.from(pieces)
  const answer = await (await fetch(url(sandbox, '/sum'), { method: 'POST', body, duplex: 'half' })).text()
  const digest = await crypto.subtle.digest('SHA-256', await new Blob(pieces).arrayBuffer())
  assert.equal(answer, Buffer.from(digest).toString('hex'))
})

test('a killed sandbox cuts its streams', async () => {
  const victim = await create()
  await startService(victim)
  const response = await fetch(url(victim, '/events'))
  const reader = response.body.getReader()
  await fetch(url(victim, '/step'))
  await reader.read()
  await victim.kill()
  await assert.rejects(reader.read(), TypeError)
  const after = await fetch(url(victim, '/'))
  assert.deepEqual([after.status, (await after.json()).message], [502, 'The sandbox was not found'])
})
