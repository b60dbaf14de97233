// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Files, by the JS client.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, test } from 'node:test'
import { FileNotFoundError, FileType, InvalidArgumentError, NotEnoughSpaceError } from 'e2b'
import { atLeast, create, eventually, rejects } from './support.mjs'

let sandbox
before(async () => {
  sandbox = await create({ timeoutMs: 300_000 })
})

const bytes = Uint8Array.from({ length: 70000 }, (_, n) => n % 256)

test('text, bytes, blob and stream round trips', async () => {
  const info = await sandbox.files.write('note.txt', 'zwölf 😀')
  assert.deepEqual([info.name, info.path, info.type], ['note.txt', '/home/user/note.txt', FileType.FILE])
  assert.equal(await sandbox.files.read('note.txt'), 'zwölf 😀')
  await sandbox.files.write('/tmp/buffer', bytes.buffer)
  assert.deepEqual(await sandbox.files.read('/tmp/buffer', { format: 'bytes' }), bytes)
  await sandbox.files.write('/tmp/blob', new Blob([bytes]))
  const blob = await sandbox.files.read('/tmp/blob', { format: 'blob' })
  assert.deepEqual(new Uint8Array(await blob.arrayBuffer()), bytes)
  await sandbox.files.write('/tmp/stream', new Blob([bytes]).stream())
  const stream = await sandbox.files.read('/tmp/stream', { format: 'stream' })
  assert.deepEqual(new Uint8Array(await new Response(stream).arrayBuffer()), bytes)
})

test('empty file in every format', async () => {
  await sandbox.files.write('empty', '')
  assert.equal(await sandbox.files.read('empty'), '')
  assert.equal((await sandbox.files.read('empty', { format: 'bytes' })).length, 0)
  assert.equal((await sandbox.files.read('empty', { format: 'blob' })).size, 0)
  const stream = await sandbox.files.read('empty', { format: 'stream' })
  assert.equal((await new Response(stream).arrayBuffer()).byteLength, 0)
})

test('many files in one call', async () => {
  const files = Array.from({ length: 10 }, (_, n) => ({ path: n % 2 ? `/many/${n}/f` : `many-${n}`, data: `data ${n}` }))
  const written = await sandbox.files.write(files)
  assert.deepEqual(written.map((info) => info.path), files.map((file) => (file.path.startsWith('/') ? file.path : `/home/user/${file.path}`)))
  for (const file of files) assert.equal(await sandbox.files.read(file.path), file.data)
  assert.deepEqual(await sandbox.files.write([]), [])
})

test('writeFiles takes text, bytes and blobs', async () => {
  const files = [{ path: '/several/text', data: 'täxt' }, { path: 'several-bytes', data: bytes.buffer }, { path: 'several-blob', data: new Blob(['b']) }]
  const written = await sandbox.files.writeFiles(files)
  assert.deepEqual(written.map((info) => [info.name, info.path]), [
    ['text', '/several/text'], ['several-bytes', '/home/user/several-bytes'], ['several-blob', '/home/user/several-blob'],
  ])
  assert.equal(await sandbox.files.read('/several/text'), 'täxt')
  assert.deepEqual(await sandbox.files.read('several-bytes', { format: 'bytes' }), bytes)
  assert.equal(await sandbox.files.read('several-blob'), 'b')
  assert.deepEqual(await sandbox.files.writeFiles([]), [])
  await rejects(sandbox.files.writeFiles([{ path: '/etc', data: 'x' }]), InvalidArgumentError)
})

for (const name of ['with space', 'ünï😀', 'a\'b"c', 'per%cent+plus&and#']) {
  test(`a file named ${name}`, async () => {
    const info = await sandbox.files.write(`/tmp/odd/${name}`, name)
    assert.equal(info.path, `/tmp/odd/${name}`)
    assert.equal(await sandbox.files.read(`/tmp/odd/${name}`), name)
    await sandbox.files.remove(`/tmp/odd/${name}`)
  })
}

test('info', async () => {
  await sandbox.files.write('f.txt', '12345')
  const info = await sandbox.files.getInfo('f.txt')
  assert.deepEqual(
    [info.name, info.path, info.type, info.size, info.mode, info.permissions, info.owner, info.group, info.symlinkTarget],
    ['f.txt', '/home/user/f.txt', FileType.FILE, 5, 0o644, '-rw-r--r--', 'user', 'user', undefined]
  )
  assert.ok(Math.abs(info.modifiedTime.getTime() - Date.now()) < 30_000)
  await rejects(sandbox.files.getInfo('none'), FileNotFoundError)
  await sandbox.commands.run('ln -sf f.txt link')
  assert.equal((await sandbox.files.getInfo('link')).symlinkTarget, '/home/user/f.txt')
})

