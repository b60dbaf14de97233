// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Watching directories, by the JS client.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { FileNotFoundError, FileType, InvalidArgumentError, TimeoutError } from 'e2b'
import { atLeast, create, eventually, rejects, sleep } from './support.mjs'

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

test('entries come with the events', { skip: !atLeast(2, 40) && 'the client has no includeEntry' }, async () => {
  const dir = '/home/user/entries'
  await sandbox.files.makeDir(dir)
  const events = []
  const handle = await sandbox.files.watchDir(dir, (event) => void events.push(event), { includeEntry: true })
  await sandbox.files.write(`${dir}/f`, '12345')
  assert.ok(await eventually(() => events.some((event) => event.type === 'write' && event.entry), 10_000))
  const { entry } = events.find((event) => event.type === 'write')
  assert.deepEqual([entry.name, entry.path, entry.type, entry.size], ['f', `${dir}/f`, FileType.FILE, 5])
  await sandbox.files.remove(`${dir}/f`)
  assert.ok(await eventually(() => events.some((event) => event.type === 'remove'), 10_000))
  assert.equal(events.find((event) => event.type === 'remove').entry, undefined)
  await handle.stop()
})

test('a tree that is made at once is seen whole', async () => {
  const { dir, handle, until } = await watch('tree', { recursive: true })
  await sandbox.commands.run(`cd ${dir}; for a in 1 2 3 4 5; do mkdir -p $a/{1..5}/deep; touch $a/{1..5}/deep/f; done`)
  const places = [1, 2, 3, 4, 5].flatMap((a) => [1, 2, 3, 4, 5].map((b) => `${a}/${b}/deep`))
  await until(...places.flatMap((place) => [`create ${place}`, `create ${place}/f`]))
  await sandbox.commands.run(`for d in ${dir}/*/*/deep; do echo x > $d/later; done`)
  await until(...places.map((place) => `write ${place}/later`))
  await handle.stop()
})

test('network mounts may be allowed where there are none', { skip: !atLeast(2, 44) && 'the client has no allowNetworkMounts' }, async () => {
  const { dir, handle, until } = await watch('local', { allowNetworkMounts: true })
  await sandbox.files.write(`${dir}/f`, 'x')
  await until('write f')
  await handle.stop()
})
