// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What a sandbox uses, by the JS client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from 'e2b'
import { atLeast, create, eventually } from './support.mjs'

const MiB = 1 << 20
const hour = 3_600_000

test('metrics', async () => {
  const sandbox = await create()
  assert.ok(await eventually(async () => (await sandbox.getMetrics()).length > 0, 10_000))
  const [metric] = await Sandbox.getMetrics(sandbox.sandboxId)
  assert.deepEqual([metric.cpuCount, metric.memTotal, metric.diskTotal], [2, 1024 * MiB, 10240 * MiB])
  assert.ok(metric.cpuUsedPct >= 0 && metric.cpuUsedPct <= 100, metric.cpuUsedPct)
  assert.ok(metric.memUsed > 0 && metric.memUsed < 100 * MiB, metric.memUsed)
  assert.ok(metric.diskUsed > 0 && metric.diskUsed < 100 * MiB, metric.diskUsed)
  const { startedAt } = await sandbox.getInfo()
  assert.ok(metric.timestamp >= startedAt && metric.timestamp <= new Date())
})

test('metrics of a time range', { skip: !atLeast(2, 45) && 'the client does not send the range' }, async () => {
  const sandbox = await create()
  assert.ok(await eventually(async () => (await sandbox.getMetrics()).length > 0, 10_000))
  const started = (await sandbox.getInfo()).startedAt.getTime()
  assert.ok((await sandbox.getMetrics({ start: new Date(started - 1000), end: new Date(started + hour) })).length > 0)
  assert.deepEqual(await sandbox.getMetrics({ start: new Date(started - 2 * hour), end: new Date(started - hour) }), [])
})