test('list is sorted, in preorder, and as deep as asked', async () => {
  for (const name of ['b/1', 'a', 'C', 'b/inner/deep']) await sandbox.files.write(`/tmp/tree/${name}`, name)
  const paths = async (depth) => (await sandbox.files.list('/tmp/tree', depth && { depth })).map((entry) => entry.path.slice('/tmp/tree/'.length))
  assert.deepEqual(await paths(), ['C', 'a', 'b'])
  assert.deepEqual(await paths(2), ['C', 'a', 'b', 'b/1', 'b/inner'])
  assert.deepEqual(await paths(3), ['C', 'a', 'b', 'b/1', 'b/inner', 'b/inner/deep'])
  assert.deepEqual((await sandbox.files.list('/tmp/tree')).map((entry) => entry.type), [FileType.FILE, FileType.FILE, FileType.DIR])
  await rejects(sandbox.files.list('/tmp/none'), FileNotFoundError)
  await rejects(sandbox.files.list('/tmp/tree/a'), InvalidArgumentError)
})

test('exists, makeDir, rename, remove', async () => {
  assert.equal(await sandbox.files.exists('x'), false)
  assert.equal(await sandbox.files.makeDir('x/y'), true)
  assert.equal(await sandbox.files.makeDir('x/y'), false)
  assert.equal(await sandbox.files.exists('x/y'), true)
  await sandbox.files.write('old', 'text')
  const info = await sandbox.files.rename('old', 'new/place')
  assert.deepEqual([info.name, info.path], ['place', '/home/user/new/place'])
  assert.equal(await sandbox.files.read('new/place'), 'text')
  await rejects(sandbox.files.rename('none', 'anywhere'), FileNotFoundError)
  await sandbox.files.remove('new')
  assert.equal(await sandbox.files.exists('new'), false)
  await sandbox.files.remove('new')
})

test('missing files and directories', async () => {
  await rejects(sandbox.files.read('none'), FileNotFoundError)
  await rejects(sandbox.files.read('none', { format: 'stream' }), FileNotFoundError)
  await rejects(sandbox.files.read('/etc'), InvalidArgumentError)
  await rejects(sandbox.files.write('/etc', 'x'), InvalidArgumentError)
})

test('files of another user', async () => {
  assert.equal((await sandbox.files.write('whose', 'x', { user: 'root' })).path, '/root/whose')
  assert.equal((await sandbox.files.getInfo('/root/whose')).owner, 'root')
})

test('metadata', { skip: !atLeast(2, 40) && 'the client has no file metadata' }, async () => {
  const written = await sandbox.files.write('meta', 'x', { metadata: { Author: 'me' } })
  assert.deepEqual(written.metadata, { author: 'me' })
  assert.deepEqual((await sandbox.files.getInfo('meta')).metadata, { author: 'me' })
  await sandbox.files.write('meta', 'y')
  assert.equal((await sandbox.files.getInfo('meta')).metadata, undefined)
})

test('a hundred megabytes, streamed both ways', { timeout: 180_000 }, async () => {
  const block = new Uint8Array(1 << 20)
  const hash = createHash('sha256')
  let left = 100
  const source = new ReadableStream({
    pull(controller) {
      if (left-- === 0) return controller.close()
      const piece = block.slice().fill(left)
      hash.update(piece)
      controller.enqueue(piece)
    },
  })
  await sandbox.files.write('/tmp/big', source)
  const sent = hash.digest('hex')
  const back = createHash('sha256')
  let size = 0
  for await (const chunk of await sandbox.files.read('/tmp/big', { format: 'stream' })) {
    back.update(chunk)
    size += chunk.length
  }
  assert.equal(size, 100 << 20)
  assert.equal(back.digest('hex'), sent)
  assert.equal((await sandbox.commands.run('sha256sum < /tmp/big')).stdout.split(' ')[0], sent)
})

