// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create()

// Relative names are below the user's home directory; folders are made on the way.
await sandbox.files.write('data/prices.csv', 'pear,3\napple,2\n')
await sandbox.files.rename('data/prices.csv', 'data/fruit.csv')
for (const entry of await sandbox.files.list('data')) {
  console.log(entry.path, entry.size)
}
process.stdout.write(await sandbox.files.read('data/fruit.csv'))

// Large files are streamed; neither side holds them in memory.
await sandbox.commands.run('head -c 50M /dev/zero > /tmp/large')
let bytes = 0
for await (const chunk of await sandbox.files.read('/tmp/large', { format: 'stream' })) {
  bytes += chunk.length
}
console.log(bytes, 'bytes')

await sandbox.kill()
