// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Notes which endpoints answered to this process, for docs/compatibility.md. Loaded before the Node
// tests, and before the official command line program where test_cli.py runs it.
import { subscribe } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'

const answered = new Set()

subscribe('undici:request:headers', ({ request, response }) => {
  if (response.statusCode >= 200 && response.statusCode < 300)
    answered.add(JSON.stringify([request.method, request.path.split('?')[0]]))
})

process.on('exit', () => {
  const content = { answered: [...answered].map((text) => JSON.parse(text)) }
  writeFileSync(`${process.env.ALCOVE_RECORD}/${process.pid}-requests.json`, JSON.stringify(content))
})
