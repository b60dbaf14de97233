// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What the server does not have is refused by name, and the client tells its user so.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BuildError, Sandbox, SandboxError, Secret, SecretError, Template, TemplateError, Volume, VolumeError } from 'e2b'
import { create, rejects } from './support.mjs'

const unbuilt = 'is not available on this server yet.'

test('of a sandbox', async () => {
  const sandbox = await create()
  await rejects(sandbox.pause(), SandboxError, `400: pause ${unbuilt}`)
  await rejects(sandbox.betaPause(), SandboxError, `400: pause ${unbuilt}`)
  await rejects(sandbox.fork(), SandboxError, `400: fork ${unbuilt}`)
  await rejects(sandbox.createSnapshot(), SandboxError, `400: snapshot ${unbuilt}`)
  await rejects(sandbox.updateNetwork({ denyOut: ['0.0.0.0/0'] }), SandboxError, `400: network ${unbuilt}`)
  assert.equal(await sandbox.isRunning(), true)
  assert.deepEqual(await sandbox.listSnapshots().nextItems(), [])
  assert.equal(await Sandbox.deleteSnapshot('no-such-snapshot'), false)
})

test('volumes', async () => {
  const text = '403: Volumes are not enabled.'
  for (const method of ['create', 'list', 'connect', 'getInfo', 'destroy']) await rejects(Volume[method]('x'), VolumeError, text)
})

test('secrets', async () => {
  const text = '403: Secrets are not enabled.'
  for (const method of ['create', 'getInfo', 'update', 'exists', 'destroy']) await rejects(Secret[method]('x', 'y'), SecretError, text)
  await rejects(Secret.list().nextItems(), SecretError, text)
})

test('templates', async () => {
  const template = () => Template().fromImage('debian:13').runCmd('true')
  await rejects(Template.build(template(), 'mine'), BuildError, `400: building a template ${unbuilt}`)
  await rejects(Template.buildInBackground(template(), 'mine'), BuildError, `400: building a template ${unbuilt}`)
  for (const method of ['getTags', 'assignTags', 'removeTags'])
    await rejects(Template[method]('base', 'v1'), TemplateError, `400: tagging a template ${unbuilt}`)
  assert.deepEqual([await Template.exists('base'), await Template.aliasExists('base'), await Template.exists('none')], [true, true, false])
})
