// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Services in a sandbox, reached by Node's own clients: fetch, http, WebSocket.
import assert from 'node:assert/strict'
import http from 'node:http'
import { before, test } from 'node:test'
import { create, eventually } from './support.mjs'

const ORIGIN = new URL(process.env.E2B_SANDBOX_URL)
const SIZE = 256 * 1024 * 1024

const SERVICE = `
import base64, hashlib, http.server, socketserver, struct, threading

steps = threading.Semaphore(0)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, body, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/ws":
            return self.echo()
        if self.path == "/large":
            self.send_response(200)
            self.send_header("Content-Length", str(${SIZE}))
            self.end_headers()
            for n in range(${SIZE} >> 20):
                self.wfile.write(bytes([n & 255]) * (1 << 20))
            return
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for n in range(3):
                steps.acquire()
                event = b"data: %d\\n\\n" % n
                self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(event), event))
            self.wfile.write(b"0\\r\\n\\r\\n")
            return
        if self.path == "/step":
            steps.release()
        self.send(("%s %s" % (self.headers["Host"], self.path)).encode())

    def do_POST(self):
        digest = hashlib.sha256()
        while size := int(self.rfile.readline(), 16):
            digest.update(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        self.send(digest.hexdigest().encode())

    def echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            first, second = self.rfile.read(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4) * (size // 4 + 1)
            data = self.rfile.read(size)
            data = (int.from_bytes(data, "big") ^ int.from_bytes(mask[:size], "big")).to_bytes(size, "big")
            length = bytes([size]) if size < 126 else b"\\x7e" + struct.pack(">H", size) if size < 65536 else b"\\x7f" + struct.pack(">Q", size)
            self.wfile.write(bytes([first]) + length + data)
            if first & 15 == 8:
                return

    def log_message(self, *args):
        pass

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 100

Server(("127.0.0.1", 8000), Handler).serve_forever()
`

let sandbox
before(async () => {
  sandbox = await create()
  await serve(sandbox)
})

async function serve(box) {
  await box.files.write('/tmp/service.py', SERVICE)
  await box.commands.run('exec python3 /tmp/service.py', { background: true, timeoutMs: 0 })
  assert.ok(await eventually(async () => (await fetch(url(box, '/'))).status === 200, 10_000))
}

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
  const response = await fetch(url(sandbox, '/large'))
  let at = 0
  for await (const piece of response.body) {
    for (let from = 0; from < piece.length; ) {
      const end = Math.min(piece.length, from + (1 << 20) - (at % (1 << 20)))
      const expected = (at >> 20) & 255
      assert.ok(piece.subarray(from, end).every((byte) => byte === expected), `at ${at}`)
      at += end - from
      from = end
    }
  }
  assert.equal(at, SIZE)
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
  await serve(victim)
  const response = await fetch(url(victim, '/events'))
  const reader = response.body.getReader()
  await fetch(url(victim, '/step'))
  await reader.read()
  await victim.kill()
  await assert.rejects(reader.read(), TypeError)
  const after = await fetch(url(victim, '/'))
  assert.deepEqual([after.status, (await after.json()).message], [502, 'The sandbox was not found'])
})
