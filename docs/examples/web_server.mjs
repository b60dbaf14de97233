// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from 'e2b'

const sandbox = await Sandbox.create()

// What the service on that port of the sandbox answers.
const request = (port, path = '/') => fetch(`https://${sandbox.getHost(port)}${path}`)

await sandbox.files.write('site/index.html', 'served from a sandbox\n')
await sandbox.commands.run('python -m http.server 8000 --directory site', { background: true })
let reply = await request(8000)
while (reply.status === 502) {
  // Until somebody listens on the port.
  await new Promise((done) => setTimeout(done, 100))
  reply = await request(8000)
}
process.stdout.write(await reply.text())

await sandbox.kill()