test('gzip both ways, one file and several', { skip: !atLeast(2, 40) && 'the client has no gzip uploads' }, async () => {
  const text = 'compress me '.repeat(1000)
  await sandbox.files.write('z', text, { gzip: true })
  assert.equal((await sandbox.commands.run('wc -c < z')).stdout.trim(), String(text.length))
  assert.equal(await sandbox.files.read('z', { gzip: true }), text)
  assert.equal(await sandbox.files.read('z'), text)
  const written = await sandbox.files.write([{ path: 'z1', data: text }, { path: 'z2', data: bytes.buffer }], { gzip: true })
  assert.deepEqual(written.map((info) => info.path), ['/home/user/z1', '/home/user/z2'])
  assert.deepEqual(await sandbox.files.read('z2', { format: 'bytes', gzip: true }), bytes)
  const stream = await sandbox.files.read('z2', { format: 'stream', gzip: true })
  assert.deepEqual(new Uint8Array(await new Response(stream).arrayBuffer()), bytes)
})

for (const useOctetStream of [true, false]) {
  test(`uploads with useOctetStream ${useOctetStream}`, { skip: !atLeast(2, 40) && 'the client has no octet-stream uploads' }, async () => {
    const data = bytes.slice(0, 40000)
    await sandbox.files.write('way', data.buffer, { useOctetStream })
    assert.deepEqual(await sandbox.files.read('way', { format: 'bytes' }), data)
    await sandbox.files.write([{ path: 'way1', data: 'täxt' }, { path: 'way2', data: new Blob([data]) }], { useOctetStream })
    assert.equal(await sandbox.files.read('way1'), 'täxt')
    assert.deepEqual(await sandbox.files.read('way2', { format: 'bytes' }), data)
  })
}

test('metadata of several files, in lists and after a rename', { skip: !atLeast(2, 40) && 'the client has no file metadata' }, async () => {
  const files = [{ path: '/tmp/m/1', data: 'a' }, { path: '/tmp/m/2', data: 'b' }]
  const written = await sandbox.files.write(files, { metadata: { Kind: 'test' } })
  assert.deepEqual(written.map((info) => info.metadata), [{ kind: 'test' }, { kind: 'test' }])
  assert.deepEqual((await sandbox.files.list('/tmp/m')).map((entry) => entry.metadata), [{ kind: 'test' }, { kind: 'test' }])
  assert.deepEqual((await sandbox.files.rename('/tmp/m/1', '/tmp/m/3')).metadata, { kind: 'test' })
  await rejects(sandbox.files.write('/tmp/m/refused', 'x', { metadata: { 'a b': 'x' } }), InvalidArgumentError)
  assert.equal(await sandbox.files.exists('/tmp/m/refused'), false)
  await sandbox.commands.run("python3 -c 'import os; os.setxattr(\"/tmp/m/2\", \"user.e2b.author\", b\"inside\")'")
  assert.deepEqual((await sandbox.files.getInfo('/tmp/m/2')).metadata, { kind: 'test', author: 'inside' })
})

test('directories and links', async () => {
  await sandbox.files.makeDir('dir/sub')
  const info = await sandbox.files.getInfo('dir')
  assert.deepEqual([info.type, info.mode, info.permissions, info.owner], [FileType.DIR, 0o755, 'drwxr-xr-x', 'user'])
  assert.ok(info.size > 0)
  await sandbox.commands.run('ln -s dir dirlink && ln -s nowhere broken')
  const link = await sandbox.files.getInfo('dirlink')
  assert.deepEqual([link.symlinkTarget, link.permissions], ['/home/user/dir', 'Lrwxrwxrwx'])
  assert.equal((await sandbox.files.getInfo('broken')).symlinkTarget, '/home/user/broken')
  await rejects(sandbox.files.list('/tmp', { depth: 0 }), InvalidArgumentError, 'depth should be at least one')
})

test('a file whose size is not known', async () => {
  const id = await sandbox.files.read('/proc/sys/kernel/random/boot_id')
  assert.match(id, /^[0-9a-f-]{36}\n$/)
})

test('a full disk is said to be full', { timeout: 700_000 }, async () => {
  // Built after `base`, while other tests run already.
  let small
  const made = async () => (small = await create({ template: 'small-disk' }).catch(() => undefined)) !== undefined
  assert.ok(await eventually(made, 600_000))
  // Reserves instead of writing, so that it takes no time; the rest in small pieces.
  const fill = 'i=0; for size in 64M 1M 16K; do while fallocate -l $size /tmp/fill-$((i+=1)); do :; done; done 2>&1; true'
  await small.commands.run(fill, { timeoutMs: 50_000 })
  await rejects(small.files.write('/tmp/more', new Blob([new Uint8Array(4 << 20)])), NotEnoughSpaceError, 'not enough disk space')
  await small.commands.run('rm -f /tmp/fill-* /tmp/more')
  await small.files.write('/tmp/more', new Blob([bytes]))
  assert.deepEqual(await small.files.read('/tmp/more', { format: 'bytes' }), bytes)
})
