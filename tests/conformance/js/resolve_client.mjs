// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// Loaded before the tests: `import 'e2b'` takes the package of the generation under test, which
// lies in the cache and not above this folder.
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

const modules = process.env.ALCOVE_NODE_MODULES
if (!modules) throw new Error('ALCOVE_NODE_MODULES is not set; run these tests with ./dev test')
const parentURL = pathToFileURL(`${modules}/package.json`).href

registerHooks({
  resolve(specifier, context, next) {
    const ours = specifier === 'e2b' || specifier.startsWith('@e2b/')
    const fromTests = context.parentURL && !context.parentURL.includes('/node_modules/')
    return next(specifier, ours && fromTests ? { ...context, parentURL } : context)
  },
})
