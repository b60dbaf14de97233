// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What the server does not have is refused by name, and the client tells its user so.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as e2b from 'e2b'
import { create, rejects } from './support.mjs'

// Not all generations have all of them.
const { BuildError, Sandbox, SandboxError, Secret, SecretError, Template, TemplateError, Volume, VolumeError } = e2b
const unbuilt = 'is not available on this server yet.'
const without = (thing) => !thing && 'the client has nothing of it'

test('of a sandbox', { skip: without(Sandbox.prototype.pause) }, async () => {
  const sandbox = await create()
  const refused = { pause: 'pause', betaPause: 'pause', fork: 'fork', createSnapshot: 'snapshot', updateNetwork: 'network' }
  for (const [method, name] of Object.entries(refused))
    if (sandbox[method]) await rejects(sandbox[method]({ denyOut: ['0.0.0.0/0'] }), SandboxError, `400: ${name} ${unbuilt}`)
  assert.equal(await sandbox.isRunning(), true)
  assert.deepEqual(await sandbox.listSnapshots().nextItems(), [])
  assert.equal(await Sandbox.deleteSnapshot('no-such-snapshot'), false)
})

test('of a create', { skip: without(Sandbox.betaCreate) }, async () => {
  const sandbox = await Sandbox.betaCreate({ timeoutMs: 60_000 })
  after(() => sandbox.kill())
  assert.equal((await sandbox.commands.run('echo made')).stdout, 'made\n')
  await rejects(Sandbox.betaCreate({ timeoutMs: 60_000, autoPause: true }), SandboxError, `400: autoPause ${unbuilt}`)
})

test('volumes', { skip: without(Volume) }, async () => {
  const text = '403: Volumes are not enabled.'
  for (const method of ['create', 'list', 'connect', 'getInfo', 'destroy']) await rejects(Volume[method]('x'), VolumeError, text)
})

test('secrets', { skip: without(Secret) }, async () => {
  const text = '403: Secrets are not enabled.'
  for (const method of ['create', 'getInfo', 'update', 'exists', 'destroy']) await rejects(Secret[method]('x', 'y'), SecretError, text)
  await rejects(Secret.list().nextItems(), SecretError, text)
})

test('templates', { skip: without(Template) }, async () => {
  const template = () => Template().fromImage('debian:13').runCmd('true')
  await rejects(Template.build(template(), 'mine'), BuildError, `400: building a template ${unbuilt}`)
  await rejects(Template.buildInBackground(template(), 'mine'), BuildError, `400: building a template ${unbuilt}`)
  for (const method of ['getTags', 'assignTags', 'removeTags'])
    await rejects(Template[method]('base', 'v1'), TemplateError, `400: tagging a template ${unbuilt}`)
  assert.deepEqual([await Template.exists('base'), await Template.aliasExists('base'), await Template.exists('none')], [true, true, false])
})
