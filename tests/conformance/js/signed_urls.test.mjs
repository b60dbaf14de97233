// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Signed file URLs, by the JS client and bare fetch: nothing but the signature opens them.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { create } from './support.mjs'

let sandbox
before(async () => {
  sandbox = await create({ secure: true })
})

const form = (text) => {
  const body = new FormData()
  // A plain text field, without a filename.
  body.append('file', text)
  return { method: 'POST', body }
}

test('download, with and without an end', async () => {
  await sandbox.files.write('signed.txt', 'content')
  for (const options of [{}, { useSignatureExpiration: 120 }]) {
    const reply = await fetch(await sandbox.downloadUrl('signed.txt', options))
    assert.equal(reply.status, 200)
    assert.equal(await reply.text(), 'content')
  }
})

test('an end that has passed', async () => {
  const expired = { useSignatureExpiration: -120 }
  const download = await fetch(await sandbox.downloadUrl('signed.txt', expired))
  const upload = await fetch(await sandbox.uploadUrl('signed.txt', expired), form('x'))
  for (const reply of [download, upload]) {
    assert.equal(reply.status, 401)
    assert.deepEqual(await reply.json(), { code: 401, message: 'signature is already expired' })
  }
})

test('upload of a text field, as the user of the URL', async () => {
  const reply = await fetch(await sandbox.uploadUrl('up.txt'), form('by form'))
  assert.equal(reply.status, 200)
  assert.deepEqual(await reply.json(), [{ name: 'up.txt', path: '/home/user/up.txt', type: 'file' }])
  assert.equal(await sandbox.files.read('up.txt'), 'by form')
  const asRoot = await fetch(await sandbox.uploadUrl('up.txt', { user: 'root' }), form("root's"))
  assert.deepEqual(await asRoot.json(), [{ name: 'up.txt', path: '/root/up.txt', type: 'file' }])
  const read = await fetch(await sandbox.downloadUrl('up.txt', { user: 'root' }))
  assert.equal(await read.text(), "root's")
})

test('without a signature, or for another path', async () => {
  const url = new URL(await sandbox.downloadUrl('signed.txt'))
  url.searchParams.set('path', '/etc/passwd')
  assert.equal((await fetch(url)).status, 401)
})
