// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Watching directories, by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { FileNotFoundError, InvalidArgumentError, TimeoutError } from 'e2b'
import { create, eventually, rejects, sleep } from './support.mjs'

let sandbox
before(async () => {
  sandbox = await create({ timeoutMs: 300_000 })
})

/** Watches a fresh directory; returns it, the events as "type name" and the handle. */
async function watch(name, options = {}) {
  const dir = `/home/user/${name}`
  await sandbox.files.makeDir(dir)
  const seen = []
  const handle = await sandbox.files.watchDir(dir, (event) => seen.push(`${event.type} ${event.name}`), options)
  const until = async (...wanted) => {
    assert.ok(await eventually(() => wanted.every((entry) => seen.includes(entry)), 10_000), `${wanted} in ${seen}`)
  }
  return { dir, seen, handle, until }
}

test('an upload is three events', async () => {
  const { dir, seen, handle, until } = await watch('upload')
  await sandbox.files.write(`${dir}/new`, 'content')
  await until('write new')
  await sleep(300)
  assert.deepEqual(seen, ['create new', 'chmod new', 'write new'])
  await handle.stop()
})

test('rename and remove', async () => {
  const { dir, seen, handle, until } = await watch('rename')
  await sandbox.commands.run(`touch ${dir}/a; mv ${dir}/a ${dir}/b; rm ${dir}/b`)
  await until('remove b')
  assert.deepEqual(seen.filter((entry) => !entry.startsWith('chmod')), ['create a', 'rename a', 'create b', 'remove b'])
  await handle.stop()
})

test('new directories are watched too, when asked', async () => {
  const { dir, handle, until } = await watch('deep', { recursive: true })
  await sandbox.files.makeDir(`${dir}/sub`)
  await until('create sub')
  await sandbox.files.write(`${dir}/sub/file`, 'x')
  await until('create sub/file', 'write sub/file')
  await handle.stop()
})

test('a stopped watch brings nothing more', async () => {
  const { dir, seen, handle } = await watch('stopped')
  await handle.stop()
  await sandbox.files.write(`${dir}/f`, 'x')
  await sleep(500)
  assert.deepEqual(seen, [])
})

test('a watch ends at its timeout', async () => {
  let ended
  await watch('timeout', { timeoutMs: 1000, onExit: (error) => (ended = { error }) })
  assert.ok(await eventually(() => ended, 5000))
  assert.equal(ended.error.constructor, TimeoutError)
})

test('what cannot be watched', async () => {
  await rejects(sandbox.files.watchDir('/home/user/nothing', () => {}), FileNotFoundError)
  await sandbox.files.write('plain', 'x')
  await rejects(sandbox.files.watchDir('/home/user/plain', () => {}), InvalidArgumentError)
})
