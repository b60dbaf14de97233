// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What all Node tests use.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after } from 'node:test'
import { Sandbox } from 'e2b'

export const version = process.env.ALCOVE_CLIENT_VERSION.split('.').map(Number)
export const atLeast = (major, minor) => version[0] > major || (version[0] === major && version[1] >= minor)
/** Whether the client has nothing but the domain, and no URLs. */
export const tls = Boolean(process.env.E2B_DOMAIN)
/** Whether the generation has this package. */
export const installed = (name) => existsSync(`${process.env.ALCOVE_NODE_MODULES}/node_modules/${name}`)

const made = []

/** Creates a sandbox that ends with the test file, of `base` or another template. */
export async function create({ template, ...more } = {}) {
  const options = { timeoutMs: 120_000, ...more }
  const sandbox = await (template ? Sandbox.create(template, options) : Sandbox.create(options))
  made.push(sandbox)
  return sandbox
}

after(async () => {
  for (const sandbox of made) await sandbox.kill()
})

/** Asserts that the promise is rejected with exactly this class of error; returns the error. */
export async function rejects(promise, kind, text = '') {
  let error
  try {
    await promise
  } catch (caught) {
    error = caught
  }
  assert.ok(error, `nothing was thrown; expected ${kind.name}`)
  assert.equal(error.constructor, kind, `${error.constructor.name}: ${error.message}`)
  assert.ok(error.message.includes(text), error.message)
  return error
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits until the (async) probe is true; false if it never was. */
export async function eventually(probe, withinMs) {
  const deadline = Date.now() + withinMs
  while (Date.now() < deadline) {
    if (await probe()) return true
    await sleep(50)
  }
  return Boolean(await probe())
}

const SERVICE = readFileSync(new URL('../service.py', import.meta.url), 'utf8')

/** Runs ../service.py in a sandbox; returns when it listens. */
export async function startService(sandbox, { address = '127.0.0.1', port = 8000, pair = '' } = {}) {
  await sandbox.files.write('/tmp/service.py', SERVICE)
  await new Promise((resolve, reject) => {
    const command = `exec python3 /tmp/service.py ${address} ${port} ${pair}`
    sandbox.commands.run(command, { background: true, timeoutMs: 0, onStdout: resolve, onStderr: reject }).catch(reject)
  })
}

/** The length of what the service's /large/ sends; every byte is checked. */
export async function countPattern(body) {
  let at = 0
  for await (const piece of body) {
    for (let from = 0; from < piece.length; ) {
      const end = Math.min(piece.length, from + (1 << 20) - (at % (1 << 20)))
      const expected = Math.floor(at / (1 << 20)) & 255
      assert.ok(piece.subarray(from, end).every((byte) => byte === expected), `at ${at}`)
      at += end - from
      from = end
    }
  }
  return at
}
