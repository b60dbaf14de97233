// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What a web page does with the SDK's browser build. It tells what it saw to the server that it
// came from.
import { Sandbox } from 'e2b'

const { apiKey, domain, service } = await (await fetch('/settings')).json()

/** The name of the error that a call ends with. */
const failure = (promise) => promise.then(() => 'none', (error) => error.constructor.name)

async function callSdk() {
  const sandbox = await Sandbox.create({ apiKey, domain, timeoutMs: 60_000 })
  const seen = { id: sandbox.sandboxId, streamed: '' }
  const onStdout = (piece) => (seen.streamed += piece)
  const result = await sandbox.commands.run('echo from a page; echo aside >&2', { onStdout })
  seen.result = [result.exitCode, result.stdout, result.stderr]
  await sandbox.files.write('/tmp/from-page', 'grüße')
  seen.content = await sandbox.files.read('/tmp/from-page')
  seen.entries = (await sandbox.files.list('/tmp')).map((entry) => entry.name)
  seen.missing = await failure(sandbox.files.read('/tmp/missing'))
  seen.listed = (await Sandbox.list({ apiKey, domain }).nextItems()).map((entry) => entry.sandboxId)
  const again = await Sandbox.connect(sandbox.sandboxId, { apiKey, domain })
  seen.running = [await again.isRunning()]
  seen.killed = await sandbox.kill()
  seen.running.push(await again.isRunning())
  seen.afterwards = await failure(sandbox.commands.run('true'))
  seen.wrongKey = await failure(Sandbox.create({ apiKey: `${apiKey}0`, domain }))
  return seen
}

async function callService() {
  const sandbox = await Sandbox.create({ apiKey, domain, timeoutMs: 60_000 })
  await sandbox.files.write('/tmp/service.py', service)
  await new Promise((onStdout, reject) => {
    const command = 'exec python3 /tmp/service.py 127.0.0.1 8000'
    sandbox.commands.run(command, { background: true, timeoutMs: 0, onStdout }).catch(reject)
  })
  const socket = new WebSocket(`wss://${sandbox.getHost(8000)}/ws`)
  const echo = await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('grüße')
    socket.onmessage = ({ data }) => resolve(data)
    socket.onerror = () => reject(new Error('the WebSocket failed'))
  })
  // The service says nothing about other origins, but the gateway does.
  const closed = await fetch(`https://${sandbox.getHost(8123)}/`, { headers: { 'X-Own': 'x' } })
  const seen = { echo, closed: [closed.status, (await closed.json()).message] }
  await sandbox.kill()
  return seen
}

const work = { sdk: callSdk, service: callService }[location.hash.slice(1)]
const report = await work().catch((error) => ({ failed: `${error.stack}` }))
await fetch('/report', { method: 'POST', body: JSON.stringify(report) })
