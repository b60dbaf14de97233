// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
import { Sandbox } from 'e2b'

// One program makes the sandbox, starts something and goes away.
const sandbox = await Sandbox.create({ timeoutMs: 60_000, metadata: { job: '43' } })
const job = await sandbox.commands.run('sleep 2; echo the job is done', { background: true })
await job.disconnect()

// Another one finds it, gives it more time and waits for the result.
const [found] = await Sandbox.list({ query: { metadata: { job: '43' } } }).nextItems()
const again = await Sandbox.connect(found.sandboxId, { timeoutMs: 600_000 })
const [running] = await again.commands.list()
const result = await (await again.commands.connect(running.pid)).wait()
process.stdout.write(result.stdout)
console.log('killed:', await again.kill())
