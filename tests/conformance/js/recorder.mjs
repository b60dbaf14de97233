// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// What tests/recorder.py does for Python: notes which public methods of the official packages
// returned, which were refused, and which endpoints answered. The packages' own type declarations
// say what is public. Loaded before the tests; the files of the packages stay as published.
import { AsyncLocalStorage } from 'node:async_hooks'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { failedRequest } from './request_recorder.mjs'

const REFUSAL = /(?:^|: )([\w.[\] -]+ (?:is not available on this server yet|are not enabled)\.)/
const INSIDE = /Config$|ApiClient$|Error$|^(?:LogEntry|ReadyCmd$|OutputMessage$|Result$|Execution$)/

const methods = []
const returned = new Set()
const refused = new Set()
const turnedDown = new Set()
/** Lists that were asked for -> the key of what asked: it shows what it can do with the first page. */
const askedBy = new WeakMap()
const inside = new AsyncLocalStorage()

/** Class name -> { parent, names } of every class that the package declares. */
function declared(packageName) {
  const file = `${process.env.ALCOVE_NODE_MODULES}/node_modules/${packageName}/dist/index.d.ts`
  const classes = new Map()
  if (!existsSync(file)) return classes
  let current, indent
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const head = line.match(/^(?:export )?declare (?:abstract )?class (\w+)(?:<.*?> )?.*?(?: extends (\w+))?[ <].*\{$/)
    if (head) classes.set(head[1], (current = { parent: head[2], names: new Set() }))
    else if (line.startsWith('}')) current = undefined
    const member = current && line.match(/^( +)((?:(?:private|protected|static|abstract|async) )*)(\w+)[(<]/)
    // The members of a class are indented as the first of them is; what is deeper is a type.
    if (head) indent = undefined
    else if (current) indent ??= line.match(/^ */)[0]
    if (member?.[1] !== indent || !member) continue
    if (!/private|protected/.test(member[2]) && member[3] !== 'constructor') current.names.add(member[3])
  }
  return classes
}

/** The classes that are no other's parent, with the methods that they inherit: name -> names. */
function leaves(classes) {
  const parents = new Set([...classes.values()].map((entry) => entry.parent))
  const found = new Map()
  for (const [name, entry] of classes) {
    if (INSIDE.test(name) || (parents.has(name) && name !== entry.parent)) continue
    const names = new Set(entry.names)
    for (let up = classes.get(entry.parent); up && up !== entry; up = classes.get(up.parent)) up.names.forEach((n) => names.add(n))
    if (names.size) found.set(name, names)
  }
  return found
}

const packages = ['e2b', '@e2b/code-interpreter'].map((name) => ({ name, section: `\`${name}\` for JavaScript`, classes: leaves(declared(name)) }))
const shown = (name, method) => `${name.replace(/Base$/, '')}.${method}()`
for (const { section, classes } of packages)
  for (const [name, names] of classes) for (const method of names) methods.push([section, shown(name, method), ''])

function recorded(original, key) {
  return function (...args) {
    if (inside.getStore()) return original.apply(this, args)
    const keys = [key, askedBy.get(this)].filter(Boolean)
    const done = (value) => {
      if (typeof value?.nextItems === 'function') askedBy.set(value, key)
      // False says that there was nothing to do it to, which any server can say.
      else if (value !== false) keys.forEach((one) => returned.add(one))
      learn(value)
      return value
    }
    const failed = (error) => {
      const refusal = REFUSAL.exec(String(error?.message).slice(0, 1000))
      if (refusal) keys.forEach((one) => refused.add(JSON.stringify([...JSON.parse(one), refusal[1]])))
      if (refusal && failedRequest) turnedDown.add(JSON.stringify([...failedRequest, refusal[1]]))
      throw error
    }
    let result
    try {
      result = inside.run(true, () => original.apply(this, args))
    } catch (error) {
      failed(error)
    }
    return result instanceof Promise ? result.then(done, failed) : done(result)
  }
}

const patched = new Set()

function patch(type, { section, classes }, name) {
  if (patched.has(type)) return
  patched.add(type)
  for (const holder of [type, type.prototype])
    for (const method of classes.get(name) ?? [])
      if (typeof holder[method] === 'function')
        Object.defineProperty(holder, method, {
          value: recorded(holder[method], JSON.stringify([section, shown(name, method), ''])),
          writable: true,
          configurable: true,
        })
}

const met = new Set()

/** Classes that no package exports are met as values: `sandbox.files`, the handle of a command. */
function learn(value) {
  const type = value?.constructor
  if (typeof value !== 'object' || typeof type !== 'function' || met.has(type)) return
  const name = type.name.replace(/^_|\d+$/g, '')
  const owner = packages.find(({ classes }) => classes.has(name))
  if (!owner) return
  met.add(type)
  patch(type, owner, name)
  for (const part of Object.values(value)) learn(part)
}

for (const one of packages) {
  if (!one.classes.size) continue
  for (const [key, type] of Object.entries(await import(one.name)))
    if (typeof type === 'function') patch(type, one, key.replace(/^_/, ''))
}

const parsed = (set) => [...set].map((text) => JSON.parse(text))
process.on('exit', () => {
  const content = { methods, returned: parsed(returned), refused: parsed(refused), turned_down: parsed(turnedDown) }
  writeFileSync(`${process.env.ALCOVE_RECORD}/${process.pid}.json`, JSON.stringify(content))
})
