// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Notes which endpoints answered to this process, for docs/compatibility.md. Loaded before the Node
// tests, and before the official command line program where test_cli.py runs it.
import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'

const answered = new Set()

/** The last request that was answered with an error, which is what a call that fails tells of. */
export let failedRequest

subscribe('undici:request:headers', ({ request, response }) => {
  const seen = [request.method, request.path.split('?')[0]]
  if (response.statusCode >= 400) failedRequest = seen
  else if (response.statusCode >= 200 && response.statusCode < 300) answered.add(JSON.stringify(seen))
})

process.on('exit', () => {
  const content = { answered: [...answered].map((text) => JSON.parse(text)) }
  writeFileSync(`${process.env.ALCOVE_RECORD}/${process.pid}-requests.json`, JSON.stringify(content))
})
